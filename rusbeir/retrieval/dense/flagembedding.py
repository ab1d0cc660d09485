"""BGE-M3 by its authors' package, in single precision, and its dense vectors."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from rusbeir.retrieval import bge_m3, model_files
from rusbeir.retrieval.dense.encoder import Vectors
from rusbeir.retrieval.models import Model

BATCH_TEXTS = 32


@dataclass(frozen=True, kw_only=True)
class BgeM3:
    """What its encoders share: each answers with one part of what the model says of a text."""

    model: Model

    @property
    def signature(self) -> str:
        return f"{self.model.signature}{model_files.identity(self.model)}|runtime:FlagEmbedding-{bge_m3.version()}"

    @property
    def over_length(self) -> str:
        return f"cut at {self._longest} tokens"

    def count_over_length(self, texts: Sequence[str]) -> int:
        """How many documents are longer, with their prefix, than the model reads."""
        prefixed = [self.model.document_prefix + text for text in texts]
        return sum(model_files.are_longer(self._m3.tokenizer, self._longest, prefixed))

    @property
    def _longest(self) -> int:
        return self.model.max_tokens or bge_m3.MAX_TOKENS

    def _part(self, part: Literal["dense_vecs", "lexical_weights"], prefix: str, texts: Sequence[str]) -> Any:
        # The package shows bars for each block, which no option turns off.
        with contextlib.redirect_stderr(io.StringIO()):
            found = self._m3.encode(
                [prefix + text for text in texts],
                batch_size=BATCH_TEXTS,
                max_length=self._longest,
                return_dense=part == "dense_vecs",
                return_sparse=part == "lexical_weights",
                return_colbert_vecs=False,
            )
        return found[part]

    @cached_property
    def _m3(self) -> Any:
        return bge_m3.load(self.model)


class BgeM3Encoder(BgeM3):
    """Its dense part."""

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised."""
        return np.asarray(self._part("dense_vecs", self.model.query_prefix, texts), dtype=np.float32)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised."""
        return np.asarray(self._part("dense_vecs", self.model.document_prefix, texts), dtype=np.float32)


def make(model: Model) -> BgeM3Encoder:
    """The encoder of that model; it is loaded when it is first needed."""
    return BgeM3Encoder(model=model)
