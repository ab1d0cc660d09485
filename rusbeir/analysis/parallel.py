"""Many texts: in batches, and in several processes where that pays."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from itertools import chain

from joblib.externals.loky import get_reusable_executor

from rusbeir.analysis.chain import chain_of
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
    executor = get_reusable_executor(max_workers=processes, timeout=IDLE_SECONDS)
    running: deque[tuple[list[str], Future[bytes]]] = deque()
    try:
        for batch in batches:
            running.append((batch, executor.submit(_remote, recipe, _packed(batch))))
            if len(running) > 2 * processes:
                yield from _unpacked(running[0][1].result())
                running.popleft()
        while running:
            yield from _unpacked(running[0][1].result())
            running.popleft()
    except BrokenProcessPool as error:
        logger.warning("A worker process died (%s); the remaining texts are analysed in this one.", error)
        for batch in chain([batch for batch, _ in running], batches):
            yield from chain_of(recipe).lines(batch)
    finally:
        for _, future in running:
            future.cancel()


def _remote(recipe: Recipe, packed: bytes) -> bytes:
    return _packed(chain_of(recipe).lines(_unpacked(packed)))


def _packed(texts: list[str]) -> bytes:
    """Texts as they travel between processes: one block of UTF-16 is made and read far faster than many strings.

    A line break inside a text becomes a space, which is the same to every analyzer.
    """
    return "\n".join([text.replace("\n", " ") for text in texts]).encode("utf-16-le", "surrogatepass")


def _unpacked(packed: bytes) -> list[str]:
    return packed.decode("utf-16-le", "surrogatepass").split("\n")


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
