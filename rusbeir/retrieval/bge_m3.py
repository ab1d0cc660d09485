"""BGE-M3 in its authors' package FlagEmbedding: dense vectors, term weights, and scores of pairs, from one model."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse

from rusbeir.errors import BadInput, require, require_version
from rusbeir.retrieval import model_files
from rusbeir.retrieval.dense.encoder import Vectors
from rusbeir.retrieval.models import Model
from rusbeir.retrieval.sparse.encoder import Weights

MAX_TOKENS = 8192
"""The package's default, for a model without max_tokens in models.toml."""
BATCH_TEXTS = 32
MODELS_IN_MEMORY = 2
HEADS = ("colbert_linear.pt", "sparse_linear.pt")

NEEDED_BY = "The runtime flagembedding", "flagembedding"


@dataclass(frozen=True, kw_only=True)
class BgeM3:
    """What the encoders and the reranker of one model share; they also share the loaded model."""

    model: Model

    @property
    def signature(self) -> str:
        return f"{model_files.sign(self.model)}|runtime:FlagEmbedding-{find_version()}"

    def check_available(self) -> None:
        model_files.check_present(self.model)

    @property
    def max_tokens(self) -> int:
        return self.model.max_tokens or MAX_TOKENS

    @property
    def truncation(self) -> str:
        return f"cut at {self.max_tokens} tokens"

    def count_truncated(self, texts: Sequence[str]) -> int:
        """How many documents are longer, with their prefix, than the model reads."""
        prefixed = [self._prompted.document_prefix + text for text in texts]
        return sum(model_files.are_truncated(self._m3.tokenizer, self.max_tokens, prefixed))

    @property
    def _prompted(self) -> Model:
        return model_files.add_own_prompts(self.model)

    @cached_property
    def _m3(self) -> Any:
        """The package's BGEM3FlagModel with its three heads.

        Raises BadInput where a head's file is missing: the package would answer from an untrained one.
        """
        require("FlagEmbedding", *NEEDED_BY)
        folder = model_files.fetch(self.model)
        if missing := [name for name in HEADS if not (Path(folder) / name).is_file()]:
            raise BadInput(
                f"{folder} lacks {' and '.join(missing)}, so it is not a BGE-M3 model. "
                f"Copy all files of {self.model.hub}."
            )
        with model_files.explain_failure(self.model):
            return _load(folder)

    def _encode(self, part: Literal["dense_vecs", "lexical_weights"], prefix: str, texts: Sequence[str]) -> Any:
        m3 = self._m3
        # The package shows progress bars for each block, which no option turns off.
        with contextlib.redirect_stderr(io.StringIO()):
            return m3.encode(
                [prefix + text for text in texts],
                batch_size=BATCH_TEXTS,
                max_length=self.max_tokens,
                return_dense=part == "dense_vecs",
                return_sparse=part == "lexical_weights",
                return_colbert_vecs=False,
            )[part]


class BgeM3Encoder(BgeM3):
    """The model's dense vectors."""

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised."""
        return np.asarray(self._encode("dense_vecs", self._prompted.query_prefix, texts), dtype=np.float32)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised."""
        return np.asarray(self._encode("dense_vecs", self._prompted.document_prefix, texts), dtype=np.float32)


class BgeM3SparseEncoder(BgeM3):
    """The model's term weights: a token has the greatest of its weights in a text, special tokens have none."""

    @property
    def signature(self) -> str:
        return f"{super().signature}|part:lexical_weights"

    def encode_queries(self, texts: Sequence[str]) -> Weights:
        """csr_array, float32 [n, vocabulary]."""
        return self._encode_weights(self._prompted.query_prefix, texts)

    def encode_documents(self, texts: Sequence[str]) -> Weights:
        """csr_array, float32 [n, vocabulary]."""
        return self._encode_weights(self._prompted.document_prefix, texts)

    def _encode_weights(self, prefix: str, texts: Sequence[str]) -> Weights:
        rows = self._encode("lexical_weights", prefix, texts)
        tokens = np.array([int(token) for row in rows for token in row], dtype=np.int32)
        weights = np.array([weight for row in rows for weight in row.values()], dtype=np.float32)
        ends = [0, *accumulate(map(len, rows))]
        return sparse.csr_array((weights, tokens, ends), shape=(len(rows), len(self._m3.tokenizer)))


@dataclass(frozen=True, kw_only=True)
class BgeM3Reranker(BgeM3):
    """The model's scores of a pair by term weights ("sparse") or by vectors of tokens ("colbert")."""

    mode: Literal["sparse", "colbert"]
    pointwise: bool = True

    @property
    def signature(self) -> str:
        return f"{model_files.sign(self.model)}|runtime:bge-m3-{self.mode}-{find_version()}"

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """One score per document."""
        found = self._m3.compute_score(
            [(query, text) for text in documents],
            batch_size=BATCH_TEXTS,
            max_query_length=self.max_tokens,
            max_passage_length=self.max_tokens,
        )
        return [float(score) for score in found[self.mode]]

    @property
    def truncation(self) -> str:
        return f"query and document are cut at {self.max_tokens} tokens each"

    def are_truncated(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Which pairs have a side of more tokens than the model reads."""
        texts = [query, *documents]
        of_query, *of_documents = model_files.are_truncated(self._m3.tokenizer, self.max_tokens, texts)
        return [of_query or longer for longer in of_documents]


make_sparse_reranker = partial(BgeM3Reranker, mode="sparse")
make_multivector_reranker = partial(BgeM3Reranker, mode="colbert")


def find_version() -> str:
    """The installed version of FlagEmbedding. Raises MissingExtra."""
    return require_version("FlagEmbedding", *NEEDED_BY)


@lru_cache(maxsize=MODELS_IN_MEMORY)
def _load(folder: str) -> Any:
    """The model in that folder, loaded once per process for all that use it."""
    model_files.silence_transformers()
    library = require("FlagEmbedding", *NEEDED_BY)
    return library.BGEM3FlagModel(folder, use_fp16=False, normalize_embeddings=True)
