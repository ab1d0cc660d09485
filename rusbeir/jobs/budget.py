"""Budgets of paid requests: reserved before anything is sent, and remembered over runs and kills."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol

from rusbeir.errors import BackendError, BadInput, RusbeirError, option
from rusbeir.jobs.journal import SET_META, Change, Journal
from rusbeir.jobs.throttle import Transient
from rusbeir.storage import cannot_write, open_database, reporting_sqlite

_COUNTS = ("requests", "chars", "input tokens", "output tokens", "cached input tokens", "cost")
"""The names in a journal under which it has what was spent, behind the word spent."""
_UNITS = 10**9
"""Costs are stored as integers, in billionths: sums of many small floats would drift."""


class BudgetReached(BackendError):
    """The next request would cost more than what is left."""


class BudgetTooSmall(BadInput):
    """The budget is smaller than one request."""


@dataclass(kw_only=True)
class Spent:
    """The amounts that a service was sent and took; `dataclasses.asdict` gives the `spent` of every JSON report.

    Examples:
        >>> Spent.sum([Spent(requests=2, chars=30), Spent(requests=1, chars=5)]).chars
        35
    """

    requests: int = 0
    """Requests as the service counts them: each repetition is one more."""
    chars: int = 0
    """Characters of the texts and prompts that were sent."""
    input_tokens: int = 0
    """Tokens of the requests, where the service counts them."""
    output_tokens: int = 0
    """Tokens of the answers, where the service counts them."""
    cached_input_tokens: int = 0
    """Those of the input tokens that the service had in its cache, where it says so."""
    cost: float = 0.0
    """Money, by the prices that are known."""

    @classmethod
    def sum(cls, parts: Iterable[Spent]) -> Spent:
        """Add up what several clients spent."""
        rows = [vars(part) for part in parts]
        return cls(**{field.name: sum(row[field.name] for row in rows) for field in fields(cls)})

    @property
    def tokens(self) -> dict[str, int]:
        """The tokens alone, as older reports name them."""
        return {"input": self.input_tokens, "output": self.output_tokens}

    def describe_run(self, retries: int) -> dict[str, Any]:
        """Describe the counts of one run as reports have them in addition to `spent`, which is of all runs."""
        tokens = {"input": self.input_tokens, "output": self.output_tokens}
        return {"requests": self.requests, "retries": retries, "tokens": tokens}


class Budget:
    """The characters and the money that a job may spend in all its runs together; None sets no limit.

    What was reserved counts as spent, even if the process is killed before the answer: it may have been billed.
    elsewhere is what other jobs have spent of the same amounts.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        chars: int | None = None,
        cost: float | None = None,
        elsewhere: Sequence[Spent] = (),
    ) -> None:
        for name, limit in (("chars", chars), ("cost", cost)):
            if limit is not None:
                _refuse_nothing(name, limit)
        self.chars = chars
        self.cost = cost
        self._journal = journal
        self._chars_elsewhere = sum(spent.chars for spent in elsewhere)
        self._cost_elsewhere = sum(round(spent.cost * _UNITS) for spent in elsewhere)
        try:
            self._counts = {name: int(journal.get_meta(f"spent {name}") or 0) for name in _COUNTS}
        except ValueError as error:
            raise BadInput(f"{journal.path} is damaged: what was spent is not a number. Restore a copy.") from error

    @property
    def spent(self) -> Spent:
        """The amounts spent in this run and those before."""
        counts = {name.replace(" ", "_"): count for name, count in self._counts.items() if name != "cost"}
        return Spent(**counts, cost=self._counts["cost"] / _UNITS)

    def reserve(self, chars: int, cost: float) -> None:
        """Count a request as spent, before it is sent.

        Raises BudgetReached where it no longer fits, BudgetTooSmall where it never would; then nothing is counted.
        """
        if self.chars is not None:
            spent = self._counts["chars"] + self._chars_elsewhere
            _refuse_beyond(self.chars, spent, chars, 1, "characters", "budget_chars")
        if self.cost is not None:
            limit, need = round(self.cost * _UNITS), round(cost * _UNITS)
            _refuse_beyond(limit, self._counts["cost"] + self._cost_elsewhere, need, _UNITS, "in money", "budget_cost")
        self.correct(Spent(requests=1, chars=chars, cost=cost))

    def fits(self, chars: int, cost: float) -> bool:
        """Return whether so much could be spent in addition."""
        chars += self._counts["chars"] + self._chars_elsewhere
        units = round(cost * _UNITS) + self._counts["cost"] + self._cost_elsewhere
        return (self.chars is None or chars <= self.chars) and (self.cost is None or units <= round(self.cost * _UNITS))

    def correct(self, more: Spent, together: Sequence[Change] = ()) -> None:
        """Count what requests took in addition to their reservation; negative where they took less.

        The changes of the journal that belong together with it are made in the same transaction.
        """
        differences = {name.replace("_", " "): number for name, number in vars(more).items()}
        differences["cost"] = round(more.cost * _UNITS)
        counts = {name: max(count + differences[name], 0) for name, count in self._counts.items()}
        spent = [(f"spent {name}", str(count)) for name, count in counts.items()]
        self._journal.write(SET_META, spent, together=together)
        self._counts = counts


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

    def correct(self, more: Spent) -> None:
        """Count the characters that a request took in addition to its reservation; negative where it took less."""
        if more.chars:
            self._add(more.chars, refuse=False)

    def _add(self, chars: int, *, refuse: bool) -> None:
        path = self.folder / SPENDING_FILE
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(path, error) from error
        with reporting_sqlite(path, "record of spending"), contextlib.closing(open_database(path)) as db:
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

    def correct(self, more: Spent) -> None:
        """Count what a request took in addition to its reservation; negative where it took less."""
        ...


@dataclass(kw_only=True)
class Charge(Spent):
    """The amounts that one request takes, as far as they are known."""

    requests: int = 1

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
    spent: Spent = field(default_factory=Spent)
    """What all requests of this meter took, those that were given back counted as requests alone."""
    repeats: int = 0
    """Requests that ask again for what an answered one did not bring; the user of the meter counts them."""
    _under_way: set[asyncio.Future[None]] = field(default_factory=set, init=False, repr=False)

    @contextlib.asynccontextmanager
    async def request(self, chars: int, cost: float = 0.0) -> AsyncIterator[Charge]:
        """Return the charge of a request that is sent within the block, whose cost may be set to what was billed.

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
            self.spent = Spent.sum([self.spent, charge])
            # The request itself was counted when it was reserved.
            more = replace(charge, requests=0, chars=charge.chars - chars, cost=charge.cost - cost)
            if self.budget is not None and any(vars(more).values()):
                self.budget.correct(more)
