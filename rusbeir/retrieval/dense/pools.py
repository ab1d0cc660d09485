"""Texts encoded in pools of thousands, in batches of similar length, while a thread tokenises the next pool.

The rows of a pool wait in a store of their own until all are there, and are then added in the order of the texts. So
the bytes of the store do not depend on the order of the batches, and a kill loses no more than KEEP_SECONDS of work.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, Protocol, Self

from rusbeir.retrieval.dense.embedding_store import BLOCK_TEXTS
from rusbeir.retrieval.dense.encoder import AnyEncoder, EncodesPools, ReportsTruncation, stack
from rusbeir.text import batched

POOL_TEXTS = 16_384
POOL_CHARS = 32 << 20
"""A pool of long texts has fewer: its tokens are in memory."""
KEEP_SECONDS = 5.0
"""How often finished batches are written to disk."""


class TextStore(Protocol):
    """What an EmbeddingStore and a WeightStore have in common."""

    def __len__(self) -> int: ...

    def find_or_encode(self, texts: Sequence[str], encode: Callable[[Sequence[str]], Any], encoder: str) -> list[int]:
        """The row of each text; missing ones are encoded first."""
        ...

    def find(self, texts: Sequence[str]) -> list[int | None]: ...

    def read(self, rows: Sequence[int]) -> Any: ...

    def open_pool(self, name: str) -> Self: ...

    def clear(self) -> None: ...

    def remove(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The texts of a pool."""

    owners: list[int]
    """Of each text, the number of its document or query."""
    texts: list[str]
    missing: list[str]
    """Those that were neither in the store nor in the pool before, each once."""
    tokens: Any
    """Of the missing ones."""
    over_length: int
    """How many of all texts are longer than the model reads; 0 for queries."""


def encode_in_order(
    items: Iterable[tuple[int, str]],
    store: TextStore,
    encoder: AnyEncoder,
    report: Callable[[int], None],
    *,
    name: str,
    waiting: str,
    queries: bool = False,
) -> Generator[tuple[list[int], list[int], int], None, None]:
    """Of some texts at a time: their numbers, their rows in the store, how many are longer than the model reads.

    items are numbers, of documents or queries, with their texts; report is called with how many numbers are done.
    waiting names the folder for the rows of unfinished pools. Raises as find_or_encode does.
    """
    if isinstance(encoder, EncodesPools):
        pools = Pools(store, encoder, name, waiting=waiting, queries=queries)
        blocks = batched(items, POOL_TEXTS, chars=lambda item: len(item[1]), max_chars=POOL_CHARS)
        with contextlib.closing(pools.tokenize_ahead(blocks)) as ahead:
            for pool in ahead:
                yield pool.owners, pools.find_or_encode(pool, report), pool.over_length
                report(pool.owners[-1] + 1)
        pools.remove_waiting()
        return
    encode = encoder.encode_queries if queries else encoder.encode_documents
    # Blocks start at the same texts in every run.
    for block in batched(items, BLOCK_TEXTS):
        owners, texts = [owner for owner, _ in block], [text for _, text in block]
        rows = store.find_or_encode(texts, encode, name)
        over_length = encoder.count_truncated(texts) if isinstance(encoder, ReportsTruncation) and not queries else 0
        yield owners, rows, over_length
        report(owners[-1] + 1)


class Pools:
    """Pools of texts on their way into a store; name is that of the system in messages."""

    def __init__(self, store: TextStore, encoder: EncodesPools, name: str, *, waiting: str, queries: bool) -> None:
        self._store = store
        self._encoder = encoder
        self._name = name
        self._waiting = waiting
        self._queries = queries
        # A tokenizer serves one thread at a time.
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def tokenize_ahead(self, blocks: Iterable[list[tuple[int, str]]]) -> Generator[Pool, None, None]:
        """A pool for each block; the next is tokenised while the caller works on one."""
        rest = iter(blocks)
        with ThreadPoolExecutor(1) as thread:
            try:
                coming = thread.submit(self._read, rest, frozenset())
                while (pool := coming.result()) is not None:
                    coming = thread.submit(self._read, rest, frozenset(pool.missing))
                    yield pool
            finally:
                # Ctrl-C is not to wait for the rest of a pool.
                self._stopped.set()

    def _read(self, rest: Iterator[list[tuple[int, str]]], encoded_now: frozenset[str]) -> Pool | None:
        block = next(rest, None)
        if block is None:
            return None
        texts = [text for _, text in block]
        rows = self._store.find(texts)
        new = (text for text, row in zip(texts, rows, strict=True) if row is None and text not in encoded_now)
        missing = list(dict.fromkeys(new))
        cut, fresh = set(), set(missing)
        tokens, over_length = None, 0
        with self._lock:
            # A model whose vectors are all in the store is not loaded.
            if missing:
                tokens = self._encoder.tokenize(self._while_wanted(missing), queries=self._queries)
                cut = set(compress(missing, tokens.over_length))
            if isinstance(self._encoder, ReportsTruncation) and not self._queries:
                over_length = sum(text in cut for text in texts)
                if others := [text for text in texts if text not in fresh]:
                    over_length += self._encoder.count_truncated(others)
        owners = [owner for owner, _ in block]
        return Pool(owners=owners, texts=texts, missing=missing, tokens=tokens, over_length=over_length)

    def _while_wanted(self, texts: Iterable[str]) -> Iterator[str]:
        for text in texts:
            if self._stopped.is_set():
                raise InterruptedError("nobody waits for this pool")
            yield text

    def find_or_encode(self, pool: Pool, report: Callable[[int], None]) -> list[int]:
        """The row of each text of the pool; missing ones are encoded first."""
        return self._store.find_or_encode(pool.texts, lambda new: self._encode(pool, new, report), self._name)

    def _encode(self, pool: Pool, texts: Sequence[str], report: Callable[[int], None]) -> Any:
        """The rows of those texts, computed or waiting since a kill; the store is locked meanwhile."""
        tokens = pool.tokens
        if texts != pool.missing:
            # Another process has added some of them.
            with self._lock:
                tokens = self._encoder.tokenize(texts, queries=self._queries)
        waiting = self._open_waiting
        done = {place for place, row in enumerate(waiting.find(texts)) if row is not None}
        if not done:
            waiting.clear()
        n_done = 0
        fresh: list[tuple[list[str], Any]] = []
        kept = time.monotonic()

        def write() -> None:
            nonlocal kept
            if fresh:
                found = [text for part, _ in fresh for text in part]
                rows = stack([rows for _, rows in fresh])
                at = {text: row for row, text in enumerate(found)}
                waiting.find_or_encode(found, lambda new: rows[[at[text] for text in new]], self._name)
                fresh.clear()
            kept = time.monotonic()

        def keep(places: Any, rows: Any) -> None:
            nonlocal n_done
            fresh.append(([texts[place] for place in places], rows))
            n_done += len(places)
            # The longest texts come first, so this is the share of the texts, not of their order.
            report(pool.owners[min(len(pool.texts) - 1, (len(done) + n_done) * len(pool.texts) // len(texts))])
            if time.monotonic() - kept > KEEP_SECONDS:
                write()

        try:
            self._encoder.encode_tokens(tokens, done, keep)
        finally:
            write()
        return waiting.read([row for row in waiting.find(texts) if row is not None])

    @cached_property
    def _open_waiting(self) -> TextStore:
        return self._store.open_pool(self._waiting)

    def remove_waiting(self) -> None:
        """Remove what waited, once all pools are in the store."""
        if "_open_waiting" in self.__dict__:
            self._open_waiting.remove()
