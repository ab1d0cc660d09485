"""The seam for whatever turns texts into vectors, and the check of every answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from rusbeir.errors import BackendError, BadInput

Vectors: TypeAlias = npt.NDArray[np.float32]
"""float32 [n, dim], rows L2-normalised."""

_NORM_TOLERANCE = 1e-2
"""Models that compute in half precision miss the unit length by about 1e-3."""


class Encoder(Protocol):
    """Turns texts into vectors; the score of a pair is their inner product."""

    @property
    def signature(self) -> str:
        """Everything that decides the vectors: model and revision, runtime and precision, prefixes, lengths."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised."""
        ...

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised; title and text were joined before."""
        ...


class AnyEncoder(Protocol):
    """One of any kind, whatever it makes of a text."""

    def encode_queries(self, texts: Sequence[str]) -> Any: ...

    def encode_documents(self, texts: Sequence[str]) -> Any: ...


@runtime_checkable
class ReportsTruncation(Protocol):
    """A second ability of an encoder: to say what it would not read whole."""

    @property
    def truncation(self) -> str:
        """What happens to a longer text: "cut at 512 tokens"."""
        ...

    def count_truncated(self, texts: Sequence[str]) -> int:
        """How many of the documents are longer than the model reads at once."""
        ...


def check_vectors(answer: Any, texts: Sequence[str], dim: int | None, encoder: str) -> Vectors:
    """The encoder's answer as float32 [n, dim], once it is what the Protocol promises.

    Raises BadInput for a wrong dimension or rows that are not normalised, and BackendError for numbers that are none
    or a wrong count of rows.
    """
    try:
        vectors = np.ascontiguousarray(answer, dtype=np.float32)
    except (TypeError, ValueError, RuntimeError) as error:
        remedy = "tensor.detach().float().cpu().numpy()" if hasattr(answer, "detach") else "a float32 array [n, dim]"
        raise BackendError(
            f"{encoder} answered a {type(answer).__name__} that is no array of numbers: answer {remedy} "
            f"({' '.join(str(error).split())})."
        ) from error
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise BackendError(f"{encoder} answered {_shape(vectors)} for {len(texts)} texts: one vector a text is needed.")
    if dim is not None and vectors.shape[1] != dim:
        raise BadInput(
            f"{encoder} answers vectors of {vectors.shape[1]} dimensions where {dim} were expected: "
            "another model, or another revision, goes by that name; clear its embeddings or give it its own name."
        )
    lengths = np.linalg.norm(vectors, axis=1)
    if not np.isfinite(lengths).all():
        row = int(np.flatnonzero(~np.isfinite(lengths))[0])
        raise BackendError(f"{encoder} answers NaN or infinity for the text {_start(texts[row])}: nothing was kept.")
    if len(vectors) and abs(lengths - 1).max() > _NORM_TOLERANCE:
        row = int(abs(lengths - 1).argmax())
        raise BadInput(
            f"{encoder} answers a vector of length {lengths[row]:.3g} for the text {_start(texts[row])}: "
            "rows must be L2-normalised (divide each by its length)."
        )
    return vectors


def _shape(vectors: npt.NDArray[Any]) -> str:
    return f"{len(vectors)} vectors" if vectors.ndim == 2 else f"an array of shape {vectors.shape}"


def _start(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 40 else line[:39] + "…")
