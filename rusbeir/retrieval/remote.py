"""Encoders and rerankers on the workers of a cluster, for systems whose stores and caches stay with this process."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from rusbeir.cluster import Placed, Workers
from rusbeir.retrieval.dense.encoder import Encoder, Vectors
from rusbeir.retrieval.rerank.reranker import Pointwise, Reranker
from rusbeir.retrieval.system import check_available

T = TypeVar("T")

LEAST_TEXTS = 8
"""Fewer are not worth a call of their own."""
MOST_TEXTS = 1024
"""Of one call: what a worker that dies has computed in vain."""


@dataclass(frozen=True, kw_only=True)
class RemoteEncoder:
    """An encoder whose texts are shared out among workers."""

    signature: str
    placed: Placed

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised, in the order of the texts."""
        return np.concatenate(self._share("encode_queries", texts))

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """float32 [n, dim], rows L2-normalised, in the order of the texts."""
        return np.concatenate(self._share("encode_documents", texts))

    def _share(self, method: str, texts: Sequence[str]) -> list[Any]:
        futures = [self.placed.submit(method, part) for part in share(texts, len(self.placed.workers))]
        return [future.result() for future in futures]


@dataclass(frozen=True, kw_only=True)
class RemoteReranker:
    """A reranker whose documents are shared out among workers, or lists where a score depends on all of a list."""

    signature: str
    pointwise: bool
    placed: Placed

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """One number per document, in their order."""
        parts = share(documents, len(self.placed.workers)) if self.pointwise else [documents]
        futures = [self.placed.submit("score", query, part) for part in parts]
        return [score for future in futures for score in future.result()]


@dataclass(frozen=True, kw_only=True)
class TruncatingEncoder(RemoteEncoder):
    """One that reports texts which are not read whole."""

    @property
    def truncation(self) -> str:
        return str(self.placed.submit("truncation").result())

    def count_truncated(self, texts: Sequence[str]) -> int:
        """How many of the documents are longer than the model reads at once."""
        return sum(self._share("count_truncated", texts))


@dataclass(frozen=True, kw_only=True)
class TruncatingReranker(RemoteReranker):
    """One that reports pairs which are not read whole."""

    @property
    def truncation(self) -> str:
        return str(self.placed.submit("truncation").result())

    def are_truncated(self, query: str, documents: Sequence[str]) -> list[bool]:
        """For each document, whether it and the query are longer than the model reads at once."""
        futures = [
            self.placed.submit("are_truncated", query, part) for part in share(documents, len(self.placed.workers))
        ]
        return [cut for future in futures for cut in future.result()]


def place_encoder(workers: Workers, encoder: Encoder) -> Encoder:
    """The encoder on the workers, each of which makes it and finds its model before anything is encoded."""
    kind = TruncatingEncoder if _reports(encoder) else RemoteEncoder
    return kind(signature=encoder.signature, placed=_place(workers, encoder))


def place_reranker(workers: Workers, reranker: Reranker) -> Reranker:
    """The same of a reranker."""
    kind = TruncatingReranker if _reports(reranker) else RemoteReranker
    pointwise = isinstance(reranker, Pointwise) and reranker.pointwise
    return kind(signature=reranker.signature, pointwise=pointwise, placed=_place(workers, reranker))


def _reports(model: object) -> bool:
    """Whether it reports what it does not read whole. Before Python 3.12 isinstance would load the model here."""
    return inspect.getattr_static(model, "truncation", None) is not None


def share(texts: Sequence[str], workers: int) -> list[Sequence[str]]:
    """The texts in parts of about the same size for so many workers, of LEAST_TEXTS at least and MOST_TEXTS at most.

    >>> [len(part) for part in share(["text"] * 64, 3)]
    [22, 21, 21]
    """
    parts = max(1, min(workers, len(texts) // LEAST_TEXTS), math.ceil(len(texts) / MOST_TEXTS))
    ends = [round(len(texts) * part / parts) for part in range(parts + 1)]
    return [texts[start:end] for start, end in pairwise(ends)]


def _place(workers: Workers, model: Any) -> Placed:
    # Without a model that this process has loaded. What a user's module makes, workers make again.
    bare = replace(model) if is_dataclass(model) and not isinstance(model, type) else model
    return workers.place(partial(_find, bare), signature=model.signature)


def _find(model: T) -> T:
    """The encoder or reranker on a worker, if its model is there."""
    check_available(model)
    return model
