"""Whether a translation is in the target language: first by the script of its letters, then by py3langid."""

from __future__ import annotations

import copy
import re
from functools import cache, lru_cache
from typing import Any

import regex

from rusbeir.languages import scripts_of
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
    if _is_mostly(names, answer):
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
    if _is_alone_in_script(source_language, target_language) and _is_mostly(scripts_of(target_language), answer):
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


@lru_cache(maxsize=1)
def _is_mostly(names: tuple[str, ...], text: str) -> bool:
    """Whether letters of these scripts make up half the text; two checks ask it of the same answer."""
    return 2 * sum(map(len, _letter_patterns(names)[1].findall(text))) >= len(text)


@cache
def _letter_patterns(names: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Runs of letters of scripts that may not appear, and runs of letters of these scripts."""
    own = "".join(rf"\p{{Script={name}}}" for name in names)
    allowed = rf"{own}\p{{Script=Latin}}\p{{Script=Greek}}\p{{Script=Common}}\p{{Script=Inherited}}"
    # re is far faster than regex but has no scripts, so these are listed as ranges of the Basic Multilingual Plane.
    plane = "".join(map(chr, range(0x10000)))
    compiled = []
    for pattern in (rf"[\p{{L}}--[{allowed}]]+", rf"[\p{{L}}&&[{own}]]+"):
        ranges = [f"{run[0]}-{run[-1]}" for run in regex.findall(pattern, plane, regex.V1)]
        # Beyond that plane only the rare Chinese characters are considered.
        if regex.search(pattern, _RARE_HAN[0], regex.V1):
            ranges.append("-".join(_RARE_HAN))
        compiled.append(re.compile(f"[{''.join(ranges)}]+"))
    return compiled[0], compiled[1]


@cache
def _is_alone_in_script(source_language: str, target_language: str) -> bool:
    """Whether the letters tell the target from all other candidates, as with Russian among western languages."""
    own = set(scripts_of(target_language))
    others = {source_language, "en", *languages()} - {target_language}
    return bool(own) and all(names and own.isdisjoint(names) for names in map(scripts_of, others))


@cache
def _identifier(source_language: str, target_language: str) -> Any:
    identifier = copy.copy(_model())
    codes = {_ALIASES.get(code, code) for code in (source_language, target_language, "en", *languages())}
    identifier.set_languages(sorted(codes & set(identifier.labels)))
    return identifier


@cache
def _model() -> Any:
    # Imported here, as loading takes 2 seconds.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
