"""Speed and memory of a diagnosis of source bias: python -m benchmarks.source_bias

The speed is that of the whole diagnosis of Cocktail's NFCorpus (RUSBEIR_DATA must hold it) by BM25 with an empty cache:
three indexes, three searches, 10,000 bootstrap samples. Memory is that of a process that diagnoses a system which was
searched before, on made-up collections of which one has ten times as many documents.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import memory

SMALL, LARGE = 5_000, 50_000
"""Documents per source."""
QUERIES = 100
WORDS = [f"word{n}" for n in range(2_000)]


def rows() -> list[dict[str, Any]]:
    """what, measure, value, and at_most."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        _diagnose("cocktail/nfcorpus", Path(folder))
        seconds = time.perf_counter() - started
        peaks = []
        for n in (SMALL, LARGE):
            collection = _write(Path(folder) / str(n), n)
            _diagnose(str(collection), Path(folder))
            peaks.append(_diagnose(str(collection), Path(folder)))
    what = "source bias of cocktail/nfcorpus by BM25, 10,000 samples, empty cache"
    return [
        {"what": what, "measure": "seconds", "value": seconds, "at_most": 30},
        {
            "what": f"source bias, searched before: {LARGE:,} instead of {SMALL:,} documents per source",
            "measure": "times the memory",
            "value": peaks[1] / peaks[0],
            "at_most": 1.1,
        },
    ]


def _diagnose(dataset: str, folder: Path) -> int:
    """The peak bytes of a new process that diagnoses the dataset."""
    command = [sys.executable, "-m", "benchmarks.source_bias", dataset, str(folder / "results")]
    environment = {**os.environ, "RUSBEIR_CACHE": str(folder / "cache")}
    return int(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)


def _write(folder: Path, n_docs: int) -> Path:
    """A collection of two sources, half of whose copies are equal."""
    drawn = random.Random(0)
    for name in ("corpus", "qrels"):
        (folder / name).mkdir(parents=True)
    with (folder / "corpus/human.jsonl").open("w") as human, (folder / "corpus/bot.jsonl").open("w") as bot:
        for n in range(n_docs):
            words = drawn.choices(WORDS, k=30)
            human.write(json.dumps({"_id": f"d{n}", "text": " ".join(words)}) + "\n")
            bot.write(json.dumps({"_id": f"d{n}", "text": " ".join(words[: 15 * (1 + n % 2)])}) + "\n")
    queries = [json.dumps({"_id": f"q{n}", "text": " ".join(drawn.choices(WORDS, k=3))}) for n in range(QUERIES)]
    (folder / "queries.jsonl").write_text("\n".join(queries) + "\n")
    qrels = [f"q{n}\td{drawn.randrange(n_docs)}\t1" for n in range(QUERIES)]
    (folder / "qrels/test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *qrels]) + "\n")
    (folder / "card.json").write_text(json.dumps({"name": folder.name, "language": "en"}))
    return folder


def main() -> None:
    if len(sys.argv) == 3:
        from rusbeir.diagnostics import diagnose_source_bias

        diagnose_source_bias(sys.argv[1], "bm25(profile=lucene-english)", out=sys.argv[2])
        print(memory.peak_bytes())
        return
    for row in rows():
        print(f"{row['what']}: {row['value']:.3g} {row['measure']} (bound {row['at_most']})")


if __name__ == "__main__":
    main()
