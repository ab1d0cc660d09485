"""Glossaries: terms that a translator must keep or translate in one way."""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from rusbeir.datasets.formats.files import open_file
from rusbeir.datasets.formats.records import Place, not_utf8
from rusbeir.errors import BadInput

KEEP = "="

_WORD = re.compile(r"\w+")
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
        """(start, end, translation or None) of each term, the longest at each place; they may overlap."""
        if not self.terms:
            return
        by_word, anywhere = self._index
        for word in _WORD.finditer(text) if by_word else ():
            bucket = by_word.get(word[0].lower())
            if bucket and (found := bucket.match(text, word.start())):
                yield found.start(), found.end(), self._target(found[0])
        for found in anywhere.finditer(text) if anywhere else ():
            yield found.start(), found.end(), self._target(found[0])

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

    def _target(self, found: str) -> str | None:
        """The translation of a term as found in the text, with a capital where the text has one."""
        spaced = " ".join(found.split())
        term = spaced if spaced in self.terms else self._lower.get(spaced.lower(), spaced)
        target = self.terms.get(term)
        if target and spaced[0].isupper() and not _has_capitals(term):
            return target[0].upper() + target[1:]
        return target


def read_glossary(path: str | Path) -> Glossary:
    """The glossary of a .tsv (or .tsv.gz): term, tab, translation; "=" or nothing keeps the term; # starts a comment.

    Raises BadInput, with file and line, for an empty term, a third column, and a term with two translations.

    >>> read_glossary("terms.tsv").terms  # doctest: +SKIP
    {'neural network': 'нейронная сеть', 'SciFact': None}
    """
    terms: dict[str, str | None] = {}
    lines: dict[str, int] = {}
    with open_file(Path(path)) as file:
        for number, line in enumerate(file, 1):
            if line.isspace() or line.startswith(b"#"):
                continue
            place = Place(str(path), number)
            if problem := not_utf8(place, line):
                raise BadInput(f"{place}: {problem[2]}.")
            term, target = _row(place, line.decode())
            if term in terms and terms[term] != target:
                raise BadInput(
                    f"{place}: the term {term!r} is translated {_shown(target)} here and {_shown(terms[term])} "
                    f"in line {lines[term]}; keep one of the two."
                )
            terms[term] = target
            lines.setdefault(term, number)
    return Glossary(terms)


@lru_cache(maxsize=1)
def _unpickle(terms: bytes) -> Glossary:
    return Glossary(pickle.loads(terms))


def _row(place: Place, line: str) -> tuple[str, str | None]:
    term, *targets = (" ".join(column.split()) for column in line.split("\t"))
    if not term:
        raise BadInput(f"{place}: the term is empty; a line is: term, tab, translation.")
    if len(targets) > 1:
        raise BadInput(f"{place}: {1 + len(targets)} columns; a line is: term, tab, translation.")
    target = targets[0] if targets else ""
    return term, target if target not in ("", KEEP) else None


def _pattern(term: str) -> str:
    """A regular expression of a term as whole words; white space in it matches any, up to 8 characters."""
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
