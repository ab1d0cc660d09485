"""Split texts into sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from typing import TypeAlias

import regex

Split: TypeAlias = Callable[[str, str], Iterator[tuple[int, int]]]

MAX_JOINED_CHARS = 160
"""Phrases of Thai and Lao are joined up to this length, which English sentences of XQuAD have on average."""

_LINES = re.compile(r"[^\n]+")
# sentencex panics at a capital, one of these and a full stop; replacing them by plain spaces keeps all offsets.
_WIDE_SPACES = dict.fromkeys(map(ord, "\u00a0\u202f\u2009\u3000\u2028"), " ")
# Khmer's ។ល។ (and so on) ends with the stop that it starts with. A full stop ends abbreviations, hence no sentence.
_STOPPED = regex.compile(
    r""".+?(?:(?:។(?:ល|បេ)។|[။។៕]+|[?!]+(?=[\p{Pe}\p{Pf}"']*(?:\s|\Z)))[\p{Pe}\p{Pf}"']*\s*|\Z)""", regex.DOTALL
)
# ๆ and ໆ repeat the word before them, with spaces around.
_PHRASE_START = regex.compile(
    r"""(?<=[[\p{Thai}\p{Lao}\p{Pe}\p{Pf}."']--[ๆໆ]]\s+)(?=[[\p{Thai}\p{Lao}]--[ๆໆ]])""", regex.V1
)


def sentence_spans(text: str, language: str) -> list[tuple[int, int]]:
    """(start, end) of each sentence in order, without surrounding white space; [] for a blank text.

    Texts are split at line ends first, then by razdel for Russian, by rules for Burmese, Khmer, Lao and Thai, and by
    sentencex for other languages.

    >>> sentence_spans("Живёт в г. Москве. Работает.", "ru")
    [(0, 18), (19, 28)]
    """
    _, split = _splitter(language)
    return [
        (line.start() + start, line.start() + end)
        for line in _LINES.finditer(text)
        for start, end in split(line.group(), language)
        if start < end
    ]


def splitter_signature(language: str) -> str:
    """The splitter of that language and its version, since another version may split differently."""
    name, _ = _splitter(language)
    return name if name == RULES else f"{name}-{version(name)}"


def _splitter(language: str) -> tuple[str, Split]:
    return _SPLITTERS.get(language.partition("-")[0], ("sentencex", _sentencex))


def _razdel(text: str, language: str) -> Iterator[tuple[int, int]]:
    from razdel import sentenize

    for sentence in sentenize(text):
        yield sentence.start, sentence.stop


def _sentencex(text: str, language: str) -> Iterator[tuple[int, int]]:
    from sentencex import segment

    return _strip(segment(language, text.translate(_WIDE_SPACES)))


def _stops(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Sentences by the stops of Burmese and Khmer, which sentencex does not know."""
    return _strip(_STOPPED.findall(text))


def _phrases(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Phrases joined up to MAX_JOINED_CHARS: in Thai and Lao a space ends a phrase, and nothing else a sentence."""
    joined = [""]
    for sentence in _STOPPED.findall(text):
        for phrase in _PHRASE_START.split(sentence):
            if len(joined[-1]) + len(phrase.rstrip()) > MAX_JOINED_CHARS:
                joined.append("")
            joined[-1] += phrase
        joined.append("")
    return _strip(joined)


def _strip(pieces: Iterable[str]) -> Iterator[tuple[int, int]]:
    """(start, end) of each piece of a text without the white space around it."""
    start = 0
    for piece in pieces:
        yield start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
        start += len(piece)


RULES = "stops-1"
"""The rules of this file in signatures; the number grows when they change."""
_SPLITTERS: dict[str, tuple[str, Split]] = {
    "ru": ("razdel", _razdel),
    **dict.fromkeys(("km", "my"), (RULES, _stops)),
    **dict.fromkeys(("lo", "th"), (RULES, _phrases)),
}
