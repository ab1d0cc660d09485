"""Do the same work in several processes: results in order, few batches in memory, no worker outlives its parent.

Also the memory of this process.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import os
import re
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, TypeVar

A = TypeVar("A")
B = TypeVar("B")

logger = logging.getLogger(__name__)

IDLE_SECONDS = 20
START_SECONDS = 0.1
"""Work that takes no longer is done without workers: to start one takes a fifth of a second of another processor."""
STARTED_SECONDS = 0.05
"""The value of START_SECONDS while workers of earlier work are still there."""
BUSY_SHARE = 0.25
"""The share of the time that work must take for workers to pay: below it, something else is slow, such as a service."""
MAX_WORKERS = 4
"""The most workers: more would wait for the process that hands out the work and takes in the results."""
AHEAD = 4
"""The batches that wait for each worker: this process may be computing when a worker needs the next batch."""
_TRACKER_IS_SILENT = "ignore:resource_tracker:UserWarning"
"""An option -W of Python for loky's resource tracker."""
_last_used = float("-inf")
"""When workers last got a batch, by time.perf_counter."""


def cpu_count() -> int:
    """Count the processors that this process may use, within the limits of its container."""
    import loky

    return int(loky.cpu_count())


class Crew:
    """Does batches of work in that many worker processes; with 1 in this process, with None here until workers pay.

    Workers pay once this process has worked for START_SECONDS, and for BUSY_SHARE of the time or more. It works until
    they have started, and later while enough batches wait for them. If a worker dies, this process does the rest.
    """

    def __init__(self, processes: int | None = None) -> None:
        self.ahead = 0
        """How many batches must be under way for no worker to be idle."""
        # One process is this process, without workers.
        self._workers = 0 if processes == 1 else processes
        self._at_once = processes is not None
        self._executor: Any = None
        self._ready: Future[None] | None = None
        self._submitted: deque[Future[Any]] = deque()
        """The batches that workers have, and perhaps some that are done."""
        self._began = time.perf_counter()
        self._busy = 0.0

    def submit(self, work: Callable[[A], B], batch: A) -> Future[B]:
        """Start work(batch), and return its future, which is done where this process did the work.

        This process works where there are no workers, or where enough batches wait for them. work must be importable.
        """
        global _last_used
        started = time.perf_counter()
        least = STARTED_SECONDS if started - _last_used < IDLE_SECONDS else START_SECONDS
        if self._workers is None and self._busy >= max(least, BUSY_SHARE * (started - self._began)):
            self._workers = min(cpu_count() - 1, MAX_WORKERS)
        if self._workers:
            try:
                if self._executor is None:
                    self._executor = _start_workers(self._workers)
                    self._ready = None if self._at_once else self._executor.submit(_import, work)
                if self._ready is None or self._ready.done():
                    self.ahead = AHEAD * self._workers
                    while self._submitted and self._submitted[0].done():
                        self._submitted.popleft()
                    if self._at_once or len(self._submitted) < self.ahead:
                        _last_used = started
                        coming: Future[B] = self._executor.submit(work, batch)
                        self._submitted.append(coming)
                        return coming
            except BrokenProcessPool as error:
                self._give_up(error)
        done: Future[B] = Future()
        done.set_result(work(batch))
        self._busy += time.perf_counter() - started
        return done

    def result(self, work: Callable[[A], B], batch: A, future: Future[B]) -> B:
        """Return the result of a future of submit when it is done."""
        try:
            return future.result()
        except BrokenProcessPool as error:
            self._give_up(error)
            return work(batch)

    async def run(self, work: Callable[[A], B], batch: A) -> B:
        """Return the result of work(batch) while other tasks of the event loop run, also to a cancelled caller.

        The batch may have been paid for: the caller gets the result, and is cancelled when it next waits.
        """
        # Workers, which import this module, too, do without asyncio.
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
    """Yield the results of work(batch), in the order of the batches, by a Crew of that many processes.

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


def reset_peak_rss() -> int | None:
    """Let `peak_rss` count from the resident size of now, and return that in bytes; None where it cannot be reset."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError, TypeError):
        # Pages that an earlier system freed would otherwise be used without growth.
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return peak_rss() or None


def peak_rss() -> int:
    """Return the peak resident size of this process since its start or the last reset, in bytes; 0 on Windows."""
    # On Linux getrusage includes the process that started this one; /proc has the peak of this one alone.
    with contextlib.suppress(OSError):
        if line := re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text()):
            return 1024 * int(line[1])
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def end_workers() -> None:
    """End the worker processes of this one, which is about to end without Python's clean-up."""
    from multiprocessing import active_children

    for worker in active_children():
        worker.terminate()


def _start_workers(n: int) -> Any:
    """Return the executor that all crews of this process share, with that many workers."""
    import loky
    from loky.backend import resource_tracker

    # Where this process is killed, another one gives back what it shared with its workers, and would report a leak.
    sys.warnoptions.append(_TRACKER_IS_SILENT)
    try:
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(_TRACKER_IS_SILENT)
    with warnings.catch_warnings():
        # Another Crew may have workers that are still starting; loky waits for them and says so.
        warnings.filterwarnings("ignore", "Trying to resize an executor", UserWarning)
        return loky.get_reusable_executor(
            max_workers=n, timeout=IDLE_SECONDS, initializer=_end_with, initargs=(os.getpid(),)
        )


def _import(work: object) -> None:
    """Do nothing: a worker that receives the work has imported what it needs."""


def _end_with(parent: int) -> None:
    """End this worker when its parent has ended: the workers of a killed job would otherwise wait for ever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
