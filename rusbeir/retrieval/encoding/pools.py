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
from functools import cached_property, partial
from itertools import compress
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from rusbeir.retrieval.encoding.embedding_store import BLOCK_TEXTS
from rusbeir.retrieval.encoding.encoder import AnyEncoder, EncodesBlocks, EncodesPools, ReportsTruncation, stack
from rusbeir.text import batched

POOL_TEXTS = 16_384
POOL_CHARS = 32 << 20
"""A pool of long texts has fewer: its tokens are in memory."""
KEEP_SECONDS = 5.0
"""How often finished batches are written to disk."""
WRITE_SHARE = 0.05
"""The share of the time that writing blocks of texts may take: they are written more often where that is cheap."""

T = TypeVar("T")
WhileWanted: TypeAlias = Callable[[Iterable[Any]], Iterator[Any]]


class TextStore(Protocol):
    """What an EmbeddingStore and a WeightStore have in common."""

    def __len__(self) -> int: ...

    def check(self, answer: Any, texts: Sequence[str], encoder: str) -> Any:
        """The encoder's answer as rows to add."""
        ...

    def find_or_add(self, texts: Sequence[str], make: Callable[[Sequence[str]], Iterable[Any]]) -> list[int]:
        """The row of each text; those of missing ones are made first, in parts."""
        ...

    def find(self, texts: Sequence[str]) -> list[int | None]: ...

    def sum_seconds(self, texts: Sequence[str]) -> float | None:
        """What encoding those texts took; None where that of any is not known."""
        ...

    def keep_seconds(self, texts: Sequence[str], seconds: float) -> None: ...

    def read(self, rows: Sequence[int]) -> Any: ...

    def open_pool(self, name: str) -> Self: ...

    def clear(self) -> None: ...

    def remove(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The texts of a pool."""

    owners: list[int]
    """The number of each text's document or query."""
    texts: list[str]
    missing: list[str]
    """Those that were neither in the store nor in the pool before, each once."""
    tokens: Any
    """The tokens of the missing ones."""
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
    """Yield for some texts at a time their numbers, their rows in the store, and how many are too long for the model.

    items are numbers, of documents or queries, with their texts; report is called with how many numbers are done.
    waiting names the folder for the rows of unfinished pools. Raises as check and find_or_add do.
    """
    if isinstance(encoder, EncodesPools):
        pools = Pools(store, encoder, name, waiting=waiting, queries=queries)
        blocks = batched(items, POOL_TEXTS, chars=lambda item: len(item[1]), max_chars=POOL_CHARS)
        with contextlib.closing(read_ahead(partial(pools.read, blocks))) as ahead:
            for pool in ahead:
                yield pool.owners, pools.find_or_encode(pool, report), pool.over_length
                report(pool.owners[-1] + 1)
        pools.remove_waiting()
    else:
        yield from _encode_blocks(items, store, encoder, report, name=name, queries=queries)


def _encode_blocks(
    items: Iterable[tuple[int, str]],
    store: TextStore,
    encoder: AnyEncoder,
    report: Callable[[int], None],
    *,
    name: str,
    queries: bool,
) -> Iterator[tuple[list[int], list[int], int]]:
    """Encode with an encoder that gets blocks of texts; they start at the same texts in every run."""
    run: Callable[[Iterable[Sequence[str]]], Iterator[Any]]
    if isinstance(encoder, EncodesBlocks):
        run = partial(encoder.encode_blocks, queries=queries)
    else:
        run = partial(map, encoder.encode_queries if queries else encoder.encode_documents)
    blocks = (([owner for owner, _ in block], [text for _, text in block]) for block in batched(items, BLOCK_TEXTS))
    n_blocks = POOL_TEXTS // BLOCK_TEXTS
    for group in batched(blocks, n_blocks, chars=lambda block: sum(map(len, block[1])), max_chars=POOL_CHARS):

        def make(new: Sequence[str], group: list[tuple[list[int], list[str]]] = group) -> Iterator[Any]:
            left = set(new)
            parts = []
            for owners, texts in group:
                if part := [text for text in dict.fromkeys(texts) if text in left]:
                    parts.append((owners[-1] + 1, part))
                    left.difference_update(part)
            answers = run(part for _, part in parts)
            for (done, part), answer in zip(parts, answers, strict=True):
                yield store.check(answer, part, name)
                report(done)

        rows = store.find_or_add([text for _, texts in group for text in texts], lambda new: join_for_disk(make(new)))
        over_length = 0
        if isinstance(encoder, ReportsTruncation) and not queries:
            over_length = sum(encoder.count_truncated(texts) for _, texts in group)
        owners = [owner for owners, _ in group for owner in owners]
        yield owners, rows, over_length
        report(owners[-1] + 1)


def join_for_disk(parts: Iterator[Any]) -> Iterator[Any]:
    """Rows of several parts as one, as many as come while writing takes WRITE_SHARE of the time, or KEEP_SECONDS.

    Where the next part fails, those before it are returned first.
    """
    fresh: list[Any] = []
    written, pause = time.monotonic(), 0.0
    while True:
        try:
            part = next(parts, None)
        except BaseException:
            if fresh:
                yield stack(fresh)
            raise
        if part is not None:
            fresh.append(part)
        if fresh and (part is None or time.monotonic() - written >= pause):
            asked = time.monotonic()
            yield stack(fresh)
            fresh.clear()
            written = time.monotonic()
            pause = min(KEEP_SECONDS, (written - asked) / WRITE_SHARE)
        if part is None:
            return


def read_ahead(read: Callable[[WhileWanted], Iterator[T]]) -> Generator[T, None, None]:
    """What read(while_wanted) yields; the next is read in a thread while the caller works on one.

    Items that come through while_wanted end where the caller stops: Ctrl-C is not to wait for the rest of a pool.
    """
    stopped = threading.Event()

    def while_wanted(items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            if stopped.is_set():
                raise InterruptedError("nobody waits for this pool")
            yield item

    rest = read(while_wanted)
    with ThreadPoolExecutor(1) as thread:
        try:
            coming = thread.submit(next, rest, None)
            while (pool := coming.result()) is not None:
                coming = thread.submit(next, rest, None)
                yield pool
        finally:
            stopped.set()


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

    def read(self, blocks: Iterable[list[tuple[int, str]]], while_wanted: WhileWanted) -> Iterator[Pool]:
        """A pool for each block, for read_ahead: the last one is encoded while the next is read."""
        encoded_now: frozenset[str] = frozenset()
        for block in blocks:
            pool = self._read(block, encoded_now, while_wanted)
            encoded_now = frozenset(pool.missing)
            yield pool

    def _read(self, block: list[tuple[int, str]], encoded_now: frozenset[str], while_wanted: WhileWanted) -> Pool:
        texts = [text for _, text in block]
        rows = self._store.find(texts)
        new = (text for text, row in zip(texts, rows, strict=True) if row is None and text not in encoded_now)
        missing = list(dict.fromkeys(new))
        cut, fresh = set(), set(missing)
        tokens, over_length = None, 0
        with self._lock:
            # A model whose vectors are all in the store is not loaded.
            if missing:
                tokens = self._encoder.tokenize(while_wanted(missing), queries=self._queries)
                cut = set(compress(missing, tokens.over_length))
            if isinstance(self._encoder, ReportsTruncation) and not self._queries:
                over_length = sum(text in cut for text in texts)
                if others := [text for text in texts if text not in fresh]:
                    over_length += self._encoder.count_truncated(others)
        owners = [owner for owner, _ in block]
        return Pool(owners=owners, texts=texts, missing=missing, tokens=tokens, over_length=over_length)

    def find_or_encode(self, pool: Pool, report: Callable[[int], None]) -> list[int]:
        """The row of each text of the pool; missing ones are encoded first."""
        return self._store.find_or_add(pool.texts, lambda new: [self._encode(pool, new, report)])

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
                waiting.find_or_add(found, lambda new: [rows[[at[text] for text in new]]])
                fresh.clear()
            kept = time.monotonic()

        def keep(places: Any, rows: Any) -> None:
            nonlocal n_done
            found = [texts[place] for place in places]
            fresh.append((found, self._store.check(rows, found, self._name)))
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
