"""Models that sentence-transformers can load, in single precision."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rusbeir.errors import BadInput, require, require_version
from rusbeir.retrieval import model_files
from rusbeir.retrieval.dense.encoder import Vectors
from rusbeir.retrieval.models import Model

logger = logging.getLogger(__name__)

BATCH_TEXTS = 32
_NEEDED_BY = "The runtime sentence-transformers", "sentence-transformers"


@dataclass(frozen=True, kw_only=True)
class SentenceTransformerEncoder:
    """One model, with the prefixes, pooling and length of its row in models.toml or of its own files."""

    model: Model

    @property
    def signature(self) -> str:
        version = require_version("sentence-transformers", *_NEEDED_BY)
        return f"{model_files.sign(self.model)}|runtime:sentence-transformers-{version}|precision:float32"

    def check_available(self) -> None:
        model_files.check_present(self.model)

    @property
    def truncation(self) -> str:
        return f"cut at {self.transformer.max_seq_length} tokens"

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised."""
        return self._encode(texts, self.prompted.query_prefix, self.model.adapters[:1])

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised."""
        return self._encode(texts, self.prompted.document_prefix, self.model.adapters[1:])

    def count_truncated(self, texts: Sequence[str]) -> int:
        """How many documents are longer, with their prefix, than the model reads."""
        prefixed = [self.prompted.document_prefix + text for text in texts]
        tokenizer, max_tokens = self.transformer.tokenizer, self.transformer.max_seq_length
        return sum(model_files.are_truncated(tokenizer, max_tokens, prefixed))

    @property
    def prompted(self) -> Model:
        return model_files.add_own_prompts(self.model)

    def _encode(self, texts: Sequence[str], prefix: str, adapters: Sequence[str]) -> Vectors:
        if adapters:
            self.transformer.set_adapter(list(adapters))
        # As a prompt, even an empty one: it replaces the model's own, and a pooling that leaves out prompts does so.
        vectors: Vectors = self.transformer.encode(
            list(texts), prompt=prefix, batch_size=BATCH_TEXTS, show_progress_bar=False, normalize_embeddings=True
        )
        return vectors

    @cached_property
    def transformer(self) -> Any:
        library = require("sentence_transformers", *_NEEDED_BY)
        if self.model.adapters:
            require("peft", *_NEEDED_BY)
        model_files.silence_transformers()
        where, revision = model_files.locate(self.model)
        with model_files.explain_failure(self.model), warnings.catch_warnings():
            transformer = library.SentenceTransformer(where, revision=revision, model_kwargs=model_files.SINGLE)
            # peft warns of every adapter after the first.
            warnings.simplefilter("ignore")
            for name in self.model.adapters:
                transformer.load_adapter(where, name, adapter_kwargs={"subfolder": name, "revision": revision})
        if self.model.max_tokens:
            transformer.max_seq_length = self.model.max_tokens
        _set_pooling(transformer, self.model)
        return transformer


def make_encoder(*, model: Model) -> SentenceTransformerEncoder:
    """The encoder of that model, which is loaded on first use. Raises BadInput for a model that needs remote code."""
    if model.remote_code:
        raise BadInput(
            f"{model.name} needs code from its own repository, which rusbeir does not run. "
            "Load it in your own module: dense(python:package.module.factory)."
        )
    return SentenceTransformerEncoder(model=model)


def _set_pooling(transformer: Any, model: Model) -> None:
    """Pool as the row says; warn where the model's own files say otherwise."""
    for name, layer in transformer.named_children():
        own = getattr(layer, "pooling_mode", None)
        if model.pooling and own and own != model.pooling:
            logger.warning("%s is pooled by %s as asked; its own files say %s.", model.name, model.pooling, own)
            setattr(transformer, name, type(layer)(layer.embedding_dimension, pooling_mode=model.pooling))
