"""BGE-M3's weights of terms ("lexical weights") by its authors' package, in single precision."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from scipy import sparse

from rusbeir.retrieval.dense.flagembedding import BgeM3
from rusbeir.retrieval.models import Model
from rusbeir.retrieval.sparse.encoder import Weights


class BgeM3Weights(BgeM3):
    """Its sparse part: a token has the greatest of its weights in a text, special tokens have none."""

    @property
    def signature(self) -> str:
        return f"{super().signature}|part:lexical_weights"

    def encode_queries(self, texts: Sequence[str]) -> Weights:
        """csr_array, float32 [n, vocabulary]."""
        return self._weights(self.model.query_prefix, texts)

    def encode_documents(self, texts: Sequence[str]) -> Weights:
        """csr_array, float32 [n, vocabulary]."""
        return self._weights(self.model.document_prefix, texts)

    def _weights(self, prefix: str, texts: Sequence[str]) -> Weights:
        rows = self._part("lexical_weights", prefix, texts)
        tokens = np.array([int(token) for row in rows for token in row], dtype=np.int32)
        weights = np.array([weight for row in rows for weight in row.values()], dtype=np.float32)
        ends = [0, *accumulate(map(len, rows))]
        return sparse.csr_array((weights, tokens, ends), shape=(len(rows), len(self._m3.tokenizer)))


def make(model: Model) -> BgeM3Weights:
    """The encoder of that model; it is loaded when it is first needed."""
    return BgeM3Weights(model=model)
