"""The side of a port that costs the score: a system on original and translated queries and documents, all four ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from rusbeir.evaluation import (
    FEW_SAMPLES,
    Figure,
    Units,
    check_measures,
    cluster_queries,
    deepest,
    describe_queries,
    evaluate,
)
from rusbeir.experiment import search
from rusbeir.types import Dataset, Progress, Run, silent

DEPTH = 100
"""The hits of each query from which the effect of a repair is estimated."""
TOP = 10
"""The ranks in which a document is in the way of a relevant one, where the measure has no cut-off."""

QUERIES, DOCUMENTS, BOTH, NONE, UNKNOWN = "queries", "documents", "both", "none", "inconclusive"
"""Verdicts: the side that costs more, both where neither costs more than the other, none where nothing is lost for
certain, and inconclusive where something is, but not by which side."""

Gains: TypeAlias = Mapping[str, float]
"""query_id or doc_id -> what its repair would give back of the mean measure."""


class Runs(NamedTuple):
    """The hits of the four ways; the first letter is of the queries, the second of the documents."""

    oo: Run
    """Original queries, original documents."""
    to: Run
    """Translated queries, original documents."""
    ot: Run
    """Original queries, translated documents."""
    tt: Run
    """Translated queries, translated documents."""


WAYS = {
    "oo": "original queries, original documents",
    "to": "translated queries, original documents",
    "ot": "original queries, translated documents",
    "tt": "translated queries, translated documents",
}


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """The loss of a system on a port, divided between its queries and its documents."""

    system: str
    measure: str
    n_queries: int
    n_clusters: int
    """The independent units among the queries, which resamples draw whole: queries, or clusters of them."""
    scores: dict[str, float]
    """The mean measure of each of WAYS."""
    lost: Figure
    """The mean on the original minus that on the port. Intervals resample queries."""
    queries: Figure
    """What the translation of the queries costs: the mean of that with original and that with translated documents."""
    documents: Figure
    """What the translation of the documents costs, in the same way. The two add up to what is lost."""
    verdict: str

    @property
    def conclusion(self) -> str:
        """The verdict in a sentence."""
        clauses = {
            QUERIES: "the translation of the queries costs more than that of the documents",
            DOCUMENTS: "the translation of the documents costs more than that of the queries",
            BOTH: "the translations of queries and of documents both cost, neither certainly more than the other",
            NONE: "whether anything is lost cannot be told",
            UNKNOWN: "which translation costs it cannot be told",
        }
        queries = describe_queries(self.n_queries, self.n_clusters)
        over = f" over {queries}," if self.n_clusters < self.n_queries else ","
        return (
            f"{self.system} loses {self.lost} of {self.measure}{over} {self.queries} of it by the queries and "
            f"{self.documents} by the documents: {clauses[self.verdict]}."
        )


def attribute(
    original: Dataset,
    translated: Dataset,
    system: str,
    *,
    measure: str = "nDCG@10",
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[Attribution, Repairs]:
    """Divide what a system loses between queries and documents, and estimate what the repair of each text gives back.

    Both datasets have the same ids and judgements; the translated one is in another language, for systems that know
    both, or it is the port translated back.

    Each share is the mean of its two effects (a Shapley value), so that the penalty that a system has for queries and
    documents in different languages, which both mixed ways pay and the two others do not, cancels out.
    """
    (name,) = check_measures([measure])
    depth = max(DEPTH, deepest([name]) or DEPTH)
    # What is asked for in one language is asked for on documents of the other.
    sides = [
        replace(side, card=replace(side.card, self_suffixes=original.card.self_suffixes))
        for side in (original, translated)
    ]
    runs = Runs(
        *(search(docs, system, queries.queries, k=depth, progress=progress) for docs in sides for queries in sides)
    )
    results = [evaluate(original.qrels, run, [name]) for run in runs]
    query_ids = list(original.qrels)
    oo, to, ot, tt = np.array([[result.per_query[query_id][name] for query_id in query_ids] for result in results])
    of_queries, of_documents = ((oo - to) + (ot - tt)) / 2, ((oo - ot) + (to - tt)) / 2
    rows = np.array([oo - tt, of_queries, of_documents, of_queries - of_documents])
    units = Units.from_clusters(query_ids, cluster_queries(original))
    drawn = units.resample(rows, samples=FEW_SAMPLES, seed=seed).T
    lost, queries, documents, more = (
        Figure.from_resamples(row.mean(), samples, "queries") for row, samples in zip(rows, drawn, strict=True)
    )
    attribution = Attribution(
        system=system,
        measure=name,
        n_queries=len(query_ids),
        n_clusters=units.n_clusters,
        scores={way: float(side.mean()) for way, side in zip(WAYS, (oo, to, ot, tt), strict=True)},
        lost=lost,
        queries=queries,
        documents=documents,
        verdict=_judge(lost, queries, documents, more),
    )
    losing = [query_id for query_id, share in zip(query_ids, of_documents, strict=True) if share > 0]
    by_query = {query_id: float(share) / len(query_ids) for query_id, share in zip(query_ids, of_queries, strict=True)}
    by_document = _estimate_documents(runs, original, name, losing)
    totals = {doc_id: sum(gains.values()) for doc_id, gains in by_document.items()}
    return attribution, Repairs(
        {query_id: by_query[query_id] for query_id in _choose_most(by_query, queries.value)},
        {doc_id: by_document[doc_id] for doc_id in _choose_most(totals, documents.value)},
    )


def _choose_most(gains: Gains, share: float) -> list[str]:
    """Choose the texts that give most, as many as together give back the share; none where that is not positive.

    The others are left out: for each text that loses a little by chance, another one wins.
    """
    chosen: list[str] = []
    for text_id in sorted(gains, key=lambda text_id: (-gains[text_id], text_id)):
        if share <= 0 or gains[text_id] <= 0:
            break
        chosen.append(text_id)
        share -= gains[text_id]
    return chosen


def _judge(lost: Figure, queries: Figure, documents: Figure, more: Figure) -> str:
    if lost.interval[0] <= 0:
        return NONE
    if more.interval[0] > 0:
        return QUERIES
    if more.interval[1] < 0:
        return DOCUMENTS
    return BOTH if min(queries.interval[0], documents.interval[0]) > 0 else UNKNOWN


class Repairs(NamedTuple):
    """The gain that good translations of single texts would bring, as estimated, in the mean over all queries."""

    queries: dict[str, float]
    """query_id -> gain, of the queries that lose by their own translation."""
    documents: dict[str, dict[str, float]]
    """doc_id -> {query_id: gain}, of the documents whose translation costs queries something."""


def _estimate_documents(
    runs: Runs, dataset: Dataset, measure: str, losing: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Estimate what each document gives back if it alone had the score of its original, by query.

    Scores of the other side are taken after the hits that both sides share were brought to one level, since systems
    score texts of one language higher than those of two. Gains are means over original and translated queries.
    """
    gains: dict[str, dict[str, float]] = {}
    for hits_by_query, others_by_query in ((runs.tt, runs.to), (runs.ot, runs.oo)):
        qrels: dict[str, Mapping[str, int]] = {}
        changed: dict[str, Mapping[str, float]] = {}
        pairs: list[tuple[str, str]] = []
        for query_id in losing:
            grades, hits = dataset.qrels[query_id], hits_by_query[query_id]
            for doc_id, repaired in _repair_hits(hits, others_by_query[query_id], grades, measure):
                name = str(len(pairs))
                pairs.append((query_id, doc_id))
                qrels[name], changed[name] = grades, repaired
        if not pairs:
            continue
        judged = {query_id: dataset.qrels[query_id] for query_id in losing}
        before = evaluate(judged, hits_by_query, [measure]).per_query
        after = evaluate(qrels, changed, [measure]).per_query
        for number, (query_id, doc_id) in enumerate(pairs):
            gain = (after[str(number)][measure] - before[query_id][measure]) / 2 / len(dataset.qrels)
            by_query = gains.setdefault(doc_id, {})
            by_query[query_id] = by_query.get(query_id, 0.0) + gain
    return gains


def _repair_hits(
    hits: Mapping[str, float], others: Mapping[str, float], grades: Mapping[str, int], measure: str
) -> list[tuple[str, dict[str, float]]]:
    """Return (doc_id, hits with its score repaired), for each document of which that can help.

    These are relevant documents that rise, and others at the top that fall.
    """
    shared = hits.keys() & others.keys()
    offset = float(np.median([hits[doc_id] - others[doc_id] for doc_id in shared])) if shared else 0.0
    cut = deepest([measure]) or TOP
    top = sorted(hits, key=lambda doc_id: -hits[doc_id])[:cut]
    relevant = [doc_id for doc_id, grade in grades.items() if grade > 0]
    repaired = [
        (doc_id, {**hits, doc_id: score})
        for doc_id in relevant
        if doc_id in others and (score := others[doc_id] + offset) > hits.get(doc_id, -np.inf)
    ]
    for doc_id in top:
        if grades.get(doc_id, 0) > 0:
            continue
        # A document that its original does not find is not among the hits any more.
        without = {other: score for other, score in hits.items() if other != doc_id}
        if doc_id not in others:
            repaired.append((doc_id, without))
        elif (score := others[doc_id] + offset) < hits[doc_id]:
            repaired.append((doc_id, {**without, doc_id: score}))
    return repaired
