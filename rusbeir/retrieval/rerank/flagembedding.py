"""Rerankers of the package FlagEmbedding, and BGE-M3's sparse and multi-vector scores, in single precision.

Its layer-wise reranker is left out: the package's own module for it fails under transformers 5 when a model is made.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rusbeir.errors import BadInput
from rusbeir.retrieval import model_files
from rusbeir.retrieval.models import Model

_PURPOSE = "The runtime flagembedding"
_EXTRA = "flagembedding"
BATCH_PAIRS = 32
MAX_TOKENS = 512
MAX_TOKENS_M3 = 8192
"""What a model without a length of its own in models.toml is read to: the package's defaults."""

M3_HEADS = ("colbert_linear.pt", "sparse_linear.pt")


@dataclass(frozen=True, kw_only=True)
class FlagReranker:
    """A cross-encoder, or (llm) a language model whose logit of "Yes" is the score."""

    model: Model
    llm: bool = False
    pointwise: bool = True

    @property
    def signature(self) -> str:
        return f"{self.model.signature}{model_files.identity(self.model)}|runtime:{self._class}-{_version()}"

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """One logit a document; the package batches by length."""
        pairs = [(query, text) for text in documents]
        # The package shows a bar for each query, which no option turns off.
        with contextlib.redirect_stderr(io.StringIO()):
            found = self._reranker.compute_score(
                pairs, batch_size=BATCH_PAIRS, max_length=self._longest, normalize=False
            )
        return [float(score) for score in found]

    @property
    def over_length(self) -> str:
        return f"cut at {self._longest} tokens, their queries at three quarters of that"

    def are_over_length(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Which pairs the package cuts; of a language model a few too many, as it tells not how much room it adds."""
        tokenizer = self._reranker.tokenizer
        labels = ("A: ", "B: ") if self.llm else ("", "")
        texts = [labels[0] + query, *(labels[1] + text for text in documents)]
        tokens = tokenizer(texts, truncation=False, verbose=False, add_special_tokens=False)["input_ids"]
        of_query, *of_documents = map(len, tokens)
        of_pair = 1 if self.llm else tokenizer.num_special_tokens_to_add(pair=True)
        return [
            of_query > self._longest * 3 // 4 or of_query + of_document + of_pair > self._longest
            for of_document in of_documents
        ]

    @property
    def _class(self) -> str:
        return "FlagLLMReranker" if self.llm else "FlagReranker"

    @property
    def _longest(self) -> int:
        return self.model.max_tokens or MAX_TOKENS

    @cached_property
    def _reranker(self) -> Any:
        made = getattr(model_files.module("FlagEmbedding", _PURPOSE, _EXTRA), self._class)
        model_files.quieten()
        with model_files.loading(self.model):
            return made(model_files.place(self.model), use_fp16=False)


@dataclass(frozen=True, kw_only=True)
class BgeM3Reranker:
    """BGE-M3's scores of a pair besides the dense one: "sparse" (learned term weights) or "colbert" (multi-vector)."""

    model: Model
    mode: str
    pointwise: bool = True

    @property
    def signature(self) -> str:
        return f"{self.model.signature}{model_files.identity(self.model)}|runtime:bge-m3-{self.mode}-{_version()}"

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """One score a document."""
        found = self._model.compute_score(
            [(query, text) for text in documents],
            batch_size=BATCH_PAIRS,
            max_query_length=self._longest,
            max_passage_length=self._longest,
        )
        return [float(score) for score in found[self.mode]]

    @property
    def over_length(self) -> str:
        return f"query and document are cut at {self._longest} tokens each"

    def are_over_length(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Which pairs have a side of more tokens than that."""
        of_query, *of_documents = model_files.are_longer(self._model.tokenizer, self._longest, [query, *documents])
        return [of_query or longer for longer in of_documents]

    @property
    def _longest(self) -> int:
        return self.model.max_tokens or MAX_TOKENS_M3

    @cached_property
    def _model(self) -> Any:
        return load_m3(self.model)


def load_m3(model: Model) -> Any:
    """The package's BGEM3FlagModel, its three heads present.

    Raises BadInput where a head's file is missing: the package would answer from untrained ones.
    """
    library = model_files.module("FlagEmbedding", _PURPOSE, _EXTRA)
    model_files.quieten()
    where = model_files.fetched(model)
    if missing := [name for name in M3_HEADS if not (Path(where) / name).is_file()]:
        raise BadInput(
            f"{where} lacks {' and '.join(missing)}, so it is no BGE-M3 model: copy all files of {model.hub}."
        )
    with model_files.loading(model):
        return library.BGEM3FlagModel(where, use_fp16=False, normalize_embeddings=True)


def make_plain(model: Model) -> FlagReranker:
    """A cross-encoder."""
    return FlagReranker(model=model)


def make_llm(model: Model) -> FlagReranker:
    """A language model whose logit of "Yes" is the score."""
    return FlagReranker(model=model, llm=True)


def make_sparse(model: Model) -> BgeM3Reranker:
    """BGE-M3's learned term weights."""
    return BgeM3Reranker(model=model, mode="sparse")


def make_multivector(model: Model) -> BgeM3Reranker:
    """BGE-M3's vectors of tokens."""
    return BgeM3Reranker(model=model, mode="colbert")


def _version() -> str:
    return model_files.version_of("FlagEmbedding", _PURPOSE, _EXTRA)
