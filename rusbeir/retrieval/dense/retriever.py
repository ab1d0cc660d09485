"""Searching an encoded corpus."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rusbeir.errors import BadInput
from rusbeir.retrieval.dense import exact
from rusbeir.retrieval.dense.embedding_store import Store
from rusbeir.retrieval.dense.encoded_corpus import Collection, query_rows
from rusbeir.retrieval.dense.encoder import Encoder, Vectors
from rusbeir.types import Progress, Queries, Run

logger = logging.getLogger(__name__)

RECALL_QUERIES = 200
"""So many queries are searched exactly as well, to say how much an approximate search misses."""


class Approximate(Protocol):
    """Another way to search a collection's vectors than comparing with all of them here."""

    @property
    def kind(self) -> str: ...

    @property
    def most(self) -> int:
        """Hits that it gives at most."""
        ...

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
        """Inner products [n, k] and places [n, k], by falling score and then by place; -1 where there are fewer."""
        ...


@dataclass(frozen=True, kw_only=True)
class DenseRetriever:
    """Answers queries by inner product; of a document's passages the best counts (max-passage)."""

    name: str
    signature: str
    encoder: Encoder
    documents: Store
    queries: Store
    collection: Collection
    progress: Progress
    approximate: Approximate | None = None
    """None searches exactly."""

    def search(self, queries: Queries, k: int) -> Run:
        """At most k hits a query by falling score, equal scores in corpus order; every document is a hit."""
        if k < 1:
            raise BadInput(f"k is {k}; ask for at least 1 hit a query.")
        if not queries:
            return {}
        rows = query_rows(self.queries, list(queries.values()), self.encoder, self.progress, name=self.name)
        vectors = self.queries.read(rows)
        if vectors.shape[1] != self.documents.dim:
            raise BadInput(
                f"{self.name} gives queries {vectors.shape[1]} dimensions and documents {self.documents.dim}: "
                "both must come from one model."
            )
        return dict(zip(queries, self._hits(vectors, k), strict=True))

    def _hits(self, queries: Vectors, k: int) -> list[dict[str, float]]:
        k = min(k, self.collection.built.documents)
        most = len(self.collection.rows)
        if self.approximate is not None:
            most = min(most, self.approximate.most)
        hits: list[dict[str, float]] = [{}] * len(queries)
        lacking, depth = list(range(len(queries))), k
        while lacking:
            scores, places = self._search(queries[lacking], depth)
            if depth == k:
                self._report_recall(queries, places)
            for query, row, at in zip(lacking, scores, places, strict=True):
                hits[query] = self._documents(row, at, k)
            # Passages come by falling score, so the first k documents among them are the best k; several of one
            # document may leave fewer than that.
            lacking = [query for query in lacking if len(hits[query]) < k]
            if depth >= most:
                break
            depth = min(4 * depth, most)
        if lacking and self.approximate is not None:
            logger.warning(
                "%s: %d of %d queries have fewer than %d documents, of %d passages at most that %s gives.",
                self.name, len(lacking), len(queries), k, most, self.approximate.kind,
            )  # fmt: skip
        return hits

    def _search(self, queries: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
        return self.approximate.search(queries, k) if self.approximate else self._search_exactly(queries, k)

    def _search_exactly(self, queries: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
        vectors, mapping = self.documents.mapped()
        return exact.search(queries, vectors, self.collection.rows, k, mapping=mapping)

    def _report_recall(self, queries: Vectors, places: npt.NDArray[np.int64]) -> None:
        if self.approximate is not None:
            _, true = self._search_exactly(queries[:RECALL_QUERIES], places.shape[1])
            recall = exact.recall(places[:RECALL_QUERIES], true)
            logger.warning(
                "%s: recall@%d of %s against exact search is %.4f.",
                self.name, true.shape[1], self.approximate.kind, recall,
            )  # fmt: skip

    def _documents(self, scores: Vectors, places: npt.NDArray[np.int64], k: int) -> dict[str, float]:
        # A graph that does not reach k documents says -1.
        scores, places = scores[places >= 0], places[places >= 0]
        owners = self.collection.owners
        if owners is None:
            return dict(zip(self.collection.doc_ids.of(places.tolist()), scores.tolist(), strict=True))
        best: dict[int, float] = {}
        for owner, score in zip(owners[places].tolist(), scores.tolist(), strict=True):
            best.setdefault(owner, score)
            if len(best) == k:
                break
        return dict(zip(self.collection.doc_ids.of(list(best)), best.values(), strict=True))
