"""Folds: what is done to the characters of a text before it is cut into tokens, and to terms after stemming."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TypeAlias

import regex

from rusbeir.errors import require

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
    # In Turkish and Azerbaijani the dot tells two letters apart, in capitals too.
    "turkish": lambda text: text.replace("İ", "i").replace("I", "ı").casefold(),
    "none": str,
}

_MARKS = regex.compile(r"(?<=[\p{Latin}\p{Greek}\p{M}])\p{Mn}+")
_STROKES = str.maketrans({**dict(zip("đłøħŧıĐŁØĦŦ", "dlohtiDLOHT", strict=True)), "œ": "oe", "æ": "ae"})
_DIGIT = regex.compile(r"(?![0-9])\p{Nd}")
_ARABIC_MARKS = regex.compile("[\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]+")
_ARABIC = str.maketrans("أإآٱ", "اااا")
_ARABIC_ENDINGS = str.maketrans("ةى", "هي")
_PERSIAN = str.maketrans({"ي": "ی", "ى": "ی", "ك": "ک", "ة": "ه", "ۀ": "ه", "أ": "ا", "إ": "ا", "ٱ": "ا", "ؤ": "و"})
_IRISH_PREFIX = regex.compile(r"(?<![\p{L}\p{M}])[hnt]-(?=\p{L})", regex.IGNORECASE)
_ROMANIAN = str.maketrans("şţŞŢ", "șțȘȚ")
_NUKTA = regex.compile(r"\p{InSC=Nukta}")
_CANDRABINDU = {ord(mark): chr(ord(mark) + 1) for mark in "\u0901\u0981\u0a01\u0a81\u0b01\u0c01\u0c81\u0d01"}
_NASALS = regex.compile("ङ्(?=[कखगघ])|ञ्(?=[चछजझ])|ण्(?=[टठडढ])|न्(?=[तथदध])|म्(?=[पफबभ])")
_ARMENIAN_MARKS = regex.compile("[\u055b\u055c\u055e]")
_HEBREW_POINTS = regex.compile(r"[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]")
_CHILLU = regex.compile("([ണനരലളക])\u0d4d\u200d")
_CHILLU_LETTERS = dict(zip("ണനരലളക", "ൺൻർൽൾൿ", strict=True))
_AMHARIC = {
    ord(letter) + vowel: ord(other) + vowel
    for letter, other in zip("ሐኀሠዐፀ", "ሀሀሰአጸ", strict=True)
    for vowel in range(7)
} | str.maketrans("ሃሓኃኣዓ", "ሀሀሀአአ")
_IRISH_CAPITALS = regex.compile(r"(?<![\p{L}\p{M}])([nt])(?=[AEIOUÁÉÍÓÚ])")
_WIDE = regex.compile("[\uff01-\uff19\uff1b-\uff5e]|[\uff65-\uff9f]+")
# Normal form C takes these letters apart.
_WITH_NUKTA = {
    unicodedata.normalize("NFD", chr(code)): chr(code)
    for code in (*range(0x958, 0x960), 0x9DC, 0x9DD, 0x9DF, 0xA33, 0xA36, *range(0xA59, 0xA5C), 0xA5E)
}
_LETTER_AND_NUKTA = regex.compile("|".join(_WITH_NUKTA))
_L_MIDDLE_DOT_L = regex.compile("(?<=l)[·•‧∙⋅](?=l)", regex.IGNORECASE)
_VIETNAMESE_TONES = regex.compile(r"(?<!q)(?:o[àáảãạèéẻẽẹ]|u[ỳýỷỹỵ])(?!\p{L})")
_LATIN_OF_SERBIAN = (
    "аa бb вv гg дd ђđ еe жž зz иi јj кk лl љlj мm нn њnj оo пp рr сs тt ћć уu фf хh цc чč џdž шš АA БB ВV ГG ДD ЂĐ ЕE "
    "ЖŽ ЗZ ИI ЈJ КK ЛL ЉLj МM НN ЊNj ОO ПP РR СS ТT ЋĆ УU ФF ХH ЦC ЧČ ЏDž ШŠ"
)
_BARE_SERBIAN = str.maketrans("čćžš", "cczs")
_SERBIAN = {ord(pair[0]): pair[1:] for pair in _LATIN_OF_SERBIAN.split()}


def _move_tone(match: regex.Match[str]) -> str:
    first, second = match[0]
    second, tone = tuple(unicodedata.normalize("NFD", second))
    return unicodedata.normalize("NFC", first + tone + second)


def _fold_accents(text: str) -> str:
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", text))).translate(_STROKES)


@cache
def _load_simplifier() -> Fold:
    """OpenCC's conversion. Raises MissingExtra where it is not installed."""
    simplify: Fold = require("opencc", "Analysis of traditional Chinese", "zh").OpenCC("t2s").convert
    return simplify


FOLDS: Mapping[str, Fold] = {
    "invisible": lambda text: _INVISIBLE.sub("", text),
    "non-joiner": lambda text: text.replace("\u200c", " "),
    "stress": lambda text: str(
        _STRESS.sub("", text.replace("ѐ", "е").replace("ѝ", "и").replace("Ѐ", "Е").replace("Ѝ", "И"))
    ),
    "yo": lambda text: text.replace("ё", "е").replace("Ё", "Е"),
    "accents": _fold_accents,
    "digits": lambda text: str(_DIGIT.sub(lambda match: str(unicodedata.digit(match[0], match[0])), text)),
    "arabic": lambda text: _ARABIC_MARKS.sub("", text).translate(_ARABIC),
    "arabic-endings": lambda text: text.translate(_ARABIC_ENDINGS),
    "apostrophes": lambda text: text.replace("’", "'").replace("＇", "'"),
    "irish": lambda text: str(_IRISH_PREFIX.sub("", text)),
    "persian": lambda text: _ARABIC_MARKS.sub("", text).translate(_PERSIAN),
    "irish-capitals": lambda text: str(_IRISH_CAPITALS.sub(r"\1·", text)).lower(),
    "romanian": lambda text: text.translate(_ROMANIAN),
    "serbian": lambda text: text.translate(_SERBIAN),
    "serbian-bare": lambda text: text.translate(_SERBIAN).replace("đ", "dj").translate(_BARE_SERBIAN),
    "nukta": lambda text: str(_LETTER_AND_NUKTA.sub(lambda match: _WITH_NUKTA[match[0]], text)),
    "width": lambda text: str(_WIDE.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)),
    "indic": lambda text: _NASALS.sub("ं", _NUKTA.sub("", text).translate(_CANDRABINDU)),
    "hebrew": lambda text: str(_HEBREW_POINTS.sub("", text)),
    "chillu": lambda text: str(_CHILLU.sub(lambda match: _CHILLU_LETTERS[match[1]], text)),
    "amharic": lambda text: text.translate(_AMHARIC),
    "armenian": lambda text: _ARMENIAN_MARKS.sub("", text).replace("և", "եվ").replace("եւ", "եվ"),
    "catalan": lambda text: _L_MIDDLE_DOT_L.sub("", text),
    "vietnamese": lambda text: _VIETNAMESE_TONES.sub(_move_tone, text),
    "simplified": lambda text: _load_simplifier()(text),
}
"""invisible: removes soft hyphens, zero-width and direction characters.
non-joiner: a zero-width non-joiner becomes a space: హైదరాబాద్‌లో is హైదరాబాద్ లో. Before invisible, which removes it.
stress: removes acute and grave marks from Cyrillic vowels; й and ё are kept.
yo: ё becomes е.
accents: removes marks and strokes from Latin and Greek letters: é, ή, ł. Other scripts keep theirs, which are letters.
digits: digits of any script become 0 to 9, but for those that this Python does not know.
arabic: removes vowel signs and tatweel; alef with hamza or madda becomes alef.
arabic-endings: ة becomes ه, and ى becomes ي. For terms: stemmers know both as endings.
apostrophes: typographic and wide apostrophes become straight, the one that Snowball's English algorithm knows.
irish: removes the h-, n- and t- that a sound puts before a word: n-athair becomes athair.
persian: Arabic ي and ك become ی and ک, ۀ and ة become ه, hamza is dropped; vowel signs and tatweel are removed.
irish-capitals: lower case; a capital vowel after a prefix, as in nAthair, is separated from it by a middle dot.
romanian: ş and ţ with cedillas become ș and ț with commas.
serbian: Cyrillic becomes Gaj's Latin alphabet.
serbian-bare: Cyrillic becomes Latin, and Latin loses its marks: ђ and đ become dj, ч and ć become c.
nukta: a letter and its nukta become one character, which normal form C does not have.
width: full-width Latin letters and digits become narrow, half-width kana wide.
indic: removes nuktas; a candrabindu, or a nasal before a consonant of its place, becomes an anusvara: हिन्दी, हिंदी.
hebrew: removes vowel points and cantillation marks.
chillu: Malayalam letters without a vowel become one character; before non-joiner and invisible, which take the joiner.
amharic: letters of one sound become one: ሐ and ኀ are ሀ, ሠ is ሰ, ዐ is አ, ፀ is ጸ; so do their vowels.
armenian: removes stress, exclamation and question marks, which are written inside a word; և becomes եվ, as in capitals.
catalan: col·legi becomes collegi.
vietnamese: the tone of a final oa, oe and uy is written on the first letter: hoà becomes hòa.
simplified: traditional Chinese characters become simplified ones, by OpenCC; needs the extra zh."""


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
