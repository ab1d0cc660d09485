"""Folds: what is done to the characters of a text before it is cut into tokens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import regex

Fold: TypeAlias = Callable[[str], str]

_STRESS = regex.compile(r"(?<=[аеёиоуыэюяіїєАЕЁИОУЫЭЮЯІЇЄ])[\u0300\u0301]+")
_INVISIBLE = re.compile(
    # Not the zero-width space: it separates words. The re module is fast for a single set.
    r"[\u00AD\u034F\u061C\u180E\u200C-\u200F\u202A-\u202E\u2060-\u2064\u2066-\u2069\uFEFF]"
)


def _replace(pairs: Mapping[str, str]) -> Fold:
    """Replace a few letters; in long texts much faster than str.translate."""

    def replace(text: str) -> str:
        for old, new in pairs.items():
            text = text.replace(old, new)
        return text

    return replace


_single_code_points = _replace({"İ": "i", "Σ": "σ"})
_stressed_letters = _replace({"ѐ": "е", "ѝ": "и", "Ѐ": "Е", "Ѝ": "И"})

NORMALISATIONS: Mapping[str, Fold] = {"nfkc": partial(unicodedata.normalize, "NFKC"), "none": str}

CASES: Mapping[str, Fold] = {
    "fold": str.casefold,
    "lower": str.lower,
    "simple": lambda text: _single_code_points(text).lower(),
    "none": str,
}

FOLDS: Mapping[str, Fold] = {
    "invisible": lambda text: _INVISIBLE.sub("", text),
    "stress": lambda text: str(_STRESS.sub("", _stressed_letters(text))),
    "yo": _replace({"ё": "е", "Ё": "Е"}),
}
"""invisible: removes soft hyphens, zero-width and direction characters.
stress: removes acute and grave marks from Cyrillic vowels; й and ё are kept.
yo: ё becomes е."""


def make_fold(normalise: str, case: str, folds: Sequence[str]) -> Fold:
    """One function for all the steps.

    Case folding and the folds can leave text that is not normalised (a stress mark removed from between a letter and
    its dots); then normalisation and the folds are applied a second time.

    >>> make_fold("nfkc", "fold", ["stress", "yo"])("Всё о За́мке")
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
