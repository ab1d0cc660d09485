"""The whole path of a corpus of MS MARCO's size: seconds, peak memory and disk of each step; in docs/results.md.

python -m benchmarks.scale [--docs 8841823] [--queries 6980] [--folder DIR] [--steps lexical,dense,elasticsearch]

Documents are made: Russian words by Zipf's law, their number drawn from a log-normal distribution with the mean of MS
MARCO's passages. Each step is a command of its own, as a user would type it. A folder that is given keeps what is made
for another run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import rusbeir
from benchmarks import figures, memory, run
from benchmarks.analysis import SEED, vocabulary
from benchmarks.search import QUERY_WORDS, STOP_WORDS

DOCS, QUERIES = 8_841_823, 6_980
MEAN_WORDS = 56.0
"""Of MS MARCO's passages (BEIR's table of data sets)."""
SPREAD = 0.4
"""Standard deviation of the logarithm of the number of words; our assumption, the table has the mean alone."""
DEPTHS = (100, 1000)
DIM = 384
BLOCK = 10_000
TABLE_ROWS = 1 << 16
PAUSE_SECONDS = 1.0
LOAD, INDEX = "load: find each document in the file", "analyse and index"
BOUNDS = {
    LOAD: {"seconds": 120},
    INDEX: {"seconds": 600, "GB": 2},
    f"bench, k={DEPTHS[-1]}: bm25": {"search": 30},
}
"""What is claimed of a step."""
STEPS = ("lexical", "dense", "elasticsearch")


class Step(NamedTuple):
    """One command and what it took; peak_bytes is the largest proportional set size of its processes together."""

    what: str
    seconds: float
    peak_bytes: int
    disk_bytes: int
    parts: dict[str, float]
    """Seconds of its parts, as the command itself tells them."""

    @property
    def claimed(self) -> str:
        """What the step is held to, and whether it differs."""
        figures = {"seconds": self.seconds, "GB": self.peak_bytes / 1e9, **self.parts}
        bounds = BOUNDS.get(self.what, {})
        return "; ".join(
            f"{name} ≤ {most:g}" + (" (differs)" if figures[name] > most else "") for name, most in bounds.items()
        )

    @property
    def line(self) -> str:
        """A row of the table in docs/results.md."""
        parts = "; ".join(f"{name} {value:,.1f}" for name, value in self.parts.items())
        sizes = f"{self.peak_bytes / 2**20:,.0f} | {self.disk_bytes / 2**30:.2f}"
        return f"| {self.what} | {self.seconds:,.1f} | {sizes} | {parts} | {self.claimed} |"


def make_data(folder: Path, n_docs: int, n_queries: int) -> None:
    """A dataset in BEIR's layout: each query has one relevant document, drawn at random."""
    words = vocabulary()
    cumulative = np.cumsum(1 / np.arange(1, len(words) + 1))
    cumulative /= cumulative[-1]
    random = np.random.default_rng(SEED)
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for start in range(0, n_docs, BLOCK):
            n = min(BLOCK, n_docs - start)
            lengths = np.maximum(1, random.lognormal(np.log(MEAN_WORDS) - SPREAD**2 / 2, SPREAD, n)).astype(np.int64)
            ends = np.cumsum(lengths)
            drawn = words[np.searchsorted(cumulative, random.random(int(ends[-1])), side="right")]
            file.writelines(
                f'{{"_id":"{start + row}","title":"","text":"{" ".join(drawn[end - length : end])}"}}\n'
                for row, (end, length) in enumerate(zip(ends, lengths, strict=True))
            )
    weights = 1 / np.arange(1, len(words) + 1)
    weights[:STOP_WORDS] = 0
    ranks = random.choice(len(words), (n_queries, QUERY_WORDS), p=weights / weights.sum())
    with (folder / "queries.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(
            f'{{"_id":"q{row}","text":"{" ".join(words[indexes])}"}}\n' for row, indexes in enumerate(ranks)
        )
    (folder / "qrels").mkdir()
    with (folder / "qrels" / "test.tsv").open("w", encoding="utf-8") as file:
        file.write("query-id\tcorpus-id\tscore\n")
        file.writelines(f"q{row}\t{doc}\t1\n" for row, doc in enumerate(random.integers(0, n_docs, n_queries)))


class RandomEncoder:
    """Vectors of 384 dimensions that the text's bytes decide: what is measured is everything but a model."""

    signature = "benchmarks.scale/1"

    def __init__(self) -> None:
        self._table = np.random.default_rng(SEED).standard_normal((TABLE_ROWS, DIM), dtype=np.float32)

    def encode_queries(self, texts: list[str]) -> npt.NDArray[np.float32]:
        numbers = np.array([zlib.crc32(text.encode()) for text in texts], dtype=np.uint64)
        vectors = self._table[numbers % TABLE_ROWS] + self._table[numbers // TABLE_ROWS % TABLE_ROWS]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    encode_documents = encode_queries


class Walk:
    """Runs commands over one folder, each in processes of its own."""

    def __init__(self, folder: Path) -> None:
        self.data, self.out, self.cache = folder / "data", folder / "results", folder / "cache"
        self.steps: list[Step] = []

    def _run(self, what: str, parts: Sequence[str], *command: str) -> None:
        """Run `python -m` with a command that prints JSON, and note what it took; parts are seconds that it tells."""
        before, started, peak = self._disk(), time.perf_counter(), 0
        with tempfile.TemporaryFile() as answer:
            environment = {**os.environ, "RUSBEIR_CACHE": str(self.cache)}
            process = subprocess.Popen([sys.executable, "-m", *command], stdout=answer, env=environment)
            while process.poll() is None:
                peak = max(peak, memory.tree_bytes(process.pid))
                time.sleep(PAUSE_SECONDS)
            if process.returncode:
                raise SystemExit(f"python -m {' '.join(command)}: exit code {process.returncode}")
            answer.seek(0)
            answers = json.loads(answer.read())
        seconds = time.perf_counter() - started
        row = answers.get("rows", [answers])[0]
        stage_seconds = {name: row["seconds"][name] for name in parts}
        self.steps.append(Step(what, seconds, peak, self._disk() - before, stage_seconds))
        print(self.steps[-1].line, flush=True)

    def lexical(self) -> None:
        """From files to a comparison, by BM25 on the embedded engine."""
        self._run(LOAD, (), "benchmarks.scale", "--load", str(self.data))
        self._rusbeir("validate", "datasets", "validate", *self._place)
        self._rusbeir(INDEX, "index", *self._place)
        for depth in DEPTHS:
            self._bench("bm25", depth)
            self._bench("bm25(profile=raw)", depth)
        self._rusbeir("compare two systems", "compare", str(self.out / f"k{DEPTHS[-1]}"))

    def dense(self) -> None:
        """Vectors that are drawn, stored and searched exactly, from disk."""
        system = "dense(python:benchmarks.scale.RandomEncoder,dtype=float16)"
        self._rusbeir("draw and store vectors", "index", *self._place, "--system", system)
        self._bench(system, DEPTHS[0])

    def elasticsearch(self) -> None:
        """The same terms in an index of an Elasticsearch node."""
        with figures.node(heap="2g") as url:
            os.environ["RUSBEIR_ES_URL"] = url
            self._rusbeir("index on Elasticsearch", "index", *self._place, "--engine", "elasticsearch")
            for depth in DEPTHS:
                self._bench("bm25", depth, "elasticsearch")

    @property
    def _place(self) -> list[str]:
        return [str(self.data), "--lang", "ru", "--split", "test"]

    def _bench(self, system: str, depth: int, engine: str = "auto") -> None:
        self._rusbeir(
            f"bench, k={depth}: {system}" + (f", {engine}" if engine != "auto" else ""),
            *("bench", *self._place, "--system", system, "--engine", engine, "-k", str(depth)),
            *("--out", str(self.out / f"k{depth}")),
        )

    def _rusbeir(self, what: str, *arguments: str) -> None:
        parts = {"index": ("analyse", "index"), "bench": ("search", "evaluate")}.get(arguments[0], ())
        self._run(what, parts, "rusbeir.cli", "--quiet", *arguments, "--json")

    def _disk(self) -> int:
        folders = [folder for folder in (self.cache, self.out) if folder.exists()]
        return sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=int, default=DOCS)
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--folder", type=Path, help="where everything is kept; by default a temporary one")
    parser.add_argument("--steps", default=",".join(STEPS))
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        dataset = rusbeir.load(options.load, language="ru", split="test")
        print(json.dumps({"docs": len(dataset.corpus), "queries": len(dataset.queries)}))
        return
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        walk = Walk(folder)
        if not walk.data.exists():
            walk.data.mkdir(parents=True)
            make_data(walk.data, options.docs, options.queries)
        for step in options.steps.split(","):
            getattr(walk, step)()
    write(walk.steps, options.docs, options.queries)
    sys.exit(any("differs" in step.claimed for step in walk.steps))


def write(steps: list[Step], n_docs: int, n_queries: int) -> None:
    """Put the steps into docs/results.md, below what run.py writes; they replace earlier ones of the same name."""
    text, _, before = run.RESULTS.read_text(encoding="utf-8").partition(run.SCALE_HEADING)
    rows = {
        line.split(" | ")[0]: line for line in before.splitlines() if line.startswith("| ") and "| step |" not in line
    }
    rows |= {f"| {step.what}": step.line for step in steps}
    cores = len(os.sched_getaffinity(0))
    run.RESULTS.write_text(
        f"{text.rstrip()}\n\n{run.SCALE_HEADING}\n\n"
        f"`python -m benchmarks.scale --docs {n_docs} --queries {n_queries}` on {cores} cores.\n\n"
        f"{n_docs:,} made documents of {MEAN_WORDS:.0f} words in the mean, {n_queries:,} queries of {QUERY_WORDS}\n"
        "content words. Seconds are of whole commands; memory is that of all processes of the command\n"
        "and counts the pages of mapped files.\n\n"
        "| step | seconds | peak MB | disk, GB | of which, seconds | claimed |\n|---|---|---|---|---|---|\n"
        + "\n".join(rows.values())
        + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
