"""Keep rows of any length by the content of their texts: end to end in a file, the span of each in an EmbeddingStore.

The cells of a block are on disk before the store learns of them, and are written where the last known cells end. So
they survive kills as embeddings do.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rusbeir.retrieval.encoding.embedding_store import READ_TEXTS, EmbeddingStore, map_file, write_at

_ROWS_PER_SUM = 1 << 20


class SpanStore:
    """Holds rows of cells in a folder, in the order of adding; a row never changes. A base class of stores."""

    read_texts = READ_TEXTS

    def __init__(self, folder: Path, file: str) -> None:
        self.folder = folder
        self._path = folder / file
        self._spans = EmbeddingStore(folder, "uint64")

    def __len__(self) -> int:
        return len(self._spans)

    def find(self, texts: Sequence[str]) -> list[int | None]:
        """Return the row of each text, None where the store does not hold it."""
        return self._spans.find(texts)

    def sum_seconds(self, texts: Sequence[str]) -> float | None:
        """Return the seconds that encoding those texts took; None where those of any text are not known."""
        return self._spans.sum_seconds(texts)

    def keep_seconds(self, texts: Sequence[str], seconds: float) -> None:
        """Keep the seconds that encoding those texts took in total."""
        self._spans.keep_seconds(texts, seconds)

    def clear(self) -> None:
        """Forget all rows. A kill leaves the store whole or empty."""
        self._spans.clear()

    def remove(self) -> None:
        """Close the store and remove its files."""
        self._spans.remove()

    def add_cells(
        self,
        texts: Sequence[str],
        make: Callable[[Sequence[str]], Iterable[Any]],
        split: Callable[[Any], tuple[npt.NDArray[Any], npt.NDArray[np.int64]]],
    ) -> list[int]:
        """Return the row of each text; make returns the rows of missing texts, as for an EmbeddingStore.

        split returns the cells of some rows, end to end, and where each row begins and, at last, ends.
        """

        def add(rows: Any) -> npt.NDArray[np.uint64]:
            spans, _ = self._spans.map_vectors()
            cells, borders = split(rows)
            start, width = _find_end(spans), cells.shape[1:]
            write_at(self._path, start * math.prod(width), cells)
            columns = [borders[:-1] + start, borders[1:] + start, *(np.full(len(borders) - 1, n) for n in width)]
            return np.stack(columns, axis=1).astype(np.uint64)

        return self._spans.find_or_add(texts, lambda new: map(add, make(new)))

    def map_cells(self, dtype: np.dtype[Any]) -> SpanReader:
        """Open a reader of the rows that the store holds now; cells are single, or all of the same length."""
        spans, span_mapping = self._spans.map_vectors()
        width = tuple(int(n) for n in spans[0, 2:]) if len(spans) else ()
        cells, cell_mapping = map_file(self._path, dtype, _find_end(spans) * math.prod(width))
        mappings = [mapping for mapping in (span_mapping, cell_mapping) if mapping is not None]
        return SpanReader(spans, cells.reshape(-1, *width), mappings)


class SpanReader:
    """Reads rows of cells from disk, and releases their pages after each read."""

    def __init__(self, spans: npt.NDArray[np.uint64], cells: npt.NDArray[Any], mappings: Sequence[mmap.mmap]) -> None:
        self._spans = spans
        self._cells = cells
        self._mappings = mappings

    @property
    def width(self) -> tuple[int, ...]:
        """The length of each cell; () for single cells."""
        return self._cells.shape[1:]

    def read(
        self, rows: npt.NDArray[Any], max_cells: int | None = None
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the cells of those rows, end to end, and where each row begins and, at last, ends.

        With max_cells, they are the first rows with so many cells in total, and at least one row.
        """
        spans = self._spans[rows].astype(np.int64)
        ends = np.cumsum(spans[:, 1] - spans[:, 0])
        if max_cells is not None:
            ends = ends[: max(1, np.searchsorted(ends, max_cells, side="right"))]
        borders = np.concatenate([[0], ends])
        shifts = spans[: len(ends), 0] - borders[:-1]
        cells = self._cells[np.arange(borders[-1]) + np.repeat(shifts, np.diff(borders))]
        for mapping in self._mappings:
            mapping.madvise(mmap.MADV_DONTNEED)
        return cells, borders

    def count_bytes(self, rows: npt.NDArray[Any]) -> int:
        """Count the bytes that the cells of those rows take."""
        blocks = (self._spans[rows[start : start + _ROWS_PER_SUM]] for start in range(0, len(rows), _ROWS_PER_SUM))
        cell_bytes = self._cells.dtype.itemsize * math.prod(self.width)
        return cell_bytes * sum(int((spans[:, 1] - spans[:, 0]).sum()) for spans in blocks)


def _find_end(spans: npt.NDArray[np.uint64]) -> int:
    return int(spans[-1, 1]) if len(spans) else 0
