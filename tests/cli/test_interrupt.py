"""Ctrl-C in a verb at work: one line, exit code 130, and the same command resumes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

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


@pytest.mark.parametrize("arguments", VERBS, ids=["bench", "deaf", "crew", "port"])
def test_one_line(beir, tmp_path, arguments):
    """The signal reaches this process alone, as from `kill -INT` or a scheduler, and not the workers."""
    (tmp_path / "slow_one.py").write_text(MODULE)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(tmp_path)])}
    process = subprocess.Popen(
        [sys.executable, "-m", "rusbeir.cli", *arguments],
        cwd=tmp_path, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    while not (tmp_path / "started").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    assert "leaked" not in err, "loky's tracker tells of semaphores that nobody gave back"
    assert err.splitlines()[-1].startswith("rusbeir: interrupted. Finished work is kept; run the same command again")
    assert err.count("interrupted") == 1
