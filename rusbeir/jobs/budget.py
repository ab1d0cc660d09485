"""How much may be spent: reserved before anything is sent, remembered by the journal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from rusbeir.errors import BackendError, BadInput
from rusbeir.jobs.journal import Journal

_UNITS = 10**9
"""Costs are kept in billionths, as integers: sums of many small floats would drift."""


class BudgetReached(BackendError):
    """The next request would cost more than what is left."""


class Budget:
    """Characters and money that a job may spend in all its runs together; None is without limit.

    What was reserved counts as spent, also when the process is killed before the answer: it may have been billed.
    """

    def __init__(self, journal: Journal, *, chars: int | None = None, cost: float | None = None) -> None:
        for name, limit in (("chars", chars), ("cost", cost)):
            if limit is not None and not limit > 0:
                raise BadInput(f"The budget --budget-{name} is {limit}: it must be above 0.")
        self.chars = chars
        self.cost = cost
        self._journal = journal
        self._spent_chars = int(journal.get_meta("spent chars") or 0)
        self._spent_units = int(journal.get_meta("spent cost") or 0)

    @property
    def spent_chars(self) -> int:
        """Characters spent in this run and those before."""
        return self._spent_chars

    @property
    def spent_cost(self) -> float:
        """Money spent in this run and those before."""
        return self._spent_units / _UNITS

    def fits(self, chars: int, cost: float) -> bool:
        """Whether so much could be reserved."""
        within_chars = self.chars is None or self._spent_chars + chars <= self.chars
        return within_chars and (self.cost is None or self._spent_units + _units(cost) <= _units(self.cost))

    def reserve(self, chars: int, cost: float) -> None:
        """Count a request as spent, before it is sent.

        Raises BudgetReached where it does not fit any more, and BadInput where it never would; nothing is counted
        then.
        """
        units = _units(cost)
        if self.chars is not None:
            _refuse_beyond(self.chars, self._spent_chars, chars, 1, "characters", "--budget-chars")
        if self.cost is not None:
            _refuse_beyond(_units(self.cost), self._spent_units, units, _UNITS, "in money", "--budget-cost")
        self._spend(chars, units)

    def correct(self, *, chars: int = 0, cost: float = 0.0) -> None:
        """Add what a request cost more than was reserved for it; less where negative."""
        self._spend(chars, _units(cost))

    def _spend(self, chars: int, units: int) -> None:
        chars, units = max(self._spent_chars + chars, 0), max(self._spent_units + units, 0)
        self._journal.set_meta({"spent chars": str(chars), "spent cost": str(units)})
        self._spent_chars, self._spent_units = chars, units


def _refuse_beyond(budget: int, spent: int, need: int, scale: int, unit: str, option: str) -> None:
    """Raise where the need does not fit; the numbers are shown divided by scale."""

    def shown(number: int) -> str:
        return f"{number:,}" if scale == 1 else f"{number / scale:,.9f}".rstrip("0").rstrip(".")

    if need > budget:
        raise BadInput(
            f"The budget of {shown(budget)} {unit} is smaller than one request, which takes {shown(need)}: "
            f"give a larger {option}."
        )
    if spent + need > budget:
        raise BudgetReached(
            f"The budget of {shown(budget)} {unit} is reached: {shown(spent)} are spent and the next request takes "
            f"{shown(need)}. Everything finished is saved; give a larger {option} to go on."
        )


def _units(cost: float) -> int:
    return round(cost * _UNITS)


JOURNAL = "spending.sqlite"


@dataclass(kw_only=True)
class _Purse:
    """A budget whose journal is opened when something is first spent."""

    folder: Path
    chars: int
    open_files: contextlib.ExitStack
    budget: Budget | None = field(default=None, init=False)

    def spend(self, chars: int) -> None:
        if self.budget is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            journal = self.open_files.enter_context(Journal.open(self.folder / JOURNAL, {}))
            self.budget = Budget(journal, chars=self.chars)
        self.budget.reserve(chars, 0.0)


_PURSE: ContextVar[_Purse | None] = ContextVar("purse", default=None)


@contextlib.contextmanager
def at_most(chars: int | None, folder: Path) -> Iterator[None]:
    """Within the block, paid requests take no more characters than that in all runs with this folder.

    None sets no limit, and counts nothing. Raises BadInput for a budget below 1.
    """
    if chars is None:
        yield
        return
    if chars < 1:
        raise BadInput(f"The budget --budget-chars is {chars}: it must be above 0.")
    with contextlib.ExitStack() as files:
        token = _PURSE.set(_Purse(folder=folder, chars=chars, open_files=files))
        try:
            yield
        finally:
            _PURSE.reset(token)


def spend(chars: int) -> None:
    """Count characters before they are sent, where a budget is set. Raises as Budget.reserve does."""
    purse = _PURSE.get()
    if purse is not None:
        purse.spend(chars)
