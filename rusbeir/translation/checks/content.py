"""Checks of content in any language: numbers, phrases that are repeated over and over, a text given twice."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from operator import eq
from typing import NamedTuple

from rusbeir.translation.translator import Flag, Segment

# Thousands may be separated by one space: "10 000", but not "1990 2000".
# \d\d*+ for \d++: re skips to the first digit only where a pattern begins with one character of a set.
_NUMBER = re.compile(r"\d\d*+(?:(?:[.,'’٫٬]\d++)++|(?<!\d\d\d\d)(?:[ \u00a0\u2009\u202f]\d{3}(?!\d))++)*+")
_RUN = re.compile(r"\d\d*+")
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
"""A digit of a script that has its own."""
_SIGNS = re.compile(r"\D")
_DIGITS_ALONE = bytes(byte if chr(byte) in "0123456789" else ord(" ") for byte in range(256))
"""For bytes of UTF-8: what is not a digit of ASCII becomes white space."""
_ROMAN = re.compile(r"(?<!\w)[IVXLC]{1,8}(?!\w)")
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_WORDED = 12
"""Numbers up to this may become words."""
_RANGE_BEGINS = re.compile(r"(?<!\d)(\d\d)\d\d[-‑–—/]$")
_THOUSANDS = re.compile(r"(\d{2,3})(?:[.,'’ \u00a0\u2009\u202f]000)+")
_HUNDREDS = re.compile(r"\d{1,2}00")
_PLURAL = re.compile(r"['’]?s\b")
_TIMES = re.compile(r"[×x*·] ?$")
_POWER = re.compile(r"10(\d{1,2})")
_CLOCK = re.compile(r"(1[0-2]|0?[1-9])[.:]([0-5]\d)")
_PM = re.compile(r"[ \u00a0]?p\.? ?m\b", re.IGNORECASE)
_AROUND = 6
_SHOWN = 10


def lost_numbers(segment: Segment) -> Flag | None:
    """Return a Flag that names the numbers of the source that the answer has in no spelling.

    Separators may differ (1,000.5 and 1 000,5), small numbers may become words or Roman, digits may be of any script.

    >>> lost_numbers(Segment("In 1987, 1,000.5 of 12", "В 1987 году 1 000,5 из двенадцати", "en", "ru")) is None
    True
    """
    # Most texts have all numbers in the same digits, and bytes are sooner searched for them than characters.
    if segment.source.isascii():
        encoded = segment.source.encode(), segment.answer.encode("utf-8", "surrogatepass")
        expected, present = (set(text.translate(_DIGITS_ALONE).split()) for text in encoded)
        if expected <= present:
            return None
    numbers = _NUMBER.findall(segment.source)
    if not numbers or set(numbers).issubset(_NUMBER.findall(segment.answer)):
        return None
    texts = segment.source, segment.answer
    source, answer = (_OTHER_DIGIT.sub(lambda digit: str(unicodedata.digit(digit[0])), text) for text in texts)
    there = {_SIGNS.sub("", number).lstrip("0") for number in _NUMBER.findall(answer)}
    missing = [
        match
        for match in _NUMBER.finditer(source)
        if (digits := _SIGNS.sub("", match[0]).lstrip("0")) not in there
        and not (len(match[0]) <= 2 and int(digits or "0") <= _WORDED)
    ]
    if not missing:
        return None
    runs = set(_RUN.findall(answer)) | {str(_roman(match[0])) for match in _ROMAN.finditer(answer)}
    lost = [
        number
        for number, spellings in {match[0]: _spellings(source, match) for match in missing}.items()
        if not any(runs.issuperset(spelling) for spelling in spellings)
    ]
    return Flag("lost-numbers", ", ".join(lost[:_SHOWN])) if lost else None


def _spellings(source: str, number: re.Match[str]) -> Iterator[list[str]]:
    """Yield the runs of digits, or Roman numbers, that may stand for a number; all of one spelling must be there."""
    text, before = number[0], source[max(0, number.start() - _AROUND) : number.start()]
    behind = source[number.end() : number.end() + _AROUND]
    # "1,2,3" and "1, 2, 3", "10:30" and "10.30": the same, differently joined.
    yield _RUN.findall(text)
    if len(text) == 2 and (first := _RANGE_BEGINS.search(before)):
        # "1998–99": "from 1998 to 1999"
        yield [first[1] + text]
    if (clock := _CLOCK.fullmatch(text)) and _PM.match(behind):
        # "5.30pm": "17:30"
        yield [str(int(clock[1]) % 12 + 12), clock[2]]
    if thousands := _THOUSANDS.fullmatch(text):
        # "663,000": "663 thousand"
        yield [thousands[1]]
    if _HUNDREDS.fullmatch(text) and _PLURAL.match(behind):
        # "the 1700s": "the XVIII century"
        yield [str(int(text[:-2]) + 1)]
    if _TIMES.search(before) and (power := _POWER.fullmatch(text)):
        # "1.1 × 1011", whose exponent has come down: "1,1 × 10 to the 11th"
        yield ["10", power[1]]


def _roman(letters: str) -> int:
    values = [_ROMAN_DIGITS[letter] for letter in letters]
    return sum(
        -value if value < following else value for value, following in zip(values, [*values[1:], 0], strict=True)
    )


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
    """Find the first phrase of up to 12 words (24 characters without spaces) said four times in a row or more.

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
    """Return whether a text is the same twice, but for white space, punctuation and case.

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
    """Return (start, period, times) of the shortest phrase that is repeated often enough."""
    for period in periods:
        needed = max((TIMES - 1) * period, least - period)
        same = bytes(map(eq, tokens, tokens[period:]))
        start = same.find(b"\x01" * needed)
        if start >= 0:
            stop = same.find(b"\x00", start)
            return start, period, ((len(same) if stop < 0 else stop) - start) // period + 1
    return None
