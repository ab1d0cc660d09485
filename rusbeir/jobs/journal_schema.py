"""The tables of a journal, what else may be found at its path, and what SQLite's errors mean to a user."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

from rusbeir.errors import BackendError, BadInput

APPLICATION = 0x52754265
"""The mark ("RuBe") in the file's header by which `file` and we know a journal of ours."""

VERSION = 1
PAGE_CACHE_KIB = 32 << 10
LOG_PAGES = 1 << 14
"""The write-ahead log is folded into the file at this length (64 MB): less often than by default, for bulk adding."""
SHOWN_CHARS = 60

_STATEMENTS = (
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE task(number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
    " kind TEXT NOT NULL, payload TEXT NOT NULL)",
    "CREATE TABLE worker(number INTEGER PRIMARY KEY, signature TEXT NOT NULL UNIQUE)",
    # Every attempt, in the order of recording; rows are only added. recorded is in Unix seconds.
    "CREATE TABLE attempt(number INTEGER PRIMARY KEY, task INTEGER NOT NULL REFERENCES task,"
    " worker INTEGER NOT NULL REFERENCES worker, nth INTEGER NOT NULL, state TEXT NOT NULL, result TEXT NOT NULL,"
    " error TEXT NOT NULL, flags TEXT NOT NULL, seconds REAL NOT NULL, recorded REAL NOT NULL)",
    # How a task stands with a worker: narrow, so that what is left is found without reading what is finished.
    "CREATE TABLE standing(worker INTEGER NOT NULL, task INTEGER NOT NULL, state TEXT NOT NULL, nth INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL, PRIMARY KEY(worker, task)) WITHOUT ROWID",
    # What is done stays done, with its first answer.
    "CREATE TRIGGER stand AFTER INSERT ON attempt BEGIN"
    " INSERT INTO standing VALUES (new.worker, new.task, new.state, new.nth, new.number)"
    " ON CONFLICT(worker, task) DO UPDATE SET nth = new.nth,"
    " state = CASE state WHEN 'done' THEN state ELSE new.state END,"
    " attempt = CASE state WHEN 'done' THEN attempt ELSE new.number END;"
    " END",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)


def connect(path: Path) -> sqlite3.Connection:
    """An open journal, made where there is none. Whatever else lies at path is left as it is and refused."""
    with reporting(path):
        # Nothing is begun or committed but by our own BEGIN and COMMIT.
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        try:
            _prepare(db, path)
        except BaseException:
            db.close()
            raise
        return db


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    new = not (application or tables)
    if not new and application != APPLICATION:
        raise BadInput(f"{path} is an SQLite file of something else: give another path, or move it away.")
    if not new and version != VERSION:
        raise BadInput(
            f"{path} is a journal of format {version}, and this rusbeir reads format {VERSION}: "
            "go on with the version that began it, or move it away to begin anew."
        )
    # A commit survives the death of this process; a power failure may take the last ones, but damages nothing.
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute(f"PRAGMA cache_size = -{PAGE_CACHE_KIB}")
    db.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
    if new:
        db.execute("BEGIN IMMEDIATE")
        for statement in _STATEMENTS:
            db.execute(statement)
        db.execute("COMMIT")


@contextlib.contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into BackendError (disk, rights, locks) and BadInput (no journal, or a damaged one)."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise BackendError(
            f"Cannot use the journal {path}: {error}. Everything recorded before is kept; "
            "free some space or make the folder writable, and run the same command again."
        ) from error
    except sqlite3.DatabaseError as error:
        if type(error) is not sqlite3.DatabaseError:
            raise  # a mistake of ours, not of the file
        raise BadInput(
            f"{path} is not a journal, or a damaged one ({error}). It was left as it is: "
            "move it away to begin anew, or put a copy back."
        ) from error


def refuse_changes(path: Path, stored: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Raise BadInput, naming each, where something given is not what the journal was begun with."""
    changes = [
        f"{name} was {_shown(stored[name])} and is now {_shown(value)}"
        if name in stored
        else f"{name} was not set and is now {_shown(value)}"
        for name, value in given.items()
        if stored.get(name) != value
    ]
    if changes:
        raise BadInput(
            f"{path} was begun with something else: {'; '.join(changes)}. "
            "Give what it was begun with, choose another folder, or move it away to begin anew."
        )


def _shown(value: str) -> str:
    return repr(value if len(value) <= SHOWN_CHARS else value[: SHOWN_CHARS - 1] + "…")
