"""BGE-M3 by its authors' package: what its dense, sparse and multi-vector answers share."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse

from rusbeir.errors import BadInput
from rusbeir.retrieval import model_files
from rusbeir.retrieval.dense.encoder import Vectors
from rusbeir.retrieval.models import Model
from rusbeir.retrieval.sparse.encoder import Weights

MAX_TOKENS = 8192
"""What a model without a length of its own in models.toml is read to: the package's default."""

HEADS = ("colbert_linear.pt", "sparse_linear.pt")

_PURPOSE = "The runtime flagembedding"
_EXTRA = "flagembedding"


def version() -> str:
    """Of the package FlagEmbedding."""
    return model_files.version_of("FlagEmbedding", _PURPOSE, _EXTRA)


def load(model: Model) -> Any:
    """The package's BGEM3FlagModel, its three heads present.

    Raises BadInput where a head's file is missing: the package would answer from untrained ones.
    """
    library = model_files.module("FlagEmbedding", _PURPOSE, _EXTRA)
    model_files.quieten()
    where = model_files.fetched(model)
    if missing := [name for name in HEADS if not (Path(where) / name).is_file()]:
        raise BadInput(
            f"{where} lacks {' and '.join(missing)}, so it is no BGE-M3 model: copy all files of {model.hub}."
        )
    with model_files.loading(model):
        return library.BGEM3FlagModel(where, use_fp16=False, normalize_embeddings=True)


BATCH_TEXTS = 32


@dataclass(frozen=True, kw_only=True)
class BgeM3:
    """What its encoders share: each answers with one part of what the model says of a text."""

    model: Model

    @property
    def signature(self) -> str:
        return f"{self.model.signature}{model_files.identity(self.model)}|runtime:FlagEmbedding-{version()}"

    @property
    def truncation(self) -> str:
        return f"cut at {self._longest} tokens"

    def count_truncated(self, texts: Sequence[str]) -> int:
        """How many documents are longer, with their prefix, than the model reads."""
        prefixed = [self.model.document_prefix + text for text in texts]
        return sum(model_files.are_longer(self._m3.tokenizer, self._longest, prefixed))

    @property
    def _longest(self) -> int:
        return self.model.max_tokens or MAX_TOKENS

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
        return load(self.model)


class BgeM3Encoder(BgeM3):
    """Its dense part."""

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised."""
        return np.asarray(self._part("dense_vecs", self.model.query_prefix, texts), dtype=np.float32)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised."""
        return np.asarray(self._part("dense_vecs", self.model.document_prefix, texts), dtype=np.float32)


def make_dense(model: Model) -> BgeM3Encoder:
    """The encoder of that model; it is loaded when it is first needed."""
    return BgeM3Encoder(model=model)


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


def make_sparse(model: Model) -> BgeM3Weights:
    """The encoder of that model; it is loaded when it is first needed."""
    return BgeM3Weights(model=model)


@dataclass(frozen=True, kw_only=True)
class BgeM3Reranker:
    """BGE-M3's scores of a pair besides the dense one: "sparse" (learned term weights) or "colbert" (multi-vector)."""

    model: Model
    mode: str
    pointwise: bool = True

    @property
    def signature(self) -> str:
        return f"{self.model.signature}{model_files.identity(self.model)}|runtime:bge-m3-{self.mode}-{version()}"

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """One score a document."""
        found = self._model.compute_score(
            [(query, text) for text in documents],
            batch_size=BATCH_TEXTS,
            max_query_length=self._longest,
            max_passage_length=self._longest,
        )
        return [float(score) for score in found[self.mode]]

    @property
    def truncation(self) -> str:
        return f"query and document are cut at {self._longest} tokens each"

    def are_truncated(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Which pairs have a side of more tokens than that."""
        of_query, *of_documents = model_files.are_longer(self._model.tokenizer, self._longest, [query, *documents])
        return [of_query or longer for longer in of_documents]

    @property
    def _longest(self) -> int:
        return self.model.max_tokens or MAX_TOKENS

    @cached_property
    def _model(self) -> Any:
        return load(self.model)


def make_sparse_reranker(model: Model) -> BgeM3Reranker:
    """BGE-M3's learned term weights."""
    return BgeM3Reranker(model=model, mode="sparse")


def make_multivector_reranker(model: Model) -> BgeM3Reranker:
    """BGE-M3's vectors of tokens."""
    return BgeM3Reranker(model=model, mode="colbert")
