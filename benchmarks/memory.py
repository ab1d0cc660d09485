"""The peak of a process's resident memory, as Linux tells it.

Not getrusage: its figure is inherited from the process that started this one, however large that was.
"""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

PAUSE_SECONDS = 0.02


def peak_bytes(pid: int | str = "self") -> int:
    """The largest resident size so far; 0 of a process that has ended."""
    try:
        matched = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except ProcessLookupError:
        return 0
    return 1024 * int(matched[1]) if matched else 0


def peak_until_end(process: subprocess.Popen[bytes]) -> int:
    """The same of a process, looked at until it ends: what it took in its last moment may be missed."""
    peak = 0
    while process.poll() is None:
        peak = max(peak, peak_bytes(process.pid))
        time.sleep(PAUSE_SECONDS)
    return peak


def tree_bytes(root: int) -> int:
    """Proportional set size of a process and all below it; one that ends meanwhile counts as nothing."""
    total, waiting = 0, [root]
    while waiting:
        folder = Path("/proc") / str(waiting.pop())
        try:
            lines = (folder / "smaps_rollup").read_text().splitlines()
            total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            for children in folder.glob("task/*/children"):
                waiting += map(int, children.read_text().split())
        except OSError:
            continue
    return total
