"""Cross-encoders that sentence-transformers can load, in single precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rusbeir.errors import BadInput, require, require_version
from rusbeir.retrieval import model_files
from rusbeir.retrieval.models import Model

BATCH_PAIRS = 32
_NEEDED_BY = "The runtime cross-encoder", "sentence-transformers"


@dataclass(frozen=True, kw_only=True)
class CrossEncoderReranker:
    """One model that reads a query and a document together; its scores are logits."""

    model: Model
    pointwise: bool = True

    @property
    def signature(self) -> str:
        version = require_version("sentence-transformers", *_NEEDED_BY)
        return f"{model_files.sign(self.model)}|runtime:cross-encoder/sentence-transformers-{version}"

    def check_available(self) -> None:
        model_files.check_present(self.model)

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """One logit per document. Batches hold pairs of similar length, to spend little on padding."""
        order = sorted(range(len(documents)), key=lambda place: -len(documents[place]))
        pairs = [(query, documents[place]) for place in order]
        import torch

        logits = self._encoder.predict(
            pairs, batch_size=BATCH_PAIRS, show_progress_bar=False, activation_fn=torch.nn.Identity()
        )
        scores = [0.0] * len(documents)
        for place, score in zip(order, logits, strict=True):
            scores[place] = float(score)
        return scores

    @property
    def truncation(self) -> str:
        return f"cut at {self.model.max_tokens} tokens" if self.model.max_tokens else "cut at the model's own maximum"

    def are_truncated(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Which pairs have more tokens than the model reads."""
        tokenizer, max_tokens = self._encoder.tokenizer, self._encoder.max_seq_length
        return model_files.are_truncated(tokenizer, max_tokens, documents, query)

    @cached_property
    def _encoder(self) -> Any:
        library = require("sentence_transformers", *_NEEDED_BY)
        model_files.silence_transformers()
        where, revision = model_files.locate(self.model)
        with model_files.explain_failure(self.model):
            encoder = library.CrossEncoder(
                where, revision=revision, max_length=self.model.max_tokens, model_kwargs={"dtype": "float32"}
            )
        if encoder.num_labels != 1:
            raise BadInput(
                f"{self.model.name} returns {encoder.num_labels} labels for a pair. A reranker returns one score."
            )
        return encoder
