"""rusbeir's files: where they are, and how they are written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from rusbeir.errors import BackendError


def data_folder(name: str) -> Path:
    """The folder of data shipped with the package: inside an installed wheel, or next to the code."""
    inside = Path(__file__).parent / "_data" / name
    return inside if inside.is_dir() else Path(__file__).parent.parent / name


def cache_folder() -> Path:
    """RUSBEIR_CACHE, else XDG_CACHE_HOME/rusbeir, else ~/.cache/rusbeir. Not created here."""
    if own := os.environ.get("RUSBEIR_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rusbeir"


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that appears at path, complete and synced, when the block ends without an error.

    Raises BackendError if the disk is full or the folder cannot be written; path is then as it was.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = Path(file.name)
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A folder to fill that appears at path, in one step, when the block ends without an error.

    If another process has made the same folder meanwhile, its copy stays.
    Raises BackendError as atomic_file does.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        yield temporary
        for entry in temporary.rglob("*"):
            if entry.is_file():
                with entry.open("rb") as file:
                    os.fsync(file.fileno())
        temporary.chmod(0o777 & ~_umask())
        try:
            temporary.rename(path)
        except OSError:
            if not path.is_dir():
                raise
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def append_line(path: Path, line: bytes) -> None:
    """Add one line to a file in a single synced write, so that readers never see half a line."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab", buffering=0) as file:
            file.write(line + b"\n")
            os.fsync(file.fileno())
    except OSError as error:
        raise cannot_write(path, error) from error


@contextlib.contextmanager
def reporting_sqlite(path: Path, kind: str) -> Iterator[None]:
    """Turn SQLite's errors into BackendError; kind is the name of the file at path in `rusbeir cache clear`."""
    try:
        yield
    except sqlite3.Error as error:
        raise BackendError(
            f"Cannot use the {kind} in {path} ({error}). Free some space, or remove them with "
            f"`rusbeir cache clear {kind}`."
        ) from error


def cannot_write(path: Path, error: OSError) -> BackendError:
    """The error for a failed write: what, why and what to do."""
    return BackendError(
        f"Cannot write {path}: {error.strerror or error}. "
        "Free some space or choose a writable folder (RUSBEIR_CACHE sets the cache's)."
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
