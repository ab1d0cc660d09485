"""Exact search among vectors with FAISS, block by block in bounded memory."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from rusbeir.errors import require
from rusbeir.retrieval.encoding.encoder import Vectors

BLOCK_BYTES = 128 << 20

_TIED = 2.0**-22
"""Scores that differ by this share of the highest score may differ only by FAISS's rounding."""
_NEAR = 1e-5
_QUERIES_PER_SORT = 64
"""The queries whose products with a block are in memory at a time, where FAISS leaves ties open."""


def search_exactly(
    queries: Vectors,
    vectors: npt.NDArray[Any],
    rows: npt.NDArray[np.uint32],
    k: int,
    *,
    mapping: mmap.mmap | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> tuple[Vectors, npt.NDArray[np.int64]]:
    """Return inner products [n, k] and passages [n, k], by falling score; equal scores by passage, also at the cut-off.

    vectors is float32 or float16 [m, dim]; rows says which of them are searched, and a passage is an index into rows.
    At most one block of vectors is in memory at a time; with the mapping behind vectors, a block's pages are released
    after its search. k is at most len(rows).
    """
    faiss = load_faiss()
    k = min(k, len(rows))
    step = max(1, block_bytes // (4 * max(1, vectors.shape[1])))
    # One more hit than k: where it equals the k-th, others that equal it may have been dropped.
    heap = faiss.ResultHeap(len(queries), min(k + 1, len(rows)), keep_max=True)
    for start, block in _read_blocks(vectors, rows, step, mapping):
        scores, passages = faiss.knn(queries, block, min(k + 1, len(block)), faiss.METRIC_INNER_PRODUCT)
        heap.add_result(scores, passages + start)
        del block
    heap.finalize()
    scores, passages = break_ties(heap.D, heap.I)
    tied = np.flatnonzero(scores[:, k - 1] - scores[:, -1] <= _TIED * np.abs(scores).max(1)) if k < len(rows) else ()
    scores, passages = scores[:, :k].copy(), passages[:, :k].copy()
    if len(tied):
        scores[tied], passages[tied] = _search_by_sorting(queries[tied], _read_blocks(vectors, rows, step, mapping), k)
    return scores, passages


def _read_blocks(
    vectors: npt.NDArray[Any], rows: npt.NDArray[np.uint32], step: int, mapping: mmap.mmap | None
) -> Iterator[tuple[int, Vectors]]:
    """Yield the first passage and the vectors, float32, of each block of `step` rows.

    With the mapping behind vectors, the pages of a block are released before the next block is read.
    """
    for start in range(0, len(rows), step):
        chosen = rows[start : start + step]
        first, last = int(chosen[0]), int(chosen[-1])
        adjacent = last - first + 1 == len(chosen) and bool((np.diff(chosen.astype(np.int64)) == 1).all())
        yield start, np.ascontiguousarray(vectors[first : last + 1] if adjacent else vectors[chosen], np.float32)
        if mapping is not None:
            mapping.madvise(mmap.MADV_DONTNEED)


def _search_by_sorting(
    queries: Vectors, blocks: Iterable[tuple[int, Vectors]], k: int
) -> tuple[Vectors, npt.NDArray[np.int64]]:
    """Return the k best passages of all blocks, equal scores by passage.

    A matrix product may give copies of one vector different last bits; those near the cut-off are computed again in
    double precision.
    """
    best = [(np.empty(0, np.float32), np.empty(0, np.int64))] * len(queries)
    for start, block in blocks:
        for first in range(0, len(queries), _QUERIES_PER_SORT):
            products = queries[first : first + _QUERIES_PER_SORT] @ block.T
            for number, scores in enumerate(products, start=first):
                last = np.partition(scores, -k)[-k] if len(scores) > k else -np.inf
                near = np.flatnonzero(scores >= last - _NEAR * np.abs(scores).max())
                exact = block[near].astype(np.float64) @ queries[number].astype(np.float64)
                candidates = np.concatenate([best[number][0], exact.astype(np.float32)])
                order = np.argsort(-candidates, kind="stable")[:k]
                best[number] = candidates[order], np.concatenate([best[number][1], near + start])[order]
        del block
    return np.stack([scores for scores, _ in best]), np.stack([passages for _, passages in best])


def compute_recall(hits: Iterable[npt.ArrayLike], exact: Iterable[npt.ArrayLike]) -> float:
    """Return the share of the exact hits (an array of passages for each query) in hits, mean over the queries."""
    return float(np.mean([np.isin(best, passages).mean() for passages, best in zip(hits, exact, strict=True)]))


def load_faiss() -> Any:
    """Import the package faiss. Raises MissingExtra where it is not installed."""
    return require("faiss", "Dense retrieval", "dense")


def break_ties(scores: Vectors, passages: npt.NDArray[np.int64]) -> tuple[Vectors, npt.NDArray[np.int64]]:
    """Put hits with equal scores in the order of their passages; FAISS returns them in any order."""
    order = np.lexsort((passages, -scores), axis=1)
    return np.take_along_axis(scores, order, 1), np.take_along_axis(passages, order, 1)
