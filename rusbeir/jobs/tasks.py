"""What goes into a journal and comes out of it: tasks, attempts at them, and how they stand."""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple


class Task(NamedTuple):
    """One piece of work: what it is (a text to translate, a pair to judge) and what is handed to the worker."""

    key: bytes
    kind: str
    payload: str

    @classmethod
    def of(cls, kind: str, payload: str) -> Task:
        """A task with the key of its content: equal tasks are one task.

        >>> Task.of("segment", "Water boils.").key.hex()
        '72ac7ff21149d3faaa5af484092a6c08'
        """
        return cls(task_key(kind, payload), kind, payload)


class Done(NamedTuple):
    """What came of one attempt at a task.

    "done" is final; "failed" is final until reset_failed; "retry" is only noted, and the task is pending still.
    """

    key: bytes
    worker: str
    state: Literal["done", "failed", "retry"]
    result: str = ""
    error: str = ""
    flags: str = ""
    seconds: float = 0.0


class Entry(NamedTuple):
    """How a task stands with a worker: its deciding attempt, and how many there were."""

    task: Task
    worker: str
    result: str
    error: str
    flags: str
    attempts: int


def task_key(*parts: str) -> bytes:
    """16 bytes (BLAKE2b) that stand for these strings in this order, and no others.

    >>> task_key("a", "b") == task_key("ab", "")
    False
    """
    # Each part goes in with its length before it, as ("a", "b") is not ("ab", "").
    data = "".join([f"{len(part)}:{part}" for part in parts]).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=16).digest()
