"""Jobs: what long, paid work needs: a journal, limits, a budget and a client for language models."""

from rusbeir.jobs.asking import INVALID, Asker, Question, Unfit, bound_request, count_answers
from rusbeir.jobs.budget import Budget, BudgetReached, CharBudget
from rusbeir.jobs.http import MAX_ANSWER_BYTES, bound_answers
from rusbeir.jobs.journal import Attempt, Journal, Task, task_key
from rusbeir.jobs.llm import Llm
from rusbeir.jobs.llm_answer import THOUGHTS, Answer, Price, Rejected, Usage, read_object
from rusbeir.jobs.prompts import digest_prompts, find_prompt_language, read_prompts, tell_prompt_language
from rusbeir.jobs.task_queue import Size, TaskCounts, TaskQueue, TaskResult
from rusbeir.jobs.throttle import Exhausted, Limits, Throttle, Transient, retry_after_seconds

__all__ = [
    "INVALID",
    "MAX_ANSWER_BYTES",
    "THOUGHTS",
    "Answer",
    "Asker",
    "Attempt",
    "Budget",
    "BudgetReached",
    "CharBudget",
    "Exhausted",
    "Journal",
    "Limits",
    "Llm",
    "Price",
    "Question",
    "Rejected",
    "Size",
    "Task",
    "TaskCounts",
    "TaskQueue",
    "TaskResult",
    "Throttle",
    "Transient",
    "Unfit",
    "Usage",
    "bound_answers",
    "bound_request",
    "count_answers",
    "digest_prompts",
    "find_prompt_language",
    "read_object",
    "read_prompts",
    "retry_after_seconds",
    "task_key",
    "tell_prompt_language",
]
