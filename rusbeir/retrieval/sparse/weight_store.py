"""Keep term weights by the content of their texts, in a SpanStore whose cells are a term and its weight."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from rusbeir.retrieval.encoding.encoder import Weights, check_weights
from rusbeir.retrieval.encoding.span_store import SpanReader, SpanStore

_WEIGHTS = "weights"
_CELL = np.dtype([("token", np.int32), ("weight", np.float32)])


class WeightStore(SpanStore):
    """Holds rows of weights in a folder, in the order of adding; a row never changes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, _WEIGHTS)

    def check(self, answer: Any, texts: Sequence[str], encoder: str) -> Weights:
        """Return the encoder's answer as rows to add; encoder is its name in messages. Raises as check_weights does."""
        return check_weights(answer, texts, encoder)

    def find_or_add(self, texts: Sequence[str], make: Callable[[Sequence[str]], Iterable[Weights]]) -> list[int]:
        """Return the row of each text; make returns the rows of missing texts, as for an EmbeddingStore."""
        return self.add_cells(texts, make, _split)

    def read(self, rows: Sequence[int]) -> Weights:
        """Return the weights of those rows, in their order."""
        return self.open_reader().read(np.asarray(rows, dtype=np.int64))

    def open_pool(self, name: str) -> WeightStore:
        """Open a store of the same kind, for the rows of a pool that is not whole yet."""
        return WeightStore(self.folder / name)

    def open_reader(self) -> WeightReader:
        """Open a reader of the rows that the store holds now."""
        return WeightReader(self.map_cells(_CELL))


class WeightReader:
    """Reads rows of weights from disk, and releases their pages after each read."""

    def __init__(self, cells: SpanReader) -> None:
        self._cells = cells
        self.count_bytes = cells.count_bytes

    def read(self, rows: npt.NDArray[Any], max_weights: int | None = None) -> Weights:
        """Return those rows as csr_array, float32 [n, any].

        With max_weights, they are the first rows with so many weights in total, and at least one row.
        """
        cells, borders = self._cells.read(rows, max_weights)
        tokens, weights = np.ascontiguousarray(cells["token"]), np.ascontiguousarray(cells["weight"])
        return sparse.csr_array((weights, tokens, borders), shape=(len(borders) - 1, int(tokens.max(initial=0)) + 1))


def _split(weights: Weights) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    cells = np.empty(weights.nnz, _CELL)
    cells["token"], cells["weight"] = weights.indices, weights.data
    return cells, weights.indptr.astype(np.int64)
