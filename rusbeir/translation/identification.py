"""Which language a translation is in, by py3langid."""

from __future__ import annotations

import copy
import re
from functools import cache
from typing import Any

from rusbeir.errors import MissingExtra
from rusbeir.translation.phrases import languages

MIN_CHARS = 40
SURE = 0.9
_LETTERS = re.compile(r"[^\W\d_]+")
# The codes of py3langid, where they are not BCP 47's.
_ALIASES = {"nb": "no", "iw": "he", "in": "id", "fil": "tl"}


def mistaken(source: str, answer: str, source_language: str, target_language: str) -> str | None:
    """What other language the answer is in, in one line; None where it is in none for sure.

    Only words that the source does not have are looked at. The languages to choose from are the two, English, and
    those of translation/patterns. Raises MissingExtra where py3langid is not installed.
    """
    target = _ALIASES.get(target_language, target_language)
    known = set(_LETTERS.findall(source))
    fresh = " ".join(word for word in _LETTERS.findall(answer) if word not in known)
    if len(fresh) < MIN_CHARS:
        return None
    identifier = _identifier(frozenset({target, _ALIASES.get(source_language, source_language), "en", *languages()}))
    if target not in identifier.labels:
        return None
    found, probability = identifier.classify(fresh)
    return f"{found}, {probability:.2f}: {fresh[:60]!r}" if found != target and probability >= SURE else None


@cache
def _identifier(codes: frozenset[str]) -> Any:
    identifier = copy.copy(_model())
    identifier.set_languages(sorted(codes & set(identifier.labels)))
    return identifier


@cache
def _model() -> Any:
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError as error:
        raise MissingExtra("Telling languages apart needs py3langid: pip install py3langid") from error
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
