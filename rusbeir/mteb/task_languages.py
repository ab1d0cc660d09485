"""The language of a task of MTEB: of what its metadata name, and of its documents where they name several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any

from rusbeir.errors import BadInput, option
from rusbeir.languages import DETECTOR_CODES, MACROLANGUAGE_MEMBERS, iso639_1, iso639_3, load_detector
from rusbeir.types import Doc

_SAMPLED_DOCUMENTS = 50
"""The documents whose language is identified where a task has several."""
PROGRAMS = "-Code"
"""Ends what MTEB calls the languages of programs; their words are analysed as English ones."""


def find_task_language(task_metadata: Any, hf_subset: str, corpus: Iterable[Doc] = ()) -> str:
    """Find the BCP 47 tag of the language of a task's subset, from MTEB's eval_langs such as ["rus-Cyrl"].

    Where there are several it is that of the documents; programs count as English where they are alone.

    Raises:
        BadInput: There are several, and no documents; or none at all.

    Examples:
        >>> from types import SimpleNamespace
        >>> find_task_language(SimpleNamespace(name="T", eval_langs=["azj-Latn"]), "default")
        'az'
    """
    named = task_metadata.eval_langs
    listed: Sequence[str] = named.get(hf_subset, []) if isinstance(named, dict) else named
    codes = {code.partition("-")[0] for code in listed if not code.endswith(PROGRAMS)}
    if listed and not codes:
        codes = {"eng"}
    tags = {iso639_3(tag): tag for tag in iso639_1()} | dict(MACROLANGUAGE_MEMBERS)
    # A code of three letters without a shorter one is a tag itself.
    languages = sorted({tags.get(code, code) for code in codes})
    texts = [doc.full_text for doc in islice(corpus, _SAMPLED_DOCUMENTS)]
    if len(languages) > 1 and texts:
        return _identify(texts, languages)
    if len(languages) != 1:
        several = ", ".join(sorted(codes)) or "none"
        raise BadInput(
            f"{task_metadata.name}/{hf_subset} has not one language but {several}. Name it with {option('language')}."
        )
    return languages[0]


def _identify(texts: Sequence[str], languages: Collection[str]) -> str:
    """Find which of the languages most texts are in.

    The library knows 97 languages. Where it does not know all of these, it answers with any that it knows; if most
    answers are none of these, the texts are in the first one that it does not know.
    """
    identifier = load_detector()
    codes = {language: DETECTOR_CODES.get(language, language) for language in languages}
    unknown = [language for language in languages if codes[language] not in identifier.nb_classes]
    if not unknown:
        identifier.set_languages(list(codes.values()))
    votes: Counter[str] = Counter(identifier.classify(text)[0] for text in texts)
    best = max(languages, key=lambda language: votes[codes[language]])
    return unknown[0] if unknown and 2 * votes[codes[best]] <= len(texts) else best
