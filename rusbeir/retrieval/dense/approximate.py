"""Approximate search among vectors with FAISS, for corpora that exact search takes too long for: a graph or lists.

Both indexes are built at the first search, saved, and held in memory while they are searched. `DenseRetriever`, which
searches them, measures how much they miss.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rusbeir.errors import BackendError
from rusbeir.retrieval.dense.vector_search import break_ties, load_faiss
from rusbeir.retrieval.encoding.encoder import Vectors
from rusbeir.storage import atomic_file
from rusbeir.text import digest
from rusbeir.types import Progress

logger = logging.getLogger(__name__)

NEIGHBOURS = 32
EF_CONSTRUCTION = 200
EF_SEARCH = 128
LISTS_PER_ROOT = 4
"""The lists of an inverted file for each unit of the square root of the number of vectors, as FAISS's guide says."""
TRAINING_PER_LIST = 40
"""The vectors that the centre of a list is learned from; FAISS warns of fewer than 39."""
PROBES_PER_ROOT = 4
"""The lists that are searched for each unit of the square root of their number; a larger share where they are few."""
SEARCHED_PER_HIT = 50
"""The vectors that a query is compared with for each hit, at least."""
_ROWS_PER_ADD = 10_000
_SEED = 7


class Kind(NamedTuple):
    """A kind of index: what decides its hits, how large it is, and how it is made and searched."""

    signature: str
    count_bytes: Callable[[int, int], int]
    """Called with the number of vectors and their dimensions; returns the bytes in memory, which are those on disk."""
    make: Callable[[npt.NDArray[Any], npt.NDArray[np.uint32]], Any]
    """Called with all vectors and the rows that are searched; returns a FAISS index without vectors."""
    prepare_search: Callable[[Any, int], None]
    """Called with the index and k; sets how far a search for k hits goes."""


def _make_graph(vectors: npt.NDArray[Any], rows: npt.NDArray[np.uint32]) -> Any:
    faiss = load_faiss()
    index = faiss.IndexHNSWFlat(vectors.shape[1], NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = EF_CONSTRUCTION
    return index


def _search_graph(index: Any, k: int) -> None:
    index.hnsw.efSearch = max(EF_SEARCH, k)


def _count_graph_bytes(n: int, dim: int) -> int:
    """Count float32 vectors, twice as many links at the lowest level, and some 5 % for levels and offsets."""
    return n * (4 * dim + 4 * 2 * NEIGHBOURS + 16)


def count_lists(n: int) -> int:
    """Return how many lists n vectors fill with enough vectors each to learn a centre from."""
    return max(1, min(round(LISTS_PER_ROOT * math.sqrt(n)), n // TRAINING_PER_LIST))


def _make_lists(vectors: npt.NDArray[Any], rows: npt.NDArray[np.uint32]) -> Any:
    faiss = load_faiss()
    dim, n_lists = vectors.shape[1], count_lists(len(rows))
    quantizer = faiss.IndexFlatIP(dim)
    index = faiss.IndexIVFScalarQuantizer(
        quantizer, dim, n_lists, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    )
    # The centres get unit length, as the vectors have. A centre's length says how similar its vectors are, and would
    # draw queries to its list.
    index.cp.spherical = True
    n_training = min(len(rows), n_lists * TRAINING_PER_LIST)
    chosen = np.sort(np.random.default_rng(_SEED).choice(len(rows), n_training, replace=False))
    index.train(np.ascontiguousarray(vectors[rows[chosen]], np.float32))
    return index


def _search_lists(index: Any, k: int) -> None:
    enough = index.nlist * SEARCHED_PER_HIT * k / index.ntotal
    index.nprobe = min(index.nlist, math.ceil(max(PROBES_PER_ROOT * math.sqrt(index.nlist), enough)))


def _count_lists_bytes(n: int, dim: int) -> int:
    """Count float16 vectors with their row numbers, and float32 centres."""
    return n * (2 * dim + 8) + count_lists(n) * 4 * dim


KINDS = {
    "hnsw": Kind(f"hnsw:{NEIGHBOURS}/{EF_CONSTRUCTION}/{EF_SEARCH}", _count_graph_bytes, _make_graph, _search_graph),
    "ivf": Kind(
        f"ivf:{LISTS_PER_ROOT}sqrt/spherical/{TRAINING_PER_LIST}/{PROBES_PER_ROOT}sqrt/{SEARCHED_PER_HIT}/fp16",
        _count_lists_bytes,
        _make_lists,
        _search_lists,
    ),
}
"""A graph of neighbours (Malkov and Yashunin, 2018), and an inverted file: lists of the vectors near a centre."""


@dataclass(frozen=True, kw_only=True)
class FaissIndex:
    """Searches some rows of vectors by an index of FAISS in a folder, which is built at the first search."""

    kind: str
    """A name of KINDS."""
    folder: Path
    vectors: npt.NDArray[Any]
    rows: npt.NDArray[np.uint32]
    progress: Progress
    name: str
    """The name of the system in messages."""

    @property
    def max_hits(self) -> int:
        return len(self.rows)

    @property
    def size_bytes(self) -> int:
        """The bytes in memory, which are also those on disk."""
        return KINDS[self.kind].count_bytes(len(self.rows), self.vectors.shape[1])

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
        """Return inner products [n, k] and passages [n, k], by falling score; equal scores by passage.

        A passage is an index into rows, or -1 where the search reaches fewer than k. Raises BackendError where the
        file is damaged.
        """
        KINDS[self.kind].prepare_search(self._index, k)
        return break_ties(*self._index.search(queries, k))

    @cached_property
    def _index(self) -> Any:
        faiss, kind = load_faiss(), KINDS[self.kind]
        path = self.folder / f"{self.kind}-{digest(kind.signature, chars=8)}.faiss"
        if path.exists():
            try:
                return faiss.read_index(str(path))
            except (RuntimeError, OSError) as error:
                raise BackendError(
                    f"The {self.kind} index {path} is damaged. Remove it: `rusbeir cache clear embeddings`."
                ) from error
        logger.warning(
            "%s: index=%s of %s vectors takes %s MB of memory and as much on disk.", self.name, self.kind,
            f"{len(self.rows):,}", f"{self.size_bytes / 1e6:,.1f}",
        )  # fmt: skip
        index = kind.make(self.vectors, self.rows)
        for start in range(0, len(self.rows), _ROWS_PER_ADD):
            chosen = self.rows[start : start + _ROWS_PER_ADD]
            index.add(np.ascontiguousarray(self.vectors[chosen], np.float32))
            self.progress(f"build {self.kind}", start + len(chosen), len(self.rows))
        with atomic_file(path) as file:
            faiss.write_index(index, file.name)
        return index
