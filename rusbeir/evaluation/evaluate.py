"""A run against judgements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rusbeir.errors import BadInput
from rusbeir.evaluation.measures import DEFAULT_MEASURES, check_measures, per_query
from rusbeir.evaluation.ties import tied_queries
from rusbeir.types import Qrels, Run


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Scores by the canonical names of ir-measures; most measures are fractions from 0 to 1."""

    measures: Mapping[str, float]
    """Means over every judged query; a query without a hit scores 0."""
    measures_answered: Mapping[str, float]
    """Means over the judged queries with a hit, as BEIR's code averages; {} where none has."""
    per_query: Mapping[str, Mapping[str, float]]
    n_queries: int
    n_zero_hit: int
    n_tied: int
    """Queries of which some measure depends on the order of hits with equal scores."""


def evaluate(qrels: Qrels, run: Run, measures: str | Sequence[str] = DEFAULT_MEASURES) -> Evaluation:
    """The scores of a run over every judged query; queries without judgements are ignored.

    Raises BadInput for qrels without a query, and for measures as check_measures.

    >>> evaluate({"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 2.0}}, ["RR@10"]).measures
    {'RR@10': 0.5}
    """
    names = check_measures(measures)
    if not qrels:
        raise BadInput("The qrels contain no query, so there is nothing to evaluate.")
    scores: dict[str, dict[str, float]] = {query_id: dict.fromkeys(names, 0.0) for query_id in qrels}
    for query_id, name, value in per_query(qrels, run, names):
        scores[query_id][name] = value
    answered = [query_id for query_id in qrels if run.get(query_id)]
    return Evaluation(
        measures={name: _mean(scores, list(qrels), name) for name in names},
        measures_answered={name: _mean(scores, answered, name) for name in names} if answered else {},
        per_query=scores,
        n_queries=len(qrels),
        n_zero_hit=len(qrels) - len(answered),
        n_tied=len(tied_queries(qrels, run, names)),
    )


def _mean(scores: Mapping[str, Mapping[str, float]], query_ids: Sequence[str], name: str) -> float:
    return math.fsum(scores[query_id][name] for query_id in query_ids) / len(query_ids)
