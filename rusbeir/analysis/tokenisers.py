"""Tokenisers: how a text is cut into tokens. None joins text across white space, so it may be cut there first.

Segmenters are tokenisers of optional packages, for languages that are written without spaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, TypeAlias

import regex

from rusbeir.analysis import subwords
from rusbeir.errors import require, require_version

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
    tokens: list[str] = _WORD.findall(text)
    return _cut(tokens) if len(text) > MAX_CHARS else tokens


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


_UNSPACED = regex.compile(
    r"(?P<cjk>[\p{Han}\p{Hiragana}\p{Katakana}ー]+)|(?P<asian>[\p{LB=SA}\p{M}]+)|[^\p{Han}\p{Hiragana}\p{Katakana}ー\p{LB=SA}]+"
)


def unicode(text: str) -> list[str]:
    """Words; where a script has no spaces between them, overlapping runs of characters.

    Two ideographs or kana, which is the usual length of a word, or three characters of Thai, Lao, Khmer and Burmese.

    >>> unicode("机器学习 with Python"), unicode("ภาษาไทย")
    (['机器', '器学', '学习', 'with', 'Python'], ['ภาษ', 'าษา', 'ษาไ', 'าไท', 'ไทย'])
    """
    tokens: list[str] = []
    for word in words(text):
        if word.isascii():
            tokens.append(word)
            continue
        for run in _UNSPACED.finditer(word):
            size = 2 if run["cjk"] else 3 if run["asian"] else len(run[0])
            tokens += (run[0][start : start + size] for start in range(max(1, len(run[0]) - size + 1)))
    return tokens


_CJK = regex.compile(r"(?:(?![々〻])[\p{Han}\p{Hiragana}\p{WB=Katakana}\p{Hangul}]\p{M}*)+")


def cjk(text: str) -> list[str]:
    """The tokens of uax29, where overlapping pairs of characters replace Chinese, Japanese and Korean ones.

    Pairs are formed across neighbouring tokens, as by Lucene's CJKBigramFilter; a lone character stays as it is.

    >>> cjk("多くの学生が3번 한국")
    ['多く', 'くの', 'の学', '学生', '生が', '3번', '한국']
    """
    tokens: list[str] = []
    run, end = "", 0
    for match in _uax29().finditer(text):
        is_cjk = _CJK.fullmatch(match[0]) is not None
        if run and not (is_cjk and match.start() == end):
            tokens += _pairs(run)
            run = ""
        if is_cjk:
            run += match[0]
        else:
            tokens.append(match[0])
        end = match.end()
    return _cut([*tokens, *(_pairs(run) if run else [])])


def _pairs(run: str) -> list[str]:
    return [run[start : start + 2] for start in range(max(1, len(run) - 1))]


@dataclass(frozen=True, kw_only=True)
class Segmenter:
    """A tokeniser of an optional package."""

    load: Callable[[str], Tokenise]
    """Takes the extra that installs it."""
    packages: tuple[str, ...]
    """What decides its tokens, as PyPI names them."""
    extra: str


def _jieba(extra: str) -> Tokenise:
    cut: Tokenise = require("rjieba", "Chinese analysis", extra).cut_for_search
    return cut


def _fugashi(extra: str) -> Tokenise:
    """Dictionary forms. Particles, auxiliary verbs and signs are dropped by their part of speech."""
    require("unidic_lite", "Japanese analysis", extra)
    tag = require("fugashi", "Japanese analysis", extra).Tagger()
    dropped = {"助詞", "助動詞", "補助記号", "空白"}

    def segment(text: str) -> list[str]:
        nodes = ((str(node.surface), node.feature) for node in tag(text))
        return [feature.orthBase or surface for surface, feature in nodes if feature.pos1 not in dropped]

    return segment


def _kiwi(extra: str) -> Tokenise:
    """Stems of nouns, verbs and adverbs, foreign words and numbers. Particles, endings and affixes are dropped."""
    tokenize = require("kiwipiepy", "Korean analysis", extra).Kiwi(num_workers=1).tokenize
    content_tags = ("N", "V", "M", "XR", "SL", "SH", "SN", "W", "U")

    def segment(text: str) -> list[str]:
        tokens = tokenize(text)
        forms = [
            token.form for token in tokens if token.tag.startswith(content_tags) and token.tag not in ("VCP", "VX")
        ]
        return forms or [token.form for token in tokens]

    return segment


def _pythainlp(extra: str) -> Tokenise:
    tokenize = require("pythainlp.tokenize", "Thai analysis", extra).word_tokenize

    def segment(text: str) -> list[str]:
        # NFKC takes ำ apart, which dictionaries have as one letter.
        return list(tokenize(text.replace("\u0e4d\u0e32", "\u0e33"), engine="newmm", keep_whitespace=False))

    return segment


SEGMENTERS: Mapping[str, Segmenter] = {
    "jieba": Segmenter(load=_jieba, packages=("rjieba",), extra="zh"),
    "fugashi": Segmenter(load=_fugashi, packages=("fugashi", "unidic-lite"), extra="ja"),
    "kiwi": Segmenter(load=_kiwi, packages=("kiwipiepy", "kiwipiepy-model"), extra="ko"),
    "pythainlp": Segmenter(load=_pythainlp, packages=("pythainlp",), extra="th"),
}
RULES: Mapping[str, Tokenise] = {
    "words": words,
    "python-word": python_word,
    "uax29": uax29,
    "unicode": unicode,
    "cjk": cjk,
}
TOKENISERS = (*RULES, *SEGMENTERS)
"""The names that a recipe can give for its tokens."""


def load_tokeniser(name: str) -> Tokenise:
    """The segmenter or subwords of that name. Raises as load_segmenter and load_subwords."""
    return subwords.load_subwords(name).tokenise if name.startswith(subwords.HF) else load_segmenter(name)


@cache
def load_segmenter(name: str) -> Tokenise:
    """The segmenter of that name. Raises MissingExtra where its package is not installed."""
    segment = SEGMENTERS[name].load(SEGMENTERS[name].extra)
    control = regex.compile(r"\p{Cc}")
    # Control characters separate words, as everywhere. A segmenter sees one piece of text at a time, because what it
    # calls a word may depend on the rest of what it sees. That is cut as a word, so that no sign becomes a term.
    return lambda text: [
        word for piece in control.sub(" ", text).split() for token in segment(piece) for word in words(token)
    ]


def describe_tokeniser(name: str) -> str:
    """The name of a segmenter or subwords, with the versions that decide its tokens; raises as load_tokeniser."""
    if name.startswith(subwords.HF):
        return subwords.load_subwords(name).signature
    segmenter = SEGMENTERS[name]
    purpose = f"The analyzer of {segmenter.extra!r}"
    versions = (require_version(package, purpose, segmenter.extra) for package in segmenter.packages)
    return f"{name}-{'+'.join(versions)}"


APOSTROPHES = "'’ʼ＇"
_GERESH = regex.compile(rf"(?<=\p{{Hebrew}}\p{{M}}*)[{APOSTROPHES}‘׳](?=\p{{Hebrew}})")
_GERSHAYIM = regex.compile(r"""(?<=\p{Hebrew}\p{M}*)["“”„״＂](?=\p{Hebrew})""")
_LETTERS = {"ʼ": "׳", "ˮ": "״"}
"""Modifier letters, which tokenisers take for letters, in place of geresh and gershayim, which they do not."""


def with_geresh(tokenise: Tokenise) -> Tokenise:
    """The tokeniser, for which geresh and gershayim inside a word, however they are typed, are letters.

    >>> with_geresh(words)('צה"ל ג’ירפה "שלום"')
    ['צה״ל', 'ג׳ירפה', 'שלום']
    """

    def tokens(text: str) -> list[str]:
        if text.isascii():
            return tokenise(text)
        joined = tokenise(_GERSHAYIM.sub("ˮ", _GERESH.sub("ʼ", text)))
        return [token.replace("ʼ", _LETTERS["ʼ"]).replace("ˮ", _LETTERS["ˮ"]) for token in joined]

    return tokens


def around_apostrophes(tokenise: Tokenise, elision: tuple[str, ...], how: str) -> Tokenise:
    """The tokeniser, for a language in which an apostrophe separates an article, a suffix, or nothing.

    elision: articles and the like that are removed before an apostrophe. how: split, cut or keep, as in Recipe.

    >>> around_apostrophes(words, ("l", "qu"), "split")("l'eau qu’il aujourd’hui")
    ['eau', 'il', 'aujourd', 'hui']
    >>> around_apostrophes(words, (), "cut")("Ankara'da"), around_apostrophes(words, (), "keep")("м’ясо")
    (['Ankara'], ["м'ясо"])
    """
    clitic = "|".join(map(regex.escape, elision)) or "(?!)"  # without any, a pattern that matches nothing
    clitics = regex.compile(
        rf"(?<![\p{{L}}\p{{M}}\p{{N}}])(?:{clitic})[{APOSTROPHES}](?=[\p{{L}}\p{{N}}])", regex.IGNORECASE
    )
    suffixes = regex.compile(rf"(?<=[\p{{L}}\p{{M}}\p{{N}}]{{2}})[{APOSTROPHES}][\p{{L}}\p{{M}}]+")
    letters = regex.compile(f"[{APOSTROPHES}]")

    def tokens(text: str) -> list[str]:
        if not letters.search(text):
            return tokenise(text)
        text = clitics.sub("", text)
        if how == "cut":
            text = suffixes.sub("", text)
        if how != "keep":
            return tokenise(text)
        # U+02BC is a letter.
        joined = (token.strip("ʼ").replace("ʼ", "'") for token in tokenise(letters.sub("ʼ", text)))
        return [token for token in joined if token]

    return tokens


_SIGNS = str.maketrans({**dict.fromkeys(f"{APOSTROPHES}‘׳", "'"), **dict.fromkeys("“”„״＂ˮ", '"')})
_ENDING = regex.compile(r"'[\p{L}\p{M}]+")


def find_in_text(tokens: Sequence[str], text: str, apostrophe: str) -> list[str]:
    """The tokens as they are typed in the text, with their own apostrophes; with the endings that cut removes.

    >>> find_in_text(["м'ясо"], "м’ясо", "keep"), find_in_text(["Ankara"], "Ankara'da", "cut")
    (['м’ясо'], ["Ankara'da"])
    """
    typed, plain = [], text.translate(_SIGNS)
    end = 0
    for token in tokens:
        start = plain.find(token.translate(_SIGNS), end)
        if start < 0:
            typed.append(token)
            continue
        end = start + len(token)
        if apostrophe == "cut" and (ending := _ENDING.match(plain, end)):
            end = ending.end()
        typed.append(text[start:end])
    return typed


def _cut(tokens: Iterable[str]) -> list[str]:
    return [token[start : start + MAX_CHARS] for token in tokens for start in range(0, len(token), MAX_CHARS)]


@cache
def _uax29() -> Any:
    """The grammar of Lucene's StandardTokenizerImpl.jflex; the rule numbers are those of UAX #29."""

    def wb(*names: str) -> str:
        return "[" + "".join(rf"\p{{WB={name}}}" for name in names) + "]"

    def ex(characters: str) -> str:  # WB4
        return f"(?:{characters}{wb('Format', 'Extend', 'ZWJ')}*+)"

    # Newer versions of Unicode than Lucene's take the Armenian hyphen and apostrophe for letters.
    letter = ex(rf"[{wb('ALetter', 'Hebrew_Letter')}--[\u055a\u058a]]")
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
