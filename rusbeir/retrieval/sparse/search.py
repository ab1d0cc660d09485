"""Exact search: scipy's product with one block of documents after the other, within a fixed bound of memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rusbeir.retrieval.sparse.encoder import Weights
from rusbeir.retrieval.sparse.store import WeightReader

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
