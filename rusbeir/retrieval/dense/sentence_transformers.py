"""Encode texts with models that sentence-transformers can load."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from rusbeir.errors import BadInput, require, require_version
from rusbeir.retrieval.encoding.encoder import Vectors, collect
from rusbeir.retrieval.models import files as model_files
from rusbeir.retrieval.models.batches import (
    UNPADDED,
    Devices,
    Keep,
    Tokens,
    check_runnable,
    copy_to,
    find_devices,
    load_torch,
    tokenize,
)
from rusbeir.retrieval.models.settings import Model

logger = logging.getLogger(__name__)

SHARED_RUNTIME = "flagembedding"
"""The runtime whose models have other parts that read the same weights."""
MODELS_IN_MEMORY = 2
_NEEDED_BY = "The runtime sentence-transformers", "sentence-transformers"


@dataclass(frozen=True, kw_only=True)
class SentenceTransformerEncoder:
    """Encodes texts with one model; prefixes, pooling and length are those of models.toml or of the model's files.

    Args:
        model: The settings of the model, such as `resolve("dense(multilingual-e5-small)", language="ru").model`.

    Examples:
        >>> SentenceTransformerEncoder(model=model).encode_queries(["Что такое радий?"]).shape  # doctest: +SKIP
        (1, 384)
    """

    model: Model

    @property
    def signature(self) -> str:
        version = require_version("sentence-transformers", *_NEEDED_BY)
        return (
            f"{model_files.sign(self.model)}|runtime:sentence-transformers-{version}|precision:{self.model.precision}"
        )

    def check_available(self) -> None:
        check_runnable(self.model)

    @property
    def truncation(self) -> str:
        return f"cut at {self.transformer.max_seq_length} tokens"

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, dim], rows L2-normalised."""
        vectors: Vectors = collect(self, self.tokenize(texts, queries=True))
        return vectors

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, dim], rows L2-normalised."""
        vectors: Vectors = collect(self, self.tokenize(texts, queries=False))
        return vectors

    def count_truncated(self, texts: Sequence[str]) -> int:
        """Count the documents that are longer, with their prefix, than the model reads."""
        prefixed = [self.prompted.document_prefix + text for text in texts]
        tokenizer, max_tokens = self.transformer.tokenizer, self.transformer.max_seq_length
        return sum(model_files.are_truncated(tokenizer, max_tokens, prefixed))

    def tokenize(self, texts: Iterable[str], *, queries: bool) -> Tokens:
        """Return what the model reads of each text, its prefix included."""
        transformer = self.transformer
        prefix = self.prompted.query_prefix if queries else self.prompted.document_prefix

        def read(chunk: list[str]) -> Any:
            # As a prompt, even an empty one: it replaces the model's own, and a pooling may leave out prompts.
            return transformer.preprocess(chunk, prompt=prefix, processing_kwargs=UNPADDED)

        limits = transformer.tokenizer, transformer.max_seq_length
        return tokenize(read, texts, *limits, batch_tokens=self._devices.batch_tokens, queries=queries)

    def encode_tokens(self, tokens: Tokens, done: Set[int], keep: Keep) -> None:
        """Call keep(indices, vectors) for each batch that is not done."""
        torch = load_torch()
        if self.model.adapters:
            for transformer in self._copies.values():
                transformer.set_adapter([self.model.adapters[0 if tokens.queries else 1]])

        def compute(device: str, _: Any, features: Mapping[str, Any]) -> Any:
            transformer = self._copies[device]
            vectors = transformer(dict(features))["sentence_embedding"][:, : transformer.truncate_dim]
            # In single precision at least, as vectors of length 1 are promised.
            return torch.nn.functional.normalize(vectors if vectors.dtype.itemsize > 2 else vectors.float(), dim=1)

        self._devices.run(tokens, done, compute, keep)

    @property
    def prompted(self) -> Model:
        return model_files.add_own_prompts(self.model)

    @cached_property
    def transformer(self) -> Any:
        """The model on the first device."""
        if self.model.adapters:
            require("peft", *_NEEDED_BY)
        where, revision = model_files.locate(self.model)
        with model_files.explain_failure(self.model), warnings.catch_warnings():
            transformer = self._load(where, revision)
            # peft warns of every adapter after the first.
            warnings.simplefilter("ignore")
            for name in self.model.adapters:
                transformer.load_adapter(where, name, adapter_kwargs={"subfolder": name, "revision": revision})
        if self.model.max_tokens:
            transformer.max_seq_length = self.model.max_tokens
        _set_pooling(transformer, self.model)
        return transformer.eval()

    def _load(self, where: str, revision: str | None) -> Any:
        options = where, revision, self.model.precision, self._devices.names[0]
        if SHARED_RUNTIME in self.model.runtimes:
            loaded = load_transformer(*options)
            # It gets this encoder's length and pooling, so another encoder needs a model of its own.
            if not loaded.claimed:
                loaded.claimed = True
                return loaded.transformer
        return _load(*options)

    @cached_property
    def _devices(self) -> Devices:
        return Devices(names=find_devices(self.model.device, self.model.precision), model=self.model.name)

    @cached_property
    def _copies(self) -> Mapping[str, Any]:
        return copy_to(self.transformer, self._devices.names)


def make_encoder(*, model: Model) -> SentenceTransformerEncoder:
    """Make the encoder of that model, which is loaded when it is first used.

    Raises BadInput for a model that needs remote code.
    """
    if model.remote_code:
        raise BadInput(
            f"{model.name} needs code from its own repository, which rusbeir does not run. "
            "Load it in your own module: dense(python:package.module.factory)."
        )
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
    library = require("sentence_transformers", *_NEEDED_BY)
    # Without a precision transformers computes in the one that the weights are stored in.
    return library.SentenceTransformer(where, revision=revision, model_kwargs={"dtype": precision}, device=device)


def _set_pooling(transformer: Any, model: Model) -> None:
    """Pool as the settings say; warn where the model's own files say otherwise."""
    for name, layer in transformer.named_children():
        pooling = getattr(layer, "pooling_mode", None)
        if model.pooling and pooling and pooling != model.pooling:
            logger.warning("%s is pooled by %s as asked; its own files say %s.", model.name, model.pooling, pooling)
            setattr(transformer, name, type(layer)(layer.embedding_dimension, pooling_mode=model.pooling))
