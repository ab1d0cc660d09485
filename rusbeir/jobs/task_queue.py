"""The tasks of one kind with one worker: how many there are, which are pending, and what came of the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, NoReturn

import orjson

from rusbeir.errors import BadInput
from rusbeir.jobs.journal import Journal, Task, damage, seal, text_of

PAGE_TASKS = 2_000
MAX_KEYS_PER_QUERY = 1_000

_WORKER = "(SELECT number FROM worker WHERE signature = ?)"


class Size(NamedTuple):
    """The amount of work."""

    tasks: int
    pending: int
    """Tasks neither done nor failed."""
    pending_chars: int
    """Characters of the pending payloads."""


class TaskCounts(NamedTuple):
    """The number of tasks that share a state and a reason."""

    state: Literal["done", "failed", "pending"]
    word: str
    """The reason of failed tasks, which is the error up to the first colon; the flags of those done."""
    tasks: int
    chars: int
    """Characters of their payloads."""


class TaskResult(NamedTuple):
    """A task with its deciding attempt, and how many attempts there were."""

    task: Task
    result: str
    error: str
    flags: str
    attempts: int


class Outcome(NamedTuple):
    """The outcome of a task."""

    state: Literal["done", "failed"]
    result: str
    error: str


@dataclass(frozen=True)
class TaskQueue:
    """The tasks of one kind in a journal, with what one worker did of them. Holds one page of them in memory."""

    journal: Journal
    kind: str
    worker: str

    def size(self) -> Size:
        """Count the tasks, and those that are pending."""
        settled = f"worker = {_WORKER} AND task = task.number AND state IN ('done', 'failed')"
        tasks, pending, chars = self.journal.read(
            "SELECT count(*), sum(pending), sum(CASE pending WHEN 1 THEN chars END) FROM "
            f"(SELECT NOT EXISTS (SELECT 1 FROM standing WHERE {settled}) AS pending, length(payload) AS chars "
            "FROM task WHERE kind = ?)",
            (self.worker, self.kind),
        )[0]
        return Size(tasks, pending or 0, chars or 0)

    def counts(self) -> list[TaskCounts]:
        """Count the tasks that are done, by flags, failed, by reasons, and pending; in a fixed order."""
        rows = self.journal.read(
            "SELECT CASE WHEN standing.state IN ('done', 'failed') THEN standing.state ELSE 'pending' END AS shown, "
            "CASE standing.state WHEN 'done' THEN flags WHEN 'failed' THEN "
            "substr(error, 1, instr(error || ':', ':') - 1) ELSE '' END AS word, "
            "count(*), sum(length(payload)) FROM task "
            f"LEFT JOIN standing ON standing.worker = {_WORKER} AND standing.task = task.number "
            "LEFT JOIN attempt ON attempt.number = standing.attempt "
            "WHERE task.kind = ? GROUP BY shown, word ORDER BY shown, word",
            (self.worker, self.kind),
        )
        return [TaskCounts(row[0], text_of(row[1]), row[2], row[3]) for row in rows]

    def unfinished(self, *, with_failed: bool = False) -> Iterator[Task]:
        """Yield the pending tasks, and with_failed also those that failed, in the order of adding."""
        states = "('done')" if with_failed else "('done', 'failed')"
        finished = f"SELECT 1 FROM standing WHERE worker = {_WORKER} AND task = task.number AND state IN {states}"
        for row in self._pages(
            "task.number, key, payload FROM task",
            f"task.number > ? AND kind = ? AND NOT EXISTS ({finished})",
            (self.kind, self.worker),
        ):
            yield Task(row[1], self.kind, text_of(row[2]))

    def results(self, state: Literal["done", "failed"], *, flagged: bool = False) -> Iterator[TaskResult]:
        """Yield the tasks in that state, flagged only those with flags, in the order of adding."""
        for row in self._pages(
            "task.number, key, payload, result, error, flags, standing.nth, seal FROM standing "
            "CROSS JOIN task ON task.number = standing.task LEFT JOIN attempt ON attempt.number = standing.attempt",
            f"standing.task > ? AND standing.worker = {_WORKER} AND standing.state = ? AND kind = ?"
            f"{' AND flags != ' + repr('') if flagged else ''}",
            (self.worker, state, self.kind),
        ):
            task = Task(row[1], self.kind, text_of(row[2]))
            if _is_changed(task.key, state, row[3:6], row[7]):
                self._set_aside([task.key])
            yield TaskResult(task, text_of(row[3]), text_of(row[4]), text_of(row[5]), row[6])

    def answers(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        """Return key -> result, for those of the keys whose tasks are done."""
        return {key: outcome.result for key, outcome in self.outcomes(keys).items() if outcome.state == "done"}

    def values(self, keys: Sequence[bytes]) -> dict[bytes, Any]:
        """Return key -> the value of its result, which is JSON, as for `answers`."""
        return {key: self.parse(result) for key, result in self.answers(keys).items()}

    def parse(self, result: str) -> Any:
        """Parse the value of a result that is JSON. Raises BadInput where the journal is damaged."""
        try:
            return orjson.loads(result)
        except orjson.JSONDecodeError as error:
            raise BadInput(damage(self.journal.path, f"an answer is not JSON: {error.msg}")) from error

    def outcomes(self, keys: Sequence[bytes]) -> dict[bytes, Outcome]:
        """Return key -> what came of its task, for those of the keys whose tasks are done or have failed.

        Raises BadInput where the file does not hold what was recorded; those tasks are pending then.
        """
        outcomes: dict[bytes, Outcome] = {}
        damaged: list[bytes] = []
        for start in range(0, len(keys), MAX_KEYS_PER_QUERY):
            page = keys[start : start + MAX_KEYS_PER_QUERY]
            rows = self.journal.read(
                "SELECT task.key, standing.state, attempt.result, attempt.error, flags, seal "
                f"FROM task CROSS JOIN standing ON standing.worker = {_WORKER} AND standing.task = task.number "
                "AND standing.state IN ('done', 'failed') LEFT JOIN attempt ON attempt.number = standing.attempt "
                f"WHERE task.key IN ({','.join('?' * len(page))})",
                (self.worker, *map(bytearray, page)),
            )
            for key, state, *texts, sealed in rows:
                if _is_changed(key, state, texts, sealed):
                    damaged.append(key)
                else:
                    outcomes[key] = Outcome(state, text_of(texts[0]), text_of(texts[1]))
        if damaged:
            self._set_aside(damaged)
        return outcomes

    def reset(self, keys: Iterable[bytes]) -> int:
        """Make those of these tasks pending again that failed, and return how many; their attempts are kept."""
        return self.journal.write(
            f"UPDATE standing SET state = 'retry' WHERE worker = {_WORKER} AND state = 'failed' "
            "AND task = (SELECT number FROM task WHERE key = ?)",
            [(self.worker, key) for key in keys],
        )

    def _set_aside(self, keys: Sequence[bytes]) -> NoReturn:
        """Make tasks pending again whose attempts have changed in the file, and raise BadInput."""
        self.journal.write(
            f"UPDATE standing SET state = 'retry' WHERE worker = {_WORKER} "
            "AND task = (SELECT number FROM task WHERE key = ?)",
            [(self.worker, bytearray(key)) for key in keys],
        )
        raise BadInput(
            f"The journal {self.journal.path} is damaged: {len(keys):,} of its answers are not what was recorded. Run "
            "the command that made it again to ask for these again, or restore a copy."
        )

    def _pages(self, columns: str, condition: str, parameters: Sequence[Any]) -> Iterator[Any]:
        """The rows of a query, a page at a time. Its first column is the task's number, as is its first parameter."""
        after = 0
        while rows := self.journal.read(
            f"SELECT {columns} WHERE {condition} ORDER BY 1 LIMIT {PAGE_TASKS}", (after, *parameters)
        ):
            yield from rows
            after = rows[-1][0]


def _is_changed(key: bytes, state: str, texts: Sequence[Any], sealed: int | None) -> bool:
    """Return whether an attempt's texts are not what was recorded, or are gone with a part of the file."""
    return None in texts or sealed not in (None, seal(key, state, *map(text_of, texts)))
