"""The Protocols of dense, sparse and late encoders, their optional abilities, and the checks of what they return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval.encoding.token_vectors import TokenVectors
from rusbeir.text import shorten

Vectors: TypeAlias = npt.NDArray[np.float32]
"""float32 [n, dim], rows L2-normalised."""
Weights: TypeAlias = Any
"""scipy's csr_array, float32 [n, vocabulary]: the weight of each term in each text, none below 0."""

_NORM_TOLERANCE = 1e-2
"""Models that compute in half precision miss the unit length by about 1e-3."""


class Encoder(Protocol):
    """Turns texts into vectors; the score of a query and a document is the inner product of their vectors.

    A class of yours with these three members is searched as `dense(python:package.module.factory)`. Each distinct text
    is encoded once, and its vector is kept in the cache under the signature. ReportsTruncation is optional.

    Examples:
        >>> class Lengths:
        ...     signature = "lengths-1"
        ...     def encode_queries(self, texts):
        ...         return np.eye(100, dtype=np.float32)[[len(text) % 100 for text in texts]]
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


class SparseEncoder(Protocol):
    """Gives each term of a text a weight; the score of a query and a document is the inner product of their weights.

    A class that has ReportsTruncation's members, too, is asked which texts it does not read whole.

    Examples:
        >>> class Letters:
        ...     signature = "letters-1"
        ...     def encode_queries(self, texts):
        ...         return sparse.csr_array([np.bincount([ord(c) % 99 for c in text], minlength=99) for text in texts])
        ...     encode_documents = encode_queries
    """

    @property
    def signature(self) -> str:
        """Everything that decides the weights: model and revision, runtime and precision, prefixes, lengths."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> Weights:
        """csr_array, float32 [n, vocabulary], rows in the order of the texts."""
        ...

    def encode_documents(self, texts: Sequence[str]) -> Weights:
        """csr_array, float32 [n, vocabulary], rows in the order of the texts; each text is a title and its document."""
        ...


class LateEncoder(Protocol):
    """Turns each text into a vector for each of its tokens.

    The score of a query and a document is the sum, over the query's vectors, of the greatest inner product with one of
    the document's.
    """

    @property
    def signature(self) -> str:
        """Everything that decides the vectors: model and revision, runtime and precision, prefixes, lengths."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> Any:
        """Return TokenVectors, float32, in the order of the texts."""
        ...

    def encode_documents(self, texts: Sequence[str]) -> Any:
        """Return TokenVectors, float32, in the order of the texts; each text is a title and its document."""
        ...


AnyEncoder: TypeAlias = Encoder | SparseEncoder | LateEncoder


@runtime_checkable
class ReportsTruncation(Protocol):
    """An optional ability of a dense or sparse encoder: to report the documents that it does not read whole."""

    @property
    def truncation(self) -> str:
        """The treatment of a longer text, as a phrase: "cut at 512 tokens"."""
        ...

    def count_truncated(self, texts: Sequence[str]) -> int:
        """Count the documents that are longer than the model reads at once."""
        ...


@runtime_checkable
class EncodesBlocks(Protocol):
    """An optional ability of a dense or sparse encoder: to work on several blocks of texts at a time."""

    def encode_blocks(self, blocks: Iterable[Sequence[str]], *, queries: bool) -> Iterator[Any]:
        """Yield what encode_queries or encode_documents returns for each block, in their order."""
        ...


@runtime_checkable
class EncodesPools(Protocol):
    """An optional ability of a dense or sparse encoder: to take tens of thousands of texts and batch them by length."""

    def tokenize(self, texts: Iterable[str], *, queries: bool) -> Any:
        """Return the texts as the model reads them, with the members of Tokens; runs in another thread."""
        ...

    def encode_tokens(self, tokens: Any, done: Set[int], keep: Callable[[Any, Any], None]) -> None:
        """Call keep(indices, rows) for each batch of texts, in any order, unless all of its texts are done.

        The batches depend on the tokens only, so a resumed run computes the same ones.
        """
        ...


def collect(encoder: EncodesPools, tokens: Any) -> Any:
    """Return the vectors, or weights, of all texts in their order."""
    return gather(partial(encoder.encode_tokens, tokens, frozenset()))


def gather(compute: Callable[[Callable[[Any, Any], None]], None]) -> Any:
    """Return the rows that compute(keep) hands to keep(indices, rows), in the order of the indices."""
    batches: list[tuple[Any, Any]] = []
    compute(lambda indices, rows: batches.append((indices, rows)))
    return stack([rows for _, rows in batches])[np.argsort(np.concatenate([indices for indices, _ in batches]))]


def stack(parts: Sequence[Any]) -> Any:
    """Join the vectors of several batches, of texts or of their tokens, or weights in scipy's arrays."""
    if isinstance(parts[0], TokenVectors):
        return TokenVectors.join(parts)
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    from scipy import sparse  # a bench of BM25 would spend a sixth of its time on importing it

    return sparse.vstack(parts, format="csr")


def check_vectors(answer: Any, texts: Sequence[str], dim: int | None, encoder: str) -> Vectors:
    """Convert an encoder's answer to float32 [n, dim], once it is what the Protocol promises.

    Args:
        answer: What encode_queries or encode_documents returned.
        texts: The texts that the encoder was given.
        dim: The dimensions of vectors that are kept already; None where there are none.
        encoder: The name of the encoder in messages.

    Returns:
        float32 [n, dim], a row for each text.

    Raises:
        BadInput: The vectors have other dimensions than the kept ones, or are not L2-normalised.
        BackendError: There is not one row for each text, or the rows are not finite numbers.

    Examples:
        >>> check_vectors([[0.6, 0.8]], ["a text"], None, "mine").shape
        (1, 2)
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
    # A text of which a model reads nothing has zeros.
    distances = np.where(lengths == 0, 0, abs(lengths - 1))
    if len(vectors) and distances.max() > _NORM_TOLERANCE:
        row = int(distances.argmax())
        raise BadInput(
            f"{encoder} returned a vector of length {lengths[row]:.3g} for the text {shorten(texts[row], 40)!r}. "
            "Rows must be L2-normalised: divide each by its length."
        )
    return vectors


def check_weights(answer: Weights, texts: Sequence[str], encoder: str) -> Weights:
    """Convert a sparse encoder's answer to weights without zeros, the terms of a text in order.

    Raises BackendError where it breaks the Protocol's promise.
    """
    from scipy import sparse

    weights = sparse.csr_array(answer, dtype=np.float32, copy=True)
    if weights.shape[0] != len(texts):
        raise BackendError(f"{encoder} returned {weights.shape[0]} rows of weights for {len(texts)} texts.")
    # NaN is not above 0 either.
    if not (np.isfinite(weights.data) & (weights.data >= 0)).all():
        raise BackendError(f"{encoder} returned weights that are negative, infinite or NaN. Nothing was kept.")
    weights.eliminate_zeros()
    weights.sort_indices()
    return weights
