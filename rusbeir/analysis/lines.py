"""Test lines: what a linguist expects of a language's default profile, one expectation a line of a TSV file.

And the files with which a language that has none begins, its lines among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import Stemmer

from rusbeir.analysis.analyzer import Analyzer
from rusbeir.analysis.chain import load_chain
from rusbeir.analysis.lemmas import SIMPLEMMA_CODES
from rusbeir.analysis.recipes import read_recipe
from rusbeir.errors import BadInput, option
from rusbeir.languages import SPACELESS_SCRIPTS, english_name, scripts_of
from rusbeir.storage import atomic_file

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
        """What is found instead of what the line expects; None where it holds."""
        kind = self.kind.removeprefix(KNOWN_FAILURE)
        found = analyzer.analyze(self.text)
        if kind == "lemmas":
            found = [token.lemma for token in analyzer.explain(self.text) if token.dropped is None]
            holds = found == self.expected.split()
        elif kind == "terms":
            holds = found == self.expected.split()
        elif kind == "same":
            holds = bool(found) and found == analyzer.analyze(self.expected)
        elif kind == "contains":
            expected = set(analyzer.analyze(self.expected))
            holds = bool(expected) and expected <= set(found)
        elif kind == "whole":
            found = [token.folded for token in analyzer.explain(self.text)]
            holds = len(found) == 1
        elif kind == "differ":
            holds = not set(found) & set(analyzer.analyze(self.expected))
        else:
            found = load_chain(replace(analyzer.recipe, keep_only_stop_words=False)).terms(self.text)
            holds = not found
        if self.kind.startswith(KNOWN_FAILURE):
            return "holds, so remove xfail-" if holds else None
        return None if holds else " ".join(found) or "nothing"


def check_lines(language: str, lines: Sequence[Line]) -> list[dict[str, str]]:
    """The lines that fail."""
    analyzer = Analyzer(language)
    return [
        {"check": line.kind, "text": line.text, "expected": line.expected, "found": failure, "reason": line.note}
        for line in lines
        if (failure := line.failure(analyzer)) is not None
    ]


def read_lines(path: Path) -> list[Line]:
    """The lines of the file. Raises BadInput, with the number of the line, where one is wrong or comes twice."""
    try:
        header, *rows = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}. Test lines are a TSV file in UTF-8 with the header {HEADER!r}.") from error
    if header != HEADER:
        raise BadInput(f"{path}:1: the header is {header!r}, not {HEADER!r}.")
    found: dict[tuple[str, str], Line] = {}
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
        if not line.note or found.setdefault((line.text, line.expected), line) is not line:
            raise BadInput(f"{path}:{number}: {'comes twice' if line.note else 'a note is missing'}.")
    return list(found.values())


N_CANDIDATES = 100
"""The commonest words of a corpus that are proposed as stop words."""
_EUROPEAN_DIGITS = {
    "Latin", "Cyrillic", "Greek", "Armenian", "Georgian", "Hebrew", "Hangul", "Han", "Hiragana", "Katakana"
}  # fmt: skip
"""Scripts that have no decimal digits of their own."""


def write_skeleton(code: str, folder: Path, corpus: Path | None = None) -> list[Path]:
    """The files written: <code>.toml, <code>.tsv and, where there is a corpus, stopwords/<code>-candidates.txt.

    corpus: text in the language, in UTF-8. Raises BadInput where a file exists already, or the corpus cannot be read.
    """
    name = english_name(code)
    algorithm = name.lower()
    known = import_module("simplemma.strategies.dictionaries.dictionary_factory").SUPPORTED_LANGUAGES
    settings = {
        "name": name,
        "why": "",
        "stopwords": f"{code}-candidates" if corpus else "none",
        "snowball": algorithm if algorithm in Stemmer.algorithms() else "none",
        "lemmas": "simplemma" if SIMPLEMMA_CODES.get(code, code) in known else "none",
    }
    toml = "".join(f'{key} = "{value}"\n' for key, value in settings.items()) + _describe_script(code)
    files = {folder / f"{code}.toml": toml, folder / f"{code}.tsv": f"{HEADER}\n"}
    if corpus:
        words = "".join(f"{word}\n" for word in _commonest(code, corpus))
        header = (
            f"# The commonest words of {corpus.name}: remove what carries meaning.\n# Licence: that of the corpus\n"
        )
        files[folder / "stopwords" / f"{code}-candidates.txt"] = header + words
    for path in files:
        if path.exists():
            raise BadInput(f"{path} exists already. Name another {option('folder')}, or remove it.")
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as temporary:
            temporary.write(content.encode())
    return list(files)


def _describe_script(code: str) -> str:
    """The settings of the profile default that the language's script asks for; "" where there are none."""
    scripts = {*scripts_of(code)}
    spaceless, own_digits = scripts & SPACELESS_SCRIPTS, scripts - _EUROPEAN_DIGITS
    if not (spaceless or own_digits):
        return ""
    tokens = f'tokens = "unicode"  # {" and ".join(sorted(spaceless))}: no spaces between words\n' if spaceless else ""
    return "\n[profiles.default]\n" + tokens + ('fold = ["invisible", "digits"]\n' if own_digits else "")


def _commonest(code: str, corpus: Path) -> list[str]:
    try:
        text = corpus.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadInput(f"{corpus}: {error}. A corpus is text in UTF-8.") from error
    counts = Counter(load_chain(read_recipe(code, "unicode")).terms(text))
    return [word for word, _ in counts.most_common(N_CANDIDATES) if word.isalpha()]
