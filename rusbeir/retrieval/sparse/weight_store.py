"""Keep term weights by the content of their texts: end to end in a file, the span of each text in an EmbeddingStore.

The weights of a block are on disk before the store learns of them, and are written where the last known weights end. So
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
from rusbeir.retrieval.encoding.encoder import Weights, check_weights

_WEIGHTS = "weights"
_CELL = np.dtype([("token", np.int32), ("weight", np.float32)])
_ROWS_PER_SUM = 1 << 20


class WeightStore:
    """Holds rows of weights in a folder, in the order of adding; a row never changes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _WEIGHTS
        self._spans = EmbeddingStore(folder, "uint64")

    def __len__(self) -> int:
        return len(self._spans)

    def check(self, answer: Any, texts: Sequence[str], encoder: str) -> Weights:
        """Return the encoder's answer as rows to add; encoder is its name in messages. Raises as check_weights does."""
        return check_weights(answer, texts, encoder)

    def find_or_add(self, texts: Sequence[str], make: Callable[[Sequence[str]], Iterable[Weights]]) -> list[int]:
        """Return the row of each text; make returns the rows of missing texts, as for an EmbeddingStore."""
        return self._spans.find_or_add(texts, lambda new: map(self._add, make(new)))

    def find(self, texts: Sequence[str]) -> list[int | None]:
        """Return the row of each text, None where the store does not hold it."""
        return self._spans.find(texts)

    def sum_seconds(self, texts: Sequence[str]) -> float | None:
        """Return the seconds that encoding those texts took; None where those of any text are not known."""
        return self._spans.sum_seconds(texts)

    def keep_seconds(self, texts: Sequence[str], seconds: float) -> None:
        """Keep the seconds that encoding those texts took in total."""
        self._spans.keep_seconds(texts, seconds)

    def read(self, rows: Sequence[int]) -> Weights:
        """Return the weights of those rows, in their order."""
        return self.open_reader().read(np.asarray(rows, dtype=np.int64))

    def open_pool(self, name: str) -> WeightStore:
        """Open a store of the same kind, for the rows of a pool that is not whole yet."""
        return WeightStore(self._path.parent / name)

    def clear(self) -> None:
        """Forget all rows. A kill leaves the store whole or empty."""
        self._spans.clear()

    def remove(self) -> None:
        """Close the store and remove its files."""
        self._spans.remove()

    def open_reader(self) -> WeightReader:
        """Open a reader of the rows that the store holds now."""
        spans, span_mapping = self._spans.map_vectors()
        cells, cell_mapping = map_file(self._path, _CELL, _end(spans))
        return WeightReader(spans, cells, [mapping for mapping in (span_mapping, cell_mapping) if mapping is not None])

    def _add(self, weights: Weights) -> npt.NDArray[np.uint64]:
        spans, _ = self._spans.map_vectors()
        cells = np.empty(weights.nnz, _CELL)
        cells["token"], cells["weight"] = weights.indices, weights.data
        write_at(self._path, _end(spans), cells)
        return np.stack([weights.indptr[:-1], weights.indptr[1:]], axis=1).astype(np.uint64) + np.uint64(_end(spans))


class WeightReader:
    """Reads rows of weights from disk, and releases their pages after each read."""

    def __init__(self, spans: npt.NDArray[np.uint64], cells: npt.NDArray[Any], mappings: Sequence[mmap.mmap]) -> None:
        self._spans = spans
        self._cells = cells
        self._mappings = mappings

    def read(self, rows: npt.NDArray[Any], max_weights: int | None = None) -> Weights:
        """Return those rows as csr_array, float32 [n, any].

        With max_weights, they are the first rows with so many weights in total, and at least one row.
        """
        spans = self._spans[rows].astype(np.int64)
        ends = np.cumsum(spans[:, 1] - spans[:, 0])
        if max_weights is not None:
            ends = ends[: max(1, np.searchsorted(ends, max_weights, side="right"))]
        indptr = np.concatenate([[0], ends])
        shifts = spans[: len(ends), 0] - indptr[:-1]
        cells = self._cells[np.arange(indptr[-1]) + np.repeat(shifts, np.diff(indptr))]
        for mapping in self._mappings:
            mapping.madvise(mmap.MADV_DONTNEED)
        tokens, weights = np.ascontiguousarray(cells["token"]), np.ascontiguousarray(cells["weight"])
        return sparse.csr_array((weights, tokens, indptr), shape=(len(ends), int(tokens.max(initial=0)) + 1))

    def count_bytes(self, rows: npt.NDArray[Any]) -> int:
        """Count the bytes that the weights of those rows take."""
        blocks = (self._spans[rows[start : start + _ROWS_PER_SUM]] for start in range(0, len(rows), _ROWS_PER_SUM))
        return _CELL.itemsize * sum(int((spans[:, 1] - spans[:, 0]).sum()) for spans in blocks)


def _end(spans: npt.NDArray[np.uint64]) -> int:
    return int(spans[-1, 1]) if len(spans) else 0
