"""Leave out small weights of documents, and say what a search among the others costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from rusbeir.retrieval.encoding.encoder import Weights


@dataclass(frozen=True, kw_only=True)
class Pruning:
    """The weights of a document that count."""

    top: int = 0
    """The most weights, the greatest ones; 0 for all. Of equal weights those of the first terms."""
    share: float = 0.0
    """Weights below this share of the document's greatest are left out."""

    @property
    def signature(self) -> str:
        """The part of a system's signature; empty where all weights count."""
        share = repr(self.share).removesuffix(".0")
        return (f"|top:{self.top}" if self.top else "") + (f"|prune:{share}" if self.share else "")

    def apply(self, weights: Weights) -> Weights:
        """Return the weights [n, any] without those that do not count."""
        if not self.signature or not weights.nnz:
            return weights
        row_of = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
        greatest = weights.max(axis=1).toarray().reshape(-1)
        chosen = weights.data >= np.float32(self.share) * greatest[row_of]
        if self.top:
            order = np.lexsort((weights.indices, -weights.data, row_of))
            ranks = np.arange(weights.nnz) - weights.indptr[:-1][row_of]
            chosen[order[ranks >= self.top]] = False
        borders = np.concatenate([[0], np.cumsum(np.bincount(row_of[chosen], minlength=weights.shape[0]))])
        return sparse.csr_array((weights.data[chosen], weights.indices[chosen], borders), shape=weights.shape)


WHOLE = Pruning()
"""All weights count."""


def count_terms(queries: Weights, blocks: Iterable[Weights]) -> dict[str, float]:
    """Return the terms of a document and of a query on average, and the products of weights that comparing two takes.

    The last is FLOPS (Paria et al., ICLR 2020): the chance that both have a term, summed over the terms.
    """
    n_queries, n_docs = queries.shape[0], 0
    counts = np.zeros(queries.shape[1], np.int64)
    n_terms = 0
    for block in blocks:
        n_docs += block.shape[0]
        n_terms += block.nnz
        of_block = np.bincount(block.indices, minlength=len(counts))
        counts += of_block[: len(counts)]
    both = counts @ np.bincount(queries.indices, minlength=len(counts))
    return {
        "document": n_terms / max(1, n_docs),
        "query": queries.nnz / max(1, n_queries),
        "flops": float(both) / max(1, n_docs * n_queries),
    }
