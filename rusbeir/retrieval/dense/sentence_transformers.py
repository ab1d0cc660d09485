"""Any model that sentence-transformers reads, in single precision."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rusbeir.errors import BadInput
from rusbeir.retrieval import model_files
from rusbeir.retrieval.dense.encoder import Vectors
from rusbeir.retrieval.models import Model

logger = logging.getLogger(__name__)

_PURPOSE = "The runtime sentence-transformers"
_EXTRA = "sentence-transformers"
BATCH_TEXTS = 32


@dataclass(frozen=True, kw_only=True)
class SentenceTransformerEncoder:
    """One model, with the prefixes, pooling and length that its row says."""

    model: Model

    @property
    def signature(self) -> str:
        runtime = f"sentence-transformers-{model_files.version_of('sentence-transformers', _PURPOSE, _EXTRA)}"
        return f"{self.model.signature}{model_files.identity(self.model)}|runtime:{runtime}|precision:float32"

    @property
    def truncation(self) -> str:
        return f"cut at {self._transformer.max_seq_length} tokens"

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised."""
        return self._encode([self.model.query_prefix + text for text in texts], self.model.adapters[:1])

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised."""
        return self._encode([self.model.document_prefix + text for text in texts], self.model.adapters[1:])

    def count_truncated(self, texts: Sequence[str]) -> int:
        """How many documents are longer, with their prefix, than the model reads."""
        longest = self._transformer.max_seq_length
        prefixed = [self.model.document_prefix + text for text in texts]
        return sum(model_files.are_longer(self._transformer.tokenizer, longest, prefixed))

    def _encode(self, texts: Sequence[str], adapters: Sequence[str]) -> Vectors:
        if adapters:
            self._transformer.set_adapter(list(adapters))
        vectors: Vectors = self._transformer.encode(
            list(texts), batch_size=BATCH_TEXTS, show_progress_bar=False, normalize_embeddings=True
        )
        return vectors

    @cached_property
    def _transformer(self) -> Any:
        library = model_files.module("sentence_transformers", _PURPOSE, _EXTRA)
        if self.model.adapters:
            model_files.module("peft", _PURPOSE, _EXTRA)
        model_files.quieten()
        where = model_files.place(self.model)
        revision = self.model.revision or None if where == self.model.hub else None
        with model_files.loading(self.model):
            transformer = library.SentenceTransformer(where, revision=revision, model_kwargs=model_files.SINGLE)
            _load_adapters(transformer, self.model, where, revision)
        # A prompt that the repository sets by default would be put before ours.
        transformer.default_prompt_name = None
        if self.model.max_tokens:
            transformer.max_seq_length = self.model.max_tokens
        _check_pooling(transformer, self.model)
        return transformer


def make(model: Model) -> SentenceTransformerEncoder:
    """The encoder of that model; it is loaded when it is first needed."""
    if model.remote_code:
        raise BadInput(
            f"{model.name} cannot run without code from its own repository, which rusbeir does not run. "
            "Load it in a module of your own: dense(python:package.module.factory)."
        )
    return SentenceTransformerEncoder(model=model)


def _load_adapters(transformer: Any, model: Model, where: str, revision: str | None) -> None:
    with warnings.catch_warnings():
        # peft warns of every adapter after the first.
        warnings.simplefilter("ignore")
        for name in model.adapters:
            transformer.load_adapter(where, name, adapter_kwargs={"subfolder": name, "revision": revision})


def _check_pooling(transformer: Any, model: Model) -> None:
    """Pool as the row says, and say so where the model's own files say otherwise."""
    for name, layer in transformer.named_children():
        is_ = getattr(layer, "pooling_mode", None)
        if model.pooling and is_ and is_ != model.pooling:
            logger.warning("%s is pooled by %s as asked; its own files say %s.", model.name, model.pooling, is_)
            setattr(transformer, name, type(layer)(layer.embedding_dimension, pooling_mode=model.pooling))
