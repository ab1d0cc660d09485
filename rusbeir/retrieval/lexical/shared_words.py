"""Words that languages share: numbers and codes, words in a foreign script, and names in the script of both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import regex

from rusbeir.languages import SPACELESS_SCRIPTS, scripts_of

if TYPE_CHECKING:
    from rusbeir.retrieval.lexical.index import LineAnalyzer

MARK = "\ufdd1"
"""Separates a term from its language: a noncharacter, which Unicode promises that no text holds."""
NOUNS_CAPITALISED = frozenset({"de", "lb"})
"""Languages that write every noun with a capital letter, which so says nothing about names."""
_SENTENCE_ENDS = ".!?…:;"
_OPENING = " \t\n\"'«»“”„‘’([¿¡—–-"
_MAX_KNOWN_TERMS = 1_000_000

_SPACELESS = "".join(rf"\p{{Script={script}}}" for script in sorted(SPACELESS_SCRIPTS))
_LETTERS = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_SPACELESS}]]"
_WORD = regex.compile(rf"(?V1)[{_SPACELESS}]+|{_LETTERS}+(?:[.,'’:/_&+-]{_LETTERS}+)*")
"""A word with the marks inside it (COVID-19, 3.5, l'Europe); what is written without spaces ends where that does."""
_CAPITAL = regex.compile(r"(?:^|['’-])\p{Lu}")
_NUMBER = regex.compile(r"\p{N}")


def cut_shared(text: str, language: str) -> str:
    """Cut out of a text in a language the words that texts in other languages share, with spaces between them.

    These are words with a digit (numbers and codes), words without a letter of the language's own scripts, and names:
    words with a capital letter that do not begin a sentence, but for languages that write all nouns so.

    >>> cut_shared("Какой экран у Samsung S24 за 500 долларов, если верить Ивану?", "ru")
    'Samsung S24 500 Ивану'
    """
    names = language.partition("-")[0] not in NOUNS_CAPITALISED
    shared = []
    for match in _WORD.finditer(text):
        word = match.group()
        if is_shared(word, language) or (names and _is_name(word, text, match.start())):
            shared.append(word)
    return " ".join(shared)


@lru_cache(maxsize=100_000)
def is_shared(word: str, language: str) -> bool:
    """Say whether a word or a term has a digit, or no letter of a script in which the language is written."""
    if _NUMBER.search(word):
        return True
    letter = _own_letters(language)
    return letter is not None and not letter.search(word)


def _is_name(word: str, text: str, start: int) -> bool:
    """Say whether the word that starts there has a capital letter that does not begin a sentence."""
    if word.islower() or not (capital := _CAPITAL.search(word)):
        return False
    before = text[:start].rstrip(_OPENING)
    return capital.start() > 0 or (bool(before) and before[-1] not in _SENTENCE_ENDS)


@cache
def _own_letters(language: str) -> regex.Pattern[str] | None:
    """Match a letter of the language's own scripts; None where these are not known."""
    scripts = scripts_of(language)
    return regex.compile("[" + "".join(rf"\p{{Script={script}}}" for script in scripts) + "]") if scripts else None


@dataclass(frozen=True, kw_only=True)
class MarkingAnalyzer:
    """Analyses texts of a language and marks terms with it, so that other languages have terms of their own.

    Terms that languages share (is_shared) are not marked.
    """

    language: str
    analyzer: LineAnalyzer
    _known: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def signature(self) -> str:
        return self.analyzer.signature

    def analyze(self, text: str) -> list[str]:
        return list(map(self._mark, self.analyzer.analyze(text)))

    def analyze_lines(self, texts: Iterable[str], *, processes: int | None = None) -> Iterator[str]:
        for line in self.analyzer.analyze_lines(texts, processes=processes):
            yield " ".join(map(self._mark, line.split()))

    def _mark(self, term: str) -> str:
        marked = self._known.get(term)
        if marked is None:
            if len(self._known) > _MAX_KNOWN_TERMS:
                self._known.clear()
            marked = term if is_shared(term, self.language) else f"{term}{MARK}{self.language}"
            self._known[term] = marked
        return marked
