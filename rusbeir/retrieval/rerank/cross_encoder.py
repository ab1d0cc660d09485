"""Cross-encoders that sentence-transformers reads, in single precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rusbeir.errors import BadInput
from rusbeir.retrieval import model_files
from rusbeir.retrieval.models import Model

_PURPOSE = "The runtime cross-encoder"
_EXTRA = "sentence-transformers"
BATCH_PAIRS = 32


@dataclass(frozen=True, kw_only=True)
class CrossEncoderReranker:
    """One model that reads a query and a document together; its scores are logits."""

    model: Model
    pointwise: bool = True

    @property
    def signature(self) -> str:
        runtime = f"sentence-transformers-{model_files.version_of('sentence-transformers', _PURPOSE, _EXTRA)}"
        return f"{self.model.signature}{model_files.identity(self.model)}|runtime:cross-encoder/{runtime}"

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """One logit a document. Batches hold pairs of like length, so little is spent on padding."""
        order = sorted(range(len(documents)), key=lambda place: -len(documents[place]))
        pairs = [(query, documents[place]) for place in order]
        import torch

        found = self._encoder.predict(
            pairs, batch_size=BATCH_PAIRS, show_progress_bar=False, activation_fn=torch.nn.Identity()
        )
        scores = [0.0] * len(documents)
        for place, score in zip(order, found, strict=True):
            scores[place] = float(score)
        return scores

    @property
    def truncation(self) -> str:
        return f"cut at {self.model.max_tokens} tokens" if self.model.max_tokens else "cut at the model's own maximum"

    def are_truncated(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Which pairs have more tokens than the model reads."""
        longest = self._encoder.max_seq_length
        return model_files.are_longer(self._encoder.tokenizer, longest, documents, beside=query)

    @cached_property
    def _encoder(self) -> Any:
        library = model_files.module("sentence_transformers", _PURPOSE, _EXTRA)
        model_files.quieten()
        where = model_files.place(self.model)
        revision = self.model.revision or None if where == self.model.hub else None
        with model_files.loading(self.model):
            encoder = library.CrossEncoder(
                where, revision=revision, max_length=self.model.max_tokens, model_kwargs=model_files.SINGLE
            )
        if encoder.num_labels != 1:
            raise BadInput(
                f"{self.model.name} answers {encoder.num_labels} labels for a pair: a reranker answers one score."
            )
        return encoder


def make(model: Model) -> CrossEncoderReranker:
    """The reranker of that model; it is loaded when it is first needed."""
    return CrossEncoderReranker(model=model)
