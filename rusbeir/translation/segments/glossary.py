"""Glossaries: terms that a translator must keep or translate in one way."""

from __future__ import annotations

import csv
import hashlib
import logging
import pickle
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from rusbeir.datasets import Place, name_unpacked, not_utf8, open_file
from rusbeir.errors import BadInput
from rusbeir.text import read_csv, shorten

logger = logging.getLogger(__name__)

KEEP = "="
N_NAMED = 5
"""Terms that a warning names; it counts the others."""

_WORD = re.compile(r"\w+")
# What separates columns in files that are not what they are called.
_COLUMNS = re.compile(r"\S\s*(?:[,;]|\s\s)\s*\S")
# Scripts that put no space between words: there a term may begin and end anywhere.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")


class Glossary:
    """Terms and their translations. A term is found as whole words, in any case unless it has capitals itself.

    >>> Glossary({"neural network": "нейронная сеть"}).signature
    'glossary1.96775e'
    """

    def __init__(self, terms: Mapping[str, str | None]) -> None:
        self.terms = dict(terms)
        """Term -> translation; None where the term stays as it is."""

    def __reduce__(self) -> tuple[Any, ...]:
        # It is sent with each batch of texts; a worker makes it, and its index, of the first alone.
        return _unpickle, (self._pickled,)

    @cached_property
    def _pickled(self) -> bytes:
        return pickle.dumps(self.terms)

    @property
    def signature(self) -> str:
        """The number of terms, and a hash that changes with any of them; without white space."""
        rows = "\n".join(f"{term}\t{KEEP if target is None else target}" for term, target in sorted(self.terms.items()))
        return f"glossary{len(self.terms)}.{hashlib.sha256(rows.encode()).hexdigest()[:6]}"

    def find(self, text: str) -> Iterator[tuple[int, int, str | None]]:
        """Find (start, end, translation or None) of each term, the longest at each place; they may overlap."""
        if not self.terms:
            return
        by_word, anywhere = self._index
        for word in _WORD.finditer(text) if by_word else ():
            bucket = by_word.get(word[0].lower())
            if bucket and (match := bucket.match(text, word.start())):
                yield match.start(), match.end(), self._target(match[0])
        for match in anywhere.finditer(text) if anywhere else ():
            yield match.start(), match.end(), self._target(match[0])

    def terms_in(self, text: str) -> set[str]:
        """Return the terms that find finds in a text, as the glossary spells them."""
        return {self._term(text[start:end]) for start, end, _ in self.find(text)}

    @cached_property
    def _index(self) -> tuple[dict[str, re.Pattern[str]], re.Pattern[str] | None]:
        """The terms by their first word, and those without one or in a script without spaces."""
        by_word: dict[str, list[str]] = {}
        anywhere = []
        for term in sorted(self.terms, key=len, reverse=True):
            first = _WORD.match(term)
            if first and not _UNSPACED.match(term):
                by_word.setdefault(first[0].lower(), []).append(_pattern(term))
            else:
                anywhere.append(_pattern(term))
        return (
            {word: re.compile("|".join(patterns)) for word, patterns in by_word.items()},
            re.compile("|".join(anywhere)) if anywhere else None,
        )

    @cached_property
    def _lower(self) -> dict[str, str]:
        return {term.lower(): term for term in self.terms if not _has_capitals(term)}

    def _term(self, spelling: str) -> str:
        """Return the term that was found in this spelling."""
        spaced = " ".join(spelling.split())
        return spaced if spaced in self.terms else self._lower.get(spaced.lower(), spaced)

    def _target(self, spelling: str) -> str | None:
        """Return the translation of a term as found in the text, with a capital where the text has one."""
        term = self._term(spelling)
        target = self.terms.get(term)
        if target and spelling[0].isupper() and not _has_capitals(term):
            return target[0].upper() + target[1:]
        return target


@dataclass(frozen=True, kw_only=True)
class GlossaryUse:
    """The share of a glossary's terms that the texts of a port have."""

    terms: int
    texts: int
    """Texts with at least one of them."""
    unused: tuple[str, ...]
    """Terms that no text has, in the glossary's order."""

    @classmethod
    def count(cls, glossary: Glossary, texts: Iterable[str]) -> GlossaryUse:
        """Look for the terms in the texts."""
        counts: Counter[str] = Counter()
        n_texts = 0
        for text in texts:
            terms = glossary.terms_in(text)
            n_texts += bool(terms)
            counts.update(terms)
        unused = tuple(term for term in glossary.terms if not counts[term])
        return cls(terms=len(glossary.terms), texts=n_texts, unused=unused)

    def warn(self) -> None:
        """Name the terms that no text has: a glossary in another form than is read has only such."""
        if self.unused:
            named = ", ".join(repr(shorten(term, 60)) for term in self.unused[:N_NAMED])
            more = f" and {len(self.unused) - N_NAMED:,} more" if len(self.unused) > N_NAMED else ""
            logger.warning(
                "The glossary has %d of its %d terms in no text: %s%s. A term is found as whole words; with a capital, "
                "in this spelling alone.", len(self.unused), self.terms, named, more,
            )  # fmt: skip


def read_glossary(path: str | Path) -> Glossary:
    """Read the glossary of a .tsv: term, tab, translation; "=" or nothing keeps the term; # starts a comment.

    Of a .csv the same two columns, with commas; both also as .gz. Raises BadInput, with file and line, for an empty
    term, a third column, a term with two translations, and a line without a tab that seems to have two columns.

    >>> read_glossary("terms.tsv").terms  # doctest: +SKIP
    {'neural network': 'нейронная сеть', 'SciFact': None}
    """
    terms: dict[str, str | None] = {}
    lines: dict[str, int] = {}
    commas = name_unpacked(Path(path)).lower().endswith(".csv")
    with open_file(Path(path)) as file:
        for number, line in enumerate(file, 1):
            if line.isspace() or line.startswith(b"#"):
                continue
            location = Place(str(path), number)
            if problem := not_utf8(location, line):
                raise BadInput(f"{location}: {problem[2]}.")
            term, target = _row(location, line.decode(), commas=commas)
            if term in terms and terms[term] != target:
                raise BadInput(
                    f"{location}: the term {term!r} is translated {_shown(target)} here and {_shown(terms[term])} "
                    f"in line {lines[term]}; keep one of the two."
                )
            terms[term] = target
            lines.setdefault(term, number)
    return Glossary(terms)


@lru_cache(maxsize=1)
def _unpickle(terms: bytes) -> Glossary:
    return Glossary(pickle.loads(terms))


def _row(location: Place, line: str, *, commas: bool) -> tuple[str, str | None]:
    try:
        columns = next(read_csv([line]), [""]) if commas and "\t" not in line else line.split("\t")
    except csv.Error as error:
        raise BadInput(f"{location}: {error}.") from error
    term, *targets = (" ".join(column.split()) for column in columns)
    form = "a line is: term, comma, translation" if commas else "a line is: term, tab, translation"
    if not term:
        raise BadInput(f"{location}: the term is empty; {form}.")
    if len(targets) > 1:
        raise BadInput(f"{location}: {1 + len(targets)} columns; {form}.")
    if not targets and _COLUMNS.search(columns[0]):
        raise BadInput(
            f"{location}: {shorten(repr(columns[0].strip()), 60)} is one column; {form}"
            f"{'' if commas else ' (columns with commas are read from a .csv)'}. If all of it is a term to keep, write "
            f"{KEEP!r} as its translation."
        )
    target = targets[0] if targets else ""
    return term, target if target not in ("", KEEP) else None


def _pattern(term: str) -> str:
    """Return a regular expression of a term as whole words; white space in it matches any, up to 8 characters."""
    body = r"\s{1,8}".join(re.escape(word) for word in term.split())
    before = r"(?<!\w)" if _is_word(term[0]) else ""
    after = r"(?!\w)" if _is_word(term[-1]) else ""
    body = before + body + after
    return body if _has_capitals(term) else f"(?i:{body})"


def _is_word(char: str) -> bool:
    return _WORD.match(char) is not None and not _UNSPACED.match(char)


def _has_capitals(term: str) -> bool:
    return any(char.isupper() for char in term)


def _shown(target: str | None) -> str:
    return "not at all" if target is None else repr(target)
