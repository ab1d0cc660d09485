"""Split texts into sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib.metadata import version
from itertools import pairwise
from typing import TypeAlias

import regex

Split: TypeAlias = Callable[[str, str], Iterable[str]]
"""Cuts a line of a language into pieces, each a sentence with the white space around it."""

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
    """Return (start, end) of each sentence in order, without surrounding white space; [] for a blank text.

    Texts are split at line ends first, then by razdel for Russian, by rules for Burmese, Khmer, Lao and Thai, and by
    sentencex for other languages.

    >>> sentence_spans("Живёт в г. Москве. Работает.", "ru")
    [(0, 18), (19, 28)]
    """
    _, split = _SPLITTERS.get(language.partition("-")[0], _OTHERS)
    spans = []
    for line in _LINES.finditer(text):
        end = line.start()
        for piece in split(line.group(), language):
            start, end = end, end + len(piece)
            if piece.strip():
                spans.append((end - len(piece.lstrip()), start + len(piece.rstrip())))
    return spans


def splitter_signature(language: str) -> str:
    """Return the splitter of that language and its version, since another version may split differently."""
    name, _ = _SPLITTERS.get(language.partition("-")[0], _OTHERS)
    return name if name == RULES else f"{name}-{version(name)}"


def _razdel(text: str, language: str) -> Iterable[str]:
    from razdel import sentenize

    starts = [sentence.start for sentence in sentenize(text)]
    return [text[start:end] for start, end in pairwise([0, *starts[1:], len(text)])]


def _sentencex(text: str, language: str) -> Iterable[str]:
    from sentencex import segment

    pieces: Iterable[str] = segment(language, text.translate(_WIDE_SPACES))
    return pieces


def _stops(text: str, language: str) -> Iterable[str]:
    """Return sentences by the stops of Burmese and Khmer, which sentencex does not know."""
    return list(_STOPPED.findall(text))


def _phrases(text: str, language: str) -> Iterable[str]:
    """Phrases joined up to MAX_JOINED_CHARS: in Thai and Lao a space ends a phrase, and nothing else a sentence."""
    joined = [""]
    for sentence in _STOPPED.findall(text):
        for phrase in _PHRASE_START.split(sentence):
            if len(joined[-1]) + len(phrase.rstrip()) > MAX_JOINED_CHARS:
                joined.append("")
            joined[-1] += phrase
        joined.append("")
    return joined


RULES = "stops-1"
"""The rules of this file in signatures; the number grows when they change."""
_SPLITTERS: dict[str, tuple[str, Split]] = {
    "ru": ("razdel", _razdel),
    **dict.fromkeys(("km", "my"), (RULES, _stops)),
    **dict.fromkeys(("lo", "th"), (RULES, _phrases)),
}
_OTHERS: tuple[str, Split] = ("sentencex", _sentencex)
