"""Exact search: FAISS over one block of vectors after the other, within a fixed bound of memory."""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from rusbeir.errors import MissingExtra
from rusbeir.retrieval.dense.encoder import Vectors

BLOCK_BYTES = 128 << 20


def search(
    queries: Vectors,
    vectors: npt.NDArray[Any],
    rows: npt.NDArray[np.uint32],
    k: int,
    *,
    mapping: mmap.mmap | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> tuple[Vectors, npt.NDArray[np.int64]]:
    """Inner products [n, k] and the places in `rows` [n, k], by falling score and then by place.

    vectors is float32 or float16 [m, dim], rows says which of them are searched. At most one block of them is in
    memory at a time; with the mapping behind vectors, a block's pages are handed back when it is done. k is cut to
    len(rows).
    """
    faiss = load_faiss()
    k = min(k, len(rows))
    heap = faiss.ResultHeap(len(queries), k, keep_max=True)
    step = max(1, block_bytes // (4 * max(1, vectors.shape[1])))
    for start in range(0, len(rows), step):
        chosen = rows[start : start + step]
        first, last = int(chosen[0]), int(chosen[-1])
        adjacent = last - first + 1 == len(chosen) and bool((np.diff(chosen.astype(np.int64)) == 1).all())
        block = vectors[first : last + 1] if adjacent else vectors[chosen]
        scores, places = faiss.knn(
            queries, np.ascontiguousarray(block, np.float32), min(k, len(chosen)), faiss.METRIC_INNER_PRODUCT
        )
        heap.add_result(scores, places + start)
        del block
        if mapping is not None:
            mapping.madvise(mmap.MADV_DONTNEED)
    heap.finalize()
    # FAISS leaves equal scores in any order.
    order = np.lexsort((heap.I, -heap.D), axis=1)
    return np.take_along_axis(heap.D, order, 1), np.take_along_axis(heap.I, order, 1)


def recall(found: Iterable[npt.ArrayLike], true: Iterable[npt.ArrayLike]) -> float:
    """The share of the exact hits (one array of places a query) that were found, mean over the queries."""
    return float(np.mean([np.isin(best, places).mean() for places, best in zip(found, true, strict=True)]))


def load_faiss() -> Any:
    """The package faiss."""
    try:
        import faiss
    except ImportError as error:
        raise MissingExtra("Dense retrieval needs the package faiss-cpu: pip install 'rusbeir[dense]'") from error
    return faiss
