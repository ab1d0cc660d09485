"""Rerankers of the package FlagEmbedding, and BGE-M3's sparse and multi-vector scores, in single precision."""

from __future__ import annotations

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
CUTOFF_LAYER = 28
"""The layer that the layer-wise reranker's authors take by default."""

M3_HEADS = ("colbert_linear.pt", "sparse_linear.pt")


@dataclass(frozen=True, kw_only=True)
class FlagReranker:
    """One model of the kind that a class of the package runs."""

    model: Model
    kind: str
    """FlagReranker, FlagLLMReranker or LayerWiseFlagLLMReranker."""
    pointwise: bool = True

    @property
    def signature(self) -> str:
        layer = f"|layer:{CUTOFF_LAYER}" if self.kind == "LayerWiseFlagLLMReranker" else ""
        return f"{self.model.signature}{model_files.identity(self.model)}|runtime:{self.kind}-{_version()}{layer}"

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """One logit a document; the package batches by length."""
        layer = {"cutoff_layers": [CUTOFF_LAYER]} if self.kind == "LayerWiseFlagLLMReranker" else {}
        found = self._reranker.compute_score(
            [(query, text) for text in documents],
            batch_size=BATCH_PAIRS,
            max_length=self.model.max_tokens or 512,
            normalize=False,
            **layer,
        )
        return _flat(found)

    @cached_property
    def _reranker(self) -> Any:
        made = getattr(model_files.module("FlagEmbedding", _PURPOSE, _EXTRA), self.kind)
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
        longest = self.model.max_tokens or 8192
        found = self._model.compute_score(
            [(query, text) for text in documents],
            batch_size=BATCH_PAIRS,
            max_query_length=longest,
            max_passage_length=longest,
        )
        return _flat(found[self.mode])

    @cached_property
    def _model(self) -> Any:
        return load_m3(self.model)


def load_m3(model: Model) -> Any:
    """The package's BGEM3FlagModel, its three heads present.

    Raises BadInput where a head's file is missing: the package would answer from untrained ones.
    """
    library = model_files.module("FlagEmbedding", _PURPOSE, _EXTRA)
    model_files.quieten()
    where = model_files.place(model)
    if Path(where).is_dir() and (missing := [name for name in M3_HEADS if not (Path(where) / name).is_file()]):
        raise BadInput(
            f"{where} lacks {' and '.join(missing)}, so it is no BGE-M3 model: copy all files of {model.hub}."
        )
    with model_files.loading(model):
        return library.BGEM3FlagModel(where, use_fp16=False, normalize_embeddings=True)


def make_plain(model: Model) -> FlagReranker:
    """A cross-encoder."""
    return FlagReranker(model=model, kind="FlagReranker")


def make_llm(model: Model) -> FlagReranker:
    """A language model whose logit of "Yes" is the score."""
    return FlagReranker(model=model, kind="FlagLLMReranker")


def make_layerwise(model: Model) -> FlagReranker:
    """The same, read at an inner layer."""
    return FlagReranker(model=model, kind="LayerWiseFlagLLMReranker")


def make_sparse(model: Model) -> BgeM3Reranker:
    """BGE-M3's learned term weights."""
    return BgeM3Reranker(model=model, mode="sparse")


def make_multivector(model: Model) -> BgeM3Reranker:
    """BGE-M3's vectors of tokens."""
    return BgeM3Reranker(model=model, mode="colbert")


def _version() -> str:
    return model_files.version_of("FlagEmbedding", _PURPOSE, _EXTRA)


def _flat(found: Any) -> list[float]:
    """The package's answer as a list, which for one pair is a number and for one layer a list in a list."""
    if isinstance(found, (list, tuple)) and len(found) == 1 and isinstance(found[0], (list, tuple)):
        found = found[0]
    return [float(score) for score in found] if isinstance(found, (list, tuple)) else [float(found)]
