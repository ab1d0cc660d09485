"""The numbers of a text, compared with those of its translation."""

from __future__ import annotations

import re
import unicodedata

# Thousands may be set apart by one space: "10 000", but not "1990 2000".
_NUMBER = re.compile(r"\d++(?:(?:[.,'’٫٬]\d++)++|(?<!\d\d\d\d)(?:[ \u00a0\u2009\u202f]\d{3}(?!\d))++)*+")
_RUN = re.compile(r"\d+")
_ROMAN = re.compile(r"(?<!\w)[IVXLC]{1,8}(?!\w)")
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_WORDED = 12
"""Numbers up to this may become words."""


def lost(source: str, answer: str) -> list[str]:
    """The numbers of the source, as it spells them, that the answer has in no spelling; [] for none.

    >>> lost("In 1987, 1,000.5 of 12", "В 1987 году 1 000,5 из двенадцати")
    []
    """
    if not _RUN.search(source):
        return []
    found = [match[0] for match in _NUMBER.finditer(_plain(source))]
    answer = _plain(answer)
    there = {_digits(match[0]) for match in _NUMBER.finditer(answer)}
    missing = [number for number in found if _digits(number) not in there and not _worded(number)]
    if not missing:
        return []
    # "1,2,3" and "1, 2, 3", "10:30" and "10.30": the same runs of digits, differently joined.
    runs = set(_RUN.findall(answer))
    romans = {_roman(match[0]) for match in _ROMAN.finditer(answer)}
    return [
        number
        for number in dict.fromkeys(missing)
        if not runs.issuperset(_RUN.findall(number)) and not (len(number) < 4 and int(_digits(number) or "0") in romans)
    ]


def _plain(text: str) -> str:
    """The text with the digits of all scripts as 0 to 9."""
    if text.isascii():
        return text
    return _RUN.sub(lambda run: "".join(str(unicodedata.digit(char)) for char in run[0]), text)


def _digits(number: str) -> str:
    return "".join(filter(str.isdigit, number)).lstrip("0")


def _worded(number: str) -> bool:
    digits = _digits(number)
    return len(digits) <= 2 and len(number) <= 2 and int(digits or "0") <= _WORDED


def _roman(letters: str) -> int:
    values = [_ROMAN_DIGITS[letter] for letter in letters]
    return sum(
        -value if value < following else value for value, following in zip(values, [*values[1:], 0], strict=True)
    )
