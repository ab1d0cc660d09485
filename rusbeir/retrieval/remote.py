"""Let encoders and rerankers compute on the workers of a cluster, while stores and caches stay with this process."""

from __future__ import annotations

import asyncio
import inspect
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, is_dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from rusbeir.cluster import Deployed, Workers
from rusbeir.retrieval.encoding.encoder import Encoder, EncodesPools, Vectors, collect, gather
from rusbeir.retrieval.models.batches import CHUNK_TEXTS
from rusbeir.retrieval.rerank.reranker import Pointwise, Reranker, ScoresPools, score_alone
from rusbeir.retrieval.system import check_available
from rusbeir.text import batched

T = TypeVar("T")

LEAST_TEXTS = 8
"""Fewer texts are not worth a call of their own."""
MOST_TEXTS = 1024
"""The most texts of one call; a worker that dies has computed a call in vain."""
PIECE_SECONDS = 2.0
"""The time that a worker should take for one call's batches of a pool."""
CALLS_AT_ONCE = 2
"""The pieces of a pool that a worker has: one that it computes, and one that waits there."""


@dataclass(frozen=True, kw_only=True)
class RemoteEncoder:
    """Sends whole blocks of texts to workers, so that they compute what this process would."""

    signature: str
    deployed: Deployed

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, dim], rows L2-normalised, in the order of the texts."""
        vectors: Vectors = self.deployed.submit("encode_queries", texts).result()
        return vectors

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, dim], rows L2-normalised, in the order of the texts."""
        vectors: Vectors = self.deployed.submit("encode_documents", texts).result()
        return vectors

    def encode_blocks(self, blocks: Iterable[Sequence[str]], *, queries: bool) -> Iterator[Any]:
        """Yield what encode_queries or encode_documents returns for each block, in their order."""
        return self.deployed.in_order("encode_queries" if queries else "encode_documents", blocks)


@dataclass(frozen=True, kw_only=True)
class TruncatingEncoder(RemoteEncoder):
    """Reports, in addition, texts that are not read whole."""

    @property
    def truncation(self) -> str:
        return str(self.deployed.submit("truncation").result())

    def count_truncated(self, texts: Sequence[str]) -> int:
        """Count the documents that are longer than the model reads at once."""
        return sum(_share(self.deployed, "count_truncated", texts))


@dataclass(frozen=True, kw_only=True)
class RemoteReranker:
    """Shares documents out among workers, or whole lists where a score depends on all of a list."""

    signature: str
    pointwise: bool
    deployed: Deployed

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """Return one number per document, in their order."""
        if not self.pointwise:
            return list(self.deployed.submit("score", query, documents).result())
        return [score for part in _share(self.deployed, "score", documents, query) for score in part]


@dataclass(frozen=True, kw_only=True)
class TruncatingReranker(RemoteReranker):
    """Reports, in addition, pairs that are not read whole."""

    @property
    def truncation(self) -> str:
        return str(self.deployed.submit("truncation").result())

    def are_truncated(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Return for each document whether it and the query are longer than the model reads at once."""
        return [cut for part in _share(self.deployed, "are_truncated", documents, query) for cut in part]


@dataclass(frozen=True, kw_only=True)
class RemotePools:
    """Lets workers tokenise texts, and sends them the tokens in whole batches.

    So they compute the batches that this process would, and no vector depends on the worker that computed it.
    """

    signature: str
    deployed: Deployed

    @property
    def truncation(self) -> str:
        return str(self.deployed.submit("truncation").result())

    def read(self, items: Iterable[Any], method: str) -> Any:
        """Tokenise all texts, or pairs, by that method of a worker."""
        parts = list(self.deployed.in_order(method, batched(items, CHUNK_TEXTS)))
        return type(parts[0]).join(parts)

    def compute(self, tokens: Any, done: Set[int], keep: Callable[[Any, Any], None]) -> None:
        """Call keep(indices, rows) for batches that are not done, as many at a time as take about PIECE_SECONDS."""
        batches = deque(batch for batch in tokens.batches() if not done >= set(batch.tolist()))
        most = CALLS_AT_ONCE * len(self.deployed.workers)
        flying: dict[Future[Any], Any] = {}
        size = 1
        try:
            while batches or flying:
                while batches and len(flying) < most:
                    # The last pieces are small, so that no worker waits long for another.
                    n_batches = min(size, max(1, len(batches) // most))
                    piece = np.concatenate([batches.popleft() for _ in range(n_batches)])
                    flying[self.deployed.submit("compute", tokens.take(piece), n_batches)] = piece
                for future in wait(flying, return_when=FIRST_COMPLETED).done:
                    piece = flying.pop(future)
                    rows, batch_seconds = future.result()
                    keep(piece, rows)
                    size = max(1, int(PIECE_SECONDS / batch_seconds))
        finally:
            for future in flying:
                future.cancel()


@dataclass(frozen=True, kw_only=True)
class PoolEncoder(RemotePools):
    """Encodes pools of texts on workers."""

    def tokenize(self, texts: Iterable[str], *, queries: bool) -> Any:
        """Return what the model reads of each text."""
        return self.read(texts, "tokenize_queries" if queries else "tokenize_documents")

    def encode_tokens(self, tokens: Any, done: Set[int], keep: Callable[[Any, Any], None]) -> None:
        """Call keep(indices, rows) for batches that are not done."""
        self.compute(tokens, done, keep)

    def encode_queries(self, texts: Sequence[str]) -> Any:
        """Return a row for each text."""
        return collect(self, self.tokenize(texts, queries=True))

    def encode_documents(self, texts: Sequence[str]) -> Any:
        """Return a row for each text."""
        return collect(self, self.tokenize(texts, queries=False))

    def count_truncated(self, texts: Sequence[str]) -> int:
        """Count the documents that are longer than the model reads at once."""
        return sum(_share(self.deployed, "count_truncated", texts))


@dataclass(frozen=True, kw_only=True)
class PoolReranker(RemotePools):
    """Scores pools of pairs on workers."""

    pointwise: bool = True

    def tokenize_pairs(self, pairs: Iterable[tuple[str, str]]) -> Any:
        """Return what the model reads of each pair."""
        return self.read(pairs, "tokenize_pairs")

    def score_tokens(self, tokens: Any, keep: Callable[[Any, Any], None]) -> None:
        """Call keep(indices, scores) for all batches."""
        self.compute(tokens, frozenset(), keep)

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """Return one number per document, in their order."""
        return score_alone(self, query, documents)

    def are_truncated(self, query: str, documents: Sequence[str]) -> list[bool]:
        """Return for each document whether it and the query are longer than the model reads at once."""
        return list(self.deployed.submit("are_truncated", query, documents).result())


class PoolServer:
    """Serves a model of pools on a worker: one thread tokenises while another computes, as in one process."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._tokenizing, self._computing = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._loaded: Future[Any] | None = None
        self.signature = model.signature

    @property
    def truncation(self) -> Awaitable[str]:
        return self._read(lambda: str(self._model.truncation))

    def tokenize_queries(self, texts: list[str]) -> Awaitable[Any]:
        return self._read(partial(self._model.tokenize, texts, queries=True))

    def tokenize_documents(self, texts: list[str]) -> Awaitable[Any]:
        return self._read(partial(self._model.tokenize, texts, queries=False))

    def tokenize_pairs(self, pairs: list[tuple[str, str]]) -> Awaitable[Any]:
        return self._read(partial(self._model.tokenize_pairs, pairs))

    def count_truncated(self, texts: Sequence[str]) -> Awaitable[int]:
        return self._read(partial(self._model.count_truncated, texts))

    def are_truncated(self, query: str, documents: Sequence[str]) -> Awaitable[list[bool]]:
        return self._read(partial(self._model.are_truncated, query, documents))

    async def compute(self, tokens: Any, n_batches: int) -> tuple[Any, float]:
        """Return the rows of the tokens, in their order, and the seconds that a batch took."""
        if self._loaded is None:
            # Both threads would load the model.
            self._loaded = self._tokenizing.submit(self._load)
        await asyncio.wrap_future(self._loaded)
        return await asyncio.wrap_future(self._computing.submit(self._compute, tokens, n_batches))

    def _read(self, read: Callable[[], T]) -> Awaitable[T]:
        return asyncio.wrap_future(self._tokenizing.submit(read))

    def _load(self) -> None:
        if isinstance(self._model, EncodesPools):
            self._model.tokenize([""], queries=False)
        else:
            self._model.tokenize_pairs([("", "")])

    def _compute(self, tokens: Any, n_batches: int) -> tuple[Any, float]:
        began = time.perf_counter()
        if isinstance(self._model, EncodesPools):
            rows = collect(self._model, tokens)
        else:
            rows = gather(partial(self._model.score_tokens, tokens))
        return rows, (time.perf_counter() - began) / n_batches


def deploy_encoder(workers: Workers, encoder: Encoder) -> Encoder:
    """Put the encoder on the workers, each of which makes it and finds its model before anything is encoded."""
    if isinstance(encoder, EncodesPools):
        return PoolEncoder(signature=encoder.signature, deployed=_deploy(workers, encoder, pools=True))
    kind = TruncatingEncoder if _reports(encoder) else RemoteEncoder
    return kind(signature=encoder.signature, deployed=_deploy(workers, encoder))


def deploy_reranker(workers: Workers, reranker: Reranker) -> Reranker:
    """Put the reranker on the workers, as `deploy_encoder` does."""
    if isinstance(reranker, ScoresPools):
        return PoolReranker(signature=reranker.signature, deployed=_deploy(workers, reranker, pools=True))
    kind = TruncatingReranker if _reports(reranker) else RemoteReranker
    pointwise = isinstance(reranker, Pointwise) and reranker.pointwise
    return kind(signature=reranker.signature, pointwise=pointwise, deployed=_deploy(workers, reranker))


def _reports(model: object) -> bool:
    """Return whether it reports what it does not read whole. Before Python 3.12 isinstance would load the model."""
    return inspect.getattr_static(model, "truncation", None) is not None


def share(texts: Sequence[str], workers: int) -> list[Sequence[str]]:
    """Cut texts into parts of about the same size for so many workers, each of LEAST_TEXTS to MOST_TEXTS.

    >>> [len(part) for part in share(["text"] * 64, 3)]
    [22, 21, 21]
    """
    parts = max(1, min(workers, len(texts) // LEAST_TEXTS), math.ceil(len(texts) / MOST_TEXTS))
    ends = [round(len(texts) * part / parts) for part in range(parts + 1)]
    return [texts[start:end] for start, end in pairwise(ends)]


def _share(deployed: Deployed, method: str, texts: Sequence[str], *before: Any) -> list[Any]:
    """Return what the method returns for parts of the texts, in their order."""
    futures = [deployed.submit(method, *before, part) for part in share(texts, len(deployed.workers))]
    return [future.result() for future in futures]


def _deploy(workers: Workers, model: Any, *, pools: bool = False) -> Deployed:
    # The copy lacks the model that this process may have loaded. What a user's module makes, workers make again.
    bare = replace(model) if is_dataclass(model) and not isinstance(model, type) else model
    # With pools, one call tokenises while another computes.
    at_once = CALLS_AT_ONCE if pools else 1
    return workers.deploy(partial(_find, bare, pools), signature=model.signature, at_once=at_once)


def _find(model: Any, pools: bool) -> Any:
    """Return the encoder or reranker on a worker. Raises BackendError where its model is missing there."""
    check_available(model)
    return PoolServer(model) if pools else model
