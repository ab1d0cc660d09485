"""Queries that are not independent, found from the judgements."""

from __future__ import annotations

import re
from collections.abc import Hashable

from rusbeir.types import Dataset

_PARTS = re.compile(r".*/(sentences|windows-\d+)")
"""The name of a view whose documents are parts of paragraphs."""


def cluster_queries(dataset: Dataset) -> dict[str, int]:
    """Number the cluster of each judged query; queries with the same relevant documents share one.

    Questions about one paragraph are easy or hard together, so an interval or a test that draws them one by one is too
    sure of itself; drawing whole clusters is not (Field and Welsh, "Bootstrapping clustered data", 2007). Where
    documents are sentences or windows, the paragraph that they are parts of counts. A query without a relevant document
    is a cluster of its own.

    Returns:
        query_id -> number from 0, in the order of the qrels. All numbers differ where all queries are independent.
    """
    parts = _PARTS.fullmatch(dataset.card.name) is not None
    numbers: dict[Hashable, int] = {}
    clusters = {}
    for query_id, grades in dataset.qrels.items():
        relevant = frozenset(
            doc_id.rpartition("-")[0] if parts else doc_id for doc_id, grade in grades.items() if grade > 0
        )
        clusters[query_id] = numbers.setdefault(relevant or query_id, len(numbers))
    return clusters
