"""Find phrases that a translator repeats over and over, and texts that it gives twice."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from operator import eq
from typing import NamedTuple

_STUCK_CHARS = 15
_STUCK = re.compile(rf"([^\W_])\1{{{_STUCK_CHARS - 1},}}")
TIMES = 4
MIN_TOKENS = 6
"""The repetitions are together at least so many words: "ha ha ha ha" is not a loop."""
_PERIODS = range(1, 13)
_PERIODS_OF_CHARS = range(2, 25)
_MIN_CHARS = 12
_GRAM = 4
_MIN_HALF = 5
"""Letters and digits of a text that is given twice: a word such as "мама" is not."""
_GLANCE_CHARS = 16


words_of = lru_cache(maxsize=1)(str.split)
"""The words of a text, which two checks ask for of the same answer."""


class Loop(NamedTuple):
    """A phrase, and how many times it is repeated in a row."""

    phrase: str
    times: int


def find_loop(text: str) -> Loop | None:
    """The first phrase of up to 12 words (24 characters where there are no spaces) said four times in a row or more.

    >>> find_loop("It is very very very very very very good.")
    Loop(phrase='very', times=6)
    """
    words = words_of(text)
    for word in words:
        if len(word) >= _STUCK_CHARS and (stuck := _STUCK.search(word)):
            return Loop(stuck[1], len(stuck[0]))
    # How many words repeat an earlier one is sooner known than how often each occurs.
    if len(words) - len(set(words)) >= MIN_TOKENS - 1:
        often = {word for word, n in Counter(words).items() if n >= TIMES}
        # A loop is a row of words of which each occurs as often; most texts have no such row.
        in_row = bytes(map(often.__contains__, words)).find(b"\x01" * MIN_TOKENS) >= 0
        if in_row and (repeated := _repeated(words, _PERIODS, MIN_TOKENS)):
            start, period, times = repeated
            return Loop(" ".join(words[start : start + period]), times)
    if len(text) < _MIN_CHARS or len(words) * 15 > len(text):
        return None
    grams = Counter(zip(*(text[i:] for i in range(_GRAM)), strict=False))
    if max(grams.values()) >= TIMES and (repeated := _repeated(text, _PERIODS_OF_CHARS, _MIN_CHARS)):
        start, period, times = repeated
        return Loop(text[start : start + period], times)
    return None


def is_doubled(text: str) -> bool:
    """Whether a text is the same twice, but for white space, punctuation and case.

    >>> is_doubled("A red cat. A red cat!")
    True
    """
    folded = text.casefold()
    # What is there twice has each letter an even number of times; a few letters decide most texts.
    if any(char.isalnum() and folded.count(char) % 2 for char in folded[:_GLANCE_CHARS]):
        return False
    chars = "".join(filter(str.isalnum, folded))
    half, odd = divmod(len(chars), 2)
    return not odd and half >= _MIN_HALF and chars[:half] == chars[half:]


def _repeated(tokens: list[str] | str, periods: range, least: int) -> tuple[int, int, int] | None:
    """(start, period, times) of the shortest phrase that is repeated often enough."""
    for period in periods:
        needed = max((TIMES - 1) * period, least - period)
        same = bytes(map(eq, tokens, tokens[period:]))
        start = same.find(b"\x01" * needed)
        if start >= 0:
            stop = same.find(b"\x00", start)
            return start, period, ((len(same) if stop < 0 else stop) - start) // period + 1
    return None
