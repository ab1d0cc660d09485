"""A budget for requests that are made far below whoever sets it: for all of one block of code."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from rusbeir.errors import BadInput
from rusbeir.jobs.budget import Budget
from rusbeir.jobs.journal import Journal

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
