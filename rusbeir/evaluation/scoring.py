"""Evaluate a run against judgements, and say which of the judged queries are independent."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rusbeir.errors import BadInput
from rusbeir.evaluation.measures import (
    COUNTS,
    DEFAULT_MEASURES,
    check_measures,
    deepest,
    per_query,
    unanswered_value,
)
from rusbeir.text import shorten
from rusbeir.types import MAX_GRADE, Dataset, Qrels, Run

_UNFIT = re.compile("[\0\ud800-\udfff]")
"""Characters that end trec_eval's strings, or that UTF-8 cannot encode."""

_PARTS = re.compile(r".*/(sentences|windows-\d+)|xquad-r/.*")
"""The name of a dataset whose documents are parts of paragraphs."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Scores by the canonical names of ir-measures; most measures are fractions from 0 to 1."""

    measures: Mapping[str, float]
    """The mean of each measure over every judged query, the sum of a count (NumQ, NumRel, NumRet).

    A query without hits scores 0.
    """
    measures_answered: Mapping[str, float]
    """The means over the judged queries with hits, as BEIR's code averages; {} where no query has hits."""
    per_query: Mapping[str, Mapping[str, float]]
    n_queries: int
    n_zero_hit: int
    n_tied: int
    """How many queries have a measure that differs between the best and the worst order of hits with equal scores."""


def evaluate(qrels: Qrels, run: Run, measures: str | Sequence[str] = DEFAULT_MEASURES) -> Evaluation:
    """Score a run over every judged query.

    Args:
        qrels: query_id -> {doc_id: grade}. A negative grade counts as not relevant, and for Bpref as not judged, as
            trec_eval takes it.
        run: query_id -> {doc_id: score}; queries without judgements are ignored.
        measures: One name or several, in the notation of ir-measures or trec_eval.

    Returns:
        The scores over all judged queries and over the answered ones, and those of each query.

    Raises:
        BadInput: The qrels have no query, trec_eval cannot hold a grade or an id, or a parameter is out of bounds.
        UnknownName: ir-measures does not know a measure.
        MissingExtra: A measure needs a package that is not installed.

    Examples:
        >>> evaluate({"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 2.0}}, ["RR@10"]).measures
        {'RR@10': 0.5}
    """
    names = check_measures(measures)
    if not qrels:
        raise BadInput("The qrels contain no query, so there is nothing to evaluate.")
    # What trec_eval's code cannot hold is refused here, whatever it was read from.
    for query_id, grades in qrels.items():
        if grades and max(max(grades.values()), -min(grades.values())) > MAX_GRADE:
            doc_id = max(grades, key=lambda judged: abs(grades[judged]))
            raise BadInput(
                f"The grade of document {doc_id!r} for query {query_id!r} is {shorten(str(grades[doc_id]), 20)}; "
                f"expected an integer from -{MAX_GRADE:,} to {MAX_GRADE:,}."
            )
        record_ids = (query_id, *grades, *run.get(query_id, ()))
        # Looking at all ids of a query at once is much faster than looking at each.
        text = "".join(record_ids)
        if "\0" in text or (not text.isascii() and _UNFIT.search(text)):
            record_id = next(filter(_UNFIT.search, record_ids))
            raise BadInput(f"The id {shorten(repr(record_id))} has a character that trec_eval cannot hold.")
    counts = [name for name in names if name.startswith(COUNTS)]
    scores: dict[str, dict[str, float]] = {query_id: dict.fromkeys(names, 0.0) for query_id in qrels}
    for query_id, name, value in per_query(qrels, run, names):
        scores[query_id][name] = value
    answered = [query_id for query_id in qrels if run.get(query_id)]
    for name in counts:
        for query_id in qrels.keys() - answered:
            scores[query_id][name] = unanswered_value(name, qrels[query_id])

    over_all, over_answered = (
        {
            name: math.fsum(scores[query_id][name] for query_id in query_ids)
            / (1 if name in counts else len(query_ids))
            for name in names
            if query_ids
        }
        for query_ids in (list(qrels), answered)
    )
    return Evaluation(
        measures=over_all,
        measures_answered=over_answered,
        per_query=scores,
        n_queries=len(qrels),
        n_zero_hit=len(qrels) - len(answered),
        n_tied=len(_find_tied_queries(qrels, run, names)),
    )


# A score beyond single precision is infinite for trec_eval, too.
@np.errstate(over="ignore")
def _find_tied_queries(qrels: Qrels, run: Run, names: Sequence[str]) -> set[str]:
    """Find the queries with a measure that differs between the best and the worst order of hits with equal scores.

    trec_eval keeps scores in single precision and breaks ties by falling document id, an order that says
    nothing about relevance; scores are equal here where they are equal for trec_eval. Best is the order by falling
    grade with unjudged hits last, worst its reverse: no order is better or worse for any measure that never falls
    when a higher grade, or for Judged a judged hit, moves up.
    """
    best: dict[str, dict[str, float]] = {}
    worst: dict[str, dict[str, float]] = {}
    depth = deepest(names)
    for query_id, grades in qrels.items():
        hits = run.get(query_id, {})
        # Two hits can be told apart only where one of them is judged.
        judged = hits.keys() & grades.keys()
        if not judged:
            continue
        scores = np.fromiter(hits.values(), np.float32, len(hits))
        # The order of hits below all cut-offs changes nothing.
        lowest = np.partition(scores, -depth)[-depth] if depth and depth < len(scores) else -np.inf
        groups = Counter((np.float32(hits[doc_id]), grades[doc_id]) for doc_id in judged)
        if not any(score >= lowest and np.count_nonzero(scores == score) > n for (score, _), n in groups.items()):
            continue
        seen = {doc_id: score for doc_id, score in zip(hits, scores.tolist(), strict=True) if score >= lowest}
        for sign, runs in ((-1, best), (1, worst)):
            order = sorted(seen.items(), key=lambda hit: (-hit[1], sign * grades.get(hit[0], -math.inf)))
            runs[query_id] = {doc_id: float(len(order) - rank) for rank, (doc_id, _) in enumerate(order)}
    if not best:
        return set()
    affected = {query_id: qrels[query_id] for query_id in best}
    values = {(query_id, name): value for query_id, name, value in per_query(affected, best, names)}
    return {
        query_id
        for query_id, name, value in per_query(affected, worst, names)
        if abs(values[query_id, name] - value) > 1e-12
    }


def cluster_queries(dataset: Dataset | Qrels) -> dict[str, int]:
    """Number the cluster of each judged query; queries with the same relevant documents share one.

    Questions about one paragraph are easy or hard together, so an interval or a test that draws them one by one is too
    sure of itself; drawing whole clusters is not (Field and Welsh, "Bootstrapping clustered data", 2007). In a pool the
    translations of a document count as one.

    Args:
        dataset: A dataset, or its judgements alone. The name of a dataset says whether its documents are sentences or
            windows; then the paragraphs that these are parts of count. Its card says whether it is a pool.

    Returns:
        query_id -> number from 0, in the order of the qrels. All numbers differ if all queries are independent. A query
        without a relevant document is a cluster of its own.

    Examples:
        >>> cluster_queries({"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"a": 1}})
        {'q1': 0, 'q2': 1, 'q3': 0}
    """
    qrels, card = (dataset.qrels, dataset.card) if isinstance(dataset, Dataset) else (dataset, None)
    parts = card is not None and _PARTS.fullmatch(card.name) is not None
    languages = card.languages if card else ()
    numbers: dict[Hashable, int] = {}
    clusters = {}
    for query_id, grades in qrels.items():
        doc_ids = [doc_id for doc_id, grade in grades.items() if grade > 0]
        if languages:
            doc_ids = [strip_language(doc_id, languages) for doc_id in doc_ids]
        relevant = frozenset(doc_id.rpartition("-")[0] if parts else doc_id for doc_id in doc_ids)
        clusters[query_id] = numbers.setdefault(relevant or query_id, len(numbers))
    return clusters


def strip_language(record_id: str, languages: Collection[str]) -> str:
    """Return the id that a document or a query of a pool had before its language was added to it.

    >>> strip_language("d1@ru", ("ru", "en")), strip_language("d1@ru", ())
    ('d1', 'd1@ru')
    """
    source_id, _, language = record_id.rpartition("@")
    return source_id if language in languages else record_id
