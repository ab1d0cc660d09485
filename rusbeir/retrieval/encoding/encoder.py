"""The Protocol of an encoder, and the check of its vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy import sparse

from rusbeir.errors import BackendError, BadInput
from rusbeir.text import shorten

Vectors: TypeAlias = npt.NDArray[np.float32]
"""float32 [n, dim], rows L2-normalised."""

_NORM_TOLERANCE = 1e-2
"""Models that compute in half precision miss the unit length by about 1e-3."""


class Encoder(Protocol):
    """Turns texts into vectors; the score of a query and a document is the inner product of their vectors.

    A class of yours with these three members is searched as `dense(python:package.module.factory)`. Each distinct text
    is encoded once; its vector is kept in the cache under the signature. ReportsTruncation is optional.

    >>> class Lengths:
    ...     signature = "lengths-1"
    ...     def encode_queries(self, texts): return np.eye(100, dtype=np.float32)[[len(text) % 100 for text in texts]]
    ...     encode_documents = encode_queries
    """

    @property
    def signature(self) -> str:
        """Everything that decides the vectors: model and revision, runtime and precision, prefixes, lengths."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised, in the order of the texts."""
        ...

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised, in the order of the texts; each text is a title and its document."""
        ...


class AnyEncoder(Protocol):
    """A dense or a sparse encoder."""

    def encode_queries(self, texts: Sequence[str]) -> Any: ...

    def encode_documents(self, texts: Sequence[str]) -> Any: ...


@runtime_checkable
class ReportsTruncation(Protocol):
    """An optional ability of a dense or sparse encoder: to report the documents that it does not read whole."""

    @property
    def truncation(self) -> str:
        """What happens to a longer text, as a phrase: "cut at 512 tokens"."""
        ...

    def count_truncated(self, texts: Sequence[str]) -> int:
        """How many of the documents are longer than the model reads at once."""
        ...


@runtime_checkable
class EncodesBlocks(Protocol):
    """An optional ability of a dense or sparse encoder: to work on several blocks of texts at a time."""

    def encode_blocks(self, blocks: Iterable[Sequence[str]], *, queries: bool) -> Iterator[Any]:
        """What encode_queries or encode_documents returns for each block, in their order."""
        ...


@runtime_checkable
class EncodesPools(Protocol):
    """An optional ability of a dense or sparse encoder: to take tens of thousands of texts and batch them by length."""

    def tokenize(self, texts: Iterable[str], *, queries: bool) -> Any:
        """The texts as the model reads them, with what Tokens have; runs in another thread."""
        ...

    def encode_tokens(self, tokens: Any, done: Set[int], keep: Callable[[Any, Any], None]) -> None:
        """Call keep(places, rows) for each batch of texts, in any order, except for those of which all are done.

        The batches depend on the tokens only, so a resumed run computes the same ones.
        """
        ...


def collect(encoder: EncodesPools, tokens: Any) -> Any:
    """The vectors, or weights, of all texts in their order."""
    return gather(partial(encoder.encode_tokens, tokens, frozenset()))


def gather(compute: Callable[[Callable[[Any, Any], None]], None]) -> Any:
    """The rows that compute(keep) hands to keep(places, rows), in the order of the places."""
    found: list[tuple[Any, Any]] = []
    compute(lambda places, rows: found.append((places, rows)))
    return stack([rows for _, rows in found])[np.argsort(np.concatenate([places for places, _ in found]))]


def stack(parts: Sequence[Any]) -> Any:
    """Vectors, or weights in scipy's arrays, of several batches as one."""
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else sparse.vstack(parts, format="csr")


def check_vectors(answer: Any, texts: Sequence[str], dim: int | None, encoder: str) -> Vectors:
    """The encoder's answer as float32 [n, dim], if it is what the Protocol promises.

    Raises BadInput for a wrong dimension or rows that are not normalised, and BackendError for a wrong number of rows,
    NaN, infinity, or an answer that is not an array of numbers.
    """
    try:
        vectors = np.ascontiguousarray(answer, dtype=np.float32)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        remedy = "tensor.detach().float().cpu().numpy()" if hasattr(answer, "detach") else "a float32 array [n, dim]"
        raise BackendError(
            f"{encoder} returned a {type(answer).__name__}, which is not an array of numbers ({shorten(str(error))}). "
            f"Return {remedy}."
        ) from error
    if vectors.ndim != 2 or len(vectors) != len(texts):
        shape = f"{len(vectors)} vectors" if vectors.ndim == 2 else f"an array of shape {vectors.shape}"
        raise BackendError(f"{encoder} returned {shape} for {len(texts)} texts. Return one vector per text.")
    if dim is not None and vectors.shape[1] != dim:
        raise BadInput(
            f"{encoder} returned vectors of {vectors.shape[1]} dimensions; the cached ones have {dim}. They come from "
            "a different model or revision: clear them (`rusbeir cache clear embeddings`) or set revision=."
        )
    lengths = np.linalg.norm(vectors, axis=1)
    finite = np.isfinite(lengths)
    if not finite.all():
        text = shorten(texts[int(finite.argmin())], 40)
        raise BackendError(f"{encoder} returned NaN or infinity for the text {text!r}. Nothing was kept.")
    if len(vectors) and abs(lengths - 1).max() > _NORM_TOLERANCE:
        row = int(abs(lengths - 1).argmax())
        raise BadInput(
            f"{encoder} returned a vector of length {lengths[row]:.3g} for the text {shorten(texts[row], 40)!r}. "
            "Rows must be L2-normalised: divide each by its length."
        )
    return vectors
