"""Requests take from a budget before they are sent, and give back where the server answers with an error."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3

import pytest

from rusbeir.errors import BackendError, BadInput
from rusbeir.jobs import Budget, BudgetReached, CharBudget, Journal, Meter, Rejected, Transient
from rusbeir.jobs.budget import SPENDING_FILE


@pytest.fixture(params=["journal", "file"])
def allowance(request, tmp_path):
    """Makes a budget of so many characters, with the function that reads what was spent of it."""
    if request.param == "journal":
        with Journal.open(tmp_path / "j.sqlite", {}) as journal:
            yield lambda chars: Budget(journal, chars=chars), lambda budget: budget.spent.chars
    else:

        def read(budget: CharBudget) -> int:
            with contextlib.closing(sqlite3.connect(budget.folder / SPENDING_FILE)) as db:
                return int(db.execute("SELECT value FROM meta WHERE name = 'spent chars'").fetchone()[0])

        yield lambda chars: CharBudget(tmp_path, chars), read


@pytest.mark.parametrize(
    ("error", "counted", "why"),
    [
        (None, 40, "an answer, also a useless one, is paid for"),
        (Transient("rate-limited"), 0, "429"),
        (Transient("server"), 0, "500, or no connection"),
        (Transient("server", billed=True), 40, "a connection that broke in the middle of the answer"),
        (Transient("timeout"), 40, "it was sent, and may have been billed"),
        (Transient("timeout", billed=False), 0, "408: the server itself says so"),
        (Transient("malformed"), 40, "an answer that is not JSON"),
        (Rejected("rejected", "400"), 0, "400"),
        (BadInput("401"), 0, "a wrong key"),
        (BackendError("quota"), 0, "429 of an account without money"),
        (asyncio.CancelledError(), 40, "it was sent, and may have been billed"),
        (ZeroDivisionError(), 40, "nobody knows what was sent"),
    ],
)
def test_what_counts(allowance, error, counted, why):
    make, read = allowance
    budget = make(100)
    meter = Meter(budget=budget)

    async def send() -> None:
        async with meter.request(5):
            pass
        async with meter.request(40, 0.5):
            if error is not None:
                raise error

    if error is None:
        asyncio.run(send())
    else:
        with pytest.raises(type(error)):
            asyncio.run(send())
    assert (read(budget), meter.spent.requests) == (5 + counted, 2), why


def send_together(budget, outcomes):
    """The meter's requests of 60 characters with these outcomes, all at once: how many were sent, and who was not."""
    meter = Meter(budget=budget)
    refused = []

    async def send(number: int, fails: bool) -> None:
        try:
            async with meter.request(60):
                await asyncio.sleep(0)
                if fails:
                    raise Transient("server")
        except Transient:
            pass
        except BudgetReached:
            refused.append(number)

    async def run() -> None:
        await asyncio.gather(*(send(number, fails) for number, fails in enumerate(outcomes)))

    asyncio.run(run())
    return meter.spent.requests, refused


@pytest.mark.parametrize(
    ("outcomes", "sent", "refused"),
    [
        # which requests fail; how many are sent; which find the budget of 100 characters reached
        ([False, False, False], 1, [1, 2]),
        ([True, False, False], 2, [2]),
        ([True, True, True], 3, []),
    ],
)
def test_requests_at_the_same_time_wait_for_what_is_given_back(allowance, outcomes, sent, refused):
    make, read = allowance
    budget = make(100)
    assert send_together(budget, outcomes) == (sent, refused)
    assert read(budget) == 60 * (sent - sum(outcomes[:sent]))


def test_a_cost_is_corrected_to_what_was_billed(tmp_path):
    with Journal.open(tmp_path / "j.sqlite", {}) as journal:
        budget = Budget(journal, cost=1.0)

        async def send() -> None:
            async with Meter(budget=budget).request(10, 0.9) as charge:
                assert budget.spent.cost == 0.9
                charge.cost = 0.2

        asyncio.run(send())
        assert (budget.spent.chars, budget.spent.cost) == (10, 0.2)
