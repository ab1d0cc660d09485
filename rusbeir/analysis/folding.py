"""What is done to the characters of a text before it is cut into tokens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import regex

Fold: TypeAlias = Callable[[str], str]

_STRESS = regex.compile(r"(?<=[аеёиоуыэюяіїєАЕЁИОУЫЭЮЯІЇЄ])[\u0300\u0301]+")
_INVISIBLE = re.compile(
    # Not the zero-width space: it parts words. A single set is what the re module is fast at.
    r"[\u00AD\u034F\u061C\u180E\u200C-\u200F\u202A-\u202E\u2060-\u2064\u2066-\u2069\uFEFF]"
)


def _replace(pairs: Mapping[str, str]) -> Fold:
    """For a few letters in long texts much faster than str.translate."""

    def replace(text: str) -> str:
        for old, new in pairs.items():
            text = text.replace(old, new)
        return text

    return replace


def _nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _same(text: str) -> str:
    return text


_single_code_points = _replace({"İ": "i", "Σ": "σ"})
_stressed_letters = _replace({"ѐ": "е", "ѝ": "и", "Ѐ": "Е", "Ѝ": "И"})

NORMALISATIONS: Mapping[str, Fold] = {"nfkc": _nfkc, "none": _same}

CASES: Mapping[str, Fold] = {
    "fold": str.casefold,
    "lower": str.lower,
    "simple": lambda text: _single_code_points(text).lower(),
    "none": _same,
}

FOLDS: Mapping[str, Fold] = {
    "invisible": lambda text: _INVISIBLE.sub("", text),
    "stress": lambda text: str(_STRESS.sub("", _stressed_letters(text))),
    "yo": _replace({"ё": "е", "Ё": "Е"}),
}
"""invisible: soft hyphens, zero-width and direction characters go.
stress: acute and grave marks on Cyrillic vowels go; й and ё stay.
yo: ё becomes е."""


def folder(normalise: str, case: str, folds: Sequence[str]) -> Fold:
    """The steps as one function.

    What case folding and the folds leave can be unnormalised (a stress mark gone from between a letter and its
    dots), so that normalising is followed by a second round.

    >>> folder("nfkc", "fold", ["stress", "yo"])("Всё о За́мке")
    'все о замке'
    """
    steps = [CASES[case], *(FOLDS[name] for name in folds)]
    if normalise == "none":
        return _in_turn(steps)
    normalised = NORMALISATIONS[normalise]
    fold = _in_turn([normalised, *steps])
    again = _in_turn([normalised, *steps[1:]])

    def fold_fully(text: str) -> str:
        folded = fold(text)
        return folded if unicodedata.is_normalized("NFKC", folded) else again(folded)

    return fold_fully


def _in_turn(steps: Sequence[Fold]) -> Fold:
    def fold(text: str) -> str:
        for step in steps:
            text = step(text)
        return text

    return fold
