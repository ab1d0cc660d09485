"""How often few labels of people and a judge's labels of all pairs cover what people would say of all pairs.

python -m benchmarks.judges [--draws 1000]

The pairs are those of LLMJudge (../golden next to the first folder of RUSBEIR_DATA), which people have labelled
themselves, and the judge is umbrela1. Also a system that ranks by the judge's labels, among seven that rank by people's
labels with more and more noise: what it gains from its own labels, and whether it is left out of the order.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np

from rusbeir.comparison.label_judges import judge_labels
from rusbeir.datasets import read_qrels
from rusbeir.evaluation.label_agreement import estimate_mean
from rusbeir.types import Qrels

HERE = Path(__file__).parent
DATA = Path(os.environ.get("RUSBEIR_DATA", "").split(os.pathsep)[0] or HERE.parent.parent / "shared" / "data")
LLMJUDGE = DATA.parent / "golden" / "llmjudge"
DRAWS = 1000
RERANKED = "bm25 >> rerank(gpt-4o)"


def read_labels(folder: Path = LLMJUDGE) -> tuple[Qrels, Qrels]:
    """The labels of people and of umbrela1."""
    return read_qrels(folder / "human.txt.gz"), read_qrels(folder / "scores" / "willia-umbrela1.txt.gz")


def count_covered(people: Qrels, judge: Qrels, *, n: int, draws: int = DRAWS, threshold: int | None = None) -> float:
    """The share of draws of n labels whose interval covers people's mean over all pairs.

    With a threshold it is the share of pairs with at least that label, and a quarter of n is drawn from the pairs of
    each of the judge's labels.
    """
    pairs = [(query_id, doc_id) for query_id, grades in people.items() for doc_id in grades]
    known, guessed = (np.array([labels[q][d] for q, d in pairs], dtype=np.float64) for labels in (people, judge))
    strata = np.zeros(len(pairs), dtype=np.int64)
    if threshold is not None:
        strata = guessed.astype(np.int64)
        known, guessed = (known >= threshold).astype(np.float64), (guessed >= threshold).astype(np.float64)
    members = [np.flatnonzero(strata == stratum) for stratum in range(strata.max() + 1)]
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(draws):
        drawn = np.concatenate([random.choice(some, n // len(members), replace=False) for some in members])
        low, high = estimate_mean({int(row): float(known[row]) for row in drawn}, guessed, strata).interval
        covered += bool(low <= known.mean() <= high)
    return covered / draws


def rank_by_judge(people: Qrels, judge: Qrels) -> dict[str, dict[str, dict[str, float]]]:
    """Runs by the names of their systems: one ranks by the judge's labels, the others by people's, with noise."""
    random = np.random.default_rng(0)
    runs: dict[str, dict[str, dict[str, float]]] = {}
    for name, labels, noise in [
        (RERANKED, judge, 0.5),
        *((f"bm25(k1={1 + step / 10})", people, 1 + step / 2) for step in range(7)),
    ]:
        runs[name] = {
            query_id: {doc_id: labels[query_id][doc_id] + random.normal(0, noise) for doc_id in grades}
            for query_id, grades in people.items()
        }
    return runs


def rows(draws: int = DRAWS) -> list[dict[str, Any]]:
    """what, measure, value, and what is expected; none where the labels are not at hand."""
    if not LLMJUDGE.is_dir():
        return []
    people, judge = read_labels()
    figures: list[dict[str, Any]] = [
        {
            "what": f"LLMJudge, 400 labels, {draws:,} draws", "measure": "coverage of people's mean",
            "value": count_covered(people, judge, n=400, draws=draws), "expected": 0.95, "within": 0.01,
        }
    ]  # fmt: skip
    figures += [
        {
            "what": f"LLMJudge, 100 labels from each of the judge's, {draws:,} draws",
            "measure": f"coverage of the share of labels >= {threshold}",
            "value": count_covered(people, judge, n=400, draws=draws, threshold=threshold),
            "expected": 0.95, "within": 0.02,
        }
        for threshold in (1, 2, 3)
    ]  # fmt: skip
    compared = judge_labels(people, judge, runs=rank_by_judge(people, judge), judge="gpt-4o")
    reranked = next(system for system in compared.systems if system.system == RERANKED)
    what = "LLMJudge, a system that ranks by the judge among seven others"
    gain = {"measure": "nDCG@10 by the judge's labels, minus by people's", "value": reranked.judge - reranked.people}
    ordered = compared.order.n_systems if compared.order else 0
    return [
        *figures,
        {"what": what, **gain, "at_least": 0.1},
        {"what": what, "measure": "systems in the order", "value": ordered, "expected": 7, "within": 0},
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=DRAWS)
    for row in rows(parser.parse_args().draws):
        print(f"{row['what']}: {row['measure']} {row['value']:.3f}")


if __name__ == "__main__":
    main()
