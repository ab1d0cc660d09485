"""Messages name parameters as their reader spells them: Python's names from Python, options on the command line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import rusbeir
from rusbeir.audit.port_checks.gates import parse_gates
from rusbeir.cli.options import SPELLINGS
from rusbeir.comparison.filters import parse_filter
from rusbeir.datasets import load
from rusbeir.errors import RusbeirError, option, speak_options
from rusbeir.jobs import CharBudget
from rusbeir.retrieval import resolve
from rusbeir.translation.porting.plan import make_entries

PACKAGE = Path(rusbeir.__file__).parent
OF_COMMANDS = re.compile(
    r"`(rusbeir|ray) [^`]*`|^rusbeir .*|hf download.*|ct2-.*|--(quantization|revision|output_dir|local-dir).*"
)
"""What is typed in a shell, whoever reads it."""


def test_no_message_below_the_command_line_spells_an_option():
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        # Docstrings, those of attributes included, are nobody's message; a command is typed in a shell.
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        docs |= {
            id(word)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and getattr(node.func, "id", getattr(node.func, "attr", "")) in ("write_command", "write_audit_command")
            for word in node.args
        }
        for node in ast.walk(tree):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
            text = node.value if is_text else ""
            named = re.search(r"(?<![-\w])--[a-z]", OF_COMMANDS.sub("", text))
            if named and "cli" not in path.relative_to(PACKAGE).parts:
                wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno}: {text}")
    assert wrong == []


CALLS = [
    (lambda folder: load("mini/ru", language="en"), "omit language=.", "omit --lang."),
    (lambda folder: load("mini/ru", split="dev"), "omit split=.", "omit --split."),
    (lambda folder: CharBudget(folder, 0), "budget budget_chars= is 0", "budget --budget-chars is 0"),
    (lambda folder: make_entries("memory", "en", "en", {}), "language with to=.", "language with --to."),
    (lambda folder: parse_filter("x"), "where='x': 'x' is not", "--where 'x': 'x' is not"),
    (lambda folder: parse_gates("x"), "gates=: 'x' is not", "--gate: 'x' is not"),
    (lambda folder: resolve("bm25(k1=0.9)", language="ru", engine="tantivy"),
     "engine=auto, bm25s", "--engine auto, bm25s"),
    (lambda folder: resolve("bm25", language="qq-none"), "ANALYZERS names;", "or --analyzers names;"),
    (lambda folder: rusbeir.port("mini/en", to="ru", out=folder, translator="llm"), "llm=MODEL", "--llm MODEL"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "python", "command"), CALLS, ids=[row[2] for row in CALLS])
def test_both_readers_are_told_in_their_language(call, python, command, tmp_path):
    with pytest.raises(RusbeirError) as caught:
        call(tmp_path / "out")
    assert python in str(caught.value)
    with speak_options(SPELLINGS), pytest.raises(RusbeirError) as caught:
        call(tmp_path / "out")
    assert command in str(caught.value)
    assert option("k") == "k="
