"""--quiet and --verbose, which are written before the verb, and what helps where a call was incomplete."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from rusbeir.cli.main import app
from rusbeir.errors import missing_extra


def test_quiet(rusbeir, beir):
    """Results and warnings stay; progress and notes do not appear."""
    loud = rusbeir("bench", beir, "-m", "AP")
    quiet = rusbeir("--quiet", "bench", beir, "-m", "AP", "--force")
    assert "Rows: " in loud.err
    assert "Rows: " not in quiet.err
    assert quiet.out == loud.out
    (beir / "corpus.jsonl").write_text("{", encoding="utf-8")
    assert "rusbeir: " in rusbeir("--quiet", "bench", beir).err


def test_verbose(rusbeir, beir):
    assert "rusbeir: debug: the index " in rusbeir("--verbose", "bench", beir).err
    again = rusbeir("--verbose", "bench", beir)
    assert "rows.jsonl is reused" in again.err
    assert again.out == rusbeir("bench", beir).out
    failed = rusbeir("--verbose", "bench", "no/such")
    assert "Traceback" in failed.err
    assert failed.err.splitlines()[-1].startswith("rusbeir: No dataset 'no/such'")
    plain = rusbeir("bench", "no/such")
    assert "Traceback" not in plain.err
    assert "debug" not in plain.err


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["bench"], ["'DATASET...'", "Example: rusbeir bench xquad/ru", "(more: rusbeir bench --help)"]),
        (["datasets", "info"], ["'DATASET'", "Example: rusbeir datasets info xquad/ru"]),
        (["eval", "mini/ru"], ["'RUN...'", "Example: rusbeir eval", "(more: rusbeir eval --help)"]),
        (["bench", "mini/ru", "--quiet"], ["No such option: --quiet", "before the verb", "rusbeir --quiet bench"]),
    ],
    ids=str,
)
def test_an_incomplete_call_shows_a_complete_one(rusbeir, arguments, parts):
    outcome = rusbeir(*arguments)
    assert outcome.code == 2
    assert len(outcome.err.splitlines()) == 1
    assert [part for part in parts if part not in outcome.err] == []


def commands(command, name="rusbeir"):
    yield name, command
    for verb, below in getattr(command, "commands", {}).items():
        yield from commands(below, f"{name} {verb}")


@pytest.mark.parametrize(("name", "command"), list(commands(get_command(app))), ids=lambda value: str(value)[:30])
def test_examples_are_on_one_line(name, command):
    """At 80 columns; in a broken one, an option of the example looks like one of the verb's options."""
    context = command.make_context(name, [], resilient_parsing=True, max_content_width=80, terminal_width=80)
    for example in re.findall("Example: .*", command.help or ""):
        assert example in command.get_help(context)


@pytest.mark.parametrize(
    ("pip", "command"),
    [
        (Path(sys.executable).parent / "pip", "pip"),
        (Path("/elsewhere/bin/pip"), f"{sys.executable} -m pip"),
        (None, f"{sys.executable} -m pip"),
    ],
    ids=["this environment's", "another's", "none"],
)
def test_the_command_for_an_extra_is_of_this_environment(pip, command, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: pip and str(pip))
    error = missing_extra("openai", "The translator llm", "llm")
    assert str(error) == f"The translator llm needs the package openai: {command} install 'rusbeir[llm]'"
