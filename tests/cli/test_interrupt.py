"""Ctrl-C in a verb at work: one line, exit code 130, and the same command resumes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

MODULE = """
import pathlib, time

def started():
    pathlib.Path("started").touch()

class Slow:
    sends = None
    signature = "slow-1"
    def translate(self, texts, source, target):
        started()
        time.sleep(60)
    def search(self, queries, k):
        started()
        time.sleep(60)

def slow(*args, **options):
    return Slow()

def deaf(corpus):
    made = Slow()
    # A call that goes on although SIGINT has arrived, as one into a library does.
    def search(queries, k):
        started()
        while True:
            try:
                time.sleep(60)
            except KeyboardInterrupt:
                pass
    made.search = search
    return made

def translate(texts, source, target):
    started()
    time.sleep(60)

def nap(seconds):
    started()
    time.sleep(seconds)

def crew(corpus):
    from rusbeir.processes import in_order
    made = Slow()
    made.search = lambda queries, k: list(in_order(nap, [60, 60], 2))
    return made
"""

VERBS = [
    ["bench", "small", "--system", "python:slow_one.slow"],
    ["bench", "small", "--system", "python:slow_one.deaf"],
    ["bench", "small", "--system", "python:slow_one.crew"],
    ["port", "small", "--to", "en", "--translator", "python:slow_one.translate", "--out", "ported"],
]


def start(arguments: list[str], folder: Path) -> subprocess.Popen[str]:
    """The process of a command that is at work."""
    (folder / "slow_one.py").write_text(MODULE)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(folder)])}
    process = subprocess.Popen(
        [sys.executable, "-m", "rusbeir.cli", *arguments],
        cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    while not (folder / "started").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    return process


@pytest.mark.parametrize("arguments", VERBS, ids=["bench", "deaf", "crew", "port"])
def test_one_line(beir, tmp_path, arguments):
    """The signal reaches this process alone, as from `kill -INT` or a scheduler, and not the workers."""
    process = start(arguments, tmp_path)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    assert "leaked" not in err
    assert err.splitlines()[-1].startswith("rusbeir: interrupted. Finished work is kept; run the same command again")
    assert err.count("interrupted") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_kill_prints_nothing(beir, tmp_path, number):
    """loky's resource tracker outlives the process, and would tell of semaphores that nobody gave back."""
    process = start(VERBS[2], tmp_path)
    process.send_signal(number)
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == -number
