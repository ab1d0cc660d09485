"""How long documents take from a table to a BM25 index, compared with JSONL, and how much memory.

python -m benchmarks.tables [--docs 1000000] [--json]

Documents are made: English-looking words by Zipf's law, as `benchmarks.scale` draws them. Each form is indexed by a
process of its own with an empty cache, so that its peak of memory is its own. The forms take turns in several rounds,
every second one in the opposite order; ratios are medians over the rounds, so that what else a machine does at one
moment decides none of them. Processor time, of all threads of the process, is printed as well: it hardly changes where
other work waits for the same processors.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import memory

DOCS = 1_000_000
MEAN_WORDS = 30
VOCABULARY = 50_000
SEED = 0
BLOCK = 10_000
ROUNDS = 3
FORMS = ("jsonl", "csv", "parquet", "frame")
"""The last is a data frame of pandas in memory."""


def make_rows(n: int) -> Iterator[dict[str, str]]:
    """The rows of n documents, always the same."""
    generator = np.random.default_rng(SEED)
    words = np.array([f"w{number}" for number in range(VOCABULARY)])
    for start in range(0, n, BLOCK):
        drawn = words[np.minimum(generator.zipf(1.2, (min(BLOCK, n - start), MEAN_WORDS)), VOCABULARY) - 1]
        for row, line in enumerate(drawn, start):
            yield {"id": f"d{row}", "title": " ".join(line[:3]), "text": " ".join(line)}


def write_tables(folder: Path, n: int) -> dict[str, Path]:
    """Write the documents in every form; a data frame is read from the Parquet file."""
    import pyarrow
    import pyarrow.parquet

    paths = {form: folder / f"corpus.{form}" for form in ("jsonl", "csv", "parquet")}
    schema = pyarrow.schema([(name, pyarrow.string()) for name in ("id", "title", "text")])
    with (
        paths["jsonl"].open("w") as lines,
        paths["csv"].open("w", newline="") as cells,
        pyarrow.parquet.ParquetWriter(paths["parquet"], schema) as table,
    ):
        writer = csv.DictWriter(cells, schema.names)
        writer.writeheader()
        rows = make_rows(n)
        while block := [row for row, _ in zip(rows, range(BLOCK), strict=False)]:
            lines.writelines(json.dumps({"_id": row["id"], **row}) + "\n" for row in block)
            writer.writerows(block)
            table.write_table(pyarrow.Table.from_pylist(block, schema))
    return {**paths, "frame": paths["parquet"]}


def index(form: str, path: Path) -> dict[str, float]:
    """Index one form in this process; the data frame is there before the clock starts."""
    from rusbeir.datasets import load
    from rusbeir.retrieval import resolve
    from rusbeir.types import Dataset

    frame: Any = None
    if form == "frame":
        import pandas

        frame = pandas.read_parquet(path)
    before = memory.peak_bytes()
    started, processor = time.perf_counter(), time.process_time()
    dataset = Dataset.of(frame, language="en") if form == "frame" else load(path, language="en", judged=False)
    resolve("bm25", language="en").prepare(dataset.corpus, dataset.fingerprint)
    seconds, processor = time.perf_counter() - started, time.process_time() - processor
    peak = memory.peak_bytes()
    return {"seconds": seconds, "processor": processor, "peak": peak, "growth": peak - before}


def measure(n: int) -> dict[str, Any]:
    """Index all forms of n documents in each round, and compare them with JSONL of the same round."""
    rounds: list[dict[str, dict[str, float]]] = []
    with tempfile.TemporaryDirectory() as name:
        paths = write_tables(Path(name), n)
        cache = Path(name) / "cache"
        environment = os.environ | {"RUSBEIR_CACHE": str(cache)}
        for number in range(ROUNDS):
            rounds.append({})
            for form in FORMS if number % 2 == 0 else FORMS[::-1]:
                command = [sys.executable, "-m", "benchmarks.tables", "--form", form, "--path", str(paths[form])]
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
                rounds[-1][form] = json.loads(done.stdout)
                shutil.rmtree(cache)
    return {"docs": n, **{form: _summarise(form, rounds) for form in FORMS}}


def _summarise(form: str, rounds: list[dict[str, dict[str, float]]]) -> dict[str, float]:
    """The medians of a form over the rounds, and of its ratios to JSONL."""
    medians = {name: statistics.median(results[form][name] for results in rounds) for name in rounds[0][form]}
    for ratio, name in (("ratio", "seconds"), ("processor_ratio", "processor"), ("memory_ratio", "peak")):
        medians[ratio] = statistics.median(results[form][name] / results["jsonl"][name] for results in rounds)
    return medians


def rows() -> Iterator[dict[str, Any]]:
    """The figures: no form takes much longer than JSONL, and files are read in its memory."""
    results = measure(DOCS)
    for form in FORMS[1:]:
        what = f"{DOCS:,} rows to a BM25 index: {form}"
        for unit, ratio in (("seconds", "ratio"), ("processor time", "processor_ratio")):
            yield {"what": what, "measure": f"{unit}, times JSONL's", "value": results[form][ratio], "at_most": 1.3}
        if form != "frame":
            yield {
                "what": what,
                "measure": "memory, times JSONL's",
                "value": results[form]["memory_ratio"],
                "at_most": 1.6,
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=int, default=DOCS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--form", choices=FORMS, help="Index one form in this process.")
    parser.add_argument("--path", type=Path)
    arguments = parser.parse_args()
    if arguments.form:
        print(json.dumps(index(arguments.form, arguments.path)))
        return
    document = measure(arguments.docs)
    if arguments.json:
        print(json.dumps(document))
        return
    print(f"{document['docs']:,} documents     seconds  of JSONL processor  of JSONL   peak MB")
    for form in FORMS:
        result = document[form]
        times = f"{result['seconds']:10.1f} {result['ratio']:9.2f} {result['processor']:9.1f}"
        print(f"{form:20} {times} {result['processor_ratio']:9.2f} {result['peak'] / 1e6:9.0f}")


if __name__ == "__main__":
    main()
