"""Budgets of paid requests: reserved before anything is sent, and remembered over runs and kills."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from rusbeir.errors import BackendError, BadInput, option
from rusbeir.jobs.journal import Journal, reporting
from rusbeir.storage import cannot_write

_UNITS = 10**9
"""Costs are stored as integers, in billionths: sums of many small floats would drift."""


class BudgetReached(BackendError):
    """The next request would cost more than what is left."""


class Budget:
    """The characters and the money that a job may spend in all its runs together; None sets no limit.

    What was reserved counts as spent, even if the process is killed before the answer: it may have been billed.
    """

    def __init__(self, journal: Journal, *, chars: int | None = None, cost: float | None = None) -> None:
        for name, limit in (("chars", chars), ("cost", cost)):
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

    def fits(self, chars: int, cost: float) -> bool:
        """Whether reserve would accept this request."""
        within_chars = self.chars is None or self.spent_chars + chars <= self.chars
        return within_chars and (
            self.cost is None or self._spent_units + round(cost * _UNITS) <= round(self.cost * _UNITS)
        )

    def reserve(self, chars: int, cost: float) -> None:
        """Count a request as spent, before it is sent.

        Raises BudgetReached where it no longer fits, and BadInput where it never would; then nothing is counted.
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


def _refuse_nothing(name: str, limit: float | None) -> None:
    if limit is not None and not limit > 0:
        raise BadInput(f"The budget {option(f'budget_{name}')} is {limit}: it must be above 0.")


def _refuse_beyond(budget: int, spent: int, need: int, scale: int, unit: str, parameter: str) -> None:
    """Raise an error where the need does not fit; messages show the numbers divided by scale."""

    def show(number: int) -> str:
        return f"{number:,}" if scale == 1 else f"{number / scale:,.9f}".rstrip("0").rstrip(".")

    if need > budget:
        raise BadInput(
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
    threads may spend at once. What was spent is on disk when spend returns, and survives kill -9 and power failures.
    Raises BadInput for a budget below 1.
    """

    folder: Path
    chars: int

    def __post_init__(self) -> None:
        _refuse_nothing("chars", self.chars)

    def spend(self, chars: int) -> None:
        """Count the characters of a request before it is sent. Raises as Budget.reserve does."""
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
            _refuse_beyond(self.chars, spent, chars, 1, "characters", "budget_chars")
            db.execute("INSERT OR REPLACE INTO meta VALUES ('spent chars', ?)", (str(spent + chars),))
            db.execute("COMMIT")
