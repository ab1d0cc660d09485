"""Documents that may answer a query although nobody judged them: those that most rankers put among the first.

As AIR-Bench (2024) finds them: a retriever's hits are ranked by several systems, and a document is a candidate where
more than half of them put it at or above a threshold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rusbeir.errors import BadInput, option
from rusbeir.experiment import resolve_on
from rusbeir.retrieval import RERANKERS, CachedSystem, RunSettings, Spec, Stage, System, check_available, parse
from rusbeir.text import batched
from rusbeir.types import Dataset, Queries, Run, silent

DEPTH = 1_000
THRESHOLD, NEGATIVE_THRESHOLD = 10, 20
"""The worst rank that counts: of a document, and of one that was made to mislead."""
PAGE_QUERIES = 200
MIN_RANKERS = 2


class Candidate(NamedTuple):
    """A document that most rankers put at or above its threshold."""

    query_id: str
    doc_id: str
    ranks: dict[str, int | None]
    """Ranker -> rank, from 1; None where the ranker did not find the document."""
    threshold: int


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The systems that find candidates."""

    dataset: Dataset
    retriever: System
    rankers: Mapping[str, System]
    """The rankers by their names; those that only rerank have the retriever as their source."""
    depth: int

    @classmethod
    def open(
        cls, dataset: Dataset, retriever: str, rankers: Sequence[str], *, engine: str = "auto", depth: int = DEPTH
    ) -> Pool:
        """Open the pool of systems that can run. Raises UnknownName, BadInput and MissingExtra as systems do.

        A ranker that searches by itself ranks the candidates by its own hits; `rerank(MODEL)` reranks the retriever's.
        """
        if repeated := next((ranker for ranker in rankers if rankers.count(ranker) > 1), None):
            raise BadInput(f"{option('ranker', repeated)} is given twice, and would have two votes.")
        first = parse(retriever)
        specs = [first, *(_complete(parse(ranker), first, depth) for ranker in rankers)]
        _, systems = resolve_on(dataset, specs, depth, engine, None, None, silent)
        for system in systems:
            check_available(system)
        suffixes = dataset.card.self_suffixes
        source, *others = [CachedSystem(system=system, self_suffixes=suffixes) for system in systems]
        return cls(dataset=dataset, retriever=source, rankers=dict(zip(rankers, others, strict=True)), depth=depth)

    def search(self, queries: Queries, settings: RunSettings) -> Iterator[tuple[Queries, Run, dict[str, Run]]]:
        """Yield the queries a page at a time, with the retriever's run and those of the rankers."""
        corpus, fingerprint = self.dataset.corpus, self.dataset.fingerprint
        ready = [
            system.prepare(corpus, fingerprint, settings).retriever
            for system in (self.retriever, *self.rankers.values())
        ]
        done = 0
        for page in batched(queries.items(), PAGE_QUERIES):
            texts = dict(page)
            run, *runs = [retriever.search(texts, self.depth) for retriever in ready]
            yield texts, run, dict(zip(self.rankers, runs, strict=True))
            done += len(texts)
            settings.progress("rank", done, len(queries))


def find_candidates(
    pool: Pool,
    queries: Queries,
    negatives: Mapping[str, Collection[str]],
    *,
    threshold: int = THRESHOLD,
    negative_threshold: int = NEGATIVE_THRESHOLD,
    settings: RunSettings,
) -> Iterator[Candidate]:
    """The candidates of each query, in the retriever's order; negatives are a query's documents made to mislead."""
    for texts, run, runs in pool.search(queries, settings):
        for query_id in texts:
            hits = list(run[query_id])
            rankings = {name: rank_hits(ranking[query_id], hits) for name, ranking in runs.items()}
            thresholds = dict.fromkeys(hits, threshold)
            thresholds |= dict.fromkeys(set(negatives.get(query_id, ())) & thresholds.keys(), negative_threshold)
            yield from (Candidate(query_id, *hit) for hit in vote(rankings, thresholds))


def vote(
    rankings: Mapping[str, Sequence[str]], thresholds: Mapping[str, int]
) -> Iterator[tuple[str, dict[str, int | None], int]]:
    """Yield the documents that more than half of the rankings have at or above their thresholds, with their ranks.

    >>> list(vote({"a": ["d1", "d2"], "b": ["d2", "d1"], "c": ["d1"]}, {"d1": 1, "d2": 1}))
    [('d1', {'a': 1, 'b': 2, 'c': 1}, 1)]
    """
    ranks = {name: {doc_id: rank for rank, doc_id in enumerate(docs, 1)} for name, docs in rankings.items()}
    for doc_id, threshold in thresholds.items():
        of_doc = {name: ranking.get(doc_id) for name, ranking in ranks.items()}
        votes = sum(rank is not None and rank <= threshold for rank in of_doc.values())
        if 2 * votes > len(of_doc):
            yield doc_id, of_doc, threshold


def bound_candidates(n_rankers: int, n_negatives: int, threshold: int, negative_threshold: int) -> int:
    """Bound the number of candidates a query can have, of which so many are made to mislead.

    >>> bound_candidates(3, 5, 10, 20)
    20
    """
    majority = n_rankers // 2 + 1
    return n_rankers * threshold // majority + min(n_negatives, n_rankers * negative_threshold // majority)


def _complete(ranker: Spec, retriever: Spec, depth: int) -> Spec:
    """Return a ranker that only reranks, behind the retriever."""
    stage, *rest = ranker.stages
    if stage.name not in RERANKERS:
        return ranker
    if all(key != "depth" for key, _ in stage.options):
        stage = Stage(stage.name, stage.args, (*stage.options, ("depth", depth)))
    return Spec((*retriever.stages, stage, *rest))


def rank_hits(hits: Mapping[str, float], documents: Collection[str]) -> list[str]:
    """Return the hits that are among the documents, best first; equal scores keep the order of the hits.

    >>> rank_hits({"d1": 1.0, "d2": 2.0, "d3": 1.0}, ["d3", "d1"])
    ['d1', 'd3']
    """
    pool = set(documents)
    return [doc_id for doc_id in sorted(hits, key=lambda doc_id: -hits[doc_id]) if doc_id in pool]
