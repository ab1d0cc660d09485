"""The journal of a long job: its tasks and every attempt at them, in one SQLite file."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NamedTuple, TypeAlias

from rusbeir.errors import BadInput
from rusbeir.storage import WRITE_AHEAD, hold, open_database, reporting_sqlite
from rusbeir.text import batched, shorten

BATCH_TASKS = 32_000
BATCH_CHARS = 1 << 23
SHOWN_CHARS = 60

APPLICATION_ID = 0x52754265
"""SQLite's application_id of rusbeir's journals ("RuBe"), in the file's header."""
FORMAT = 1
_CHECKPOINT_PAGES = 1 << 14
"""The write-ahead log is folded into the file at this length (64 MB): less often than by default, for bulk adding."""
# A commit survives the death of this process; a power failure may take the last ones, but damages nothing.
_PRAGMAS = (
    WRITE_AHEAD, "synchronous = NORMAL", f"cache_size = -{32 << 10}", f"wal_autocheckpoint = {_CHECKPOINT_PAGES}"
)  # fmt: skip

_SCHEMA = (
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE task(number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
    " kind TEXT NOT NULL, payload TEXT NOT NULL)",
    "CREATE TABLE worker(number INTEGER PRIMARY KEY, signature TEXT NOT NULL UNIQUE)",
    # Every attempt, in the order of recording; rows are only added. recorded is in Unix seconds.
    "CREATE TABLE attempt(number INTEGER PRIMARY KEY, task INTEGER NOT NULL REFERENCES task,"
    " worker INTEGER NOT NULL REFERENCES worker, nth INTEGER NOT NULL, state TEXT NOT NULL, result TEXT NOT NULL,"
    " error TEXT NOT NULL, flags TEXT NOT NULL, seconds REAL NOT NULL, recorded REAL NOT NULL, seal INTEGER)",
    # The state of a task with a worker: narrow, so that what is pending is found without reading any text.
    "CREATE TABLE standing(worker INTEGER NOT NULL, task INTEGER NOT NULL, state TEXT NOT NULL, nth INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL, PRIMARY KEY(worker, task)) WITHOUT ROWID",
    # What is done stays done, with its first answer.
    "CREATE TRIGGER stand AFTER INSERT ON attempt BEGIN"
    " INSERT INTO standing VALUES (new.worker, new.task, new.state, new.nth, new.number)"
    " ON CONFLICT(worker, task) DO UPDATE SET nth = new.nth,"
    " state = CASE state WHEN 'done' THEN state ELSE new.state END,"
    " attempt = CASE state WHEN 'done' THEN attempt ELSE new.number END;"
    " END",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
)


BATCHES = "batches"
"""The name under which a journal says that it has requests of batches."""
SET_META = "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"

Change: TypeAlias = tuple[str, Sequence[Sequence[Any]]]
"""A statement, and the rows that it is run for."""


@dataclass(eq=False)
class Journal:
    """Tasks and attempts on disk. What record has returned from survives kill -9 at any later moment.

    TaskQueue reads it. One process holds a journal at a time; its threads may share it. Any string is kept and given
    back unchanged, unpaired surrogates included, although they cannot be written to a UTF-8 file later: an answer was
    paid for, and its reader decides what it is good for. Disk trouble raises BackendError, after which the journal
    can still be used.
    """

    path: Path
    _db: sqlite3.Connection
    _lock: Lock = field(default_factory=Lock, init=False)
    _workers: dict[str, int] = field(default_factory=dict, init=False)
    """The numbers of those that are known."""

    @classmethod
    @contextlib.contextmanager
    def open(
        cls, path: str | Path, meta: Mapping[str, str], *, advice: Mapping[str, Callable[[], str]] | None = None
    ) -> Iterator[Journal]:
        """Open the journal at path for the length of a with block; created with meta where the file does not exist.

        meta is what must not change while the job lasts (the source's fingerprint, the languages). Workers do not
        belong there, as each keeps its own results. Raises BadInput, naming what changed, for a journal created with
        different settings, with the advice under the names of these, and for a file that is not a journal; BackendError
        while another process uses it.

        Examples:
            >>> with Journal.open("out/journal.sqlite", {"source": "9f2c"}) as journal:  # doctest: +SKIP
            ...     journal.add([Task.of("segment", "Water boils.")])
            1
        """
        path = Path(path)
        with contextlib.ExitStack() as files:
            files.enter_context(hold(path.with_name(path.name + ".lock"), path))
            with reporting_sqlite(path, "journal"):
                opened = open_database(path, *_PRAGMAS, prepare=partial(_prepare, path))
                db = files.enter_context(contextlib.closing(opened))
            journal = cls(path, db)
            stored = {text_of(name): text_of(value) for name, value in journal.read("SELECT * FROM meta")}
            # A kill may have come between the first note and these.
            if stored.keys() <= {"begun"}:
                journal.set_meta({"begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **meta})
            elif changed := [name for name, value in meta.items() if stored.get(name) != value]:
                before = {name: _quote(stored[name]) if name in stored else "not set" for name in changed}
                changes = [f"{name} was {before[name]} and is now {_quote(meta[name])}" for name in changed]
                steps = "Give the same settings, choose another folder, or move the journal away to start over."
                more = [advice[name]() for name in changed if name in advice] if advice else []
                raise BadInput(
                    f"{path} was created with different settings: {'; '.join(changes)}. {' '.join([steps, *more])}"
                )
            try:
                yield journal
            finally:
                # A thread may still be writing.
                with journal._lock:
                    db.close()

    def get_meta(self, name: str) -> str | None:
        """Return the value stored under the name; None where there is none."""
        rows = self.read("SELECT value FROM meta WHERE name = ?", (name,))
        return text_of(rows[0][0]) if rows else None

    def set_meta(self, values: Mapping[str, str]) -> None:
        """Store each value under its name, all in one transaction."""
        self.write(SET_META, values.items())

    def add(self, tasks: Iterable[Task]) -> int:
        """Add the tasks whose keys are new, and return how many were. Streams, in transactions.

        What is committed before an error stays, so a plan that was cut short is simply made again.
        """
        # As bytearrays keys go to SQLite at once; for bytes, sqlite3 first looks for an adapter.
        return sum(
            self.write(
                "INSERT OR IGNORE INTO task(key, kind, payload) VALUES (?, ?, ?)",
                [(bytearray(key), kind, payload) for key, kind, payload in batch],
            )
            for batch in batched(tasks, BATCH_TASKS, chars=lambda task: len(task.payload), max_chars=BATCH_CHARS)
        )

    def record(self, attempts: Sequence[Attempt]) -> None:
        """Store attempts, all or none. Earlier ones are never overwritten, and a task done keeps its first answer.

        Raises BadInput for a key that was never added.
        """
        now = time.time()
        if new := {attempt.worker for attempt in attempts} - self._workers.keys():
            self.write("INSERT OR IGNORE INTO worker(signature) VALUES (?)", [(worker,) for worker in new])
            self._workers = {text_of(name): n for name, n in self.read("SELECT signature, number FROM worker")}
        # A task that is not there has no number, and a row without one is ignored.
        self.write(
            "INSERT OR IGNORE INTO attempt(task, worker, nth, state, result, error, flags, seconds, recorded, seal) "
            "VALUES ((SELECT number FROM task WHERE key = ?1), ?2, 1 + coalesce((SELECT nth FROM standing "
            "WHERE worker = ?2 AND task = (SELECT number FROM task WHERE key = ?1)), 0), ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            [
                (
                    bytearray(key),
                    self._workers[worker],
                    state,
                    result,
                    error,
                    flags,
                    seconds,
                    now,
                    seal(key, state, result, error, flags),
                )
                for key, worker, state, result, error, flags, seconds in attempts
            ],
            expected=len(attempts),
        )

    def read(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Read the rows of a query over the tables of _SCHEMA."""
        try:
            with self._lock, reporting_sqlite(self.path, "journal"):
                return self._db.execute(statement, parameters).fetchall()
        except UnicodeEncodeError:
            return self.read(statement, [_bindable(value) for value in parameters])

    def write(
        self,
        statement: str,
        rows: Iterable[Sequence[Any]],
        *,
        expected: int | None = None,
        together: Sequence[Change] = (),
    ) -> int:
        """Run the statement for each of rows in one transaction, and return how many rows it changed.

        The changes that belong together with it are made before, in the same transaction. Raises BadInput, and changes
        nothing, where the number is not as expected.
        """
        rows = list(rows)
        try:
            with self._lock, reporting_sqlite(self.path, "journal"):
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    for other, other_rows in together:
                        self._db.executemany(other, other_rows)
                    changed = self._db.executemany(statement, rows).rowcount
                    if expected is not None and changed != expected:
                        raise BadInput(
                            f"{self.path}: {expected - changed} of {expected} attempts are at unknown tasks."
                        )
                    self._db.execute("COMMIT")
                finally:
                    # SQLite itself may have rolled back, which it does on some disk errors.
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
        except UnicodeEncodeError:
            sendable = [(other, [tuple(map(_bindable, row)) for row in other_rows]) for other, other_rows in together]
            rows = [tuple(map(_bindable, row)) for row in rows]
            return self.write(statement, rows, expected=expected, together=sendable)
        return max(changed, 0)


def _prepare(path: Path, db: sqlite3.Connection) -> None:
    """Create the tables in an empty file; refuse, without touching it, a file that is not a journal of FORMAT."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (format_,) = db.execute("PRAGMA user_version").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    new = not (application or tables)
    if not new and application != APPLICATION_ID:
        raise BadInput(f"{path} is an SQLite database of another program. Give another path, or move the file away.")
    if not new and format_ != FORMAT:
        raise BadInput(
            f"{path} is a journal of format {format_}, but this rusbeir reads format {FORMAT}. "
            "Continue with the rusbeir version that created it, or move it away to start over."
        )
    if new:
        db.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA:
            db.execute(statement)
        db.execute("COMMIT")
    elif "seal" not in {row[1] for row in db.execute("PRAGMA table_info(attempt)")}:
        # A journal of an earlier version, whose attempts have no seals.
        db.execute("ALTER TABLE attempt ADD COLUMN seal INTEGER")


def damage(path: Path, why: str) -> str:
    """Return the message for a journal in which a row cannot be read."""
    return f"The journal {path} is damaged ({shorten(why)}). Move it away to start over, or restore a copy."


def seal(key: bytes, *texts: str) -> int:
    """A checksum of an attempt's task, state, result, error and flags: flipped bits in the file are noticed by it."""
    return zlib.crc32("\0".join(texts).encode("utf-8", "surrogatepass"), zlib.crc32(key))


def _quote(value: str) -> str:
    return repr(shorten(value, SHOWN_CHARS))


def _bindable(value: Any) -> Any:
    """Return the value as SQLite accepts it: a string that holds unpaired surrogates as bytes."""
    try:
        if isinstance(value, str):
            value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def text_of(value: str | bytes) -> str:
    """The string that a column holds, from either of its two forms. Raises BadInput for the number of a damaged row."""
    try:
        return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")
    except (AttributeError, UnicodeDecodeError) as error:
        raise BadInput(
            f"The journal is damaged: where a text was, it has {shorten(repr(value), 40)}. Move it away to start over, "
            "or restore a copy."
        ) from error


class Task(NamedTuple):
    """A piece of work: its kind (a text to translate, a pair to judge) and what the worker receives."""

    key: bytes
    kind: str
    payload: str

    @classmethod
    def of(cls, kind: str, payload: str) -> Task:
        """Return a task with the key of its content: equal tasks are one task.

        Examples:
            >>> Task.of("segment", "Water boils.").key.hex()
            '72ac7ff21149d3faaa5af484092a6c08'
        """
        return cls(task_key(kind, payload), kind, payload)


class Attempt(NamedTuple):
    """The outcome of one attempt at a task.

    "done" is final; "failed" is final until TaskQueue.reset; after "retry" the task is still pending.
    """

    key: bytes
    worker: str
    state: Literal["done", "failed", "retry"]
    result: str = ""
    error: str = ""
    flags: str = ""
    seconds: float = 0.0


def task_key(*parts: str) -> bytes:
    """16 bytes (BLAKE2b) that identify these strings in this order.

    Examples:
        >>> task_key("a", "b") == task_key("ab", "")
        False
    """
    # Each part is preceded by its length: ("a", "b") is not ("ab", "").
    data = "".join([f"{len(part)}:{part}" for part in parts]).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=16).digest()
