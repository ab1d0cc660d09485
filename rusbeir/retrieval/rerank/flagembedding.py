"""Rerankers of the package FlagEmbedding, in single precision."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rusbeir.errors import BadInput, MissingExtra
from rusbeir.retrieval import bge_m3, model_files
from rusbeir.retrieval.models import Model

_PURPOSE = "The runtime flagembedding"
_EXTRA = "flagembedding"
BATCH_PAIRS = 32
MAX_TOKENS = 512
"""What a model without a length of its own in models.toml is read to: the package's default."""

LAYER = 28
"""The layer that the layer-wise reranker's authors read."""


@dataclass(frozen=True, kw_only=True)
class FlagReranker:
    """A cross-encoder, or (llm) a language model whose logit of "Yes", or whose head at a layer, is the score."""

    model: Model
    llm: bool = False
    layer: int | None = None
    pointwise: bool = True

    @property
    def signature(self) -> str:
        runtime = f"{self._class}-{bge_m3.version()}{f'|layer:{self.layer}' if self.layer else ''}"
        return f"{self.model.signature}{model_files.identity(self.model)}|runtime:{runtime}"

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """One logit a document; the package batches by length."""
        pairs = [(query, text) for text in documents]
        layer = {"cutoff_layers": [self.layer]} if self.layer else {}
        # The package shows a bar for each query, which no option turns off.
        with contextlib.redirect_stderr(io.StringIO()):
            found = self._reranker.compute_score(
                pairs, batch_size=BATCH_PAIRS, max_length=self._longest, normalize=False, **layer
            )
        return [float(score) for score in found]

    @property
    def truncation(self) -> str:
        return f"cut at {self._longest} tokens, their queries at three quarters of that"

    def are_truncated(self, query: str, documents: Sequence[str]) -> list[bool]:
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
        if self.layer:
            return "LayerWiseFlagLLMReranker"
        return "FlagLLMReranker" if self.llm else "FlagReranker"

    @property
    def _longest(self) -> int:
        return self.model.max_tokens or MAX_TOKENS

    @cached_property
    def _reranker(self) -> Any:
        made = getattr(model_files.module("FlagEmbedding", _PURPOSE, _EXTRA), self._class)
        model_files.quieten()
        with model_files.loading(self.model), warnings.catch_warnings():
            # The layer-wise one warns that it turns half precision on, which is turned off below.
            warnings.simplefilter("ignore")
            reranker = made(model_files.fetched(self.model), use_fp16=False)
        reranker.use_fp16 = False
        reranker.model.float()
        if self.layer:
            _check_layer(self.layer, reranker.model.config, self.model.name)
        return reranker


def make_plain(model: Model) -> FlagReranker:
    """A cross-encoder."""
    return FlagReranker(model=model)


def make_llm(model: Model) -> FlagReranker:
    """A language model whose logit of "Yes" is the score."""
    return FlagReranker(model=model, llm=True)


def make_layerwise(model: Model) -> FlagReranker:
    """A language model that is read at an inner layer. Raises MissingExtra under transformers 5, where it fails."""
    installed = model_files.version_of("transformers", _PURPOSE, _EXTRA)
    if int(installed.partition(".")[0]) >= 5:
        raise MissingExtra(
            f"FlagEmbedding's layer-wise rerankers need transformers below 5, and {installed} is installed. "
            "In an environment of their own: pip install 'rusbeir[flagembedding]' 'transformers<5'"
        )
    return FlagReranker(model=model, llm=True, layer=model.layer or LAYER)


def _check_layer(layer: int, config: Any, name: str) -> None:
    if not config.start_layer <= layer <= config.num_hidden_layers:
        raise BadInput(f"{name} can be read at layers {config.start_layer} to {config.num_hidden_layers}, not {layer}.")
