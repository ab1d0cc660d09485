"""Rerankers of the package FlagEmbedding, in single precision."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from rusbeir.errors import BadInput, MissingExtra, require, require_version
from rusbeir.retrieval import bge_m3, model_files
from rusbeir.retrieval.models import Model

BATCH_PAIRS = 32
MAX_TOKENS = 512
"""The package's default, for a model without max_tokens in models.toml."""

DEFAULT_LAYER = 28
"""The layer at which the layer-wise reranker's authors read its score."""


@dataclass(frozen=True, kw_only=True)
class FlagReranker:
    """A cross-encoder, or (llm) a language model whose logit of "Yes", or whose head at a layer, is the score."""

    model: Model
    llm: bool = False
    layer: int | None = None
    pointwise: bool = True

    @property
    def signature(self) -> str:
        runtime = f"{self._class}-{bge_m3.find_version()}{f'|layer:{self.layer}' if self.layer else ''}"
        return f"{model_files.sign(self.model)}|runtime:{runtime}"

    def check_available(self) -> None:
        model_files.check_present(self.model)

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """One logit per document; the package batches by length."""
        pairs = [(query, text) for text in documents]
        layer = {"cutoff_layers": [self.layer]} if self.layer else {}
        # The package shows a progress bar for each query, which no option turns off.
        with contextlib.redirect_stderr(io.StringIO()):
            logits = self._reranker.compute_score(
                pairs, batch_size=BATCH_PAIRS, max_length=self._max_tokens, normalize=False, **layer
            )
        return [float(logit) for logit in logits]

    @property
    def truncation(self) -> str:
        return f"cut at {self._max_tokens} tokens, their queries at three quarters of that"

    def are_truncated(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Which pairs the package cuts; for a language model a few too many, as the size of its prompt is unknown."""
        tokenizer = self._reranker.tokenizer
        labels = ("A: ", "B: ") if self.llm else ("", "")
        texts = [labels[0] + query, *(labels[1] + text for text in documents)]
        tokens = tokenizer(texts, truncation=False, verbose=False, add_special_tokens=False)["input_ids"]
        of_query, *of_documents = map(len, tokens)
        of_pair = 1 if self.llm else tokenizer.num_special_tokens_to_add(pair=True)
        return [
            of_query > self._max_tokens * 3 // 4 or of_query + of_document + of_pair > self._max_tokens
            for of_document in of_documents
        ]

    @property
    def _class(self) -> str:
        if self.layer:
            return "LayerWiseFlagLLMReranker"
        return "FlagLLMReranker" if self.llm else "FlagReranker"

    @property
    def _max_tokens(self) -> int:
        return self.model.max_tokens or MAX_TOKENS

    @cached_property
    def _reranker(self) -> Any:
        make = getattr(require("FlagEmbedding", *bge_m3.NEEDED_BY), self._class)
        model_files.silence_transformers()
        with model_files.explain_failure(self.model), warnings.catch_warnings():
            # The layer-wise one warns that it turns half precision on, which is turned off below.
            warnings.simplefilter("ignore")
            reranker = make(model_files.fetch(self.model), use_fp16=False)
        reranker.use_fp16 = False
        reranker.model.float()
        layers = reranker.model.config
        if self.layer and not layers.start_layer <= self.layer <= layers.num_hidden_layers:
            raise BadInput(
                f"{self.model.name} can be read at layers {layers.start_layer} to {layers.num_hidden_layers}, "
                f"not {self.layer}."
            )
        return reranker


make_llm = partial(FlagReranker, llm=True)


def make_layerwise(*, model: Model) -> FlagReranker:
    """A language model that is read at an inner layer. Raises MissingExtra under transformers 5, where it fails."""
    installed = require_version("transformers", *bge_m3.NEEDED_BY)
    if int(installed.partition(".")[0]) >= 5:
        raise MissingExtra(
            f"FlagEmbedding's layer-wise rerankers need transformers below 5, but {installed} is installed. "
            "In a separate environment: pip install 'rusbeir[flagembedding]' 'transformers<5'"
        )
    return FlagReranker(model=model, llm=True, layer=model.layer or DEFAULT_LAYER)
