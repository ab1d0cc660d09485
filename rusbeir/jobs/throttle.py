"""The pace of requests, back-off, repeats, and the circuit breaker that stops them."""

from __future__ import annotations

import asyncio
import math
import tomllib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, TypeVar

from aiolimiter import AsyncLimiter
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from rusbeir.errors import BackendError, BadInput
from rusbeir.storage import data_folder
from rusbeir.text import shorten

T = TypeVar("T")

_PASSING = {408: "timeout", 409: "server", 425: "server", 429: "rate-limited", 529: "rate-limited"}
"""HTTP status -> the reason of Transient; those from 500 on that are not here have the reason server."""
MAX_USELESS = 50
"""Texts in a row without one valid answer, after which the work is stopped."""
_SHOWN_CHARS = 200


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of a service, and how patient to be with it. Raises BadInput for impossible values."""

    requests_per_second: float | None = None
    """Requests are sent evenly, never in bursts; None sends them as fast as answers come."""
    concurrency: int = 1
    retries: int = 6
    """How often a failed request is sent again before it is given up."""
    timeout_seconds: float = 60.0
    first_wait_seconds: float = 1.0
    """The wait before the first retry, doubled for each further one; a random part of up to as much is added."""
    max_wait_seconds: float = 120.0
    """The longest wait between two retries; a server that asks for more stops the job."""
    breaker: int = 10
    """The job stops after so many failed requests in a row. Those under way at the same time count as one."""

    def __post_init__(self) -> None:
        for name, least in (("concurrency", 1), ("retries", 0), ("breaker", 1)):
            value = getattr(self, name)
            if type(value) is not int:
                raise BadInput(f"{name} is {value}: it must be a whole number.")
            if value < least:
                raise BadInput(f"{name} is {value}: it must be at least {least}.")
        for name in ("requests_per_second", "timeout_seconds"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and 0 < value < math.inf):
                raise BadInput(f"{name} is {value}: it must be a number above 0.")
        waits = self.first_wait_seconds, self.max_wait_seconds
        if not (all(isinstance(wait, int | float) for wait in waits) and 0 <= waits[0] <= waits[1] < math.inf):
            raise BadInput(
                f"The waits are {self.first_wait_seconds} to {self.max_wait_seconds} seconds: "
                "first_wait_seconds must be at least 0 and at most max_wait_seconds."
            )


@cache
def read_backends() -> Mapping[str, Mapping[str, Any]]:
    """Read the tables of translation/backends.toml: what each service takes and allows."""
    return tomllib.loads((data_folder("translation") / "backends.toml").read_text(encoding="utf-8"))


class Transient(Exception):
    """A request failed as a whole, in a way worth repeating. Backends raise it for Throttle.

    reason is one word (rate-limited, timeout, server, malformed, empty), detail what a user should read, such as
    "429 Too Many Requests"; retry_after the seconds that the server asks to wait. billed says whether the request may
    be paid for; by default, unless the reason is rate-limited or server.
    """

    def __init__(
        self, reason: str, *, detail: str = "", retry_after: float | None = None, billed: bool | None = None
    ) -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail
        self.retry_after = retry_after
        self.billed = reason not in {"rate-limited", "server"} if billed is None else billed


class Exhausted(BackendError):
    """One request failed at every attempt, though the service may still answer others: its tasks have failed."""

    def __init__(self, last: Transient, attempts: int) -> None:
        super().__init__(f"Given up after {attempts} attempt{'s' * (attempts != 1)} ({last}).")
        self.reason = last.reason
        self.detail = last.detail
        self.attempts = attempts


class Throttle:
    """Runs requests within the limits, repeating those that raise Transient. For one event loop.

    requests, retries and reasons (reason -> failed requests) count what happened.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.requests = 0
        self.retries = 0
        self.reasons: Counter[str] = Counter()
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._queued = 0
        rate = limits.requests_per_second
        self._pace = AsyncLimiter(1, 1 / rate) if rate else None
        self._waits = wait_exponential(limits.first_wait_seconds, limits.max_wait_seconds)
        self._jitter = wait_random(0, limits.first_wait_seconds)
        self._not_before = 0.0
        self._streak = 0
        self._stopped = asyncio.Event()
        self._why = ""

    async def run(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return what call returns at its first attempt that succeeds. Each attempt calls it again.

        Raises Exhausted when the attempts are used up, BackendError for this and every other waiting call once
        too many requests in a row have failed or the server asks for too long a wait; other exceptions of call
        than Transient and TimeoutError are raised at once.
        """
        attempts = AsyncRetrying(
            stop=stop_after_attempt(self.limits.retries + 1),
            wait=self._wait_seconds,
            sleep=self._back_off,
            retry=retry_if_exception_type(Transient),
            retry_error_callback=_give_up,
        )
        return await attempts(self._send, call)

    async def _send(self, call: Callable[[], Awaitable[T]]) -> T:
        self._check()
        self._queued += 1
        try:
            await self._slots.acquire()
        finally:
            self._queued -= 1
        try:
            self._check()
            loop = asyncio.get_running_loop()
            while (wait := self._not_before - loop.time()) > 0:
                await self._unless_stopped(asyncio.sleep(wait))
            if self._pace is not None:
                await self._unless_stopped(self._pace.acquire())
            self.requests += 1
            streak = self._streak
            try:
                async with asyncio.timeout(self.limits.timeout_seconds):
                    answer = await call()
            except TimeoutError:
                failure = Transient("timeout", detail=f"no answer within {self.limits.timeout_seconds:g} seconds")
            except Transient as error:
                failure = error
            else:
                self._streak = 0
                return answer
        finally:
            self._slots.release()
        self._note(failure, streak)
        self._check()
        raise failure

    async def _back_off(self, seconds: float) -> None:
        await self._unless_stopped(asyncio.sleep(seconds))
        self.retries += 1

    async def _unless_stopped(self, waiting: Awaitable[None]) -> None:
        tasks = [asyncio.ensure_future(waiting), asyncio.ensure_future(self._stopped.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        self._check()

    def _wait_seconds(self, state: RetryCallState) -> float:
        failure = state.outcome.exception() if state.outcome else None
        seconds = failure.retry_after if isinstance(failure, Transient) else None
        return (self._waits(state) if seconds is None else seconds) + self._jitter(state)

    def _note(self, failure: Transient, streak: int) -> None:
        """Count a failed request, sent when the streak was that long, and stop the job if need be."""
        self.reasons[failure.reason] += 1
        # Many fail at once when a server goes down for a moment; the streak grows by those sent knowing of the last.
        if self._streak <= streak:
            self._streak += 1
        longest = self.limits.max_wait_seconds
        if failure.retry_after is not None:
            self._not_before = max(self._not_before, asyncio.get_running_loop().time() + failure.retry_after)
        if failure.retry_after is not None and failure.retry_after > longest:
            self._stop(
                f"The server asks to wait {failure.retry_after:,.0f} seconds ({failure}), longer than {longest:,.0f}. "
                "Stopped; everything finished is saved. Run the same command after that time to continue."
            )
        elif self._streak >= self.limits.breaker:
            times = f"{self._streak} requests in a row" if self._streak > 1 else "A request"
            self._stop(
                f"{times} failed ({failure}). Stopped; everything finished is saved. Run the same command to continue."
            )

    def _stop(self, why: str) -> None:
        if self._why:
            return
        self._why = why
        self._stopped.set()
        # Let every call that waits for a slot in, so that it finds the job stopped.
        for _ in range(self._queued):
            self._slots.release()

    def _check(self) -> None:
        if self._why:
            raise BackendError(self._why)


@dataclass
class UselessAnswers:
    """Counts the texts in a row that were given up without a valid answer."""

    in_a_row: int = 0

    def note(self, valid: bool, model: str, error: str) -> None:
        """Count a text of which nothing more is asked; error says what its last answer was.

        Raises BackendError at MAX_USELESS in a row.
        """
        self.in_a_row = 0 if valid else self.in_a_row + 1
        if self.in_a_row < MAX_USELESS:
            return
        in_a_row, self.in_a_row = self.in_a_row, 0
        raise BackendError(
            f"{model}: {in_a_row} texts in a row got no valid answer (the last: {shorten(error, _SHOWN_CHARS)}). "
            "Stopped; everything answered is kept. Use another model, or run the same command again to continue with "
            "the next texts."
        )


def _give_up(state: RetryCallState) -> Any:
    failure = state.outcome.exception() if state.outcome else None
    if not isinstance(failure, Transient):
        raise TypeError(f"only Transient is repeated, not {failure!r}")
    raise Exhausted(failure, state.attempt_number) from failure


def find_passing_reason(status: int) -> str | None:
    """Name the reason of an HTTP status after which the same request may succeed later; None for any other status.

    Servers of Elasticsearch have rows of their own: there a 409 or a 500 answers this very request.
    """
    return _PASSING.get(status, "server" if status >= 500 else None)


def retry_after_seconds(value: str | None) -> float | None:
    """The seconds that a Retry-After header asks for, at least 0; None without one, or for one that is not valid.

    Examples:
        >>> retry_after_seconds("30")
        30.0
        >>> retry_after_seconds("Wed, 21 Oct 2015 07:28:00 GMT")
        0.0
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None
