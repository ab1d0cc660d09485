"""Score pairs with rerankers of the package FlagEmbedding, in single precision."""

from __future__ import annotations

import contextlib
import copy
import io
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from rusbeir.errors import BadInput, MissingExtra, require, require_version
from rusbeir.retrieval import bge_m3
from rusbeir.retrieval.models import files as model_files
from rusbeir.retrieval.models.batches import CHUNK_TEXTS, Indices, Keep
from rusbeir.retrieval.models.settings import Model
from rusbeir.retrieval.rerank.reranker import score_alone
from rusbeir.text import batched

BATCH_PAIRS = 32
CALL_PAIRS = 4 * BATCH_PAIRS
"""The pairs of a call of the package, which computes its longest batch twice; a kill loses no more than a call."""
MAX_TOKENS = 512
"""The package's default, for a model without max_tokens in models.toml."""

DEFAULT_LAYER = 28
"""The layer at which the layer-wise reranker's authors read its score."""


@dataclass(frozen=True, kw_only=True)
class TextPairs:
    """Pairs of texts, which the package tokenises itself."""

    pairs: Sequence[tuple[str, str]]
    over_length: Sequence[bool]

    def batches(self) -> Iterator[Indices]:
        """Yield the indices of the pairs of each call, the longest first."""
        order = np.argsort([-len(query) - len(document) for query, document in self.pairs], kind="stable")
        return (order[start : start + CALL_PAIRS] for start in range(0, len(order), CALL_PAIRS))

    def take(self, indices: Indices) -> TextPairs:
        """Return those pairs alone."""
        return TextPairs(
            pairs=[self.pairs[index] for index in indices], over_length=[self.over_length[index] for index in indices]
        )

    @classmethod
    def join(cls, parts: Sequence[TextPairs]) -> TextPairs:
        """Join the pairs of several parts."""
        return cls(
            pairs=[pair for part in parts for pair in part.pairs],
            over_length=[cut for part in parts for cut in part.over_length],
        )


@dataclass(frozen=True, kw_only=True)
class FlagReranker:
    """Scores with a cross-encoder, or (llm) with a language model's logit of "Yes", or its head at a layer."""

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
        """Return one logit per document."""
        return score_alone(self, query, documents)

    def tokenize_pairs(self, pairs: Iterable[tuple[str, str]]) -> TextPairs:
        """Return the pairs as they are, and which of them the package will cut."""
        texts = list(pairs)
        return TextPairs(pairs=texts, over_length=self._find_cut(texts))

    def score_tokens(self, tokens: TextPairs, keep: Keep) -> None:
        """Call keep(indices, logits) for each call of the package, which batches by length."""
        layer = {"cutoff_layers": [self.layer]} if self.layer else {}
        for indices in tokens.batches():
            # The package shows a progress bar for each call, which no option turns off.
            with contextlib.redirect_stderr(io.StringIO()):
                logits = self._reranker.compute_score(
                    [tokens.pairs[index] for index in indices],
                    batch_size=BATCH_PAIRS, max_length=self._max_tokens, normalize=False, **layer,
                )  # fmt: skip
            keep(indices, np.array([float(logit) for logit in logits]))

    @property
    def truncation(self) -> str:
        return f"cut at {self._max_tokens} tokens, their queries at three quarters of that"

    def are_truncated(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Return for each pair whether the package cuts it.

        For a language model a few too many are reported, as the size of its prompt is unknown.
        """
        return self._find_cut([(query, document) for document in documents])

    def _find_cut(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        labels = ("A: ", "B: ") if self.llm else ("", "")
        lengths: dict[str, int] = {}
        texts = dict.fromkeys(label + text for pair in pairs for label, text in zip(labels, pair, strict=True))
        for chunk in batched(texts, CHUNK_TEXTS):
            tokens = self._tokenizer(chunk, truncation=False, verbose=False, add_special_tokens=False)["input_ids"]
            lengths.update(zip(chunk, map(len, tokens), strict=True))
        special = 1 if self.llm else self._tokenizer.num_special_tokens_to_add(pair=True)
        sides = [[lengths[label + text] for label, text in zip(labels, pair, strict=True)] for pair in pairs]
        return [
            query > self._max_tokens * 3 // 4 or query + document + special > self._max_tokens
            for query, document in sides
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
    def _tokenizer(self) -> Any:
        # A tokenizer serves one thread at a time, and the package uses its own.
        return copy.deepcopy(self._reranker.tokenizer)

    @cached_property
    def _reranker(self) -> Any:
        make = getattr(require("FlagEmbedding", *bge_m3.NEEDED_BY), self._class)
        model_files.silence_transformers()
        with model_files.explain_failure(self.model), warnings.catch_warnings():
            # The layer-wise reranker warns that it turns half precision on, which is turned off below.
            warnings.simplefilter("ignore")
            reranker = make(model_files.fetch(self.model), use_fp16=False)
        reranker.use_fp16 = False
        reranker.model.float()
        config = reranker.model.config
        if self.layer and not config.start_layer <= self.layer <= config.num_hidden_layers:
            raise BadInput(
                f"{self.model.name} can be read at layers {config.start_layer} to {config.num_hidden_layers}, "
                f"not {self.layer}."
            )
        return reranker


make_llm = partial(FlagReranker, llm=True)


def make_layerwise(*, model: Model) -> FlagReranker:
    """Make a reranker that reads a language model at an inner layer.

    Raises MissingExtra under transformers 5, with which the package fails.
    """
    installed = require_version("transformers", *bge_m3.NEEDED_BY)
    if int(installed.partition(".")[0]) >= 5:
        raise MissingExtra(
            f"FlagEmbedding's layer-wise rerankers need transformers below 5, but {installed} is installed. "
            "In a separate environment: pip install 'rusbeir[flagembedding]' 'transformers<5'"
        )
    return FlagReranker(model=model, llm=True, layer=model.layer or DEFAULT_LAYER)
