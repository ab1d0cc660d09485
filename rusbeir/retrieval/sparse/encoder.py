"""The Protocol of a sparse encoder, and the check of its weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from scipy import sparse

from rusbeir.errors import BackendError

Weights: TypeAlias = Any
"""scipy's csr_array, float32 [n, vocabulary]: the weight of each term in each text, none below 0."""


class SparseEncoder(Protocol):
    """Gives each term of a text a weight; the score of a query and a document is the inner product of their weights.

    It may also have the members of encoding.encoder.ReportsTruncation.

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


def check_weights(answer: Weights, texts: Sequence[str], encoder: str) -> Weights:
    """The encoder's answer without zeros, terms in order. Raises BackendError if it breaks the Protocol's promise."""
    weights = sparse.csr_array(answer, dtype=np.float32, copy=True)
    if weights.shape[0] != len(texts):
        raise BackendError(f"{encoder} returned {weights.shape[0]} rows of weights for {len(texts)} texts.")
    # NaN is not above 0 either.
    if not (np.isfinite(weights.data) & (weights.data >= 0)).all():
        raise BackendError(f"{encoder} returned weights that are negative, infinite or NaN. Nothing was kept.")
    weights.eliminate_zeros()
    weights.sort_indices()
    return weights
