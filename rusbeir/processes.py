"""Do the same work in several processes: results in order, few batches in memory, no worker outliving its parent."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from itertools import chain
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")

logger = logging.getLogger(__name__)

IDLE_SECONDS = 20


def cpu_count() -> int:
    """How many processors this process may use, with the limits of its container."""
    import loky

    return int(loky.cpu_count())


def in_order(work: Callable[[A], B], batches: Iterable[A], processes: int) -> Iterator[B]:
    """The results of work(batch), in the order of the batches, from that many processes; below 2 from this one.

    work must be importable. If a worker dies, this process does the rest.
    """
    import loky

    rest = iter(batches)
    if processes < 2:
        yield from map(work, rest)
        return
    executor = loky.get_reusable_executor(
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
        logger.warning("A worker process died (%s); this process does the rest.", error)
        yield from map(work, chain(list(waiting), rest))
    finally:
        for future in futures:
            future.cancel()


def _end_with(parent: int) -> None:
    """End this worker when its parent is gone: the workers of a killed job would otherwise wait for ever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
