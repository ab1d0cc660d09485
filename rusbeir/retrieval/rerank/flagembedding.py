"""Rerankers of the package FlagEmbedding, in single precision."""

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
from rusbeir.retrieval.models.batches import CHUNK_TEXTS, Keep, Places
from rusbeir.retrieval.models.settings import Model
from rusbeir.retrieval.rerank.reranker import score_alone
from rusbeir.text import batched

BATCH_PAIRS = 32
CALL_PAIRS = 4 * BATCH_PAIRS
"""The pairs of one call of the package, which computes its longest batch twice: what a kill loses."""
MAX_TOKENS = 512
"""The package's default, for a model without max_tokens in models.toml."""

DEFAULT_LAYER = 28
"""The layer at which the layer-wise reranker's authors read its score."""


@dataclass(frozen=True, kw_only=True)
class TextPairs:
    """Pairs as texts."""

    pairs: Sequence[tuple[str, str]]
    over_length: Sequence[bool]

    def batches(self) -> Iterator[Places]:
        """The places of the pairs of each call, the longest first."""
        order = np.argsort([-len(query) - len(document) for query, document in self.pairs], kind="stable")
        return (order[start : start + CALL_PAIRS] for start in range(0, len(order), CALL_PAIRS))

    def take(self, places: Places) -> TextPairs:
        """Those pairs alone."""
        return TextPairs(
            pairs=[self.pairs[place] for place in places], over_length=[self.over_length[place] for place in places]
        )

    @classmethod
    def join(cls, parts: Sequence[TextPairs]) -> TextPairs:
        """The pairs of several parts as one."""
        return cls(
            pairs=[pair for part in parts for pair in part.pairs],
            over_length=[cut for part in parts for cut in part.over_length],
        )


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
        """One logit per document."""
        return score_alone(self, query, documents)

    def tokenize_pairs(self, pairs: Iterable[tuple[str, str]]) -> TextPairs:
        """The pairs as they are, which the package tokenises itself, and which of them it cuts."""
        found = list(pairs)
        return TextPairs(pairs=found, over_length=self._find_cut(found))

    def score_tokens(self, tokens: TextPairs, keep: Keep) -> None:
        """Call keep(places, logits) for each call of the package, which batches by length."""
        layer = {"cutoff_layers": [self.layer]} if self.layer else {}
        for places in tokens.batches():
            # The package shows a progress bar for each call, which no option turns off.
            with contextlib.redirect_stderr(io.StringIO()):
                logits = self._reranker.compute_score(
                    [tokens.pairs[place] for place in places],
                    batch_size=BATCH_PAIRS, max_length=self._max_tokens, normalize=False, **layer,
                )  # fmt: skip
            keep(places, np.array([float(logit) for logit in logits]))

    @property
    def truncation(self) -> str:
        return f"cut at {self._max_tokens} tokens, their queries at three quarters of that"

    def are_truncated(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Which pairs the package cuts; for a language model a few too many, as the size of its prompt is unknown."""
        return self._find_cut([(query, document) for document in documents])

    def _find_cut(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        labels = ("A: ", "B: ") if self.llm else ("", "")
        lengths: dict[str, int] = {}
        texts = dict.fromkeys(label + text for pair in pairs for label, text in zip(labels, pair, strict=True))
        for some in batched(texts, CHUNK_TEXTS):
            tokens = self._tokenizer(some, truncation=False, verbose=False, add_special_tokens=False)["input_ids"]
            lengths.update(zip(some, map(len, tokens), strict=True))
        of_pair = 1 if self.llm else self._tokenizer.num_special_tokens_to_add(pair=True)
        sides = [[lengths[label + text] for label, text in zip(labels, pair, strict=True)] for pair in pairs]
        return [
            of_query > self._max_tokens * 3 // 4 or of_query + of_document + of_pair > self._max_tokens
            for of_query, of_document in sides
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
