"""Time of evaluating a run of 10,000 queries × 1,000 hits against calling pytrec_eval directly, and of reading a run.

python -m benchmarks.evaluation
"""

from __future__ import annotations

import gzip
import random
import tempfile
import time
from pathlib import Path

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


def measure_reading(n_queries: int = 1_000, depth: int = 1_000) -> dict[str, float]:
    """Seconds of this process until `run(FILE)` has read a gzip file of a million lines; 5 are claimed."""
    from rusbeir.retrieval import LimitsDepth, resolve

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.run.gz"
        with gzip.open(path, "wt", compresslevel=1) as file:
            for query in range(n_queries):
                file.writelines(f"q{query} Q0 d{7 * query + n} {n} {depth - n} large\n" for n in range(depth))
        started = time.process_time()
        system = resolve(f"run({path})", language="en")
        assert isinstance(system, LimitsDepth)
        assert system.depth == depth
        return {"lines": n_queries * depth, "seconds": time.process_time() - started, "at_most": 5}


if __name__ == "__main__":
    print(measure())
    print(measure_reading())
