"""Pace, back-off and the circuit breaker. The waits are real and tiny; nothing is asserted about how long they took."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from tenacity import RetryCallState

from rusbeir.errors import BackendError, BadInput
from rusbeir.jobs import Exhausted, Limits, Throttle, Transient, retry_after_seconds


def limits(**changes) -> Limits:
    return Limits(**{"first_wait_seconds": 0.001, "max_wait_seconds": 0.05, "retries": 3, "breaker": 100, **changes})


class Service:
    """Answers by a script of errors and answers, then with "ok"; knows how many were asked at once."""

    def __init__(self, *script: object, pause: float = 0.0) -> None:
        self.script = list(script)
        self.pause = pause
        self.asked = 0
        self.at_once = 0
        self.most_at_once = 0

    async def __call__(self) -> object:
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.pause)
            outcome = self.script.pop(0) if self.script else "ok"
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome
        finally:
            self.at_once -= 1


def busy(**options: float) -> Transient:
    return Transient("rate-limited", detail="429 Too Many Requests", **options)


def run(throttle: Throttle, service: Service, calls: int = 1) -> list[object]:
    async def all_of_them() -> list[object]:
        return await asyncio.gather(*(throttle.run(service) for _ in range(calls)), return_exceptions=True)

    return asyncio.run(all_of_them())


ATTEMPTS = [
    # script, retries, requests, outcome, why
    ([], 3, 1, "ok", "all is well"),
    ([busy()], 3, 2, "ok", "a failure is repeated"),
    ([busy(), TimeoutError(), Transient("server")], 3, 4, "ok", "as often as retries allow"),
    ([busy()] * 4, 3, 4, "Given up after 4 attempts (rate-limited: 429 Too Many Requests).", "and no more often"),
    ([busy()], 0, 1, "Given up after 1 attempt (rate-limited: 429 Too Many Requests).", "no retries"),
    ([BadInput("no such model")], 3, 1, "no such model", "what never works is not repeated"),
    ([ZeroDivisionError("bug")], 3, 1, "bug", "nor is a bug"),
]


@pytest.mark.parametrize(("script", "retries", "requests", "outcome", "why"), ATTEMPTS, ids=[r[4] for r in ATTEMPTS])
def test_attempts(script, retries, requests, outcome, why):
    throttle, service = Throttle(limits(retries=retries)), Service(*script)
    [result] = run(throttle, service)
    assert str(result) == outcome
    assert throttle.requests == service.asked == requests
    assert throttle.retries == requests - 1


def test_what_was_given_up_says_why():
    [error] = run(Throttle(limits(retries=1)), Service(busy(), Transient("server", detail="500")))
    assert isinstance(error, Exhausted)
    assert (error.reason, error.detail, error.attempts) == ("server", "500", 2)


def test_reasons_are_counted():
    throttle = Throttle(limits())
    run(throttle, Service(busy(), TimeoutError(), busy()))
    assert throttle.reasons == {"rate-limited": 2, "timeout": 1}


def test_an_answer_that_never_comes_is_a_time_out():
    throttle = Throttle(limits(timeout_seconds=0.01, retries=1))
    [error] = run(throttle, Service(pause=5.0))
    assert isinstance(error, Exhausted)
    assert error.reason == "timeout"


@pytest.mark.parametrize("concurrency", [1, 3, 50])
def test_no_more_at_once_than_allowed(concurrency):
    throttle, service = Throttle(limits(concurrency=concurrency)), Service(*[busy()] * 5, pause=0.001)
    assert run(throttle, service, 20) == ["ok"] * 20
    assert service.most_at_once == min(concurrency, 20)


def test_requests_leave_evenly_and_never_in_bursts():
    async def sent() -> list[float]:
        times = []

        async def call() -> None:
            times.append(asyncio.get_running_loop().time())

        throttle = Throttle(limits(requests_per_second=100, concurrency=10))
        await asyncio.gather(*(throttle.run(call) for _ in range(10)))
        return times

    times = asyncio.run(sent())
    # Ten requests span nine steps of 10 ms; a burst would take none. The clock's grain is allowed for.
    assert times[-1] - times[0] >= 0.08


def wait_before_retry(throttle: Throttle, failure: Transient, attempt: int) -> float:
    state = RetryCallState(None, None, (), {})
    state.attempt_number = attempt
    state.set_exception((type(failure), failure, None))
    return throttle._wait_seconds(state)


@pytest.mark.parametrize(
    ("attempt", "retry_after", "least"),
    [
        (1, None, 1.0),
        (2, None, 2.0),
        (5, None, 16.0),
        # never longer than max_wait_seconds
        (20, None, 60.0),
        # what the server says counts instead, whatever the attempt
        (1, 7.0, 7.0),
        (9, 7.0, 7.0),
        (9, 0.0, 0.0),
    ],
)
def test_waits(attempt, retry_after, least):
    throttle = Throttle(Limits(first_wait_seconds=1.0, max_wait_seconds=60.0))
    waits = {wait_before_retry(throttle, busy(retry_after=retry_after), attempt) for _ in range(50)}
    assert all(least <= wait <= least + 1.0 for wait in waits)
    assert len(waits) > 40, "two that fail together do not come back together"


def test_one_that_is_told_to_wait_makes_all_wait():
    async def sent() -> tuple[float, list[float]]:
        loop = asyncio.get_running_loop()
        times: list[float] = []

        async def call() -> None:
            times.append(loop.time())
            if len(times) == 1:
                raise busy(retry_after=0.05)

        throttle = Throttle(limits(max_wait_seconds=1.0))
        await asyncio.gather(*(throttle.run(call) for _ in range(5)))
        return times[0], times[1:]

    first, others = asyncio.run(sent())
    assert len(others) == 5
    assert min(others) - first >= 0.045


STOPPED = "Stopped; everything finished is saved. Run the same command"


def test_the_breaker_opens_after_failures_in_a_row():
    throttle, service = Throttle(limits(retries=20, breaker=5)), Service(*[busy()] * 99)
    [error] = run(throttle, service)
    assert type(error) is BackendError
    assert str(error) == (
        "5 requests in a row failed (rate-limited: 429 Too Many Requests). Stopped; everything finished is saved. "
        "Run the same command to continue."
    )
    assert service.asked == 5
    # and it stays open
    [error] = run(throttle, service)
    assert STOPPED in str(error)
    assert service.asked == 5


def test_failures_in_a_row_are_counted_over_all_calls():
    throttle, service = Throttle(limits(retries=0, breaker=5)), Service(*[busy()] * 99)
    errors = run(throttle, service, 20)
    assert service.asked == 5
    assert [type(error) for error in errors] == [Exhausted] * 4 + [BackendError] * 16


def test_a_success_begins_the_count_anew():
    script = ([busy()] * 4 + ["ok"]) * 5
    throttle = Throttle(limits(retries=20, breaker=5))
    assert run(throttle, Service(*script), 5) == ["ok"] * 5
    assert throttle.reasons == {"rate-limited": 20}


def test_those_under_way_together_count_as_one():
    """A server that is away for a moment fails all that are under way; the job does not stop for that."""
    throttle, service = Throttle(limits(concurrency=16, breaker=5)), Service(*[busy()] * 16, pause=0.001)
    assert run(throttle, service, 16) == ["ok"] * 16
    assert throttle.requests == 32


def test_when_it_opens_everything_waiting_stops_with_the_same_error():
    """Waiting for a slot, for the pace and in a back-off of a minute: all stop, those under way may finish."""

    async def outcomes() -> list[object]:
        throttle = Throttle(Limits(concurrency=3, retries=9, breaker=2, first_wait_seconds=0.0, requests_per_second=30))
        slow = Service(pause=0.3)
        patient = Service(busy(retry_after=60.0))
        backing_off = asyncio.create_task(throttle.run(patient))
        under_way = asyncio.create_task(throttle.run(slow))
        while not patient.asked:
            await asyncio.sleep(0.001)
        throttle._not_before = 0.0  # the others shall not wait for that minute, or nothing could fail
        failing = [asyncio.create_task(throttle.run(Service(*[Transient("server")] * 9))) for _ in range(30)]
        return await asyncio.wait_for(
            asyncio.gather(under_way, backing_off, *failing, return_exceptions=True), timeout=20
        )

    under_way, *stopped = asyncio.run(outcomes())
    assert under_way == "ok"
    assert len(stopped) == 31
    assert {type(error) for error in stopped} == {BackendError}
    assert len({str(error) for error in stopped}) == 1


def test_a_server_that_asks_for_too_long_a_wait_stops_the_job():
    throttle = Throttle(limits(max_wait_seconds=300.0))
    errors = run(throttle, Service(busy(retry_after=3600.0)), 5)
    assert {str(error) for error in errors} == {
        "The server asks to wait 3,600 seconds (rate-limited: 429 Too Many Requests), longer than 300. "
        "Stopped; everything finished is saved. Run the same command after that time to continue."
    }
    assert throttle.requests == 1


def test_a_cancelled_call_gives_its_slot_back():
    async def go() -> object:
        throttle = Throttle(limits())
        hanging = [asyncio.create_task(throttle.run(Service(pause=30.0))) for _ in range(3)]
        await asyncio.sleep(0.01)
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
        assert all(task.cancelled() for task in hanging)
        return await asyncio.wait_for(throttle.run(Service()), timeout=5)

    assert asyncio.run(go()) == "ok"


IMPOSSIBLE = [
    ({"concurrency": 0}, "concurrency is 0: it must be at least 1"),
    ({"retries": -1}, "retries is -1"),
    ({"breaker": 0}, "breaker is 0"),
    ({"requests_per_second": 0.0}, "requests_per_second is 0.0: it must be a number above 0"),
    ({"requests_per_second": math.nan}, "requests_per_second is nan"),
    ({"timeout_seconds": -1.0}, "timeout_seconds is -1.0"),
    ({"timeout_seconds": math.inf}, "timeout_seconds is inf"),
    ({"first_wait_seconds": 9.0, "max_wait_seconds": 1.0}, "The waits are 9.0 to 1.0 seconds"),
]


@pytest.mark.parametrize(("options", "message"), IMPOSSIBLE)
def test_impossible_limits(options, message):
    with pytest.raises(BadInput, match=message):
        Limits(**options)


RETRY_AFTER = [
    (None, None),
    ("0", 0.0),
    ("120", 120.0),
    (" 1.5 ", 1.5),
    ("-5", 0.0),
    ("nan", None),
    ("inf", None),
    ("", None),
    ("soon", None),
    ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
    ("Sunday, 06-Nov-94 08:49:37 GMT", 0.0),
    ("Wed, 99 Oct 2015 07:28:00 GMT", None),
]


@pytest.mark.parametrize(("value", "seconds"), RETRY_AFTER)
def test_retry_after(value, seconds):
    assert retry_after_seconds(value) == seconds


@pytest.mark.parametrize("zone", ["GMT", "-0000"])
def test_retry_after_as_a_date(zone):
    date = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True).replace("GMT", zone)
    assert retry_after_seconds(date) == pytest.approx(3600, abs=30)
