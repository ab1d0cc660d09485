"""Search among vectors with FAISS: exactly, block by block in bounded memory, or approximately by an HNSW graph."""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rusbeir.errors import BackendError, require
from rusbeir.retrieval.dense.encoder import Vectors
from rusbeir.storage import atomic_file
from rusbeir.types import Progress

BLOCK_BYTES = 128 << 20

NEIGHBOURS = 32
EF_CONSTRUCTION = 200
EF_SEARCH = 128
HNSW_SIGNATURE = f"hnsw:{NEIGHBOURS}/{EF_CONSTRUCTION}/{EF_SEARCH}"
HNSW_FILE = f"hnsw-{NEIGHBOURS}-{EF_CONSTRUCTION}.faiss"
_ROWS_PER_ADD = 10_000


def search_exactly(
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
    memory at a time; with the mapping behind vectors, a block's pages are released after its search. k is at most
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
    return _break_ties(heap.D, heap.I)


@dataclass(frozen=True, kw_only=True)
class HnswGraph:
    """FAISS's HNSW graph (Malkov and Yashunin, 2018) of some rows of vectors, which are then in memory.

    The graph is built at the first search and saved at the path.
    """

    path: Path
    vectors: npt.NDArray[Any]
    rows: npt.NDArray[np.uint32]
    progress: Progress
    kind: str = "hnsw"

    @property
    def max_hits(self) -> int:
        return len(self.rows)

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
        """Inner products [n, k] and places [n, k], by falling score and then by place; -1 where it reaches fewer.

        Raises BackendError where the file is damaged.
        """
        self._index.hnsw.efSearch = max(EF_SEARCH, k)
        return _break_ties(*self._index.search(queries, k))

    @cached_property
    def _index(self) -> Any:
        faiss = load_faiss()
        if self.path.exists():
            try:
                return faiss.read_index(str(self.path))
            except (RuntimeError, OSError) as error:
                raise BackendError(
                    f"The HNSW graph {self.path} is damaged. Remove it: `rusbeir cache clear embeddings`."
                ) from error
        index = faiss.IndexHNSWFlat(self.vectors.shape[1], NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = EF_CONSTRUCTION
        for start in range(0, len(self.rows), _ROWS_PER_ADD):
            chosen = self.rows[start : start + _ROWS_PER_ADD]
            index.add(np.ascontiguousarray(self.vectors[chosen], np.float32))
            self.progress("build HNSW", start + len(chosen), len(self.rows))
        with atomic_file(self.path) as file:
            faiss.write_index(index, file.name)
        return index


def recall(found: Iterable[npt.ArrayLike], exact: Iterable[npt.ArrayLike]) -> float:
    """The share of the exact hits (one array of places a query) that were found, mean over the queries."""
    return float(np.mean([np.isin(best, places).mean() for places, best in zip(found, exact, strict=True)]))


def load_faiss() -> Any:
    """Import the package faiss. Raises MissingExtra."""
    return require("faiss", "Dense retrieval", "dense")


def _break_ties(scores: Vectors, places: npt.NDArray[np.int64]) -> tuple[Vectors, npt.NDArray[np.int64]]:
    """The same hits with equal scores in the order of their places: FAISS leaves them in any order."""
    order = np.lexsort((places, -scores), axis=1)
    return np.take_along_axis(scores, order, 1), np.take_along_axis(places, order, 1)
