"""Systems on candidates: only some documents may be hits of a query, and the last stage scores all of those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from rusbeir.retrieval.fusion import FusedSystem
from rusbeir.retrieval.rerank.system import RerankSystem
from rusbeir.retrieval.run_cache import CachedSystem
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings, System, WrappedSystem
from rusbeir.storage import cache_folder
from rusbeir.types import Corpus, Queries, Retriever, Run

Candidates: TypeAlias = Mapping[str, Sequence[str]]
"""query_id -> doc_ids; a query that is missing has no candidates."""


def restrict(system: System, candidates: Candidates) -> System:
    """Restrict a system to the candidates: a reranker scores all of them, whatever its source would find.

    Other systems search the whole corpus and keep the candidates; a fusion joins what its parts keep.
    """
    depth = max(1, max(map(len, candidates.values()), default=1))
    if isinstance(system, CachedSystem):
        return restrict(system.system, candidates)
    if isinstance(system, RerankSystem):
        return replace(system, source=_Listed(candidates=candidates), depth=depth)
    if isinstance(system, FusedSystem):
        return replace(system, sources=tuple(restrict(part, candidates) for part in system.sources), depth=depth)
    return _Restricted(system=system, candidates=candidates)


@dataclass(frozen=True, kw_only=True)
class _Listed:
    """The candidates in their order, without those that the corpus lacks."""

    candidates: Candidates
    corpus: Corpus | None = None
    name: str = "candidates"
    signature: str = "candidates"
    engine: str = "python"

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        return Prepared(retriever=replace(self, corpus=corpus), path=cache_folder())

    def search(self, queries: Queries, k: int) -> Run:
        run: dict[str, dict[str, float]] = {}
        for query_id in queries:
            doc_ids = [doc_id for doc_id in self.candidates.get(query_id, ()) if self._holds(doc_id)]
            run[query_id] = {doc_id: float(-rank) for rank, doc_id in enumerate(doc_ids[:k])}
        return run

    def _holds(self, doc_id: str) -> bool:
        try:
            return self.corpus is not None and bool(self.corpus[doc_id])
        except KeyError:
            return False


@dataclass(frozen=True, kw_only=True)
class _Restricted(WrappedSystem):
    """A system that searches the whole corpus; its hits are cut after all but the candidates were removed."""

    candidates: Candidates

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        prepared = self.system.prepare(corpus, fingerprint, settings)
        retriever = _RestrictedRetriever(retriever=prepared.retriever, candidates=self.candidates, n_docs=len(corpus))
        return replace(prepared, retriever=retriever)


@dataclass(frozen=True, kw_only=True)
class _RestrictedRetriever:
    retriever: Retriever
    candidates: Candidates
    n_docs: int

    @property
    def signature(self) -> str:
        return self.retriever.signature

    def search(self, queries: Queries, k: int) -> Run:
        run: dict[str, dict[str, float]] = {}
        for query_id, hits in self.retriever.search(queries, self.n_docs).items():
            allowed = frozenset(self.candidates.get(query_id, ()))
            run[query_id] = dict([(doc_id, score) for doc_id, score in hits.items() if doc_id in allowed][:k])
        return run
