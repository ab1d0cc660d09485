"""What the demo prints at its end: commands that run as printed, in lines of 100 characters."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rusbeir.cli import demo
from rusbeir.experiment import bench
from rusbeir.types import silent


@pytest.fixture
def printed(tmp_path, monkeypatch, capsys) -> list[str]:
    """The last lines of the demo."""
    monkeypatch.chdir(tmp_path)
    out = Path("results/demo")
    rows = [bench("mini/ru", system, out=out) for system in demo.SYSTEMS]
    demo._print_next(out, rows)
    demo.print_port(demo.port_mini(out, silent))
    return capsys.readouterr().out.splitlines()


def test_each_command_runs_as_printed(printed, needs):
    needs("googletrans", demo.find_spec("googletrans") is not None, "pip install 'rusbeir[google]'")
    # The line of print_port is a sentence, and names a command to complete.
    commands = [found[1] for line in printed if (found := re.match(r"  [a-z].*?(rusbeir [a-z]+ .*)$", line))]
    assert [command.split()[1] for command in commands] == ["compare", "bench", "analyze", "port"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command], env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"


def test_lines_fit(printed):
    assert [line for line in printed if len(line) > 100] == []
    long = demo._wrap("  en  " + "словом " * 40 + "\n")
    assert max(map(len, long.splitlines())) <= 100
    assert long.endswith("\n")


def test_says_how_to_put_rusbeir_on_the_path(printed, monkeypatch, capsys, tmp_path):
    assert not any("activate" in line for line in printed) or demo.shutil.which("rusbeir") is None
    monkeypatch.setattr(demo.shutil, "which", lambda name: None)
    demo._print_next(tmp_path, [{"run": "runs/one"}])
    assert f"source {Path(sys.prefix) / 'bin' / 'activate'}" in capsys.readouterr().out
