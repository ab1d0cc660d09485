"""The seam for whatever gives a text's terms their weights, and the check of every answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from scipy import sparse

from rusbeir.errors import BackendError

Weights: TypeAlias = Any
"""scipy's csr_array, float32 [n, vocabulary]: the weight of each term in each text, none below 0."""


class SparseEncoder(Protocol):
    """Gives the terms of texts their weights; the score of a pair is the inner product."""

    @property
    def signature(self) -> str:
        """Everything that decides the weights: model and revision, runtime and precision, prefixes, lengths."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> Weights:
        """csr_array, float32 [n, vocabulary]."""
        ...

    def encode_documents(self, texts: Sequence[str]) -> Weights:
        """csr_array, float32 [n, vocabulary]; title and text were joined before."""
        ...


def check_weights(answer: Weights, texts: Sequence[str], encoder: str) -> Weights:
    """The encoder's answer without zeros, terms in order, once it is what the Protocol promises; else BackendError."""
    weights = sparse.csr_array(answer, dtype=np.float32, copy=True)
    if weights.shape[0] != len(texts):
        raise BackendError(f"{encoder} answered {weights.shape[0]} rows of weights for {len(texts)} texts.")
    # NaN is not above 0 either.
    if not (np.isfinite(weights.data) & (weights.data >= 0)).all():
        raise BackendError(f"{encoder} answers weights of terms that are negative or no numbers: nothing was kept.")
    weights.eliminate_zeros()
    weights.sort_indices()
    return weights
