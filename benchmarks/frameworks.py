"""nDCG@10 of BM25 on XQuAD through MTEB, against `bench`: python -m benchmarks.frameworks."""

from __future__ import annotations

import tempfile
from typing import Any

import rusbeir.mteb
from benchmarks import run
from rusbeir import bench
from rusbeir.languages import iso639_3
from tests.support.mteb_task import make_task, score_task

LANGUAGES = ("ru", "en", "es", "de")


def rows() -> list[dict[str, Any]]:
    """what, measure, value, expected and within: MTEB's score, and that of bench to five digits, as MTEB rounds."""
    figures = []
    with tempfile.TemporaryDirectory() as out:
        for language in LANGUAGES:
            name = f"xquad/{language}"
            expected = bench(name, k=1000, measures="nDCG@10", out=out)["measures"]["nDCG@10"]
            task = make_task(name, f"{iso639_3(language)}-Zyyy")
            score = score_task(rusbeir.mteb.model("bm25"), task)["ndcg_at_10"]
            figures.append(
                {
                    "what": f"{name} through MTEB",
                    "measure": "nDCG@10",
                    "value": score,
                    "expected": round(expected, 5),
                    "within": 1e-6,
                }
            )
    return figures


def main() -> None:
    run.find_data()
    for row in rows():
        print(f"{row['what']}: {row['value']:.5f} ({row['expected']:.5f} by bench)")


if __name__ == "__main__":
    main()
