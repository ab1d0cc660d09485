"""Ports on real and on faulty translators: speed, memory, kills; part of `make bench`.

python -m benchmarks.port [--docs 1000000] [--throughput] [--profile 20000]

Apertium translates Cocktail's NFCorpus (RUSBEIR_DATA must contain it) into Spanish, also killed and resumed. Local
servers that answer like Google and like OpenAI fail in a fifth of 10,000 segments. A translator that answers at once
shows what the pipeline itself costs, and with 1,000,000 documents what memory it takes.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import kills, memory, port_data

Row = dict[str, Any]

APERTIUM = ["--to", "es", "--translator", "apertium", "--keep-untranslated"]
INSTANT = ["--to", "ru", "--translator", "python:benchmarks.port_data.instant"]
IMPATIENT = {
    "requests_per_second": 100_000.0, "concurrency": 16, "retries": 8, "first_wait_seconds": 0.001,
    "max_wait_seconds": 0.02, "breaker": 100,
}  # fmt: skip


def rows(n_docs: int = 1_000_000) -> list[Row]:
    """what, measure, value, and at_least, at_most or exactly where the figure is claimed."""
    figures = [*_faults(), *_instant(), *_memory(n_docs)]
    return [*_apertium(), *figures] if shutil.which("apertium") else figures


def _apertium() -> list[Row]:
    what = "port cocktail/nfcorpus/human en-es, apertium"
    source = "cocktail/nfcorpus/human"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started = time.monotonic()
        kills.finish(kills.command(source, folder / "alone", *APERTIUM))
        seconds = time.monotonic() - started
        outcome = kills.kill_and_go_on(source, folder, APERTIUM, kills=3, least_seconds=5.0, alone=seconds)
        row = _row(what, "seconds", seconds, at_most=360)
        killed = _row(what, "ports that differ after 3 kills", outcome.differing, at_most=0)
        return [row, killed, *_ndcg(source, "English", folder), *_ndcg(str(folder / "alone"), "Spanish", folder)]


def _ndcg(dataset: str, language: str, folder: Path) -> list[Row]:
    done = subprocess.run(
        [sys.executable, "-m", "rusbeir.cli", "bench", dataset, "--json", "--out", str(folder / "results")],
        check=True,
        stdout=subprocess.PIPE,
    )
    row = json.loads(done.stdout)["rows"][0]
    return [_row(f"bm25 on NFCorpus in {language}", "nDCG@10 ×100", 100 * row["measures"]["nDCG@10"])]


def _faults(n_segments: int = 10_000) -> list[Row]:
    """10,000 segments through servers of which a fifth of the answers is none."""
    from rusbeir.translation.porting.api import port
    from tests.support import translation_servers as servers

    figures: list[Row] = []
    backends: list[tuple[str, dict[str, Any]]] = [
        ("google", {"timeout_seconds": 0.6}),
        ("llm", {"timeout_seconds": 3.0, "llm": servers.MODEL}),
    ]
    for name, options in backends:
        with (
            tempfile.TemporaryDirectory() as folder,
            servers.TranslationServer(faults=0.2, seed=7, slow_seconds=1.0, translate=port_data.translated) as server,
        ):
            source = port_data.write_corpus(Path(folder) / "source", n_segments - 100, sentences=1, n_queries=100)
            os.environ |= {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": servers.OPENAI_KEY}
            if name == "google":
                options["endpoint"] = server.url
            report = port(source, to="ru", translator=name, out=Path(folder) / "out", **IMPATIENT, **options)
            lines = zip(*map(_texts, (source, Path(folder) / "out")), strict=True)
            wrong = sum(port_data.translated(original) != text for original, text in lines)
            faults = sum(server.served[kind] for kind in servers.FAULTS)
        what = f"{n_segments:,} segments from a faulty server like {name}"
        figures += [
            _row(what, "faults served", faults),
            _row(what, "retries", report["retries"], at_least=1),
            _row(what, "segments without a translation", report["missing"], at_most=0),
            _row(what, "wrong translations", wrong, at_most=0),
        ]
    return figures


def _texts(folder: Path) -> list[str]:
    lines = (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines]


def _instant(n_docs: int = 50_000, times: int = 3) -> list[Row]:
    """What the pipeline itself costs, from a corpus on disk to one on disk: its time, and the work of all processes.

    Of several ports the fastest, which other work on the machine has slowed least.
    """
    what = f"port of {n_docs:,} documents, translator of no latency"
    with tempfile.TemporaryDirectory() as folder:
        source = port_data.write_corpus(Path(folder) / "source", n_docs)
        figures = []
        for number in range(times):
            before = os.times()
            seconds = kills.finish(kills.command(source, Path(folder) / f"out{number}", *INSTANT))
            after = os.times()
            worked = after.children_user + after.children_system - before.children_user - before.children_system
            figures.append((seconds, worked))
    seconds, worked = min(figures)
    return [
        _row(what, f"segments/s, the best of {times}", n_docs / seconds, at_least=10_000),
        _row(what, "microseconds of work a segment", 1e6 * worked / n_docs),
    ]


def _memory(n_docs: int) -> list[Row]:
    """The peak of a port of that many documents, and how long it takes until the last of them would be sent again."""
    figures = []
    for size in (n_docs // 10, n_docs):
        what = f"port of {size:,} documents, translator of no latency"
        with tempfile.TemporaryDirectory() as folder:
            source, out = port_data.write_corpus(Path(folder) / "source", size), Path(folder) / "out"
            figures.append(
                _row(what, "peak MB", _peak_bytes(kills.command(source, out, *INSTANT)) / 2**20, at_most=400)
            )
            if size < n_docs:
                continue
            with sqlite3.connect(out / "work" / "journal.sqlite") as journal:
                journal.execute("UPDATE standing SET state = 'retry' WHERE task = (SELECT max(task) FROM standing)")
            started = time.monotonic()
            # The budget, which is spent, refuses the request at the moment in which it would leave.
            process = kills.run(kills.command(source, out, *INSTANT, "--budget-chars", "1000"))
            _, error = process.communicate()
            if process.returncode != 1 or b"--budget-chars" not in error:
                raise SystemExit(f"A spent budget was not refused: {error.decode()}")
            figures.append(_row(what, "seconds from restart to the request", time.monotonic() - started, at_most=20))
    return figures


def _peak_bytes(command: list[str]) -> int:
    process = kills.run(command, quiet=True)
    peak = memory.peak_until_end(process)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return peak


def _row(what: str, measure: str, value: float, **bound: float) -> Row:
    return {"what": what, "measure": measure, "value": value, **bound}


def _profile(n_docs: int) -> None:
    """Where the time of the pipeline goes."""
    from rusbeir.translation.porting.api import port

    with tempfile.TemporaryDirectory() as folder:
        source = port_data.write_corpus(Path(folder) / "source", n_docs)
        profile = cProfile.Profile()
        profile.runcall(
            port, source, to="ru", translator="python:benchmarks.port_data.instant", out=Path(folder) / "out"
        )
    pstats.Stats(profile).sort_stats("cumulative").print_stats("rusbeir", 40)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=int, default=1_000_000, help="of the corpus that memory is measured with")
    parser.add_argument("--throughput", action="store_true", help="only what the pipeline itself costs")
    parser.add_argument("--profile", type=int, metavar="DOCS", help="print where the time of a port of so many goes")
    arguments = parser.parse_args()
    if arguments.profile:
        _profile(arguments.profile)
        return
    from benchmarks import run

    print(run.table(_instant() if arguments.throughput else rows(arguments.docs)))


if __name__ == "__main__":
    main()
