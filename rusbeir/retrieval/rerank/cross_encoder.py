"""Score pairs with cross-encoders that sentence-transformers can load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rusbeir.errors import BadInput, require, require_version
from rusbeir.retrieval.models import files as model_files
from rusbeir.retrieval.models.batches import (
    UNPADDED,
    Devices,
    Keep,
    Tokens,
    check_runnable,
    copy_to,
    find_devices,
    tokenize,
)
from rusbeir.retrieval.models.library_encoder import in_its_precision, name_precision
from rusbeir.retrieval.models.settings import Model
from rusbeir.retrieval.rerank.reranker import score_alone

_NEEDED_BY = "The runtime cross-encoder", "sentence-transformers"


@dataclass(frozen=True, kw_only=True)
class CrossEncoderReranker:
    """Scores with one model that reads a query and a document together; its scores are logits."""

    model: Model
    pointwise: bool = True

    @property
    def signature(self) -> str:
        version = require_version("sentence-transformers", *_NEEDED_BY)
        # Scores were cached before there was a choice.
        precision = "" if self.model.precision == "float32" else f"|precision:{name_precision(self.model)}"
        return f"{model_files.sign(self.model)}|runtime:cross-encoder/sentence-transformers-{version}{precision}"

    def check_available(self) -> None:
        check_runnable(self.model)
        model_files.check_family(self.model, "rerank")

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """Return one logit per document."""
        return score_alone(self, query, documents)

    def tokenize_pairs(self, pairs: Iterable[tuple[str, str]]) -> Tokens:
        """Return what the model reads of each query with its document."""
        encoder = self._encoder
        prompt = encoder.prompts.get(encoder.default_prompt_name)

        def read(chunk: list[tuple[str, str]]) -> Any:
            return encoder.preprocess(chunk, prompt=prompt, processing_kwargs=UNPADDED)

        limits = encoder.tokenizer, encoder.max_seq_length
        return tokenize(read, pairs, *limits, batch_tokens=self._devices.batch_tokens)

    def score_tokens(self, tokens: Tokens, keep: Keep) -> None:
        """Call keep(indices, logits) for each batch of pairs of similar length."""
        self._devices.run(
            tokens,
            frozenset(),
            lambda device, _, features: self._copies[device](dict(features))["scores"].reshape(-1),
            keep,
        )

    @property
    def truncation(self) -> str:
        return f"cut at {self.model.max_tokens} tokens" if self.model.max_tokens else "cut at the model's own maximum"

    def are_truncated(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Return for each pair whether it has more tokens than the model reads."""
        tokenizer, max_tokens = self._encoder.tokenizer, self._encoder.max_seq_length
        return model_files.are_truncated(tokenizer, max_tokens, documents, query)

    @cached_property
    def _encoder(self) -> Any:
        library = require("sentence_transformers", *_NEEDED_BY)
        model_files.silence_transformers()
        where, revision = model_files.locate(self.model)
        model_files.check_family(self.model, "rerank")
        # Without a precision transformers computes in the one that the weights are stored in.
        options = {"model_kwargs": {"dtype": self.model.loaded_precision}, "device": self._devices.names[0]}
        with model_files.explain_failure(self.model):
            encoder = library.CrossEncoder(where, revision=revision, max_length=self.model.max_tokens, **options)
        # Only now are the files of a model from the hub here.
        model_files.check_family(self.model, "rerank")
        if encoder.num_labels != 1:
            raise BadInput(
                f"{self.model.name} returns {encoder.num_labels} labels for a pair. A reranker returns one score."
            )
        return in_its_precision(encoder.eval(), self.model)

    @cached_property
    def _devices(self) -> Devices:
        return Devices(names=find_devices(self.model.device, self.model.precision), model=self.model.name)

    @cached_property
    def _copies(self) -> Mapping[str, Any]:
        return copy_to(self._encoder, self._devices.names)
