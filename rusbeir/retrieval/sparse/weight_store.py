"""Term weights by the content of their texts: end to end in one file, and each text's span of it in an EmbeddingStore.

The weights of a block are on disk before the store learns of them, each written where the last known one ends. So
they survive kills as embeddings do.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from rusbeir.retrieval.encoding.embedding_store import EmbeddingStore, map_file, write_at
from rusbeir.retrieval.sparse.encoder import Weights, check_weights

_WEIGHTS = "weights"
_CELL = np.dtype([("token", np.int32), ("weight", np.float32)])
_ROWS_PER_SUM = 1 << 20


class WeightStore:
    """Rows of weights in a folder, in the order of adding; a row never changes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _WEIGHTS
        self._spans = EmbeddingStore(folder, "uint64")

    def __len__(self) -> int:
        return len(self._spans)

    def check(self, answer: Any, texts: Sequence[str], encoder: str) -> Weights:
        """The encoder's answer as rows to add; encoder is its name in messages. Raises as check_weights does."""
        return check_weights(answer, texts, encoder)

    def find_or_add(self, texts: Sequence[str], make: Callable[[Sequence[str]], Iterable[Weights]]) -> list[int]:
        """The row of each text; make returns the rows of missing texts, as for an EmbeddingStore."""
        return self._spans.find_or_add(texts, lambda new: map(self._add, make(new)))

    def find(self, texts: Sequence[str]) -> list[int | None]:
        """The row of each text, None where the store does not hold it."""
        return self._spans.find(texts)

    def sum_seconds(self, texts: Sequence[str]) -> float | None:
        """What encoding those texts took; None where that of any is not known."""
        return self._spans.sum_seconds(texts)

    def keep_seconds(self, texts: Sequence[str], seconds: float) -> None:
        """Keep what encoding those texts took in total."""
        self._spans.keep_seconds(texts, seconds)

    def read(self, rows: Sequence[int]) -> Weights:
        """The weights of those rows, in their order."""
        return self.open_reader().read(np.asarray(rows, dtype=np.int64))

    def open_pool(self, name: str) -> WeightStore:
        """A store of the same kind, for the rows of a pool that is not whole yet."""
        return WeightStore(self._path.parent / name)

    def clear(self) -> None:
        """Forget all rows. A kill leaves the store whole or empty."""
        self._spans.clear()

    def remove(self) -> None:
        """Close the store and remove its files."""
        self._spans.remove()

    def open_reader(self) -> WeightReader:
        """A reader of the rows that the store holds now."""
        spans, of_spans = self._spans.map_vectors()
        cells, of_cells = map_file(self._path, _CELL, _end(spans))
        return WeightReader(spans, cells, [mapping for mapping in (of_spans, of_cells) if mapping is not None])

    def _add(self, weights: Weights) -> npt.NDArray[np.uint64]:
        spans, _ = self._spans.map_vectors()
        cells = np.empty(weights.nnz, _CELL)
        cells["token"], cells["weight"] = weights.indices, weights.data
        write_at(self._path, _end(spans), cells)
        return np.stack([weights.indptr[:-1], weights.indptr[1:]], axis=1).astype(np.uint64) + np.uint64(_end(spans))


class WeightReader:
    """Rows of weights on disk; the pages of a read are released after it."""

    def __init__(self, spans: npt.NDArray[np.uint64], cells: npt.NDArray[Any], mappings: Sequence[mmap.mmap]) -> None:
        self._spans = spans
        self._cells = cells
        self._mappings = mappings

    def read(self, rows: npt.NDArray[Any], max_weights: int | None = None) -> Weights:
        """csr_array, float32 [n, any]: those rows, or the first ones, at least one, with max_weights in total."""
        spans = self._spans[rows].astype(np.int64)
        ends = np.cumsum(spans[:, 1] - spans[:, 0])
        if max_weights is not None:
            ends = ends[: max(1, np.searchsorted(ends, max_weights, side="right"))]
        indptr = np.concatenate([[0], ends])
        shifts = spans[: len(ends), 0] - indptr[:-1]
        found = self._cells[np.arange(indptr[-1]) + np.repeat(shifts, np.diff(indptr))]
        for mapping in self._mappings:
            mapping.madvise(mmap.MADV_DONTNEED)
        tokens, weights = np.ascontiguousarray(found["token"]), np.ascontiguousarray(found["weight"])
        return sparse.csr_array((weights, tokens, indptr), shape=(len(ends), int(tokens.max(initial=0)) + 1))

    def count_bytes(self, rows: npt.NDArray[Any]) -> int:
        """The bytes that the weights of those rows take."""
        blocks = (self._spans[rows[start : start + _ROWS_PER_SUM]] for start in range(0, len(rows), _ROWS_PER_SUM))
        return _CELL.itemsize * sum(int((spans[:, 1] - spans[:, 0]).sum()) for spans in blocks)


def _end(spans: npt.NDArray[np.uint64]) -> int:
    return int(spans[-1, 1]) if len(spans) else 0
