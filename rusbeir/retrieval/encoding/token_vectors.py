"""The vectors of the tokens of several texts, end to end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from rusbeir.errors import BackendError, BadInput
from rusbeir.text import shorten


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenVectors:
    """A list of texts, each with a vector for some of its tokens, perhaps for none."""

    vectors: npt.NDArray[Any]
    """float32 or float16 [tokens, dim], those of the first text first."""
    borders: npt.NDArray[np.int64]
    """Where the vectors of each text begin and, at last, end."""

    def __len__(self) -> int:
        return len(self.borders) - 1

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return (self.vectors[start:end] for start, end in zip(self.borders[:-1], self.borders[1:], strict=True))

    def __getitem__(self, rows: Any) -> Self:
        """Return the texts of those indices, in their order."""
        starts, ends = self.borders[:-1][rows], self.borders[1:][rows]
        borders = np.concatenate([[0], np.cumsum(ends - starts)])
        numbers = np.arange(borders[-1]) + np.repeat(starts - borders[:-1], ends - starts)
        return type(self)(vectors=self.vectors[numbers], borders=borders)

    @classmethod
    def of_masked(cls, rows: npt.NDArray[np.float32]) -> Self:
        """Take the vectors [texts, tokens, dim + 1] whose last number is not 0, without that number."""
        chosen = rows[..., -1] != 0
        borders = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))])
        return cls(vectors=np.ascontiguousarray(rows[chosen][:, :-1]), borders=borders)

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Join several lists of texts."""
        before = np.cumsum([0, *(part.borders[-1] for part in parts[:-1])])
        borders = [part.borders[1:] + start for part, start in zip(parts, before, strict=True)]
        return cls(vectors=np.concatenate([part.vectors for part in parts]), borders=np.concatenate([[0], *borders]))


def check_token_vectors(answer: Any, texts: Sequence[str], dim: int | None, encoder: str) -> TokenVectors:
    """Return an encoder's answer, once it is what its Protocol promises; dim is that of kept vectors, if there are any.

    Raises BackendError where there is not one row for each text, or numbers are not finite, and BadInput for another
    dim.
    """
    if not isinstance(answer, TokenVectors) or len(answer) != len(texts):
        rows = f"{len(answer)} rows" if isinstance(answer, TokenVectors) else f"a {type(answer).__name__}"
        raise BackendError(f"{encoder} returned {rows} of token vectors for {len(texts)} texts.")
    if dim is not None and answer.vectors.shape[1] != dim:
        raise BadInput(
            f"{encoder} returned vectors of {answer.vectors.shape[1]} dimensions; the cached ones have {dim}. They "
            "come from a different model or revision: clear them (`rusbeir cache clear embeddings`) or set revision=."
        )
    finite = np.isfinite(answer.vectors).all(axis=1)
    if not finite.all():
        text = texts[int(np.searchsorted(answer.borders, finite.argmin(), side="right")) - 1]
        raise BackendError(f"{encoder} returned NaN or infinity for the text {shorten(text, 40)!r}. Nothing was kept.")
    return answer
