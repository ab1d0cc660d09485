"""A process that spends from a character budget: python -m tests.support.spender FOLDER BUDGET REQUESTS.

It prints each request's number only after reserve has returned.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rusbeir.jobs import BudgetReached, CharBudget


def main() -> None:
    budget = CharBudget(Path(sys.argv[1]), int(sys.argv[2]))
    for number in range(int(sys.argv[3])):
        try:
            budget.reserve(1)
        except BudgetReached:
            return
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
