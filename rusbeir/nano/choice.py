"""The queries and documents that a small version of a dataset keeps.

Queries are drawn at random and then exchanged until the means of several variables over them are close to those over
all queries: a balanced sample, as the cube method of Deville and Tillé (2004) and rerandomisation (Morgan and Rubin,
2012) give it. The first fifty queries of a file, or any fifty, differ from the rest by more than systems differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rusbeir.datasets import draw_documents, take_documents
from rusbeir.evaluation import Floats
from rusbeir.types import Dataset, Qrels, Run

EXCHANGES = 20_000
"""Exchanges of a chosen query for another that are tried; each is kept where the balance is better for it."""
_FLAT = 1e-9
"""A direction in which variables spread by less than this share of the widest is one that others decide."""


def find_relevant(dataset: Dataset) -> Qrels:
    """Find the judgements of documents that the corpus has, of the queries with a relevant one among them."""
    known: dict[str, bool] = {}

    def is_known(doc_id: str) -> bool:
        if doc_id not in known:
            try:
                dataset.corpus[doc_id]
                known[doc_id] = True
            except KeyError:
                known[doc_id] = False
        return known[doc_id]

    qrels = {
        query_id: {doc_id: grade for doc_id, grade in grades.items() if is_known(doc_id)}
        for query_id, grades in dataset.qrels.items()
    }
    return {query_id: grades for query_id, grades in qrels.items() if any(grade > 0 for grade in grades.values())}


def choose_queries(variables: Floats, n: int, seed: int) -> list[int]:
    """The places of n queries, ascending, whose means of the variables, float64 [variables, queries], are near all's.

    Variables are scaled to be uncorrelated and of equal spread first, so that the small differences between like
    systems are balanced as well as their common level.

    >>> choose_queries(np.array([[0.0, 0.0, 1.0, 1.0]]), 2, seed=0)
    [0, 2]
    """
    total = variables.shape[1]
    centred = variables - variables.mean(axis=1, keepdims=True)
    _, spread, directions = np.linalg.svd(centred, full_matrices=False)
    scaled = directions[spread > _FLAT * max(spread[0], _FLAT)]
    random = np.random.default_rng(seed)
    order = random.permutation(total)
    taken, left = order[:n], order[n:]
    if not len(left):
        return sorted(taken.tolist())
    off = scaled[:, taken].sum(axis=1)
    best = float(off @ off)
    for inner, outer in zip(
        random.integers(n, size=EXCHANGES).tolist(), random.integers(total - n, size=EXCHANGES).tolist(), strict=True
    ):
        moved = off - scaled[:, taken[inner]] + scaled[:, left[outer]]
        distance = float(moved @ moved)
        if distance < best:
            best, off = distance, moved
            taken[inner], left[outer] = left[outer], taken[inner]
    return sorted(taken.tolist())


def keep_queries(
    whole: Dataset, query_ids: Sequence[str], runs: Sequence[Run], *, depth: int, others: int, seed: int
) -> Dataset:
    """The dataset with these queries: their judged documents, the first `depth` hits of each run, others at random."""
    qrels = {query_id: whole.qrels[query_id] for query_id in query_ids}
    needed = {doc_id for grades in qrels.values() for doc_id in grades}
    for run in runs:
        needed.update(doc_id for query_id in query_ids for doc_id in list(run[query_id])[:depth])
    first_drawn: Qrels = {"": dict.fromkeys(needed, 1)}
    doc_ids = draw_documents(whole.corpus, first_drawn, len(needed) + others, seed)
    queries = {query_id: whole.queries[query_id] for query_id in query_ids}
    return take_documents(replace(whole, queries=queries, qrels=qrels), doc_ids)
