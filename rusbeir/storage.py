"""rusbeir's files: where they are, how they are written completely or not at all, and locked by one process."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import shutil
import sqlite3
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path
from typing import IO, Any

from rusbeir.errors import BackendError, BadInput, RusbeirError
from rusbeir.text import batched

logger = logging.getLogger(__name__)

_MAX_KEYS_PER_QUERY = 500
_UMASK = os.umask(0o022)
os.umask(_UMASK)

CACHE_PARTS = {
    "checksums": "checksums of files, so that each is read once",
    "copies": "corpora of other formats, as JSONL",
    "corpora": "where each document is in its file",
    "downloads": "files of datasets",
    "embeddings": "vectors of documents and queries",
    "hub": "datasets of the Hugging Face hub, as JSONL",
    "indexes": "BM25 indexes",
    "int8": "networks of models in integers of 8 bits",
    "lemmas": "dictionary forms of words",
    "locks": "who is fetching what",
    "recorded": "checksums of the first download",
    "runs": "hits of the stages of compositions",
    "scores": "scores of rerankers",
}
"""Folders of the cache, and what they hold: made by rusbeir, which can make it again. Users put models in others."""

WRITE_AHEAD = "journal_mode = WAL"
"""The pragma by which readers and a writer do not wait for each other, and a kill leaves the file whole."""

_POLL_SECONDS = 0.2
_SILENT_SECONDS = 1.0
_SHARED_SECONDS = 60.0
_FRESH_SECONDS = 60.0
"""The age below which a temporary file counts as in use."""
_RANDOM = re.compile("[a-z0-9_]{8}")
"""What tempfile puts behind the prefix of a temporary name."""

if sys.platform == "win32":
    import msvcrt

    _NO_FOLLOW = 0
    _SYNCABLE = "r+b"

    def _is_abandoned(path: Path) -> bool:
        # Folders cannot be locked here.
        return False

    def _take(file: IO[bytes]) -> None:
        # One byte far behind the process id, which others must be able to read.
        file.seek(1 << 30)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    _NO_FOLLOW = os.O_NOFOLLOW
    _SYNCABLE = "rb"

    def _is_abandoned(path: Path) -> bool:
        """Return whether the process that made a temporary file or folder has ended."""
        with contextlib.suppress(OSError):
            status = path.lstat()
            # tempfile gives no rights to others; a user's file of such a name has other ones.
            if stat.filemode(status.st_mode) not in ("-rw-------", "drwx------"):
                return False
            # A process that has just made it may not have locked it yet.
            if time.time() - status.st_mtime < _FRESH_SECONDS:
                return False
            descriptor = os.open(path, os.O_RDONLY | _NO_FOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            finally:
                os.close(descriptor)
        return False

    def _take(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def data_folder(name: str) -> Path:
    """Return the folder of data shipped with the package: inside an installed wheel, or next to the code."""
    inside = Path(__file__).parent / "_data" / name
    return inside if inside.is_dir() else Path(__file__).parent.parent / name


def cache_folder() -> Path:
    """RUSBEIR_CACHE, else XDG_CACHE_HOME/rusbeir, else ~/.cache/rusbeir. Not created here."""
    if folder := os.environ.get("RUSBEIR_CACHE"):
        return Path(folder)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rusbeir"


@contextlib.contextmanager
def temporary_cache(*shared: str) -> Iterator[Path]:
    """An empty cache for the block, on the disk of the cache; of that one it shares the folders that are kept."""
    cache, before = cache_folder(), os.environ.get("RUSBEIR_CACHE")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".temporary.") as name:
        for part in shared:
            (cache / part).mkdir(exist_ok=True)
            (Path(name) / part).symlink_to(cache / part)
        os.environ["RUSBEIR_CACHE"] = name
        try:
            yield Path(name)
        finally:
            del os.environ["RUSBEIR_CACHE"]
            if before is not None:
                os.environ["RUSBEIR_CACHE"] = before


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write that appears at path, complete and synced, when the block ends without an error.

    Raises BackendError if the disk is full or the folder cannot be written; path is then as it was.
    """
    with _temporary(path) as temporary:
        with temporary.open("w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_UMASK)
        temporary.replace(path)


@contextlib.contextmanager
def atomic_folder(path: Path, *, keyed: bool = False) -> Iterator[Path]:
    """Make a folder to fill that appears at path, in one step, when the block ends without an error.

    keyed says that its name decides its content, as in the cache: if another process has made it meanwhile, that copy
    stays. Otherwise path may be an empty folder; one that cannot be replaced, as a mount point or a link cannot, gets
    the content, entry by entry. Raises BackendError as atomic_file does, and where path holds something meanwhile.
    """
    with _temporary(path, folder=True) as temporary:
        yield temporary
        for entry in temporary.rglob("*"):
            if entry.is_file():
                with entry.open(_SYNCABLE) as file:
                    os.fsync(file.fileno())
        temporary.chmod(0o777 & ~_UMASK)
        try:
            temporary.rename(path)
        except OSError as error:
            if not path.is_dir():
                raise
            if any(path.iterdir()):
                if not keyed:
                    raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY)) from error
            else:
                _move_entries(temporary, path)


@contextlib.contextmanager
def _temporary(path: Path, *, folder: bool = False) -> Iterator[Path]:
    """Make an empty file or folder next to path, which may be moved there; what is left of it is removed at the end.

    This process holds it while it lives, so that others know what killed processes left. That is removed here, but in
    the cache, where `rusbeir cache clear` does it. Raises BackendError for any OSError in the block.
    """
    temporary: Path | None = None
    prefix = f".{path.name}."
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if cache_folder() not in path.parents:
            with os.scandir(path.parent) as entries:
                names = [entry.name for entry in entries if entry.name.startswith(prefix)]
            for left in (path.parent / name for name in names if _RANDOM.fullmatch(name, len(prefix))):
                if _is_abandoned(left):
                    with contextlib.suppress(OSError):
                        shutil.rmtree(left) if left.is_dir() else left.unlink()
        with contextlib.ExitStack() as held:
            if folder:
                temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=prefix))
            else:
                descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=prefix)
                os.close(descriptor)
                temporary = Path(name)
            if sys.platform != "win32":
                # Without locks on that file system, nobody takes it for abandoned either.
                with contextlib.suppress(OSError):
                    descriptor = os.open(temporary, os.O_RDONLY)
                    held.callback(os.close, descriptor)
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield temporary
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        if temporary is not None:
            if folder:
                shutil.rmtree(temporary, ignore_errors=True)
            else:
                temporary.unlink(missing_ok=True)


def _move_entries(folder: Path, to: Path) -> None:
    """Move what a folder holds into an empty one, which is as it was if that fails."""
    try:
        for entry in sorted(folder.iterdir()):
            shutil.move(entry, to / entry.name)
    except BaseException:
        for entry in to.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        raise


def check_writable(folder: Path) -> None:
    """Raise BackendError where no file can be made in the folder, or the folder itself cannot be."""
    there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    try:
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        raise cannot_write(folder, error) from error


def append_line(path: Path, line: bytes) -> None:
    """Add one line to a file in a single synced write, so that readers never see half a line.

    Raises BackendError if the disk is full or the folder cannot be written; the file is then as it was.
    """
    line += b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab", buffering=0) as file:
            start = file.tell()
            # A disk that is nearly full takes a part of the line and reports no error.
            written = file.write(line)
            try:
                while written < len(line):
                    written += file.write(line[written:])
            except OSError:
                file.truncate(start)
                raise
            os.fsync(file.fileno())
    except OSError as error:
        raise cannot_write(path, error) from error


def refuse_links(folder: Path) -> None:
    """Raise BadInput if the folder contains a symbolic link, through which writing would change files elsewhere.

    Also if the folder's own name is not UTF-8, as it is written to reports.
    """
    if os.fsencode(folder).decode("utf-8", "replace") != str(folder):
        raise BadInput(f"The folder {str(folder)!r} is not UTF-8, as paths in reports must be. Rename it.")
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent, name) for name in (*folders, *files)):
            if path.is_symlink():
                raise BadInput(
                    f"{path} is a symbolic link, through which rusbeir could change files outside {folder}. "
                    "Put a copy of what it links to in its place, or remove it."
                )


def open_database(
    path: Path, *pragmas: str, prepare: Callable[[sqlite3.Connection], None] = lambda db: None
) -> sqlite3.Connection:
    """Open the SQLite file at path, new or not, which processes may write to in turn; raises sqlite3.Error.

    Transactions begin and end only by BEGIN and COMMIT. prepare may refuse the file, which is then unchanged, before
    pragmas such as WRITE_AHEAD are set; another process that sets the same is waited for.
    """
    db = sqlite3.connect(path, isolation_level=None, timeout=_SHARED_SECONDS, check_same_thread=False)
    end = time.monotonic() + _SHARED_SECONDS
    left = list(pragmas)
    try:
        prepare(db)
        while left:
            try:
                db.execute(f"PRAGMA {left[0]}")
                del left[0]
            except sqlite3.OperationalError as error:
                # SQLite waits for other locks, but not while another process makes the same change to a new file.
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(_POLL_SECONDS)
    except (sqlite3.Error, RusbeirError):
        db.close()
        raise
    return db


def select_by_keys(db: sqlite3.Connection, query: str, keys: Collection[bytes]) -> Iterator[Any]:
    """Yield the rows of a query that ends in IN, for any number of keys; SQLite takes a limited number at once."""
    for part in batched(keys, _MAX_KEYS_PER_QUERY):
        yield from db.execute(f"{query} ({','.join('?' * len(part))})", part)


@contextlib.contextmanager
def reporting_sqlite(path: Path, kind: str, *, in_cache: bool = False) -> Iterator[None]:
    """Turn SQLite's errors about a file of that kind, such as "journal", into one line.

    Raises BackendError for the disk, rights and locks, and BadInput where the file is of another kind or damaged. What
    is in the cache, in the part of that name, can be made again: there all of them are BackendErrors.
    """
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        is_damaged = type(error) in (sqlite3.DatabaseError, UnicodeDecodeError) or "decode to UTF-8" in str(error)
        if in_cache and (is_damaged or isinstance(error, sqlite3.OperationalError)):
            advice = f"Free some space, or remove them with `rusbeir cache clear {kind}`."
            raise BackendError(f"Cannot use the {kind} in {path}: {error}. {advice}") from error
        if is_damaged:
            raise BadInput(
                f"{path} is not a {kind}, or is damaged ({error}). It was left unchanged. Move it away to start over, "
                "or restore a copy."
            ) from error
        if not isinstance(error, sqlite3.OperationalError):
            raise  # a mistake in rusbeir, not in the file
        raise BackendError(
            f"Cannot use the {kind} {path}: {error}. Everything recorded before is kept. Free some space or make the "
            "folder writable, then run the same command again."
        ) from error


def cannot_write(path: Path, error: OSError) -> BackendError:
    """Return the error for a failed write: what, why and what to do."""
    return BackendError(
        f"Cannot write {path}: {error.strerror or error}. "
        "Free some space or choose a writable folder (RUSBEIR_CACHE sets the cache's)."
    )


class InUse(BackendError):
    """Another process holds the file."""


def hold(path: Path, what: Path) -> IO[bytes]:
    """Open the lock file at path, which is held until it is closed or this process ends, however it ends.

    The file stays where it is, with the process id of its last holder. Raises InUse, naming that process and what it
    uses, if the file is held already, and BackendError if it is a link or cannot be written or locked.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A folder from elsewhere may contain a link of that name.
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _NO_FOLLOW, 0o666), "a+b", buffering=0)
    except OSError as error:
        if path.is_symlink():
            raise BackendError(f"The lock file {path} is a symbolic link. Remove it.") from error
        raise cannot_write(path, error) from error
    try:
        _take(file)
    except (BlockingIOError, PermissionError) as error:
        file.seek(0)
        holder = file.read(32).decode("ascii", "replace").strip()
        file.close()
        raise InUse(
            f"{what} is in use by {f'process {holder}' if holder else 'another process'}"
            f"{' (this one)' if holder == str(os.getpid()) else ''}. Wait until it has finished, or stop it."
        ) from error
    except OSError as error:
        file.close()
        raise BackendError(
            f"The file system of {path.parent} does not support file locks; choose a folder on a local disk "
            f"(RUSBEIR_CACHE sets the cache's). The system says: {error.strerror or error}."
        ) from error
    try:
        file.truncate(0)
        file.write(f"{os.getpid()}\n".encode())
    except OSError as error:
        file.close()
        raise cannot_write(path, error) from error
    return file


def hold_when_free(path: Path, what: Path) -> IO[bytes]:
    """Wait until nobody else holds the lock file at path, then hold it; waiting over a second is logged once."""
    started = time.monotonic()
    while True:
        try:
            return hold(path, what)
        except InUse as error:
            if time.monotonic() - started > _SILENT_SECONDS:
                _log_once(str(error))
            time.sleep(_POLL_SECONDS)


@cache
def _log_once(why: str) -> None:
    logger.warning("Waiting: %s", why)
