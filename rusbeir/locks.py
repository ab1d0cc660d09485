"""A file that one process holds at a time."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from functools import cache
from pathlib import Path
from typing import IO

from rusbeir.errors import BackendError
from rusbeir.storage import cannot_write

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
_SILENT_SECONDS = 1.0


class InUse(BackendError):
    """Another process holds the file."""


def hold(path: Path, what: Path) -> IO[bytes]:
    """Open the lock file at path, which is held until it is closed or this process ends, however it ends.

    The file stays where it is, with the process id of its last holder. Raises InUse, naming that process and what it
    uses, if the file is held already, and BackendError if it cannot be written or locked.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b", buffering=0)
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
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
