"""What a row says of a system's last stage: the ceiling of a reranker's pool, the terms of learned sparse retrieval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rusbeir.evaluation import evaluate
from rusbeir.experiment.planning import Measurement
from rusbeir.retrieval import CountsTerms, RanksPool
from rusbeir.types import Retriever, Run

DESCRIBED = (RanksPool, CountsTerms)
"""Abilities of retrievers of which a row says more."""
DEPTHS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)
"""The depths of a pool that are compared; its own depth is the last."""


def describe_stage(measurement: Measurement, retriever: Retriever, run: Run) -> dict[str, Any]:
    """Return more keys of a row: those of a reranker, or of term weights."""
    if isinstance(retriever, CountsTerms):
        return {"terms": retriever.count_terms(measurement.dataset.queries)}
    if isinstance(retriever, RanksPool):
        pool = retriever.search_pool(measurement.dataset.queries)
        return {"pool_ceiling": _find_ceiling(measurement, run), **_find_gain_depth(measurement, run, pool)}
    return {}


def _find_ceiling(measurement: Measurement, run: Run) -> Mapping[str, float]:
    """Compute what the measures would be if the hits of each query were in the best order."""
    qrels = measurement.dataset.qrels
    perfect = {
        query_id: {doc_id: float(qrels.get(query_id, {}).get(doc_id, 0)) for doc_id in hits}
        for query_id, hits in run.items()
    }
    return evaluate(qrels, perfect, measurement.request.measures).measures


def _find_gain_depth(measurement: Measurement, run: Run, pool: Run) -> dict[str, Mapping[str, int]]:
    """Return `pool_gain_depth`: measure -> the depth of the pool beyond which it no longer rises.

    It is left out where the run lacks hits of the pool, whose scores are then not known.
    """
    if any(len(run[query_id]) < len(hits) for query_id, hits in pool.items()):
        return {}
    deepest = max(map(len, pool.values()), default=0)
    best: dict[str, tuple[float, int]] = {}
    for depth in [*(depth for depth in DEPTHS if depth < deepest), deepest]:
        cut = {
            query_id: {doc_id: run[query_id][doc_id] for doc_id in list(hits)[:depth]}
            for query_id, hits in pool.items()
        }
        values = evaluate(measurement.dataset.qrels, cut, measurement.request.measures).measures
        for name, value in values.items():
            if name not in best or value > best[name][0]:
                best[name] = value, depth
    return {"pool_gain_depth": {name: depth for name, (_, depth) in best.items()}} if deepest else {}
