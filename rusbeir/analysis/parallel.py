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

from joblib.externals.loky import get_reusable_executor

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
        processes = len(os.sched_getaffinity(0))
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
    running: deque[tuple[list[str], Future[bytes]]] = deque()
    try:
        for batch in batches:
            running.append((batch, executor.submit(_remote, recipe, pack(batch))))
            if len(running) > 2 * processes:
                yield from unpack(running[0][1].result())
                running.popleft()
        while running:
            yield from unpack(running[0][1].result())
            running.popleft()
    except BrokenProcessPool as error:
        logger.warning("A worker process died (%s); the remaining texts are analysed in this one.", error)
        for batch in chain([batch for batch, _ in running], batches):
            yield from chain_of(recipe).lines(batch)
    finally:
        for _, future in running:
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
