"""Time of evaluating a run of 10,000 queries × 1,000 hits against calling pytrec_eval directly.

python -m benchmarks.evaluation
"""

from __future__ import annotations

import random
import time

MEASURES = {"nDCG@10": "ndcg_cut.10", "AP@10": "map_cut.10", "R@100": "recall.100"}


def measure(n_queries: int = 10_000, depth: int = 1_000, rounds: int = 3) -> dict[str, float]:
    """Seconds of both, each the best of rounds in turn, and their ratio; rusbeir's counts ties as well."""
    import pytrec_eval

    from rusbeir.evaluation import evaluate

    chance = random.Random(1)
    docs = [f"d{number}" for number in range(100_000)]
    run, qrels = {}, {}
    for number in range(n_queries):
        hits = chance.sample(docs, depth)
        run[f"q{number}"] = {doc_id: round(chance.random() * 20, 3) for doc_id in hits}
        qrels[f"q{number}"] = dict.fromkeys(chance.sample(hits, 3) + chance.sample(docs, 2), 1)
    ours, direct = [], []
    for _ in range(rounds):
        started = time.perf_counter()
        pytrec_eval.RelevanceEvaluator(qrels, set(MEASURES.values())).evaluate(run)
        direct.append(time.perf_counter() - started)
        started = time.perf_counter()
        evaluate(qrels, run, list(MEASURES))
        ours.append(time.perf_counter() - started)
    return {"seconds": min(ours), "pytrec_eval_seconds": min(direct), "ratio": min(ours) / min(direct)}


if __name__ == "__main__":
    print(measure())
