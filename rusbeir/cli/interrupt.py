"""Ctrl-C: stop soon, say what is kept and how to resume, and end with exit code 130."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator

EXIT_CODE = 130
GRACE_SECONDS = 1.5
"""How long the verb may take to close its files; a call into a library would otherwise end at its own pace."""
MESSAGE = "rusbeir: interrupted. Finished work is kept; run the same command again to resume it.\n"


@contextlib.contextmanager
def stop_soon() -> Iterator[None]:
    """Within it, SIGINT raises KeyboardInterrupt, and ends the process if it still runs after GRACE_SECONDS.

    Ending it is as safe as a kill: files appear when they are complete, and journals are committed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    # Python's own handlers wait for the main thread, which may be in a library; this descriptor does not.
    wakeup = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_watch, args=(reading,), daemon=True).start()
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.set_wakeup_fd(wakeup)
        writing.close()


def tell() -> None:
    """Say on stderr what is kept."""
    with contextlib.suppress(OSError, ValueError):
        # A bar that could not be closed leaves its line and a hidden cursor.
        sys.stderr.write(("\r\x1b[K\x1b[?25h" if sys.stderr.isatty() else "") + MESSAGE)
        sys.stderr.flush()


def _watch(reading: socket.socket) -> None:
    """End the process GRACE_SECONDS after a SIGINT; return when the other end is closed."""
    while received := reading.recv(1):
        if received[0] == signal.SIGINT:
            time.sleep(GRACE_SECONDS)
            tell()
            os._exit(EXIT_CODE)
    reading.close()
