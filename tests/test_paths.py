"""Paths of the README, followed to the letter: in an empty folder, with the wheel in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.pages import PATHS, REPOSITORY, read_blocks, run_block

WITHOUT_A_CHECKOUT = {r"^make .*": ":"}
FROM_RUSSIAN = Path("/usr/share/apertium/modes/rus-ukr.mode")
"""What blocks about a port into Ukrainian need: CI installs it, and elsewhere they are left out where it is missing."""


@pytest.fixture(scope="session")
def installed(needs, tmp_path_factory) -> Mapping[str, str]:
    """The environment variables with which `rusbeir`, `python` and `pip` are those of an environment with the wheel.

    Nothing else is installed there. pip finds the wheel by the name rusbeir, as it will once there is a release.
    """
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RUSBEIR_"))} | {
        "PATH": f"{folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PIP_CONSTRAINT": str(REPOSITORY / "constraints.txt"),
        "PIP_FIND_LINKS": f"{folder / 'dist'} {os.environ.get('PIP_FIND_LINKS', '')}".strip(),
        "RUSBEIR_CACHE": str(folder / "cache"),
        # pip compiles nothing: of thousands of modules the pages import a few. The option's name says no, so 0 is yes.
        "PIP_NO_COMPILE": "0",
    }
    build = f"pip wheel --quiet --no-deps --wheel-dir '{folder}/dist' '{REPOSITORY}'"
    for command in (build, "pip install --quiet --no-compile rusbeir"):
        done = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True, check=False)
        offline = "Failed to establish a new connection" in done.stderr
        needs("a package registry", not offline, done.stderr[-200:])
        assert done.returncode == 0, done.stderr
    return environment


@pytest.mark.parametrize("path", PATHS)
def test_a_path(path, installed, shared_data, tmp_path):
    environment = {**installed, "RUSBEIR_DATA": str(shared_data)}
    for page in PATHS[path]:
        for block in read_blocks(REPOSITORY / page):
            if "ntrex-uk" in block.code and not FROM_RUSSIAN.exists() and "CI" not in os.environ:
                continue
            run_block(block, tmp_path, environment, WITHOUT_A_CHECKOUT)
    seen = subprocess.run(
        ["env", "python", "-c", "import rusbeir; print(rusbeir.__file__)"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "site-packages" in seen.stdout, "the wheel is what was run"
