"""Jobs: what long, paid work needs: a journal, limits, a budget and a client for language models."""

from rusbeir.jobs.answers import Answer, Price, Rejected, Usage
from rusbeir.jobs.budget import Budget, BudgetReached
from rusbeir.jobs.journal import Journal
from rusbeir.jobs.lanes import Lane, Size, Tally
from rusbeir.jobs.limits import Exhausted, Limits, Throttle, Transient, retry_after_seconds
from rusbeir.jobs.llm import Llm
from rusbeir.jobs.tasks import Done, Entry, Task, task_key

__all__ = [
    "Answer",
    "Budget",
    "BudgetReached",
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
