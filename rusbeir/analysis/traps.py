"""Traps: what careless analysis gets wrong in a language or script, as texts and what must hold of their terms."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import regex

from rusbeir.analysis.analyzer import Analyzer
from rusbeir.analysis.lines import Line
from rusbeir.languages import scripts_of

MIN_SHARE = 0.05
"""A language is written in a script that has at least this share of the letters of its test lines and stop words."""


class Trap(NamedTuple):
    """A trap, and the languages and scripts that it concerns."""

    name: str
    where: str
    """Codes of languages, and scripts as Unicode names them, separated by spaces."""
    line: Line


_WITH_VOWEL_SIGNS = {
    "Arabic": "كِتَاب", "Bengali": "বাংলা", "Devanagari": "हिन्दी", "Gujarati": "ગુજરાતી", "Gurmukhi": "ਪੰਜਾਬੀ",
    "Hebrew": "שָׁלוֹם", "Kannada": "ಕನ್ನಡ", "Malayalam": "മലയാളം", "Oriya": "ଓଡ଼ିଆ", "Sinhala": "සිංහල",
    "Tamil": "தமிழ்", "Telugu": "తెలుగు", "Thaana": "ދިވެހި",
}  # fmt: skip

_DIGITS = {
    "Arabic": "٢٠٢٣", "Bengali": "২০২৩", "Devanagari": "२०२३", "Gujarati": "૨૦૨૩", "Gurmukhi": "੨੦੨੩",
    "Kannada": "೨೦೨೩", "Khmer": "២០២៣", "Lao": "໒໐໒໓", "Malayalam": "൨൦൨൩", "Myanmar": "၂၀၂၃", "Oriya": "୨୦୨୩",
    "Tamil": "௨௦௨௩", "Telugu": "౨౦౨౩", "Thai": "๒๐๒๓", "fa ur ps": "۲۰۲۳",
}  # fmt: skip

_WITHOUT_SPACES = {
    "Han": ("北京大学", "大学", "使用Python编程"),
    "Hiragana": ("東京大学で勉強する", "勉強", "Pythonで書く"),
    "Khmer": ("ឆ្មាដេកលើដំបូលផ្ទះ", "ផ្ទះ", "ប្រើPythonសរសេរ"),
    "Lao": ("ແມວນອນຢູ່ເທິງຫຼັງຄາເຮືອນ", "ເຮືອນ", "ໃຊ້Pythonຂຽນ"),
    "Myanmar": ("ကြောင်အိမ်ခေါင်မိုးပေါ်မှာအိပ်နေတယ်", "အိမ်", "Pythonဖြင့်ရေးသည်"),
    "Thai": ("แมวนอนหลับ", "แมว", "ใช้Pythonเขียนโปรแกรม"),
}

_ACCENTS = {  # with and without accents; two forms that a stemmer without accents does not join
    "ca": ("cançó", "canco", "cançons", "cançó"),
    "el": ("Αθήνα", "ΑΘΗΝΑ", "παιδιά", "παιδί"),
    "es": ("canción", "cancion", "ingleses", "inglés"),
    "fr": ("École", "ECOLE", "protégée", "protéger"),
    "gl": ("nación", "nacion", "canción", "cancións"),
    "it": ("università", "universita", "parlerà", "parlare"),
    "nl": ("reünie", "reunie", "zeeën", "zee"),
    "pt": ("coração", "coracao", "amáveis", "amável"),
    "ro": ("ştiinţă", "stiinta", "orașe", "oraș"),
}

TRAPS: Sequence[Trap] = (
    *(
        Trap("vowel signs", script, Line("whole", word, "", "marks are parts of a word, not its borders"))
        for script, word in _WITH_VOWEL_SIGNS.items()
    ),
    *(
        Trap("digits", where, Line("same", digits, "2023", "the same numbers are also written in ASCII digits"))
        for where, digits in _DIGITS.items()
    ),
    *(
        Trap("no spaces", script, Line("contains", clause, word, "the words of a clause must be found"))
        for script, (clause, word, _) in _WITHOUT_SPACES.items()
    ),
    *(
        Trap("Latin inside", script, Line("contains", text, "Python", "a Latin word may have no spaces around it"))
        for script, (_, _, text) in _WITHOUT_SPACES.items()
    ),
    *(
        Trap("accents left out", code, Line("same", accented, plain, "queries and capitals often lack accents"))
        for code, (accented, plain, _, _) in _ACCENTS.items()
    ),
    *(
        Trap("accents after stemming", code, Line("same", form, other, "stemmers know endings by their accents"))
        for code, (_, _, form, other) in _ACCENTS.items()
    ),
    Trap("vowel marks left out", "Arabic", Line("same", "كِتَاب", "كتاب", "short vowels are rarely written")),
    Trap("tatweel", "Arabic", Line("same", "كـــتاب", "كتاب", "a stroke that only widens a word")),
    Trap("presentation forms", "Arabic", Line("same", "ﻛﺘﺎﺏ", "كتاب", "letters by their shape, as in text from PDF")),
    Trap("hamza on alef", "ar", Line("same", "أحمد", "احمد", "hamza is often left out")),
    Trap("final ة", "ar", Line("same", "مدرسة", "مدرسه", "ة is often written without its dots")),
    Trap("final ى", "ar", Line("same", "مصطفى", "مصطفي", "final ي is often written without its dots")),
    Trap(
        "ة after stemming", "ar", Line("same", "صناعة", "صناعي", "the stemmer knows ة, so it is folded after stemming")
    ),
    Trap("ى after stemming", "ar", Line("differ", "منى", "من", "ى as ي would be a suffix: folded after stemming")),
    Trap("Arabic kaf and yeh", "fa ur", Line("same", "كتابي", "کتابی", "keyboards for Arabic have other letters")),
    Trap("zero-width non-joiner", "fa", Line("same", "کتاب‌ها", "کتابها", "it separates no words, and is left out")),
    Trap(
        "non-joiner before an ending",
        "te",
        Line("contains", "హైదరాబాద్‌లో", "హైదరాబాద్", "the word is foreign, and its case is written after the sign"),
    ),
    Trap("half-width kana", "Hiragana", Line("same", "ｶﾀｶﾅ", "カタカナ", "two widths of one character")),
    Trap("particles", "ko", Line("contains", "학교에서", "학교", "particles are written with the noun")),
    Trap("sara am", "Thai", Line("same", "น้ํา", "น้ำ", "one character, or two that look the same")),
    Trap("nukta", "hi", Line("same", "फ़िल्म", "फिल्म", "nuktas are often left out")),
    Trap("candrabindu", "hi", Line("same", "चाँद", "चांद", "often written as anusvara")),
    Trap("nasal or anusvara", "hi", Line("same", "हिन्दी", "हिंदी", "two spellings of one word")),
    Trap("dotted capital İ", "tr az", Line("same", "İSTANBUL", "istanbul", "İ is the capital of i")),
    Trap("dotless capital I", "tr az", Line("same", "IŞIK", "ışık", "I is the capital of ı")),
    Trap("ı is not i", "tr az", Line("differ", "KIR", "kir", "two letters, in capitals too")),
    Trap("apostrophe before an ending", "tr az", Line("same", "Ankara'da", "Ankara", "names take endings so")),
    Trap("typographic apostrophe", "tr az", Line("same", "Türkiye’nin", "Türkiye", "names take endings so")),
    Trap("cedilla or comma", "ro", Line("same", "Ştiinţă", "Știință", "old fonts had only the cedilla")),
    Trap("final sigma", "el", Line("same", "ΔΡΟΜΟΣ", "δρόμος", "Σ is the capital of σ and ς")),
    Trap("stop words in capitals", "el", Line("empty", "ΑΥΤΟΣ ΕΙΝΑΙ", "", "capitals have no accents")),
    Trap("tone marks left out", "yo", Line("same", "Yorùbá", "Yoruba", "most texts lack them")),
    Trap("tones tell words apart", "vi", Line("differ", "má", "ma", "accents are never folded in Vietnamese")),
    Trap("đ is a letter", "vi", Line("differ", "đa", "da", "letters are never folded in Vietnamese")),
    Trap("place of the tone", "vi", Line("same", "hoà", "hòa", "an old and a new orthography")),
    Trap("elision", "fr", Line("same", "l’homme", "homme", "an article before an apostrophe")),
    Trap("elision", "it", Line("same", "dell'acqua", "acqua", "an article before an apostrophe")),
    Trap("elision", "ca", Line("same", "l'aigua", "aigua", "an article before an apostrophe")),
    Trap("elision", "ga", Line("same", "d'athair", "athair", "a possessive before an apostrophe")),
    Trap("l·l", "ca", Line("whole", "col·legi", "", "a letter, not a border")),
    Trap("compounds", "de", Line("contains", "Bundesregierung", "Regierung", "a compound holds its parts")),
    Trap("ß", "de", Line("same", "Straße", "STRASSE", "its capital is SS")),
    Trap("two scripts", "sr", Line("same", "књига", "knjiga", "Cyrillic or Latin, as the writer likes")),
    Trap("digraphs", "sr", Line("same", "ЉУБАВ", "ǉubav", "one letter, or two, or a character of its own")),
    Trap("ё", "ru", Line("same", "ёлка", "елка", "usually written е")),
    Trap("stress marks", "ru uk be bg mk sr", Line("same", "вода\u0301", "вода", "dictionaries and primers mark it")),
    Trap("apostrophe inside", "uk be", Line("whole", "п’ять", "", "a letter, not a border")),
    Trap("three apostrophes", "uk be", Line("same", "п’ять", "пʼять", "' and ’ and ʼ are the same letter")),
    Trap("apostrophe of ng'", "sw", Line("whole", "ng'ombe", "", "a letter, not a border")),
    Trap("gershayim", "Hebrew", Line("whole", 'צה"ל', "", "the sign of an abbreviation, not a quotation mark")),
    Trap("two gershayim", "Hebrew", Line("same", 'צה"ל', "צה״ל", "typed as a quotation mark, or as itself")),
    Trap("geresh", "Hebrew", Line("whole", "ג'ירפה", "", "it changes the sound of a letter, and is not a border")),
    Trap("two gereshes", "Hebrew", Line("same", "ג'ירפה", "ג׳ירפה", "typed as an apostrophe, or as itself")),
    Trap("marks inside a word", "hy", Line("same", "ի՞նչ", "ինչ", "questions are marked on the vowel")),
    Trap("և", "hy", Line("same", "Երևան", "ԵՐԵՎԱՆ", "its capitals are ԵՎ")),
)


def _insert(sign: str) -> Callable[[str], str]:
    return lambda text: re.sub(r"(?<=[^\W\d_])(?=[^\W\d_])", sign, text)


RESPELLINGS: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "decomposed": ("a letter and its mark can be two characters", partial(unicodedata.normalize, "NFD")),
    "soft hyphens": ("web pages mark where a word may be broken", _insert("\u00ad")),
    "zero-width joiners": ("they change how letters look, no more", _insert("\u200d")),
    "full width": (
        "East Asian texts have Latin letters and digits of their own width",
        lambda text: "".join(chr(ord(sign) + 0xFEE0) if "0" <= sign <= "z" else sign for sign in text),
    ),
    "capitals": ("headings are written in capitals", str.upper),
}
"""Why and how any text of a language can be spelled otherwise: none may change its terms."""

_TURKISH_RESPELLINGS = {"capitals": ("İ is the capital of i", lambda text: text.replace("i", "İ").upper())}
_MARKED_WORD = regex.compile(r"[\p{L}--\p{LB=SA}]+[\p{M}--\p{LB=SA}][[\p{L}\p{M}]--\p{LB=SA}]*", regex.V1)

_EXPECTED = {
    "same": "the terms of",
    "differ": "no term of",
    "contains": "among others the terms of",
    "whole": "one word",
    "empty": "no terms",
}


def check_traps(language: str, lines: Sequence[Line]) -> dict[str, dict[str, str] | None]:
    """Name -> failure, or None, of each trap that applies to the language, by its default profile.

    A trap applies by the language's code, by a script that the test lines and stop words are written in, or by the
    characters of these. A failure is the first text of the trap for which its expectation does not hold: check (the
    name), text, expected, found and reason.
    """
    analyzer = Analyzer(language)
    traps: dict[str, dict[str, str] | None] = {}
    for name, line in _traps_of(analyzer, lines):
        if traps.setdefault(name, None) is None and (failure := line.failure(analyzer)) is not None:
            expected = _EXPECTED[line.kind]
            if line.expected:
                expected += f" {line.expected}: {' '.join(analyzer.analyze(line.expected)) or 'nothing'}"
            traps[name] = {
                "check": name, "text": line.text, "expected": expected, "found": failure, "reason": line.note
            }  # fmt: skip
    return traps


def _traps_of(analyzer: Analyzer, lines: Sequence[Line]) -> Iterator[tuple[str, Line]]:
    """The name of each trap that applies, with what must hold; a trap has as many lines as texts to try it on."""
    stop_words = sorted({*analyzer.recipe.stop.words, *analyzer.recipe.stop_extra})
    texts = [*(line.text for line in lines), *stop_words]
    language = analyzer.recipe.language
    codes_and_scripts = {language.partition("-")[0], *find_scripts(language, texts)}
    for trap in TRAPS:
        if not codes_and_scripts.isdisjoint(trap.where.split()):
            yield trap.name, trap.line

    for word in sorted(set(_MARKED_WORD.findall(unicodedata.normalize("NFC", " ".join(texts))))):
        yield "marks", Line("whole", word, "", "marks are parts of a word, not its borders")

    dropped = [word for word in stop_words if Line("empty", word, "", "").failure(analyzer) is None]
    if dropped:
        query = " ".join(dropped[:3])
        yield "only stop words", Line("same", query, query, "a query of stop words alone must keep them")

    respellings = RESPELLINGS if codes_and_scripts.isdisjoint({"tr", "az"}) else {**RESPELLINGS, **_TURKISH_RESPELLINGS}
    for name, (reason, respell) in respellings.items():
        for word in dropped:
            if (other := respell(word)) != word:
                yield name, Line("empty", other, "", f"{word} is a stop word; {reason}")
        for text in [*texts, "10 km"]:
            if (other := respell(text)) != text and analyzer.analyze(text):
                yield name, Line("same", other, text, reason)


def find_scripts(language: str, texts: Iterable[str]) -> set[str]:
    """The scripts of the texts, as far as traps depend on them; of texts without letters, those of the language's code.

    >>> find_scripts("xx", ["हिन्दी और English"]), find_scripts("th", [])
    ({'Devanagari'}, {'Thai'})
    """
    letters = regex.findall(r"\p{L}", "".join(texts))
    if not letters:
        return set(scripts_of(language))
    scripts = {word for trap in TRAPS for word in trap.where.split() if word.istitle()}
    counts = {script: len(regex.findall(rf"\p{{Script={script}}}", "".join(letters))) for script in scripts}
    return {script for script, count in counts.items() if count >= MIN_SHARE * len(letters)}
