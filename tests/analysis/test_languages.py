"""The lines of tests/languages/<code>.tsv, which a linguist can write, against the default profile.

kind    lemmas: the lemmas of the kept tokens of `text` are `expected`; same and differ: the terms of both columns are
        equal, or share none; empty: `text` has no terms. xfail- before a kind marks a known limit of the analyzer;
        such a line must fail, so that the lists stay honest.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from rusbeir.analysis import Analyzer, language_files

FOLDER = Path(__file__).parent.parent / "languages"
HEADER = ["kind", "text", "expected", "note"]


class Line(NamedTuple):
    kind: str
    text: str
    expected: str
    note: str


def read(path: Path) -> list[Line]:
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")]
    assert rows[0] == HEADER
    return [Line(*row) for row in rows[1:] if row != [""] and not row[0].startswith("#")]


FILES = {path.stem: read(path) for path in sorted(FOLDER.glob("*.tsv"))}
LINES = [
    pytest.param(code, line, id=f"{code}-{line.kind}-{line.text}") for code, lines in FILES.items() for line in lines
]


def holds(analyzer: Analyzer, kind: str, line: Line) -> bool:
    match kind:
        case "lemmas":
            kept = [token.lemma for token in analyzer.explain(line.text) if token.dropped is None]
            return kept == line.expected.split()
        case "same":
            terms = analyzer.analyze(line.text)
            return bool(terms) and terms == analyzer.analyze(line.expected)
        case "differ":
            return not set(analyzer.analyze(line.text)) & set(analyzer.analyze(line.expected))
        case "empty":
            return analyzer.analyze(line.text) == []
    raise ValueError(f"no such kind: {kind}")


@pytest.mark.parametrize(("code", "line"), LINES)
def test_line(code, line):
    analyzer = Analyzer(code)
    kind = line.kind.removeprefix("xfail-")
    tokens = [tuple(token) for token in analyzer.explain(line.text)]
    if line.kind == kind:
        assert holds(analyzer, kind, line), f"{line.note}: {tokens}"
    else:
        assert not holds(analyzer, kind, line), f"known failure that does not fail any more, remove xfail-: {tokens}"


@pytest.mark.parametrize("code", FILES)
def test_a_list_is_long_and_says_everything_once(code):
    lines = FILES[code]
    assert code in language_files()
    assert len(lines) >= 150
    assert len({(line.text, line.expected) for line in lines}) == len(lines)
    assert all(line.note for line in lines)
