"""The tasks of one kind, as they stand with one worker: how many there are, which are left, what came of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from rusbeir.jobs.journal import Journal, Task, TaskResult, text_of

PAGE_TASKS = 2_000


class Size(NamedTuple):
    """How much work there is."""

    tasks: int
    pending: int
    """Of the tasks, those neither done nor failed."""
    pending_chars: int
    """Characters of the pending payloads."""


class TaskCounts(NamedTuple):
    """How many tasks stand alike."""

    state: Literal["done", "failed", "pending"]
    word: str
    """Of what failed the reason, which is what its error has before the first colon; of what is done the flags."""
    tasks: int
    chars: int
    """Characters of their payloads."""


@dataclass(frozen=True)
class TaskQueue:
    """The tasks of one kind, as they stand with one worker. Nothing is kept in memory but the page at hand."""

    journal: Journal
    kind: str
    worker: str

    def size(self) -> Size:
        """How many tasks there are, and how many are left."""
        settled = "SELECT 1 FROM standing WHERE worker = ? AND task = task.number AND state IN ('done', 'failed')"
        tasks, pending, chars = self.journal.read(
            "SELECT count(*), sum(left), sum(CASE left WHEN 1 THEN chars END) FROM "
            f"(SELECT NOT EXISTS ({settled}) AS left, length(payload) AS chars FROM task WHERE kind = ?)",
            (self._number, self.kind),
        )[0]
        return Size(tasks, pending or 0, chars or 0)

    def counts(self) -> list[TaskCounts]:
        """How many tasks are done, with which flags, failed, for which reasons, and pending; in a fixed order."""
        rows = self.journal.read(
            "SELECT CASE WHEN standing.state IN ('done', 'failed') THEN standing.state ELSE 'pending' END AS stand, "
            "CASE standing.state WHEN 'done' THEN flags WHEN 'failed' THEN "
            "substr(error, 1, instr(error || ':', ':') - 1) ELSE '' END AS word, "
            "count(*), sum(length(payload)) FROM task "
            "LEFT JOIN standing ON standing.worker = ? AND standing.task = task.number "
            "LEFT JOIN attempt ON attempt.number = standing.attempt "
            "WHERE task.kind = ? GROUP BY stand, word ORDER BY stand, word",
            (self._number, self.kind),
        )
        return [TaskCounts(row[0], text_of(row[1]), row[2], row[3]) for row in rows]

    def undone(self) -> Iterator[Task]:
        """The tasks that the worker has not done, failed or pending, in the order of adding."""
        done = "SELECT 1 FROM standing WHERE worker = ? AND task = task.number AND state = 'done'"
        for row in self._pages(
            "task.number, key, kind, payload FROM task",
            f"task.number > ? AND kind = ? AND NOT EXISTS ({done})",
            (self.kind, self._number),
        ):
            yield Task(row[1], text_of(row[2]), text_of(row[3]))

    def results(self, state: Literal["done", "failed"], *, flagged: bool = False) -> Iterator[TaskResult]:
        """The tasks in that state with their deciding attempts, in the order of adding; flagged: those with flags."""
        for row in self._pages(
            "task.number, key, kind, payload, result, error, flags, standing.nth FROM standing "
            "CROSS JOIN task ON task.number = standing.task CROSS JOIN attempt ON attempt.number = standing.attempt",
            "standing.task > ? AND standing.worker = ? AND standing.state = ? AND kind = ?"
            f"{' AND flags != ' + repr('') if flagged else ''}",
            (self._number, state, self.kind),
        ):
            task = Task(row[1], text_of(row[2]), text_of(row[3]))
            yield TaskResult(task, self.worker, text_of(row[4]), text_of(row[5]), text_of(row[6]), row[7])

    def reset(self, keys: Iterable[bytes]) -> int:
        """How many of these tasks had failed, and are pending again; their attempts stay noted."""
        number = self._number
        return self.journal.write(
            "UPDATE standing SET state = 'retry' WHERE worker = ? AND state = 'failed' "
            "AND task = (SELECT number FROM task WHERE key = ?)",
            [(number, key) for key in keys],
        )

    @property
    def _number(self) -> int:
        return self.journal.number(self.worker)

    def _pages(self, columns: str, condition: str, parameters: Sequence[Any]) -> Iterator[Any]:
        after = 0
        while rows := self.journal.read(
            f"SELECT {columns} WHERE {condition} ORDER BY 1 LIMIT {PAGE_TASKS}", (after, *parameters)
        ):
            yield from rows
            after = rows[-1][0]
