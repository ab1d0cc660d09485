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


NORMALISATIONS: Mapping[str, Fold] = {"nfkc": partial(unicodedata.normalize, "NFKC"), "none": str}

# A few calls of str.replace are much faster in long texts than str.translate.
CASES: Mapping[str, Fold] = {
    "fold": str.casefold,
    "lower": str.lower,
    "simple": lambda text: text.replace("İ", "i").replace("Σ", "σ").lower(),
    "none": str,
}

FOLDS: Mapping[str, Fold] = {
    "invisible": lambda text: _INVISIBLE.sub("", text),
    "stress": lambda text: str(
        _STRESS.sub("", text.replace("ѐ", "е").replace("ѝ", "и").replace("Ѐ", "Е").replace("Ѝ", "И"))
    ),
    "yo": lambda text: text.replace("ё", "е").replace("Ё", "Е"),
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
    again = [NORMALISATIONS[normalise], *(FOLDS[name] for name in folds)]
    steps = [again[0], CASES[case], *again[1:]]

    def fold(text: str) -> str:
        for step in steps:
            text = step(text)
        if normalise != "none" and not unicodedata.is_normalized("NFKC", text):
            for step in again:
                text = step(text)
        return text

    return fold
