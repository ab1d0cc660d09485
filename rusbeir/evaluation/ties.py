"""Which queries' scores depend on the order of hits with equal scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rusbeir.evaluation.measures import deepest, per_query
from rusbeir.types import Qrels, Run

FloatArray: TypeAlias = NDArray[np.float32]


def tied_queries(qrels: Qrels, run: Run, names: Sequence[str]) -> set[str]:
    """The queries of which some measure would change if hits with equal scores were ordered otherwise.

    trec_eval keeps scores in single precision and breaks ties by falling document id, an order that says
    nothing about relevance; scores are equal here where they are equal for trec_eval.
    """
    best: dict[str, dict[str, float]] = {}
    worst: dict[str, dict[str, float]] = {}
    depth = deepest(names)
    for query_id, grades in qrels.items():
        hits = run.get(query_id, {})
        # Only a hit with a grade can share its score with a hit of another grade.
        graded = [doc_id for doc_id in hits.keys() & grades.keys() if grades[doc_id] != 0]
        if not graded:
            continue
        scores = np.fromiter(hits.values(), np.float32, len(hits))
        # Of a hit below all cut-offs, and of those that share its score, the order changes nothing.
        lowest = np.partition(scores, -depth)[-depth] if depth and depth < len(scores) else -np.inf
        if not _mixed(hits, scores, grades, [doc_id for doc_id in graded if np.float32(hits[doc_id]) >= lowest]):
            continue
        seen = {doc_id: score for doc_id, score in zip(hits, scores.tolist(), strict=True) if score >= lowest}
        best[query_id] = _reranked(seen, grades, favour=True)
        worst[query_id] = _reranked(seen, grades, favour=False)
    if not best:
        return set()
    judged = {query_id: qrels[query_id] for query_id in best}
    values = {(query_id, name): value for query_id, name, value in per_query(judged, best, names)}
    return {
        query_id
        for query_id, name, value in per_query(judged, worst, names)
        if abs(values[query_id, name] - value) > 1e-12
    }


def _mixed(hits: Mapping[str, float], scores: FloatArray, grades: Mapping[str, int], graded: Sequence[str]) -> bool:
    """Whether one of the graded hits shares its score with a hit of another grade."""
    groups = Counter((np.float32(hits[doc_id]), grades[doc_id]) for doc_id in graded)
    return any(np.count_nonzero(scores == score) > n for (score, _), n in groups.items())


def _reranked(hits: Mapping[str, float], grades: Mapping[str, int], *, favour: bool) -> dict[str, float]:
    """The same hits with distinct scores: among equals the best grades first, or last."""
    sign = -1 if favour else 1
    order = sorted(hits.items(), key=lambda hit: (-hit[1], sign * grades.get(hit[0], 0)))
    return {doc_id: float(len(order) - rank) for rank, (doc_id, _) in enumerate(order)}
