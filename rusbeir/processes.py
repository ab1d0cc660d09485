"""Do the same work in several processes: results in order, few batches in memory, no worker outliving its parent."""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

A = TypeVar("A")
B = TypeVar("B")

logger = logging.getLogger(__name__)

IDLE_SECONDS = 20
START_SECONDS = 0.1
"""Work that takes no longer is done without workers: starting one takes a fifth of a second of another processor."""
STARTED_SECONDS = 0.05
"""START_SECONDS where workers of earlier work are still there."""
BUSY_SHARE = 0.25
"""The share of the time that work must take for workers to pay: below it, something else is slow, as a service is."""
MAX_WORKERS = 4
"""More would wait for the process that hands out the work and takes in the results."""
AHEAD = 4
"""Batches that wait for each worker: this process may be busy with one of its own when a worker needs the next."""
_last_used = float("-inf")
"""When workers were last given a batch, by time.perf_counter."""


def cpu_count() -> int:
    """How many processors this process may use, with the limits of its container."""
    import loky

    return int(loky.cpu_count())


class Crew:
    """Does batches of work in that many worker processes; 1 is this one. With None, in this one until others pay.

    Worker processes pay when this process has worked for START_SECONDS, which is BUSY_SHARE of the time or more. It
    works on until they are there, and later where enough waits for them. If a worker dies, this process does the rest.
    """

    def __init__(self, processes: int | None = None) -> None:
        self.ahead = 0
        """How many batches must be under way for no worker to be idle."""
        # Asked for as one process, it is this one alone: 0 workers.
        self._workers = 0 if processes == 1 else processes
        self._at_once = processes is not None
        self._executor: Any = None
        self._ready: Future[None] | None = None
        self._given: deque[Future[Any]] = deque()
        """Batches with the workers, and perhaps some that are done."""
        self._began = time.perf_counter()
        self._busy = 0.0

    def submit(self, work: Callable[[A], B], batch: A) -> Future[B]:
        """The result of work(batch) to come; it has come already where this process did it. work must be importable.

        This process does it where there are no workers, and where it shares the work with them and enough waits.
        """
        global _last_used
        started = time.perf_counter()
        least = STARTED_SECONDS if started - _last_used < IDLE_SECONDS else START_SECONDS
        if self._workers is None and self._busy >= max(least, BUSY_SHARE * (started - self._began)):
            self._workers = min(cpu_count() - 1, MAX_WORKERS)
        if self._workers:
            try:
                if self._executor is None:
                    import loky

                    with warnings.catch_warnings():
                        # Another Crew may have workers that are still starting; loky waits for them and says so.
                        warnings.filterwarnings("ignore", "Trying to resize an executor", UserWarning)
                        self._executor = loky.get_reusable_executor(
                            max_workers=self._workers,
                            timeout=IDLE_SECONDS,
                            initializer=_end_with,
                            initargs=(os.getpid(),),
                        )
                    self._ready = None if self._at_once else self._executor.submit(_import, work)
                if self._ready is None or self._ready.done():
                    self.ahead = AHEAD * self._workers
                    while self._given and self._given[0].done():
                        self._given.popleft()
                    if self._at_once or len(self._given) < self.ahead:
                        _last_used = started
                        coming: Future[B] = self._executor.submit(work, batch)
                        self._given.append(coming)
                        return coming
            except BrokenProcessPool as error:
                self._give_up(error)
        done: Future[B] = Future()
        done.set_result(work(batch))
        self._busy += time.perf_counter() - started
        return done

    def result(self, work: Callable[[A], B], batch: A, future: Future[B]) -> B:
        """The result that submit promised, when it has come."""
        try:
            return future.result()
        except BrokenProcessPool as error:
            self._give_up(error)
            return work(batch)

    async def run(self, work: Callable[[A], B], batch: A) -> B:
        """The result of work(batch), during which other tasks of the event loop run; also where it is cancelled.

        What is in the batch may have been paid for: the caller gets the result, and is cancelled when it next waits.
        """
        # Imported here, as workers, which import this module too, need none.
        import asyncio

        future = self.submit(work, batch)
        try:
            if not future.done():
                await asyncio.wrap_future(future)
        except BrokenProcessPool:
            pass
        except asyncio.CancelledError:
            if task := asyncio.current_task():
                task.cancel()
            return work(batch)
        return self.result(work, batch, future)

    def _give_up(self, error: BrokenProcessPool) -> None:
        if self._workers:
            logger.warning("A worker process died (%s); this process does the rest.", error)
        self._workers = self.ahead = 0


def in_order(work: Callable[[A], B], batches: Iterable[A], processes: int | None = None) -> Iterator[B]:
    """The results of work(batch), in the order of the batches, by a Crew of that many processes.

    work must be importable.
    """
    crew = Crew(processes)
    waiting: deque[tuple[A, Future[B]]] = deque()
    try:
        for batch in batches:
            waiting.append((batch, crew.submit(work, batch)))
            while waiting and (waiting[0][1].done() or len(waiting) > crew.ahead):
                yield crew.result(work, *waiting[0])
                waiting.popleft()
        while waiting:
            yield crew.result(work, *waiting[0])
            waiting.popleft()
    finally:
        for _, future in waiting:
            future.cancel()


def _import(work: object) -> None:
    """Nothing: a worker that receives the work has imported what it needs."""


def _end_with(parent: int) -> None:
    """End this worker when its parent is gone: the workers of a killed job would otherwise wait for ever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
