"""A killed job leaves no worker behind."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

ENDLESS = """
import itertools
from rusbeir.analysis import Analyzer
lines = Analyzer("ru").analyze_lines(itertools.repeat("мама мыла раму " * 50), processes=2)
for number, _ in enumerate(lines):
    if number == 10_000:
        print("running", flush=True)
"""


def test_workers_end_with_a_killed_parent():
    with subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as job:
        assert job.stdout is not None
        job.stdout.readline()
        workers = children(job.pid)
        assert workers
        job.kill()
    for _ in range(100):
        if not any(alive(worker) for worker in workers):
            return
        time.sleep(0.1)
    pytest.fail("workers outlived their parent")


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"
