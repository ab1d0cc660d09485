"""A file that one process holds at a time."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO

from rusbeir.errors import BackendError
from rusbeir.storage import cannot_write

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


def hold(path: Path, what: Path) -> IO[bytes]:
    """The open lock file at path, held until it is closed or this process ends, however it ends.

    The file stays where it is, with the process id of its last holder. Raises BackendError, naming that process
    and what it uses, where the file is held already, and where it cannot be written.
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
        raise BackendError(
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
