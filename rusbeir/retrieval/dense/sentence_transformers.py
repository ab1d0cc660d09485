"""Encode texts with models that sentence-transformers can load."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rusbeir.errors import require
from rusbeir.retrieval.encoding.encoder import Vectors, collect
from rusbeir.retrieval.models import files as model_files
from rusbeir.retrieval.models.batches import Keep, Tokens, load_torch
from rusbeir.retrieval.models.library_encoder import NEEDED_BY, LibraryEncoder, refuse_remote_code
from rusbeir.retrieval.models.settings import INT8, Model

logger = logging.getLogger(__name__)

SHARED_RUNTIME = "flagembedding"
"""The runtime whose models have other parts that read the same weights."""
MODELS_IN_MEMORY = 2


@dataclass(frozen=True, kw_only=True)
class SentenceTransformerEncoder(LibraryEncoder):
    """Encodes texts with one model; prefixes, pooling and length are those of models.toml or of the model's files.

    Args:
        model: The settings of the model, such as `resolve("dense(multilingual-e5-small)", language="ru").model`.

    Examples:
        >>> SentenceTransformerEncoder(model=model).encode_queries(["Что такое радий?"]).shape  # doctest: +SKIP
        (1, 384)
    """

    kind = "dense"
    library_class = "SentenceTransformer"

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, dim], rows L2-normalised."""
        vectors: Vectors = collect(self, self.tokenize(texts, queries=True))
        return vectors

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, dim], rows L2-normalised."""
        vectors: Vectors = collect(self, self.tokenize(texts, queries=False))
        return vectors

    def encode_tokens(self, tokens: Tokens, done: Set[int], keep: Keep) -> None:
        """Call keep(indices, vectors) for each batch that is not done."""
        torch = load_torch()
        if self.model.adapters:
            for transformer in self.copies.values():
                transformer.set_adapter([self.model.adapters[0 if tokens.queries else 1]])

        def compute(device: str, _: Any, features: Mapping[str, Any]) -> Any:
            transformer = self.copies[device]
            vectors = transformer(dict(features))["sentence_embedding"][:, : transformer.truncate_dim]
            # In single precision at least, as vectors of length 1 are promised.
            return torch.nn.functional.normalize(vectors if vectors.dtype.itemsize > 2 else vectors.float(), dim=1)

        self.devices.run(tokens, done, compute, keep)

    def load(self) -> Any:
        """Load the model, with its adapters, on the first device."""
        if self.model.adapters:
            require("peft", *NEEDED_BY)
        where, revision = model_files.locate(self.model)
        with warnings.catch_warnings():
            transformer = self._load(where, revision)
            # peft warns of every adapter after the first.
            warnings.simplefilter("ignore")
            for name in self.model.adapters:
                transformer.load_adapter(where, name, adapter_kwargs={"subfolder": name, "revision": revision})
        return transformer

    def configure(self, transformer: Any) -> None:
        """Set length and pooling as the settings say."""
        super().configure(transformer)
        _set_pooling(transformer, self.model)

    def _load(self, where: str, revision: str | None) -> Any:
        options = where, revision, self.model.loaded_precision, self.devices.names[0]
        # Integers would be those of the other parts, too.
        if SHARED_RUNTIME in self.model.runtimes and self.model.precision != INT8:
            loaded = load_transformer(*options)
            # It gets this encoder's length and pooling, so another encoder needs a model of its own.
            if not loaded.claimed:
                loaded.claimed = True
                return loaded.transformer
        return _load(*options)


def make_encoder(*, model: Model) -> SentenceTransformerEncoder:
    """Make the encoder of that model, which is loaded when it is first used.

    Raises BadInput for a model that needs remote code.
    """
    refuse_remote_code(model)
    return SentenceTransformerEncoder(model=model)


@dataclass(kw_only=True)
class Loaded:
    """A model that an encoder may claim, while other parts of it read the same weights."""

    transformer: Any
    claimed: bool = False


@lru_cache(maxsize=MODELS_IN_MEMORY)
def load_transformer(where: str, revision: str | None, precision: str, device: str) -> Loaded:
    """Load a model of which several parts are used, once per process."""
    return Loaded(transformer=_load(where, revision, precision, device))


def _load(where: str, revision: str | None, precision: str, device: str) -> Any:
    model_files.silence_transformers()
    library = require("sentence_transformers", *NEEDED_BY)
    # Without a precision transformers computes in the one that the weights are stored in.
    return library.SentenceTransformer(where, revision=revision, model_kwargs={"dtype": precision}, device=device)


def _set_pooling(transformer: Any, model: Model) -> None:
    """Pool as the settings say; warn where the model's own files say otherwise."""
    for name, layer in transformer.named_children():
        pooling = getattr(layer, "pooling_mode", None)
        if model.pooling and pooling and pooling != model.pooling:
            logger.warning("%s is pooled by %s as asked; its own files say %s.", model.name, model.pooling, pooling)
            setattr(transformer, name, type(layer)(layer.embedding_dimension, pooling_mode=model.pooling))
