"""Checks that depend on the languages of a segment: scripts, py3langid, and phrases of language models."""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

import regex

from rusbeir.errors import BadInput
from rusbeir.languages import DETECTOR_CODES, load_detector, scripts_of
from rusbeir.storage import data_folder
from rusbeir.translation.translator import Flag, Segment

KEYS = ("refusal", "refusal_anywhere", "prefix", "suffix")
WORDS = "refusal_words"

MIN_CHARS = 40
MAX_CHARS = 400
"""The part of an answer that py3langid needs to be sure; it goes through every byte in Python."""
SURE = 0.9
_LETTERS = re.compile(r"[^\W\d_]+")
_MIN_LETTERS = 20
_MIN_SHARE = 0.5
_ASCII_LETTERS = string.ascii_letters.encode()
_TYPOGRAPHIC = re.compile("[«»“”„’–—…№]")
_RARE_HAN = ("\U00020000", "\U000323af")


class Phrases(NamedTuple):
    """The patterns of some languages, those of a key joined into one; None where no language has any."""

    refusal: re.Pattern[str] | None
    refusal_anywhere: re.Pattern[str] | None
    prefix: re.Pattern[str] | None
    suffix: re.Pattern[str] | None
    refusal_words: tuple[str, ...]
    """A text with none of these has no match of refusal_anywhere; searching for them is far faster. "" is in any."""


@cache
def read_phrases() -> Mapping[str, Mapping[str, list[str]]]:
    """Read the phrases of language models instead of a translation or around it: language -> the tables of its file.

    >>> "ru" in read_phrases()
    True
    """
    keys = (*KEYS, WORDS)
    phrases: dict[str, Mapping[str, list[str]]] = {}
    for path in sorted((data_folder("translation") / "llm_phrases").glob("*.toml")):
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise BadInput(f"{path}: {error}. A file of patterns is TOML in UTF-8.") from error
        if extra := table.keys() - {"name", *keys}:
            raise BadInput(f"{path}: unknown key {min(extra)!r}. Keys: name, {', '.join(keys)}.")
        for key in keys:
            if not isinstance(table.setdefault(key, []), list):
                raise BadInput(f"{path}: {key} must be a list of regular expressions.")
            for pattern in table[key]:
                try:
                    re.compile(pattern)
                except (re.error, TypeError) as error:
                    raise BadInput(f"{path}: {key}: {pattern!r} is not a regular expression ({error}).") from error
        phrases[path.stem] = table
    return phrases


@cache
def phrases_of(*tags: str) -> Phrases:
    """Return the patterns of those languages together; languages without a file add nothing."""
    known = read_phrases()
    tables = [known[code] for code in sorted(set(map(primary, tags))) if code in known]
    by_key = [[f"(?:{pattern})" for table in tables for pattern in table[key]] for key in KEYS]
    words = {word for table in tables if table["refusal_anywhere"] for word in table[WORDS] or [""]}
    refusal, anywhere, prefix, suffix = (re.compile("|".join(patterns)) if patterns else None for patterns in by_key)
    return Phrases(refusal, anywhere, prefix, suffix, tuple(sorted(words)))


@cache
def primary(language: str) -> str:
    """Return the first part of a language's tag, in lower case.

    >>> primary("sr-Latn")
    'sr'
    """
    return language.replace("_", "-").partition("-")[0].lower()


def wrong_script(segment: Segment) -> Flag | None:
    """Return a Flag where the answer has letters that do not fit the language; None where it is not in scripts.toml.

    Letters of the source may appear in the answer, and so may Latin and Greek ones, but of the words that the source
    does not have, half the letters must be in the language's script.
    """
    source, answer = segment.source, segment.answer
    names = scripts_of(segment.target_language)
    if not names or (answer.isascii() and "Latin" in names):
        return None
    foreign, expected, plain = _letter_patterns(names)
    if (
        not plain.fullmatch(answer)
        and foreign.search(answer)
        and (letters := set("".join(foreign.findall(answer))) - set(source))
    ):
        return Flag("wrong-script", f"{''.join(sorted(letters))[:20]!r} in a text in {', '.join(names)}")
    if _is_mostly(names, answer):
        return None
    known = set(source.split())
    fresh = " ".join([word for word in answer.split() if word not in known])
    n_letters = sum(map(len, _LETTERS.findall(fresh)))
    n_expected = sum(map(len, expected.findall(fresh)))
    if n_letters >= _MIN_LETTERS and n_expected < _MIN_SHARE * n_letters:
        return Flag("wrong-script", f"{n_expected} of {n_letters} letters are in {', '.join(names)}")
    return None


def wrong_language(segment: Segment) -> Flag | None:
    """Return a Flag where py3langid is sure that the answer is in another language, one that it knows.

    Only words that the source does not have count, and these from MIN_CHARS on. The languages to choose from are the
    two, English, and those of translation/llm_phrases. Where none of the others is written in the target's script, an
    answer in that script is not examined further.
    """
    source_language, target_language = primary(segment.source_language), primary(segment.target_language)
    alone = _is_alone_in_script(source_language, target_language)
    if alone and _is_mostly(scripts_of(target_language), segment.answer):
        return None
    target = DETECTOR_CODES.get(target_language, target_language)
    known = set(_LETTERS.findall(segment.source))
    fresh = " ".join(word for word in _LETTERS.findall(segment.answer) if word not in known)
    if len(fresh) < MIN_CHARS:
        return None
    identifier = _identifier(source_language, target_language)
    if target not in identifier.labels:
        return None
    detected, probability = identifier.classify(fresh[:MAX_CHARS])
    if detected == target or probability < SURE:
        return None
    return Flag("wrong-language", f"{detected}, {probability:.2f}: {fresh[:60]!r}")


@lru_cache(maxsize=1)
def _is_mostly(names: tuple[str, ...], text: str) -> bool:
    """Return whether letters of these scripts make up half the text; two checks ask it of the same answer."""
    _, expected, plain = _letter_patterns(names)
    if plain.fullmatch(text):
        # Characters that are not letters are sooner counted.
        others = len(text.encode("ascii", "ignore").translate(None, _ASCII_LETTERS))
        return 2 * (others + len(_TYPOGRAPHIC.findall(text))) <= len(text)
    return 2 * sum(map(len, expected.findall(text))) >= len(text)


@cache
def _letter_patterns(names: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Compile runs of letters that may not appear, runs of these scripts, and such runs with what parts words.

    The last have letters of these scripts, what _TYPOGRAPHIC finds and what in ASCII is not a letter, as most texts do.
    """
    letters = "".join(rf"\p{{Script={name}}}" for name in names)
    allowed = rf"{letters}\p{{Script=Latin}}\p{{Script=Greek}}\p{{Script=Common}}\p{{Script=Inherited}}"
    # re is far faster than regex but has no scripts, so these are listed as ranges of the Basic Multilingual Plane.
    plane = "".join(map(chr, range(0x10000)))
    compiled = []
    for pattern in (rf"[\p{{L}}--[{allowed}]]+", rf"[\p{{L}}&&[{letters}]]+"):
        ranges = [f"{run[0]}-{run[-1]}" for run in regex.findall(pattern, plane, regex.V1)]
        # Beyond that plane only the rare Chinese characters are considered.
        if regex.search(pattern, _RARE_HAN[0], regex.V1):
            ranges.append("-".join(_RARE_HAN))
        compiled.append(re.compile(f"[{''.join(ranges)}]+"))
    return *compiled, re.compile(rf"[\x00-@\[-`{{-\x7f{_TYPOGRAPHIC.pattern[1:-1]}{''.join(ranges)}]+")


@cache
def _is_alone_in_script(source_language: str, target_language: str) -> bool:
    """Return whether the letters tell the target from all others, as with Russian among western languages."""
    scripts = set(scripts_of(target_language))
    others = {source_language, "en", *read_phrases()} - {target_language}
    return bool(scripts) and all(names and scripts.isdisjoint(names) for names in map(scripts_of, others))


@cache
def _identifier(source_language: str, target_language: str) -> Any:
    identifier = load_detector()
    codes = {DETECTOR_CODES.get(code, code) for code in (source_language, target_language, "en", *read_phrases())}
    identifier.set_languages(sorted(codes & set(identifier.labels)))
    return identifier
