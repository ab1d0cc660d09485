"""Whether a translation is in the target language: first by the script of its letters, then by py3langid."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

import regex

from rusbeir.storage import data_folder
from rusbeir.translation.checks.llm_phrases import languages

MIN_CHARS = 40
MAX_CHARS = 400
"""As much of an answer as py3langid needs to be sure; it goes through every byte in Python."""
SURE = 0.9
_LETTERS = re.compile(r"[^\W\d_]+")
_MIN_LETTERS = 20
_MIN_SHARE = 0.5
_RARE_HAN = ("\U00020000", "\U000323af")
# The codes of py3langid, where they differ from BCP 47.
_ALIASES = {"nb": "no", "iw": "he", "in": "id", "fil": "tl"}


def describe_wrong_script(source: str, answer: str, language: str) -> str | None:
    """One line about letters that do not fit the language; None where all fit, or the language is not listed.

    Letters of the source may appear in the answer, and so may Latin and Greek ones, but of the words that the source
    does not have, half the letters must be in the language's script.
    """
    names = scripts_of(language)
    if not names or (answer.isascii() and "Latin" in names):
        return None
    foreign, own = _letter_patterns(names)
    if foreign.search(answer) and (found := set("".join(foreign.findall(answer))) - set(source)):
        return f"{''.join(sorted(found))[:20]!r} in a text in {', '.join(names)}"
    if _is_mostly(own, answer):
        return None
    known = set(source.split())
    fresh = " ".join([word for word in answer.split() if word not in known])
    n_letters = sum(map(len, _LETTERS.findall(fresh)))
    n_own = sum(map(len, own.findall(fresh)))
    if n_letters >= _MIN_LETTERS and n_own < _MIN_SHARE * n_letters:
        return f"{n_own} of {n_letters} letters are in {', '.join(names)}"
    return None


def describe_wrong_language(source: str, answer: str, source_language: str, target_language: str) -> str | None:
    """One line about the other language that the answer is in; None where py3langid is not sure of one.

    Only words that the source does not have count. The languages to choose from are the two, English, and those of
    translation/llm_phrases. Where none of the others is written in the target's script, an answer in that script is
    not examined further.
    """
    if _is_alone_in_script(source_language, target_language) and _is_mostly(
        _letter_patterns(scripts_of(target_language))[1], answer
    ):
        return None
    target = _ALIASES.get(target_language, target_language)
    known = set(_LETTERS.findall(source))
    fresh = " ".join(word for word in _LETTERS.findall(answer) if word not in known)
    if len(fresh) < MIN_CHARS:
        return None
    identifier = _identifier(source_language, target_language)
    if target not in identifier.labels:
        return None
    found, probability = identifier.classify(fresh[:MAX_CHARS])
    return f"{found}, {probability:.2f}: {fresh[:60]!r}" if found != target and probability >= SURE else None


@cache
def scripts_of(language: str) -> tuple[str, ...]:
    """The scripts of a language, of "sr-Latn" the one it names; () where translation/scripts.toml does not list it."""
    code, _, rest = language.replace("_", "-").partition("-")
    if "latn" in rest.lower().split("-"):
        return ("Latin",)
    return tuple(_script_table().get(code.lower(), ()))


def _is_mostly(letters: re.Pattern[str], answer: str) -> bool:
    """Whether at least half of the characters are such letters."""
    return 2 * sum(map(len, letters.findall(answer))) >= len(answer)


@cache
def _letter_patterns(names: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Runs of letters of scripts that may not appear, and runs of letters of these scripts."""
    own = "".join(rf"\p{{Script={name}}}" for name in names)
    allowed = rf"{own}\p{{Script=Latin}}\p{{Script=Greek}}\p{{Script=Common}}\p{{Script=Inherited}}"
    return _compile(rf"[\p{{L}}--[{allowed}]]+"), _compile(rf"[\p{{L}}&&[{own}]]+")


def _compile(pattern: str) -> re.Pattern[str]:
    """The same for re as a pattern of regex, which is far slower, within the Basic Multilingual Plane.

    Beyond that plane only the rare Chinese characters are considered.
    """
    plane = "".join(map(chr, range(0x10000)))
    ranges = [f"{run[0]}-{run[-1]}" for run in regex.findall(pattern, plane, regex.V1)]
    if regex.search(pattern, _RARE_HAN[0], regex.V1):
        ranges.append("-".join(_RARE_HAN))
    return re.compile(f"[{''.join(ranges)}]+")


@cache
def _script_table() -> Mapping[str, list[str]]:
    with (data_folder("translation") / "scripts.toml").open("rb") as file:
        return tomllib.load(file)


def _candidates(source_language: str, target_language: str) -> frozenset[str]:
    return frozenset({target_language, source_language, "en", *languages()})


@cache
def _is_alone_in_script(source_language: str, target_language: str) -> bool:
    """Whether the letters tell the target from all other candidates, as with Russian among western languages."""
    own = set(scripts_of(target_language))
    others = _candidates(source_language, target_language) - {target_language}
    return bool(own) and all(names and own.isdisjoint(names) for names in map(scripts_of, others))


@cache
def _identifier(source_language: str, target_language: str) -> Any:
    identifier = copy.copy(_model())
    codes = {_ALIASES.get(code, code) for code in _candidates(source_language, target_language)}
    identifier.set_languages(sorted(codes & set(identifier.labels)))
    return identifier


@cache
def _model() -> Any:
    # Imported here, as loading takes 2 seconds.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
