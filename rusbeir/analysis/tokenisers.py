"""Tokenisers: how a text is cut into tokens. None joins text across white space, so it may be cut there first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import chain
from typing import Any, TypeAlias

import regex

Tokenise: TypeAlias = Callable[[str], list[str]]

MAX_CHARS = 255
"""Longer tokens are cut into pieces, as Lucene's StandardTokenizer does."""

_WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*(?:(?<=\p{Nd})[.,](?=\p{Nd})[\p{L}\p{M}\p{N}]+)*")


def words(text: str) -> list[str]:
    """Runs of letters, marks and digits; 3,14 and 1.000 stay whole.

    >>> words("Диван-кровать за 3,14 руб.")
    ['Диван', 'кровать', 'за', '3,14', 'руб']
    """
    if text.isalpha() and len(text) <= MAX_CHARS:  # most pieces
        return [text]
    return _cut(_WORD.findall(text))


def python_word(text: str) -> list[str]:
    r"""Runs of the re module's \w, of any length: equal to replacing [^\w\s] with spaces and splitting."""
    return re.findall(r"\w+", text)


def uax29(text: str) -> list[str]:
    """The words, numbers, ideographs and emoji of Lucene's StandardTokenizer (UAX #29 with its additions).

    Unlike in Lucene, white space always separates tokens, U+202F included. A ':' between letters does not, as in
    Lucene 9.

    >>> uax29("O'Neill's wi-fi costs 3.14$ at example.com")
    ["O'Neill's", 'wi', 'fi', 'costs', '3.14', 'at', 'example.com']
    """
    return _cut(chain.from_iterable(map(_uax29().findall, text.split())))


TOKENISERS: Mapping[str, Tokenise] = {
    "words": words,
    "python-word": python_word,
    "uax29": uax29,
}


def _cut(tokens: Iterable[str]) -> list[str]:
    return [token[start : start + MAX_CHARS] for token in tokens for start in range(0, len(token), MAX_CHARS)]


@cache
def _uax29() -> Any:
    """The grammar of Lucene's StandardTokenizerImpl.jflex; the rule numbers are those of UAX #29."""

    def wb(*names: str) -> str:
        return "[" + "".join(rf"\p{{WB={name}}}" for name in names) + "]"

    def ex(characters: str) -> str:  # WB4
        return f"(?:{characters}{wb('Format', 'Extend', 'ZWJ')}*+)"

    letter = ex(wb("ALetter", "Hebrew_Letter"))
    hebrew = ex(wb("Hebrew_Letter"))
    digit = ex(r"[\p{WB=Numeric}\uFF10-\uFF19]")
    katakana = ex(wb("Katakana"))
    joiner = ex(wb("ExtendNumLet"))
    in_word = ex(wb("MidLetter", "MidNumLet", "Single_Quote"))
    in_number = ex(wb("MidNum", "MidNumLet", "Single_Quote"))
    unit = (
        f"(?:{katakana}(?:{joiner}*{katakana})*"  # WB13
        f"|(?:{hebrew}(?:{ex(wb('Single_Quote'))}|{ex(wb('Double_Quote'))}{hebrew})"  # WB7a to WB7c
        f"|{digit}(?:(?:{joiner}*|{in_number}){digit})*"  # WB8, WB11, WB12
        f"|{letter}(?:(?:{joiner}*|{in_word}){letter})*)+)"  # WB5 to WB7, WB9, WB10
    )
    word = f"{joiner}*{unit}(?:{joiner}+{unit})*{joiner}*"  # WB13a, WB13b

    marks = r"[[\p{WB=Format}\p{WB=Extend}]--[\u200D\uFE0E\uFE0F]]*"
    not_symbol = r"[\p{WB=Regional_Indicator}\p{Emoji_Modifier}0-9#*©®™\u3030\u303D]"
    symbol = rf"[\p{{Extended_Pictographic}}[\p{{Emoji}}--{not_symbol}]]"
    modified = rf"(?:\p{{Emoji_Modifier_Base}}{marks})?\p{{Emoji_Modifier}}{marks}"
    element = rf"(?:{modified}|{symbol}{marks}\uFE0F?)"
    emoji = (
        rf"\u200D*{element}(?:[\U000E0020-\U000E007E]+\U000E007F|(?:\u200D+{element})*)"
        rf"|[0-9#*]{marks}\uFE0F?\u20E3{marks}"
        rf"|{ex(wb('Regional_Indicator'))}{{2}}"
    )
    southeast_asian = ex(r"\p{LB=SA}") + "+"
    alternatives = [word, emoji, southeast_asian, ex(r"\p{Script=Han}"), ex(r"\p{Script=Hiragana}")]
    return regex.compile("|".join(alternatives), regex.V1)
