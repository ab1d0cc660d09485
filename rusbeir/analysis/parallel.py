"""Many texts: in batches, and in several processes where that pays."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from itertools import chain

from joblib.externals.loky import cpu_count, get_reusable_executor

from rusbeir.analysis.chain import chain_of
from rusbeir.analysis.pieces import pack, unpack
from rusbeir.analysis.recipes import Recipe

logger = logging.getLogger(__name__)

BATCH_CHARS = 1 << 19
BATCH_TEXTS = 4096
SERIAL_CHARS = 1 << 22
"""Left to itself, analysis starts other processes only when a stream is longer than this."""
IDLE_SECONDS = 20


def analyzed_lines(recipe: Recipe, texts: Iterable[str], processes: int | None) -> Iterator[str]:
    """The terms of each text joined by single spaces, in order; holds a few batches at a time."""
    batches = _batches(texts)
    if processes is None:
        processes = cpu_count()
        chars = 0
        while chars < SERIAL_CHARS or processes < 2:
            batch = next(batches, None)
            if batch is None:
                return
            chars += sum(map(len, batch))
            yield from chain_of(recipe).lines(batch)
    if processes < 2:
        for batch in batches:
            yield from chain_of(recipe).lines(batch)
    else:
        yield from _parallel(recipe, batches, processes)


def _parallel(recipe: Recipe, batches: Iterator[list[str]], processes: int) -> Iterator[str]:
    executor = get_reusable_executor(
        max_workers=processes, timeout=IDLE_SECONDS, initializer=_end_with, initargs=(os.getpid(),)
    )
    waiting: deque[list[str]] = deque()
    futures: deque[Future[bytes]] = deque()

    def first() -> list[str]:
        lines = unpack(futures[0].result())
        futures.popleft()
        waiting.popleft()
        return lines

    try:
        for batch in batches:
            waiting.append(batch)
            futures.append(executor.submit(_remote, recipe, pack(batch)))
            if len(futures) > 2 * processes:
                yield from first()
        while futures:
            yield from first()
    except BrokenProcessPool as error:
        logger.warning("A worker process died (%s); the remaining texts are analysed in this one.", error)
        for batch in chain(list(waiting), batches):
            yield from chain_of(recipe).lines(batch)
    finally:
        for future in futures:
            future.cancel()


def _end_with(parent: int) -> None:
    """Let this worker end when its parent is gone: a killed job would leave its workers waiting for ever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _remote(recipe: Recipe, packed: bytes) -> bytes:
    return chain_of(recipe).block(packed)


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    chars = 0
    for text in texts:
        batch.append(text)
        chars += len(text)
        if chars >= BATCH_CHARS or len(batch) >= BATCH_TEXTS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch
