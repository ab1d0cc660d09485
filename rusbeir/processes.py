"""The same work in several processes: results in order, a few batches at a time, no worker outliving its parent."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from typing import TypeVar

from joblib.externals.loky import cpu_count as cpu_count
from joblib.externals.loky import get_reusable_executor

A = TypeVar("A")
B = TypeVar("B")

logger = logging.getLogger(__name__)

IDLE_SECONDS = 20


def batched(items: Iterable[A], size: int) -> Iterator[list[A]]:
    """The items in lists of that size, read as they are needed; the last list may be shorter."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def in_order(work: Callable[[A], B], batches: Iterable[A], processes: int) -> Iterator[B]:
    """work of each batch, in order, done by that many processes; below 2 in this one. work must be importable.

    Where a worker dies, this process does the rest.
    """
    rest = iter(batches)
    if processes < 2:
        yield from map(work, rest)
        return
    executor = get_reusable_executor(
        max_workers=processes, timeout=IDLE_SECONDS, initializer=_end_with, initargs=(os.getpid(),)
    )
    waiting: deque[A] = deque()
    futures: deque[Future[B]] = deque()

    def first() -> B:
        result = futures[0].result()
        futures.popleft()
        waiting.popleft()
        return result

    try:
        for batch in rest:
            waiting.append(batch)
            futures.append(executor.submit(work, batch))
            if len(futures) > 2 * processes:
                yield first()
        while futures:
            yield first()
    except BrokenProcessPool as error:
        logger.warning("A worker process died (%s); the rest is done in this one.", error)
        yield from map(work, chain(list(waiting), rest))
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
