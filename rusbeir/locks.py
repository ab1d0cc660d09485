"""A file that one process holds at a time."""

from __future__ import annotations

import logging
import os
import sys
import time
from functools import cache
from pathlib import Path
from typing import IO

from rusbeir.errors import BackendError
from rusbeir.storage import cannot_write

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
_SILENT_SECONDS = 1.0

if sys.platform == "win32":
    import msvcrt

    def _take(file: IO[bytes]) -> None:
        # One byte far behind the process id, which others shall be able to read.
        file.seek(1 << 30)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class InUse(BackendError):
    """Another process holds the file."""


def hold(path: Path, what: Path) -> IO[bytes]:
    """The open lock file at path, held until it is closed or this process ends, however it ends.

    The file stays where it is, with the process id of its last holder. Raises InUse, naming that process and what it
    uses, where the file is held already, and BackendError where it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b", buffering=0)
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        _take(file)
    except OSError as error:
        file.seek(0)
        holder = file.read(32).decode("ascii", "replace").strip()
        file.close()
        # A file system may know no locks at all: waiting would then never end.
        taken = isinstance(error, (BlockingIOError, PermissionError))
        raise (InUse if taken else BackendError)(
            f"{what} is in use by {f'process {holder}' if holder else 'another process'}"
            f"{' (this one)' if holder == str(os.getpid()) else ''}. Wait until it has finished, or stop it."
        ) from error
    try:
        file.truncate(0)
        file.write(f"{os.getpid()}\n".encode())
    except OSError as error:
        file.close()
        raise cannot_write(path, error) from error
    return file


def hold_when_free(path: Path, what: Path) -> IO[bytes]:
    """As hold, but waits for whoever holds the file, and says so once where that takes longer than a second."""
    started = time.monotonic()
    while True:
        try:
            return hold(path, what)
        except InUse as error:
            if time.monotonic() - started > _SILENT_SECONDS:
                _say_once(str(error))
            time.sleep(_POLL_SECONDS)


@cache
def _say_once(why: str) -> None:
    logger.warning("Waiting: %s", why)
