"""All benchmarks in one run: prints a table and writes docs/results.md (`make bench`).

Every row is a figure with the bound that it is held to, if any; `make figures` checks those.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import rusbeir
from benchmarks import quotes

HERE = Path(__file__).parent
RESULTS = HERE.parent / "docs" / "results.md"
SCALE_HEADING = "## The whole path at MS MARCO's size"
"""What follows it is written by scale.py, once; it takes an hour."""

PACKAGES = [
    "rusbeir",
    "tantivy",
    "bm25s",
    "numba",
    "pyterrier-pisa",
    "pymorphy3",
    "PyStemmer",
    "faiss-cpu",
    "pytrec_eval-terrier",
]


def find_data() -> None:
    """Make the folders of RUSBEIR_DATA absolute; if it names none, take the one next to the project."""
    neighbour = HERE.parent.parent / "shared" / "data"
    named = os.environ.get("RUSBEIR_DATA") or (str(neighbour) if neighbour.is_dir() else "")
    # Commands run in folders of their own.
    folders = [str(Path(folder).resolve()) for folder in named.split(os.pathsep) if folder]
    os.environ["RUSBEIR_DATA"] = os.pathsep.join(folders)


def rows(n_docs: int = 1_000_000) -> Iterator[dict[str, Any]]:
    """what, measure, value, and at_least or at_most where the figure is claimed."""
    yield from _start()
    yield from _evaluation()
    yield from _analysis(n_docs)
    yield from _search(n_docs)
    yield from _dense(n_docs)
    yield from _encoding()
    yield from _audit()
    yield from _port(n_docs)
    yield from _elastic(n_docs)
    yield from _llm_rerank()
    yield from _comparison()
    yield from _report()


def _start() -> list[dict[str, Any]]:
    program = str(Path(sys.executable).parent / "rusbeir")
    return [
        _row("import rusbeir", "seconds", _best([sys.executable, "-c", "import rusbeir"]), at_most=0.3),
        _row("rusbeir --help", "seconds", _best([program, "--help"]), at_most=0.6),
    ]


def _best(command: list[str], rounds: int = 5) -> float:
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _evaluation() -> list[dict[str, Any]]:
    from benchmarks import evaluation

    timing = evaluation.measure()
    what = "evaluate 10,000 queries × 1,000 hits"
    return [
        _row(what, "seconds", timing["seconds"]),
        _row(what, "time, as a multiple of calling pytrec_eval", timing["ratio"], at_most=1.3),
    ]


def _audit() -> list[dict[str, Any]]:
    from benchmarks import audit

    rows = []
    for row in audit.damage():
        what = f"audit, 50 of each damage in 2,000 XQuAD segments: {row['check']}"
        if "recall" in row:
            rows.append(_row(what, "recall", row["recall"], at_least=0.95))
        if row["check"] != "any":
            rows.append(_row(what, "false alarms", row["false_alarms"], at_most=0.01))
    row = audit.speed()
    times = row["chrf_times_sacrebleu"]
    what = "audit, 100,000 segments through all checks"
    return [
        *rows,
        _row(what, "segments/s", row["segments_per_second"]),
        _row(what, "MB more at the end than after a fifth", row["rise_mb"], at_most=50),
        _row("chrF, as a multiple of sacrebleu on one core", "one core", times["one_core"], at_least=3.5),
        _row("chrF, as a multiple of sacrebleu on one core", "two cores", times["two_cores"], at_least=7),
    ]


def _analysis(n_docs: int) -> list[dict[str, Any]]:
    from benchmarks import analysis

    bounds = {"rusbeir, cold": 60, "rusbeir, warm": 150}
    return [
        row
        for timing in analysis.measure(n_docs)
        for row in (
            _row(f"Russian analysis: {timing['what']}", "words/s", timing["words_per_second"]),
            _row(
                f"Russian analysis: {timing['what']}",
                "speed, as a multiple of the paper's recipe",
                timing["ratio"],
                **({"at_least": bounds[timing["what"]]} if timing["what"] in bounds else {}),
            ),
        )
    ]


def _search(n_docs: int) -> list[dict[str, Any]]:
    from benchmarks import search

    result = []
    for row in search.measure(n_docs):
        what = f"{row['what']}, {row['n_docs']:,} documents"
        if "peak_bytes" in row:
            result.append(_row(what, "peak MB of all processes", row["peak_bytes"] / 2**20, at_most=1000))
            result.append(_row(what, "of which the stream's own MB", row["stream_bytes"] / 2**20))
            continue
        ours = row["what"].startswith("rusbeir")
        result.append(_row(what, "seconds to index", row["index_seconds"]))
        result += [_row(what, f"queries/s, {_words(k)}", speed) for k, speed in row["queries_per_second"].items()]
        if not ours:
            bound = {"at_least": 5} if row["what"].startswith("bm25s") else {}
            result.append(_row(what, "our index is built so many times as fast", row["index_ratio"], **bound))
            result += [
                _row(what, f"our search is so many times as fast, {_words(k)}", ratio, **_ahead(k))
                for k, ratio in row["search_ratio"].items()
            ]
    return result


def _dense(n_docs: int) -> list[dict[str, Any]]:
    from benchmarks import dense

    row = dense.measure(n_docs)
    what = f"exact search, {n_docs:,} × {dense.DIM} vectors on disk"
    return [
        _row(what, "queries/s, k=100", row["queries_per_second"]),
        _row(what, "speed, as a multiple of one FAISS flat index in memory", row["ratio"], at_least=0.9),
        # A block of 128 MB and 300 MB more.
        _row(what, "peak MB", row["peak_bytes"] / 2**20, at_most=428),
    ]


def _encoding(n: int = 1_500) -> list[dict[str, Any]]:
    from benchmarks import encoding

    row = encoding.measure(n, parts=1)
    what = f"encoding {n:,} passages of NFCorpus's and XQuAD's lengths, all-MiniLM-L6-v2"
    return [
        _row(what, "passages/s", row["passages_per_second"]),
        _row(what, "speed, as a multiple of plain calls over all texts", row["of_plain"], at_least=1),
        _row(what, "speed, as a multiple of calls of 64 texts", row["of_blocks"], at_least=1.5),
        # What such calls can lose to padding: that is all there is to gain by sorting.
        _row(what, "tokens computed in calls of 64 texts, as a multiple of those needed", row["tokens_in_blocks"]),
        _row(what, "share of time outside the model", row["outside_model"], at_most=0.05),
        _row(what, "largest difference from the plain call", row["difference"], at_most=1e-6),
    ]


def _ahead(kind: str) -> dict[str, float]:
    """What is claimed of a kind of query: nothing where it holds the words that an analyzer drops."""
    return {"at_least": 1} if kind.startswith("content") else {}


def _words(kind: str) -> str:
    """`content@100` in words: queries of content words or of any, and how deep."""
    words, depth = kind.split("@")
    return f"{words} words, k={depth}"


def _port(n_docs: int) -> list[dict[str, Any]]:
    from benchmarks import port

    return port.rows(n_docs)


def _elastic(n_docs: int, n_queries: int = 10_000) -> list[dict[str, Any]]:
    from benchmarks import elastic

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        speeds = elastic.speed(Path(folder) / "speed", n_docs, n_queries)
        drilled = elastic.cluster(Path(folder) / "cluster", n_docs // 5, n_queries, "8")
    rows = []
    for engine, figures in speeds.items():
        what = f"load {n_docs:,} documents, {n_queries:,} queries at k=100: {engine}"
        for measure, value in figures.items():
            bound = {"at_most": 400} if (engine, measure) == ("elasticsearch", "peak MB") else {}
            rows.append(_row(what, measure, value, **bound))
    ratio = speeds["elasticsearch"]["docs/s"] / speeds["as BEIR loads"]["docs/s"]
    rows.append(_row("Elasticsearch loads", "speed, as a multiple of BEIR's way", ratio, at_least=3))
    for what, count in drilled.items():
        whole = n_docs // 5 if "documents" in what else n_queries
        rows.append(_row("three nodes of Elasticsearch", what, count, at_least=whole))
    return rows


def _llm_rerank() -> list[dict[str, Any]]:
    from benchmarks import llm_rerank

    what = "SmolLM2 reranks 50 queries of xquad/en"
    before, after = llm_rerank.measure("xquad/en", "llm")
    return [
        _row(what, "pairs judged", after["pairs"], at_least=149),
        _row(what, "seconds", after["seconds"]),
        _row(what, "nDCG@10 ×100 before", before["nDCG@10"]),
        _row(what, "nDCG@10 ×100 after", after["nDCG@10"]),
    ]


def _comparison() -> list[dict[str, Any]]:
    """Whether the tests and intervals of `rusbeir compare` keep their levels."""
    from benchmarks import compare

    golden = HERE.parent.parent / "shared" / "golden" / "urbano"
    if not golden.is_dir():
        return []
    bounds: dict[str, dict[str, float]] = {
        "type I error at 0.05": {"expected": 0.05, "within": 0.005},
        "family-wise error at 0.05": {"at_most": 0.055},
        "rejections of MaxT / of Holm": {"at_least": 1},
        "least coverage of the 95 % intervals": {"at_least": 0.935},
        "greatest coverage of the 95 % intervals": {"at_most": 0.965},
        "coverage of all rank intervals": {"at_least": 0.95},
        "seconds": {"at_most": 20},
    }
    with tempfile.TemporaryDirectory() as folder:
        for system in ("bm25", "bm25(profile=snowball)", "bm25(profile=raw)"):
            rusbeir.bench("xquad/ru", system, out=folder)
        figures = compare.measure(golden, Path(folder))
    return [_row(what, measure, value, **bounds[measure]) for what, measure, value in figures]


def _report() -> list[dict[str, Any]]:
    """How large a report is, and how fast Chromium shows it."""
    from benchmarks import site
    from tests.support.browser import CHROMIUM

    return site.rows() if CHROMIUM.exists() else []


def _row(what: str, measure: str, value: float, **bound: float) -> dict[str, Any]:
    return {"what": what, "measure": measure, "value": value, **bound}


def table(rows: list[dict[str, Any]]) -> str:
    """The rows in Markdown."""
    lines = ["| what | measure | value | claimed |", "|---|---|---|---|"]
    for row in rows:
        bound = f"≥ {row['at_least']:g}" if "at_least" in row else f"≤ {row['at_most']:g}" if "at_most" in row else ""
        bound = f"{row['expected']:g} ± {row['within']:g}" if "within" in row else bound
        lines.append(f"| {row['what']} | {row['measure']} | {_number(row['value'])} | {bound} |")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def write(rows: list[dict[str, Any]]) -> None:
    """Write the rows to docs/results.md, with the machine and the versions; what scale.py wrote there stays."""
    _, heading, scale = RESULTS.read_text(encoding="utf-8").partition(SCALE_HEADING)
    machine = f"{len(os.sched_getaffinity(0))} cores ({platform.machine()}), Python {platform.python_version()}"
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    RESULTS.write_text(
        "# Benchmarks\n\n`make bench` and `make figures` write this, in one run of `python -m benchmarks.run`\n"
        f"on {machine}.\n{versions}.\n\n"
        "Russian words are forms of pymorphy3's dictionary drawn by Zipf's law, 50 a document; queries\n"
        "have six words; ids are included. Content words leave out the 150 commonest, which take the\n"
        "place of the stop words that analyzers drop; any words include them. The machine is\n"
        "shared: ratios of one run say more than seconds.\n\n"
        f"{table(rows)}\n" + (f"\n{heading}{scale}" if heading else ""),
        encoding="utf-8",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=int, default=1_000_000)
    docs = parser.parse_args().docs
    find_data()
    figures = list(rows(docs))
    print(table(figures))
    write(figures)
    quotes.write_pages({(row["what"], row["measure"]): float(row["value"]) for row in figures})


if __name__ == "__main__":
    main()
