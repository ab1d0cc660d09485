"""Killing a program at work, for tests of what a kill leaves behind."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent.parent


def kill_eight_times(module: str, arguments: Sequence[object], written: Path) -> None:
    """Run the module as a program until the file grows, end it by SIGKILL soon after, and again."""
    random.seed(8)
    kills = 0
    for _ in range(8):
        before = _size(written)
        process = subprocess.Popen([sys.executable, "-m", module, *map(str, arguments)], cwd=REPOSITORY)
        while process.poll() is None and _size(written) == before:
            time.sleep(0.002)
        time.sleep(random.random() * 0.03)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
    assert kills > 3


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
