"""Jobs: what long, paid work needs: a journal, limits, a budget and a client for language models."""

from rusbeir.jobs.budget import Budget, BudgetReached, CharBudget
from rusbeir.jobs.journal import Done, Entry, Journal, Task, task_key
from rusbeir.jobs.llm import Llm
from rusbeir.jobs.llm_answer import Answer, Price, Rejected, Usage
from rusbeir.jobs.task_queue import Lane, Size, Tally
from rusbeir.jobs.throttle import Exhausted, Limits, Throttle, Transient, retry_after_seconds

__all__ = [
    "Answer",
    "Budget",
    "BudgetReached",
    "CharBudget",
    "Done",
    "Entry",
    "Exhausted",
    "Journal",
    "Lane",
    "Limits",
    "Llm",
    "Price",
    "Rejected",
    "Size",
    "Tally",
    "Task",
    "Throttle",
    "Transient",
    "Usage",
    "retry_after_seconds",
    "task_key",
]
