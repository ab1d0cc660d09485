"""Stemmers: Snowball's algorithms by PyStemmer, and the Porter stemmer as in Lucene."""

from __future__ import annotations

import re

import Stemmer

SNOWBALL = "snowball:"
STEMMERS = ("porter", *(SNOWBALL + algorithm for algorithm in Stemmer.algorithms()))
"""The names that a recipe can give for its stemmer, in addition to none."""


_DOUBLE_SUFFIXES = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble",
    "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate",
    "alism": "al", "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive",
    "biliti": "ble", "logi": "log",
}  # fmt: skip
_FULL_SUFFIXES = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_LAST_SUFFIXES = re.compile(
    "(?:al|ance|ence|er|ic|able|ible|ant|ement|ment|ent|(?<=[st])ion|ou|ism|ate|iti|ous|ive|ize)$"
)


def stem_porter(word: str) -> str:
    """The stem of a lower-case English word by the Porter stemmer; words of up to two characters are not changed.

    M. F. Porter, An algorithm for suffix stripping, Program 14(3), 1980, with the two departures in the author's own
    code, which Lucene's PorterStemmer shares: -bli becomes -ble, and -logi becomes -log.

    >>> [stem_porter(word) for word in ("ponies", "hopping", "technology", "technological")]
    ['poni', 'hop', 'technolog', 'technolog']
    """
    if len(word) < 3:
        return word
    word = _plural_and_participle(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replace_suffix(word, _DOUBLE_SUFFIXES)
    word = _replace_suffix(word, _FULL_SUFFIXES)
    if (suffix := _LAST_SUFFIXES.search(word)) and _measure(word[: suffix.start()]) > 1:
        word = word[: suffix.start()]
    return _final_e_and_l(word)


def _plural_and_participle(word: str) -> str:
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    suffix = next((suffix for suffix in ("ed", "ing") if word.endswith(suffix)), "")
    if not suffix or not _has_vowel(word[: -len(suffix)]):
        return word
    word = word[: -len(suffix)]
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if _doubled(word):
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _measure(word) == 1 and _short_end(word) else word


def _replace_suffix(word: str, suffixes: dict[str, str]) -> str:
    """Replace the longest suffix that is in the table, if at least one syllable precedes it."""
    for start in range(max(0, len(word) - 7), len(word)):
        if (replacement := suffixes.get(word[start:])) is not None:
            return word[:start] + replacement if _measure(word[:start]) > 0 else word
    return word


def _final_e_and_l(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word)
        if measure > 1 or (measure == 1 and not _short_end(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("l") and _doubled(word) and _measure(word) > 1 else word


def _shape(word: str) -> str:
    """A letter c for each consonant and v for each vowel; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    return _shape(word).count("vc")


def _has_vowel(word: str) -> bool:
    return "v" in _shape(word)


def _doubled(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _shape(word).endswith("c")


def _short_end(word: str) -> bool:
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"
