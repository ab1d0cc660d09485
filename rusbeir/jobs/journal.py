"""The journal of a long job: its tasks, every attempt at them, and what came of it, in one SQLite file."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Literal, NamedTuple

from rusbeir.errors import BadInput
from rusbeir.jobs.journal_schema import connect, refuse_changes, reporting
from rusbeir.locks import hold

BATCH_TASKS = 32_000
BATCH_CHARS = 1 << 23
BLOCK_TASKS = 1 << 14
KEYS_A_QUESTION = 1000
PAGE_ENTRIES = 1000

_IN_BLOCK = "worker = ? AND task > ? AND task <= ? AND state IN ('done', 'failed')"
_SETTLED = "SELECT 1 FROM standing WHERE worker = ? AND task = task.number AND state IN ('done', 'failed')"


class Journal:
    """Tasks and attempts on disk. What record has returned from survives kill -9 at any later instant.

    One process holds a journal at a time. Safe between threads. Any string is kept and given back as it was,
    lone surrogates included, though they cannot be written to a UTF-8 file later: an answer is paid for, and what
    it is good for is decided by its reader. Disk trouble raises BackendError; the journal can be used on after it.
    """

    @classmethod
    def open(cls, path: str | Path, meta: Mapping[str, str]) -> Journal:
        """The journal at path, begun with meta where there is none yet.

        meta is what must not change while the job lasts (the source's fingerprint, the languages); the worker does
        not belong there, each keeps its own results. Raises BadInput, naming what changed, where the journal was
        begun with something else, and for a file that is no journal; BackendError while another process uses it.

        >>> with Journal.open("out/journal.sqlite", {"source": "9f2c"}) as journal:  # doctest: +SKIP
        ...     journal.add([Task.of("segment", "Water boils.")])
        1
        """
        return cls(Path(path), meta)

    def __init__(self, path: Path, meta: Mapping[str, str]) -> None:
        self.path = path
        self._lock = RLock()
        self._workers: dict[str, int] = {}
        self._file = hold(path.with_name(path.name + ".lock"), path)
        try:
            self._db = connect(path)
        except BaseException:
            self._file.close()
            raise
        try:
            self._begin(meta)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write everything into the one file, and let others have it. Harmless when repeated."""
        with self._lock:
            self._db.close()
            self._file.close()

    def get_meta(self, name: str) -> str | None:
        """What is kept under that name; None where nothing is."""
        rows = self.read("SELECT value FROM meta WHERE name = ?", (name,))
        return text_of(rows[0][0]) if rows else None

    def set_meta(self, values: Mapping[str, str]) -> None:
        """Keep each value under its name, all in one transaction."""
        self.write("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", values.items())

    def add(self, tasks: Iterable[Task]) -> int:
        """How many of the tasks were new; those known by their key are passed over. Streams, in transactions.

        What is committed before an error stays, so a plan that was cut short is simply made again.
        """
        added = 0
        for batch in _batches(tasks):
            added += self.write("INSERT OR IGNORE INTO task(key, kind, payload) VALUES (?, ?, ?)", batch)
        return added

    def pending(self, worker: str, limit: int, after: int = 0, *, kind: str = "") -> list[tuple[int, Task]]:
        """At most limit (number, task) that the worker neither did nor failed, in the order of adding.

        The next page is asked for with the last number as after; [] is the end, and a page before it may be short.
        With kind, only tasks of that kind.
        """
        number = self.number(worker)
        last = self._last()
        among, kinds = ("AND kind = ? ", (kind,)) if kind else ("", ())
        while after < last:
            # What is finished is counted and passed over in blocks: texts are read only where some are left.
            end = min(after + BLOCK_TASKS, last)
            (settled,) = self.read(f"SELECT count(*) FROM standing WHERE {_IN_BLOCK}", (number, after, end))[0]
            if settled < end - after and (
                found := self._tasks(
                    f"FROM task WHERE number > ? AND number <= ? {among}"
                    f"AND NOT EXISTS ({_SETTLED}) ORDER BY number LIMIT ?",
                    (after, end, *kinds, number, limit),
                )
            ):
                return found
            after = end
        return []

    def record(self, rows: Sequence[Attempt]) -> None:
        """Note attempts, all or none. Earlier ones are never overwritten, and what is done keeps its first answer.

        Raises BadInput for a key that was never added.
        """
        now = time.time()
        self.write(
            "INSERT INTO attempt(task, worker, nth, state, result, error, flags, seconds, recorded) "
            "SELECT number, ?1, 1 + coalesce((SELECT nth FROM standing WHERE worker = ?1 AND task = number), 0), "
            "?2, ?3, ?4, ?5, ?6, ?7 FROM task WHERE key = ?8",
            [
                (self._worker(row.worker), row.state, row.result, row.error, row.flags, row.seconds, now, row.key)
                for row in rows
            ],
            expected=len(rows),
        )

    def results(self, keys: Sequence[bytes], *workers: str) -> dict[bytes, str]:
        """key -> result of the tasks done; of several workers the first that did it counts, the rest are left out."""
        found: dict[bytes, str] = {}
        for worker in workers:
            number = self.number(worker)
            missing = [key for key in keys if key not in found]
            for start in range(0, len(missing), KEYS_A_QUESTION):
                asked = missing[start : start + KEYS_A_QUESTION]
                rows = self.read(
                    "SELECT task.key, attempt.result FROM task CROSS JOIN standing ON standing.worker = ? "
                    "AND standing.task = task.number AND standing.state = 'done' "
                    "CROSS JOIN attempt ON attempt.number = standing.attempt "
                    f"WHERE task.key IN ({','.join('?' * len(asked))})",
                    (number, *asked),
                )
                found.update((key, text_of(result)) for key, result in rows)
        return found

    def counts(self, *workers: str) -> dict[str, int]:
        """How many tasks are "done" by one of the workers, "failed" by all that tried, or "pending"; default: all."""
        numbers = self._numbers(workers)
        total = self._last()
        done, settled = self.read(
            "SELECT coalesce(sum(done), 0), count(*) FROM (SELECT max(state = 'done') AS done FROM standing "
            f"WHERE worker IN ({','.join(map(str, numbers))}) AND state IN ('done', 'failed') GROUP BY task)"
        )[0]
        return {"done": done, "failed": settled - done, "pending": total - settled}

    def failures(self, *workers: str, limit: int | None = None) -> Iterator[TaskResult]:
        """Tasks that a worker failed and none of the workers did (default: all of them); worker by worker, in order."""
        listed = ",".join(map(str, self._numbers(workers)))
        undone = (
            "NOT EXISTS (SELECT 1 FROM standing AS other "
            f"WHERE other.worker IN ({listed}) AND other.task = standing.task AND other.state = 'done')"
        )
        return self._entries(workers, f"standing.state = 'failed' AND {undone}", limit)

    def flagged(self, *workers: str, limit: int | None = None) -> Iterator[TaskResult]:
        """Tasks done whose answer carries flags, by these workers (default: all); worker by worker, in order."""
        return self._entries(workers, "standing.state = 'done' AND attempt.flags != ''", limit)

    def reset_failed(self, *workers: str) -> int:
        """How many failed tasks are pending again, with these workers (default: all); their attempts stay noted."""
        numbers = ",".join(map(str, self._numbers(workers)))
        return self.write(
            f"UPDATE standing SET state = 'retry' WHERE worker IN ({numbers}) AND state = ?", [("failed",)]
        )

    def number(self, signature: str) -> int:
        """The worker's number in the tables; 0 where it has recorded nothing."""
        return self._workers.get(signature, 0)

    def read(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """The rows of a query over the tables of schema.py: for the other modules of jobs."""
        with self._lock, reporting(self.path):
            return self._db.execute(statement, parameters).fetchall()

    def write(self, statement: str, rows: Iterable[Sequence[Any]], *, expected: int | None = None) -> int:
        """How many rows the statement changed, run for each of rows in one transaction: for the modules of jobs."""
        rows = list(rows)
        try:
            return self._transact(statement, rows, expected)
        except UnicodeEncodeError:
            return self._transact(statement, [tuple(map(_bindable, row)) for row in rows], expected)

    def _tasks(self, source: str, parameters: Sequence[Any]) -> list[tuple[int, Task]]:
        rows = self.read(f"SELECT task.number, key, kind, payload {source}", parameters)
        return [(row[0], Task(row[1], text_of(row[2]), text_of(row[3]))) for row in rows]

    def _last(self) -> int:
        """The last task's number; as none is ever deleted, also how many there are."""
        return int(self.read("SELECT coalesce(max(number), 0) FROM task")[0][0])

    def _entries(self, workers: Sequence[str], condition: str, limit: int | None) -> Iterator[TaskResult]:
        left = -1 if limit is None else limit
        for number in self._numbers(workers):
            after = 0
            while left:
                rows = self.read(
                    "SELECT task.number, key, kind, payload, signature, result, error, flags, standing.nth "
                    "FROM standing CROSS JOIN attempt ON attempt.number = standing.attempt "
                    "CROSS JOIN task ON task.number = standing.task "
                    "CROSS JOIN worker ON worker.number = standing.worker "
                    f"WHERE standing.worker = ? AND standing.task > ? AND {condition} ORDER BY standing.task LIMIT ?",
                    (number, after, PAGE_ENTRIES if left < 0 else min(left, PAGE_ENTRIES)),
                )
                for _, key, kind, payload, signature, result, error, flags, attempts in rows:
                    task = Task(key, text_of(kind), text_of(payload))
                    yield TaskResult(
                        task, text_of(signature), text_of(result), text_of(error), text_of(flags), attempts
                    )
                if not rows:
                    break
                after = rows[-1][0]
                left = max(left - len(rows), -1) if left > 0 else left

    def _begin(self, meta: Mapping[str, str]) -> None:
        """Compare what is given with what the journal was begun with, or begin it."""
        stored = {text_of(name): text_of(value) for name, value in self.read("SELECT * FROM meta")}
        if stored:
            refuse_changes(self.path, stored, meta)
        else:
            self.set_meta({"begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **meta})
        self._workers = {text_of(signature): number for number, signature in self.read("SELECT * FROM worker")}

    def _worker(self, signature: str) -> int:
        """The worker's number in the tables, given with its first attempt."""
        if signature not in self._workers:
            self.write("INSERT OR IGNORE INTO worker(signature) VALUES (?)", [(signature,)])
            rows = self.read("SELECT signature, number FROM worker")
            self._workers = {text_of(known): number for known, number in rows}
        return self._workers[signature]

    def _numbers(self, workers: Sequence[str]) -> list[int]:
        return [self.number(worker) for worker in workers] if workers else sorted(self._workers.values())

    def _transact(self, statement: str, rows: Sequence[Sequence[Any]], expected: int | None) -> int:
        with self._lock, reporting(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                changed = self._db.executemany(statement, rows).rowcount
                if expected is not None and changed != expected:
                    raise BadInput(f"{self.path}: {expected - changed} of {expected} answers belong to no task in it.")
                self._db.execute("COMMIT")
            finally:
                # SQLite itself may have rolled back, which it does on some disk errors.
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
            return max(changed, 0)


def _batches(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    batch: list[Task] = []
    chars = 0
    for task in tasks:
        batch.append(task)
        chars += len(task.payload)
        if chars >= BATCH_CHARS or len(batch) >= BATCH_TASKS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def _bindable(value: Any) -> Any:
    """The value as SQLite takes it: a string with lone surrogates as bytes."""
    with contextlib.suppress(UnicodeEncodeError):
        if isinstance(value, str):
            value.encode()
        return value
    return value.encode("utf-8", "surrogatepass")


def text_of(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


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


class Attempt(NamedTuple):
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


class TaskResult(NamedTuple):
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
