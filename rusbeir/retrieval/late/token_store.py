"""Keep token vectors by the content of their texts, in a SpanStore whose cells are vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rusbeir.retrieval.encoding.span_store import SpanReader, SpanStore
from rusbeir.retrieval.encoding.token_vectors import TokenVectors, check_token_vectors

_TOKENS = "tokens"
READ_TEXTS = 256
"""The texts of a pool that are read together: they may have hundreds of vectors each."""


class TokenStore(SpanStore):
    """Holds token vectors in a folder: float32 or float16, rows in the order of adding; a row never changes."""

    read_texts = READ_TEXTS

    def __init__(self, folder: Path, dtype: str) -> None:
        super().__init__(folder, _TOKENS)
        self.dtype = np.dtype(dtype)

    @property
    def dim(self) -> int | None:
        """The dimensions of every vector; None while the store is empty."""
        return self.open_reader().dim if len(self) else None

    def check(self, answer: Any, texts: Sequence[str], encoder: str) -> TokenVectors:
        """Return the encoder's answer as rows to add; encoder is its name in messages.

        Raises as check_token_vectors does.
        """
        checked = check_token_vectors(answer, texts, self.dim, encoder)
        return TokenVectors(vectors=checked.vectors.astype(self.dtype, copy=False), borders=checked.borders)

    def find_or_add(self, texts: Sequence[str], make: Callable[[Sequence[str]], Iterable[TokenVectors]]) -> list[int]:
        """Return the row of each text; make returns the rows of missing texts, as for an EmbeddingStore."""
        return self.add_cells(texts, make, lambda rows: (np.ascontiguousarray(rows.vectors), rows.borders))

    def read(self, rows: Sequence[int]) -> TokenVectors:
        """Return the vectors of those rows, in their order."""
        return self.open_reader().read(np.asarray(rows, dtype=np.int64))

    def open_pool(self, name: str) -> TokenStore:
        """Open a store of the same kind, for the rows of a pool that is not whole yet."""
        return TokenStore(self.folder / name, self.dtype.name)

    def open_reader(self) -> TokenReader:
        """Open a reader of the rows that the store holds now."""
        return TokenReader(self.map_cells(self.dtype))


class TokenReader:
    """Reads token vectors from disk, and releases their pages after each read."""

    def __init__(self, cells: SpanReader) -> None:
        self._cells = cells
        self.count_bytes = cells.count_bytes

    @property
    def dim(self) -> int:
        """The dimensions of every vector."""
        return self._cells.width[0] if self._cells.width else 0

    def read(self, rows: npt.NDArray[Any], max_tokens: int | None = None) -> TokenVectors:
        """Return those rows; with max_tokens the first ones with so many vectors in total, and at least one row."""
        vectors, borders = self._cells.read(rows, max_tokens)
        return TokenVectors(vectors=vectors, borders=borders)
