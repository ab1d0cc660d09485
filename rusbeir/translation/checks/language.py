"""Which language a translation is in, by py3langid."""

from __future__ import annotations

import copy
import re
from functools import cache
from typing import Any

from rusbeir.errors import MissingExtra
from rusbeir.translation.checks import writing_system
from rusbeir.translation.checks.llm_phrases import languages

MIN_CHARS = 40
MOST_CHARS = 400
"""So much tells a language for sure; py3langid goes through every byte in Python."""
SURE = 0.9
_LETTERS = re.compile(r"[^\W\d_]+")
# The codes of py3langid, where they are not BCP 47's.
_ALIASES = {"nb": "no", "iw": "he", "in": "id", "fil": "tl"}


def mistaken(source: str, answer: str, source_language: str, target_language: str) -> str | None:
    """What other language the answer is in, in one line; None where it is in none for sure.

    Only words that the source does not have are looked at. The languages to choose from are the two, English, and
    those of translation/llm_phrases; where none of the others is written in the target's script, an answer in that script
    is not looked at any further. Raises MissingExtra where py3langid is not installed.
    """
    if _alone_in_script(source_language, target_language) and writing_system.mostly_in(answer, target_language):
        return None
    target = _ALIASES.get(target_language, target_language)
    known = set(_LETTERS.findall(source))
    fresh = " ".join(word for word in _LETTERS.findall(answer) if word not in known)
    if len(fresh) < MIN_CHARS:
        return None
    identifier = _identifier(source_language, target_language)
    if target not in identifier.labels:
        return None
    found, probability = identifier.classify(fresh[:MOST_CHARS])
    return f"{found}, {probability:.2f}: {fresh[:60]!r}" if found != target and probability >= SURE else None


def _choice(source_language: str, target_language: str) -> frozenset[str]:
    return frozenset({target_language, source_language, "en", *languages()})


@cache
def _alone_in_script(source_language: str, target_language: str) -> bool:
    """Whether a look at the letters tells the target from all others, as with Russian among western languages."""
    own = set(writing_system.scripts_of(target_language))
    others = _choice(source_language, target_language) - {target_language}
    return bool(own) and all(names and own.isdisjoint(names) for names in map(writing_system.scripts_of, others))


@cache
def _identifier(source_language: str, target_language: str) -> Any:
    identifier = copy.copy(_model())
    codes = {_ALIASES.get(code, code) for code in _choice(source_language, target_language)}
    identifier.set_languages(sorted(codes & set(identifier.labels)))
    return identifier


@cache
def _model() -> Any:
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError as error:
        raise MissingExtra("Telling languages apart needs py3langid: pip install py3langid") from error
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
