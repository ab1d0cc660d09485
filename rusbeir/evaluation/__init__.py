"""Scores of a run against judgements: every judged query counts, ties as trec_eval breaks them."""

from rusbeir.evaluation.evaluate import Evaluation, evaluate
from rusbeir.evaluation.measures import DEFAULT_MEASURES, check_measures, deepest, format_measure, is_count
from rusbeir.evaluation.units import cluster_queries

__all__ = [
    "DEFAULT_MEASURES",
    "Evaluation",
    "check_measures",
    "cluster_queries",
    "deepest",
    "evaluate",
    "format_measure",
    "is_count",
]
