"""Searching an encoded corpus by weights of terms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rusbeir.errors import BadInput
from rusbeir.retrieval.dense.encoded_corpus import Collection, query_rows
from rusbeir.retrieval.sparse.encoder import SparseEncoder, Weights
from rusbeir.retrieval.sparse.weight_store import WeightReader, WeightStore
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


BLOCK_NUMBERS = 2 << 20
"""Scores of a block at most, and weights of its documents; some 50 bytes of each are in memory at once."""

_TERMS = 64
"""A document has so many, or more; so of few queries no more documents are asked for than a block is likely to hold."""
_LAST = np.uint64((1 << 32) - 1)


def search(
    queries: Weights,
    documents: WeightReader,
    rows: npt.NDArray[np.uint32],
    k: int,
    *,
    block_numbers: int = BLOCK_NUMBERS,
) -> list[tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]:
    """Of each query at most k scores above 0 and their places in `rows`, by falling score and then by place."""
    n, vocabulary = queries.shape
    if not n:
        return []
    of_terms = queries.T.tocsr()
    step = max(1, block_numbers // max(n, _TERMS))
    best = np.empty((n, 0), np.uint64)
    start = 0
    while start < len(rows):
        block = documents.read(rows[start : start + step], most=block_numbers)
        # Terms that no query has are left out, or are none yet.
        block.resize(block.shape[0], vocabulary)
        end = start + block.shape[0]
        scores = (block @ of_terms).toarray()
        # The bits of numbers that are not negative sort as the numbers do. With the place behind them no two are equal,
        # so the best k are the same whatever the blocks.
        keys = scores.view(np.uint32).astype(np.uint64) << np.uint64(32)
        keys |= _LAST - np.arange(start, end, dtype=np.uint64)[:, None]
        best = np.concatenate([best, keys.T], axis=1)
        if best.shape[1] > k:
            best = np.partition(best, -k, axis=1)[:, -k:]
        start = end
    best = np.sort(best, axis=1)[:, ::-1]
    scores = (best >> np.uint64(32)).astype(np.uint32).view(np.float32)
    places = (_LAST - (best & _LAST)).astype(np.int64)
    return [(row[row > 0], at[row > 0]) for row, at in zip(scores, places, strict=True)]
