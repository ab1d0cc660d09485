"""The programs in scripts/ with a Python that lacks rusbeir, which is what a checkout's reader runs first."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rusbeir.cli.main import SYNONYMS
from rusbeir.translation.backends import names
from tests.support.command_line import one_line

SCRIPTS = Path(__file__).parent.parent.parent / "scripts"


@pytest.mark.parametrize("script", ["translate_beir.py", "es_baselines.py"])
def test_a_python_without_rusbeir(script):
    # -S leaves out what is installed, -E the PYTHONPATH of the tests.
    done = subprocess.run([sys.executable, "-S", "-E", SCRIPTS / script, "--to", "ru"], capture_output=True, text=True)
    assert done.returncode == 1
    assert one_line(done.stderr, ["has no package", "Run `make install` once", "with .venv/bin/python"])


def test_every_synonym_leads_to_a_verb(rusbeir):
    for verb in set(SYNONYMS.values()):
        assert rusbeir(*verb.split(), "--help").code == 0


def test_every_translator_and_extra_is_in_the_docs():
    page = (SCRIPTS.parent / "docs" / "port.md").read_text(encoding="utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| `")]
    assert [name for name in names() if not any(f"`{name}`" in row.split("|")[1] for row in rows)] == []
    readme = (SCRIPTS.parent / "README.md").read_text(encoding="utf-8")
    extras = tomllib.loads((SCRIPTS.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert [name for name in extras if f"`{name}`" not in readme and name not in ("dev", "docs", "bench")] == []
