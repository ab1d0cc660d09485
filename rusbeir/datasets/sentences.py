"""Split texts into sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.metadata import version

_LINES = re.compile(r"[^\n]+")
# sentencex panics at a capital, one of these and a full stop; replacing them by plain spaces keeps all offsets.
_WIDE_SPACES = dict.fromkeys(map(ord, "\u00a0\u202f\u2009\u3000\u2028"), " ")


def sentence_spans(text: str, language: str) -> list[tuple[int, int]]:
    """(start, end) of each sentence in order, without surrounding white space; [] for a blank text.

    Texts are split at line ends first, then by razdel for Russian and by sentencex for other languages.

    >>> sentence_spans("Живёт в г. Москве. Работает.", "ru")
    [(0, 18), (19, 28)]
    """
    split = _SPLITTERS.get(language, _sentencex)
    return [
        (line.start() + start, line.start() + end)
        for line in _LINES.finditer(text)
        for start, end in split(line.group(), language)
        if start < end
    ]


def splitter_signature(language: str) -> str:
    """The splitter of that language and its version, since another version may split differently."""
    package = "razdel" if language in _SPLITTERS else "sentencex"
    return f"{package}-{version(package)}"


def _razdel(text: str, language: str) -> Iterator[tuple[int, int]]:
    from razdel import sentenize

    for sentence in sentenize(text):
        yield sentence.start, sentence.stop


def _sentencex(text: str, language: str) -> Iterator[tuple[int, int]]:
    from sentencex import segment

    start = 0
    for piece in segment(language, text.translate(_WIDE_SPACES)):
        end = start + len(piece)
        yield start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
        start = end


_SPLITTERS: dict[str, Callable[[str, str], Iterator[tuple[int, int]]]] = {"ru": _razdel}
