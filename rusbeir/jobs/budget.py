"""Budgets of paid requests: reserved before anything is sent, and remembered over runs and kills."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rusbeir.errors import BackendError, BadInput, RusbeirError, option
from rusbeir.jobs.journal import Journal, reporting
from rusbeir.jobs.throttle import Transient
from rusbeir.storage import cannot_write

_UNITS = 10**9
"""Costs are stored as integers, in billionths: sums of many small floats would drift."""


class BudgetReached(BackendError):
    """The next request would cost more than what is left."""


class BudgetTooSmall(BadInput):
    """The budget is smaller than one request."""


class Budget:
    """The characters and the money that a job may spend in all its runs together; None sets no limit.

    What was reserved counts as spent, even if the process is killed before the answer: it may have been billed.
    """

    def __init__(self, journal: Journal, *, chars: int | None = None, cost: float | None = None) -> None:
        for name, limit in (("chars", chars), ("cost", cost)):
            if limit is not None:
                _refuse_nothing(name, limit)
        self.chars = chars
        self.cost = cost
        self._journal = journal
        try:
            self.spent_chars = int(journal.get_meta("spent chars") or 0)
            """Characters spent in this run and those before."""
            self._spent_units = int(journal.get_meta("spent cost") or 0)
        except ValueError as error:
            raise BadInput(f"{journal.path} is damaged: what was spent is not a number. Restore a copy.") from error

    @property
    def spent_cost(self) -> float:
        """Money spent in this run and those before."""
        return self._spent_units / _UNITS

    def reserve(self, chars: int, cost: float) -> None:
        """Count a request as spent, before it is sent.

        Raises BudgetReached where it no longer fits, BudgetTooSmall where it never would; then nothing is counted.
        """
        if self.chars is not None:
            _refuse_beyond(self.chars, self.spent_chars, chars, 1, "characters", "budget_chars")
        if self.cost is not None:
            _refuse_beyond(
                round(self.cost * _UNITS), self._spent_units, round(cost * _UNITS), _UNITS, "in money", "budget_cost"
            )
        self.correct(chars=chars, cost=cost)

    def correct(self, *, chars: int = 0, cost: float = 0.0) -> None:
        """Count what a request took in addition to its reservation; negative where it took less."""
        chars, units = max(self.spent_chars + chars, 0), max(self._spent_units + round(cost * _UNITS), 0)
        self._journal.set_meta({"spent chars": str(chars), "spent cost": str(units)})
        self.spent_chars, self._spent_units = chars, units


def _refuse_nothing(name: str, limit: float) -> None:
    if not limit > 0:
        raise BadInput(f"The budget {option(f'budget_{name}')} is {limit}: it must be above 0.")


def _refuse_beyond(budget: int, spent: int, need: int, scale: int, unit: str, parameter: str) -> None:
    """Raise an error where the need does not fit; messages show the numbers divided by scale."""

    def show(number: int) -> str:
        return f"{number:,}" if scale == 1 else f"{number / scale:,.9f}".rstrip("0").rstrip(".")

    if need > budget:
        raise BudgetTooSmall(
            f"The budget of {show(budget)} {unit} is smaller than one request, which takes {show(need)}. "
            f"Give a larger {option(parameter)}."
        )
    if spent + need > budget:
        raise BudgetReached(
            f"The budget of {show(budget)} {unit} is reached: {show(spent)} are spent and the next request takes "
            f"{show(need)}. Everything finished is saved. Give a larger {option(parameter)} to continue."
        )


SPENDING_FILE = "spending.sqlite"


@dataclass(frozen=True)
class CharBudget:
    """The characters that may be sent to endpoints in all runs that count in the same folder.

    They are counted in spending.sqlite, which is created when something is first spent. Several processes and
    threads may spend at once. What was reserved is on disk when reserve returns, and survives kill -9 and power
    failures.
    Raises BadInput for a budget below 1.
    """

    folder: Path
    chars: int

    def __post_init__(self) -> None:
        _refuse_nothing("chars", self.chars)

    def reserve(self, chars: int, cost: float = 0.0) -> None:
        """Count the characters of a request before it is sent. Raises as Budget.reserve does."""
        self._add(chars, refuse=True)

    def correct(self, *, chars: int = 0, cost: float = 0.0) -> None:
        """Count what a request took in addition to its reservation; negative where it took less."""
        if chars:
            self._add(chars, refuse=False)

    def _add(self, chars: int, *, refuse: bool) -> None:
        path = self.folder / SPENDING_FILE
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(path, error) from error
        with reporting(path), contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as db:
            # IMMEDIATE: no other process may spend between the reading and the writing.
            db.execute("BEGIN IMMEDIATE")
            db.execute("CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
            row = db.execute("SELECT value FROM meta WHERE name = 'spent chars'").fetchone()
            spent = int(row[0]) if row else 0
            if refuse:
                _refuse_beyond(self.chars, spent, chars, 1, "characters", "budget_chars")
            db.execute("INSERT OR REPLACE INTO meta VALUES ('spent chars', ?)", (str(max(spent + chars, 0)),))
            db.execute("COMMIT")


class Allowance(Protocol):
    """A budget in which requests are reserved."""

    def reserve(self, chars: int, cost: float) -> None:
        """Count a request as spent, before it is sent. Raises BudgetReached where it does not fit."""
        ...

    def correct(self, *, chars: int = 0, cost: float = 0.0) -> None:
        """Count what a request took in addition to its reservation; negative where it took less."""
        ...


@dataclass(kw_only=True)
class Charge:
    """The characters and the cost of one request, as far as they are known."""

    chars: int
    cost: float

    def cancel(self) -> None:
        """Give back what was reserved: the server has answered with an error."""
        self.chars, self.cost = 0, 0.0


@dataclass(kw_only=True)
class Meter:
    """Counts requests as the server does, each repetition as one more, and reserves each in a budget.

    A request that the server refuses with an error, or that finds no server, is given back. One that was sent and has
    no whole answer stays counted: it may have been billed.
    """

    budget: Allowance | None = None
    requests: int = 0
    repeats: int = 0
    """Requests that ask again for what an answered one did not bring; the user of the meter counts them."""
    _under_way: set[asyncio.Future[None]] = field(default_factory=set, init=False, repr=False)

    @contextlib.asynccontextmanager
    async def request(self, chars: int, cost: float = 0.0) -> AsyncIterator[Charge]:
        """The charge of a request that is sent within the block, whose cost may be set to what was billed.

        Raises BudgetReached where the request does not fit, once nothing is under way that may give something back.
        """
        while self.budget is not None:
            try:
                self.budget.reserve(chars, cost)
                break
            except BudgetReached:
                if not self._under_way:
                    raise
                await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
        self.requests += 1
        charge = Charge(chars=chars, cost=cost)
        finished = asyncio.get_running_loop().create_future()
        self._under_way.add(finished)
        try:
            yield charge
        except Transient as error:
            if not error.billed:
                charge.cancel()
            raise
        except RusbeirError:
            charge.cancel()
            raise
        finally:
            self._under_way.discard(finished)
            finished.set_result(None)
            if self.budget is not None and (charge.chars, charge.cost) != (chars, cost):
                self.budget.correct(chars=charge.chars - chars, cost=charge.cost - cost)
