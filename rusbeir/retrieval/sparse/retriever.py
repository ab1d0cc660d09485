"""Searching an encoded corpus by weights of terms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rusbeir.errors import BadInput
from rusbeir.retrieval.dense.collection import Collection, query_rows
from rusbeir.retrieval.sparse.encoder import SparseEncoder
from rusbeir.retrieval.sparse.search import search
from rusbeir.retrieval.sparse.store import WeightStore
from rusbeir.types import Progress, Queries, Run


@dataclass(frozen=True, kw_only=True)
class SparseRetriever:
    """Answers queries by the terms that a document shares with them."""

    name: str
    signature: str
    encoder: SparseEncoder
    documents: WeightStore
    queries: WeightStore
    collection: Collection
    progress: Progress

    def search(self, queries: Queries, k: int) -> Run:
        """At most k hits a query by falling score, equal scores in corpus order; no shared term is no hit."""
        if k < 1:
            raise BadInput(f"k is {k}; ask for at least 1 hit a query.")
        texts = list(queries.values())
        rows = query_rows(self.queries, texts, self.encoder, self.progress, name=self.name)
        weights = self.queries.reader().read(np.array(rows, dtype=np.int64))
        found = search(weights, self.documents.reader(), self.collection.rows, k)
        return {
            query_id: dict(zip(self.collection.doc_ids.of(places.tolist()), scores.tolist(), strict=True))
            for query_id, (scores, places) in zip(queries, found, strict=True)
        }
