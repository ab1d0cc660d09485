"""Approximate search by FAISS's HNSW graph (Malkov and Yashunin, 2018), kept beside the encoded corpus."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rusbeir.errors import BackendError
from rusbeir.retrieval.dense.encoder import Vectors
from rusbeir.retrieval.dense.exact import load_faiss
from rusbeir.storage import atomic_file
from rusbeir.types import Progress

NEIGHBOURS = 32
EF_CONSTRUCTION = 200
EF_SEARCH = 128
SIGNATURE = f"hnsw:{NEIGHBOURS}/{EF_CONSTRUCTION}/{EF_SEARCH}"
FILE = f"hnsw-{NEIGHBOURS}-{EF_CONSTRUCTION}.faiss"
_ADD_ROWS = 10_000


@dataclass(frozen=True, kw_only=True)
class Graph:
    """The graph of some rows of vectors, at a path; built there when it is first searched. It holds them in memory."""

    path: Path
    vectors: npt.NDArray[Any]
    rows: npt.NDArray[np.uint32]
    progress: Progress
    kind: str = "hnsw"

    @property
    def most(self) -> int:
        return len(self.rows)

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
        """Inner products [n, k] and places [n, k], by falling score and then by place; -1 where it reaches fewer.

        Raises BackendError where the file is damaged.
        """
        self._index.hnsw.efSearch = max(EF_SEARCH, k)
        scores, places = self._index.search(queries, k)
        order = np.lexsort((places, -scores), axis=1)
        return np.take_along_axis(scores, order, 1), np.take_along_axis(places, order, 1)

    @cached_property
    def _index(self) -> Any:
        return _open(self.path, self.vectors, self.rows, self.progress)


def _open(path: Path, vectors: npt.NDArray[Any], rows: npt.NDArray[np.uint32], progress: Progress) -> Any:
    faiss = load_faiss()
    if path.exists():
        try:
            return faiss.read_index(str(path))
        except (RuntimeError, OSError) as error:
            raise BackendError(f"The graph {path} is damaged. Remove it: `rusbeir cache clear embeddings`.") from error
    index = faiss.IndexHNSWFlat(vectors.shape[1], NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = EF_CONSTRUCTION
    for start in range(0, len(rows), _ADD_ROWS):
        index.add(np.ascontiguousarray(vectors[rows[start : start + _ADD_ROWS]], np.float32))
        progress("build HNSW", min(start + _ADD_ROWS, len(rows)), len(rows))
    with atomic_file(path) as file:
        faiss.write_index(index, file.name)
    return index
