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
from rusbeir.types import Progress, silent

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
    """Has rows by the content of their texts, as an EmbeddingStore and a WeightStore do."""

    @property
    def read_texts(self) -> int:
        """The texts of a pool whose rows fit into memory together."""
        ...

    def __len__(self) -> int: ...

    def check(self, answer: Any, texts: Sequence[str], encoder: str) -> Any:
        """Return the encoder's answer as rows to add."""
        ...

    def find_or_add(self, texts: Sequence[str], make: Callable[[Sequence[str]], Iterable[Any]]) -> list[int]:
        """Return the row of each text; those of missing texts are made first, in parts."""
        ...

    def find(self, texts: Sequence[str]) -> list[int | None]: ...

    def sum_seconds(self, texts: Sequence[str]) -> float | None:
        """Return the seconds that encoding those texts took; None where those of any text are not known."""
        ...

    def keep_seconds(self, texts: Sequence[str], seconds: float) -> None: ...

    def read(self, rows: Sequence[int]) -> Any: ...

    def open_pool(self, name: str) -> Self: ...

    def clear(self) -> None: ...

    def remove(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """An encoder, and the store that keeps its rows."""

    store: TextStore
    encoder: AnyEncoder
    name: str
    """The name of the system in messages."""
    progress: Progress = silent


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The texts of a pool."""

    owners: list[int]
    """The number of each text's document or query."""
    texts: list[str]
    missing: list[str]
    """The texts that are neither in the store nor in the pool before, each once."""
    tokens: Any
    """The tokens of the missing texts."""
    over_length: int
    """How many of all texts are longer than the model reads; 0 for queries."""


def encode_in_order(
    items: Iterable[tuple[int, str]],
    encoding: Encoding,
    report: Callable[[int], None],
    *,
    waiting: str,
    queries: bool = False,
) -> Generator[tuple[list[int], list[int], int], None, None]:
    """Yield for some texts at a time their numbers, their rows in the store, and how many are too long for the model.

    items are numbers, of documents or queries, with their texts; report is called with how many numbers are done.
    waiting names the folder for the rows of unfinished pools. Raises as check and find_or_add do.
    """
    if isinstance(encoding.encoder, EncodesPools):
        pools = Pools(encoding, encoding.encoder, waiting=waiting, queries=queries)
        blocks = batched(items, POOL_TEXTS, chars=lambda item: len(item[1]), max_chars=POOL_CHARS)
        with contextlib.closing(read_ahead(partial(pools.read, blocks))) as ahead:
            for pool in ahead:
                yield pool.owners, pools.find_or_encode(pool, report), pool.over_length
                report(pool.owners[-1] + 1)
        pools.remove_waiting()
    else:
        yield from _encode_blocks(items, encoding, report, queries=queries)


def _encode_blocks(
    items: Iterable[tuple[int, str]], encoding: Encoding, report: Callable[[int], None], *, queries: bool
) -> Iterator[tuple[list[int], list[int], int]]:
    """Encode with an encoder that gets blocks of texts; they start at the same texts in every run."""
    store, encoder = encoding.store, encoding.encoder
    run: Callable[[Iterable[Sequence[str]]], Iterator[Any]]
    if isinstance(encoder, EncodesBlocks):
        run = partial(encoder.encode_blocks, queries=queries)
    else:
        run = partial(map, encoder.encode_queries if queries else encoder.encode_documents)
    blocks = (([owner for owner, _ in block], [text for _, text in block]) for block in batched(items, BLOCK_TEXTS))
    n_blocks = POOL_TEXTS // BLOCK_TEXTS
    for group in batched(blocks, n_blocks, chars=lambda block: sum(map(len, block[1])), max_chars=POOL_CHARS):

        def make(new: Sequence[str], group: list[tuple[list[int], list[str]]] = group) -> Iterator[Any]:
            missing = set(new)
            parts = []
            for owners, texts in group:
                if part := [text for text in dict.fromkeys(texts) if text in missing]:
                    parts.append((owners[-1] + 1, part))
                    missing.difference_update(part)
            answers = run(part for _, part in parts)
            for (done, part), answer in zip(parts, answers, strict=True):
                yield store.check(answer, part, encoding.name)
                report(done)

        rows = store.find_or_add([text for _, texts in group for text in texts], lambda new: join_for_disk(make(new)))
        over_length = 0
        if isinstance(encoder, ReportsTruncation) and not queries:
            over_length = sum(encoder.count_truncated(texts) for _, texts in group)
        owners = [owner for owners, _ in group for owner in owners]
        yield owners, rows, over_length
        report(owners[-1] + 1)


def join_for_disk(parts: Iterator[Any]) -> Iterator[Any]:
    """Join the parts that come within KEEP_SECONDS, or sooner where writing takes less than WRITE_SHARE of the time.

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
            started = time.monotonic()
            yield stack(fresh)
            fresh.clear()
            written = time.monotonic()
            pause = min(KEEP_SECONDS, (written - started) / WRITE_SHARE)
        if part is None:
            return


def read_ahead(read: Callable[[WhileWanted], Iterator[T]]) -> Generator[T, None, None]:
    """Yield what read(while_wanted) yields; a thread reads the next while the caller works on the last.

    Items that come through while_wanted end when the caller stops: Ctrl-C must not wait for the rest of a pool.
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
    """Encodes pools of texts into a store."""

    def __init__(self, encoding: Encoding, encoder: EncodesPools, *, waiting: str, queries: bool) -> None:
        self._store = encoding.store
        self._encoder = encoder
        self._name = encoding.name
        self._waiting = waiting
        self._queries = queries
        # A tokenizer serves one thread at a time.
        self._lock = threading.Lock()

    def read(self, blocks: Iterable[list[tuple[int, str]]], while_wanted: WhileWanted) -> Iterator[Pool]:
        """Yield a pool for each block, for read_ahead: one is encoded while the next is read."""
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
        """Return the row of each text of the pool; missing texts are encoded first."""
        return self._store.find_or_add(pool.texts, lambda new: self._encode(pool, new, report))

    def _encode(self, pool: Pool, texts: Sequence[str], report: Callable[[int], None]) -> Iterator[Any]:
        """Yield the rows of those texts, which are computed or wait since a kill, while the store is locked."""
        tokens = pool.tokens
        if texts != pool.missing:
            # Another process has added some of them.
            with self._lock:
                tokens = self._encoder.tokenize(texts, queries=self._queries)
        waiting = self._open_waiting
        done = {index for index, row in enumerate(waiting.find(texts)) if row is not None}
        if not done:
            waiting.clear()
        n_done = 0
        fresh: list[tuple[list[str], Any]] = []
        written = time.monotonic()

        def write() -> None:
            nonlocal written
            if fresh:
                fresh_texts = [text for part, _ in fresh for text in part]
                rows = stack([rows for _, rows in fresh])
                row_of = {text: row for row, text in enumerate(fresh_texts)}
                waiting.find_or_add(fresh_texts, lambda new: [rows[[row_of[text] for text in new]]])
                fresh.clear()
            written = time.monotonic()

        def keep(indices: Any, rows: Any) -> None:
            nonlocal n_done
            batch = [texts[index] for index in indices]
            fresh.append((batch, self._store.check(rows, batch, self._name)))
            n_done += len(indices)
            # The longest texts come first, so this is the share of the texts, not of their order.
            report(pool.owners[min(len(pool.texts) - 1, (len(done) + n_done) * len(pool.texts) // len(texts))])
            if time.monotonic() - written > KEEP_SECONDS:
                write()

        try:
            self._encoder.encode_tokens(tokens, done, keep)
        finally:
            write()
        rows = [row for row in waiting.find(texts) if row is not None]
        for part in batched(rows, waiting.read_texts):
            yield waiting.read(part)

    @cached_property
    def _open_waiting(self) -> TextStore:
        return self._store.open_pool(self._waiting)

    def remove_waiting(self) -> None:
        """Remove what waited, once all pools are in the store."""
        if "_open_waiting" in self.__dict__:
            self._open_waiting.remove()
