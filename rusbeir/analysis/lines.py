"""Test lines: what a linguist expects of a language's default profile, one expectation a line of a TSV file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rusbeir.analysis.analyzer import Analyzer
from rusbeir.analysis.chain import load_chain
from rusbeir.analysis.language_registry import read_language
from rusbeir.errors import BadInput
from rusbeir.storage import data_folder

HEADER = "kind\ttext\texpected\tnote"
KNOWN_FAILURE = "xfail-"
"""Before a kind: the line is known to fail, and must, so that the list remains honest."""
KINDS = ("lemmas", "terms", "same", "contains", "differ", "whole", "empty")
"""lemmas: the lemmas of the kept tokens of the text are those expected. terms: its terms are. same, contains, differ:
the text has the terms of what is expected, has them among others, or has none of them. whole: the text is one word.
empty: the text consists of stop words and signs."""


class Line(NamedTuple):
    """One line of such a file."""

    kind: str
    text: str
    expected: str
    note: str

    def failure(self, analyzer: Analyzer) -> str | None:
        """Return what the analyzer makes instead of what the line expects, or None if the line holds."""
        kind = self.kind.removeprefix(KNOWN_FAILURE)
        # Words that differ share runs of characters, so lines are about words alone.
        recipe = replace(analyzer.recipe, terms="words")
        analyse = load_chain(recipe).terms
        terms = analyse(self.text)
        if kind == "lemmas":
            terms = [token.lemma for token in analyzer.explain(self.text) if token.dropped is None]
            holds = terms == self.expected.split()
        elif kind == "terms":
            holds = terms == self.expected.split()
        elif kind == "same":
            holds = bool(terms) and terms == analyse(self.expected)
        elif kind == "contains":
            expected = set(analyse(self.expected))
            holds = bool(expected) and expected <= set(terms)
        elif kind == "whole":
            terms = [token.folded for token in analyzer.explain(self.text)]
            holds = len(terms) == 1
        elif kind == "differ":
            holds = not set(terms) & set(analyse(self.expected))
        else:
            terms = load_chain(replace(recipe, keep_only_stop_words=False)).terms(self.text)
            holds = not terms
        if self.kind.startswith(KNOWN_FAILURE):
            return "holds, so remove xfail-" if holds else None
        return None if holds else " ".join(terms) or "nothing"


def check_lines(language: str, lines: Sequence[Line]) -> list[dict[str, str]]:
    """The lines that fail."""
    analyzer = Analyzer(language)
    return [
        {"check": line.kind, "text": line.text, "expected": line.expected, "found": failure, "reason": line.note}
        for line in lines
        if (failure := line.failure(analyzer)) is not None
    ]


def find_lines(code: str) -> Path | None:
    """The file of test lines: <code>.tsv next to the language file, else rusbeir's own; None where there is none."""
    paths = (read_language(code).path.with_suffix(".tsv"), data_folder("tests/languages") / f"{code}.tsv")
    return next((path for path in paths if path.is_file()), None)


def read_lines(path: Path) -> list[Line]:
    """The lines of the file. Raises BadInput, with the number of the line, where one is wrong or comes twice."""
    try:
        header, *rows = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}. Test lines are a TSV file in UTF-8 with the header {HEADER!r}.") from error
    if header != HEADER:
        raise BadInput(f"{path}:1: the header is {header!r}, not {HEADER!r}.")
    lines: dict[tuple[str, str], Line] = {}
    for number, row in enumerate(rows, start=2):
        if not row or row.startswith("#"):
            continue
        cells = row.split("\t")
        if len(cells) != len(Line._fields):
            raise BadInput(f"{path}:{number}: {len(cells)} columns instead of {len(Line._fields)}.")
        line = Line(*cells)
        if line.kind.removeprefix(KNOWN_FAILURE) not in KINDS:
            raise BadInput(
                f"{path}:{number}: no kind {line.kind!r}. Kinds: {', '.join(KINDS)}, each after xfail-, too."
            )
        if not line.note or lines.setdefault((line.text, line.expected), line) is not line:
            raise BadInput(f"{path}:{number}: {'comes twice' if line.note else 'a note is missing'}.")
    return list(lines.values())
