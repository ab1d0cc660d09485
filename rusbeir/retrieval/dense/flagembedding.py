"""BGE-M3's dense vectors by its authors' package, in single precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rusbeir.retrieval import model_files
from rusbeir.retrieval.dense.encoder import Vectors
from rusbeir.retrieval.models import Model
from rusbeir.retrieval.rerank.flagembedding import MAX_TOKENS_M3 as MAX_TOKENS
from rusbeir.retrieval.rerank.flagembedding import load_m3

BATCH_TEXTS = 32


@dataclass(frozen=True, kw_only=True)
class BgeM3Encoder:
    """Its dense part; the sparse and multi-vector scores are rerankers."""

    model: Model

    @property
    def signature(self) -> str:
        version = model_files.version_of("FlagEmbedding", "The runtime flagembedding", "flagembedding")
        return f"{self.model.signature}{model_files.identity(self.model)}|runtime:FlagEmbedding-{version}"

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised."""
        return self._encode(self.model.query_prefix, texts)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised."""
        return self._encode(self.model.document_prefix, texts)

    @property
    def over_length(self) -> str:
        return f"cut at {self._longest} tokens"

    def count_over_length(self, texts: Sequence[str]) -> int:
        """How many documents are longer, with their prefix, than the model reads."""
        prefixed = [self.model.document_prefix + text for text in texts]
        return sum(model_files.are_longer(self._m3.tokenizer, self._longest, prefixed))

    @property
    def _longest(self) -> int:
        return self.model.max_tokens or MAX_TOKENS

    def _encode(self, prefix: str, texts: Sequence[str]) -> Vectors:
        found = self._m3.encode(
            [prefix + text for text in texts],
            batch_size=BATCH_TEXTS,
            max_length=self._longest,
            return_dense=True,
            return_sparse=False,
            return_colbert_vecs=False,
        )
        return np.asarray(found["dense_vecs"], dtype=np.float32)

    @cached_property
    def _m3(self) -> Any:
        return load_m3(self.model)


def make(model: Model) -> BgeM3Encoder:
    """The encoder of that model; it is loaded when it is first needed."""
    return BgeM3Encoder(model=model)
