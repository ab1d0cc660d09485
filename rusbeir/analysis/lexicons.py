"""Lemmatisers, loaded on first use, and what is remembered of their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias

from rusbeir.analysis.dictionary import readings
from rusbeir.errors import MissingExtra

Lemmatise: TypeAlias = Callable[[str], str]


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """A lemmatiser that a recipe can name."""

    load: Callable[[str], Lemmatise]
    """Takes a language code; the function that comes back gives the likeliest lemma of a lower-cased word."""
    packages: tuple[str, ...]
    """What decides its answers, as PyPI names them; {} stands for the language code."""
    slow: bool
    """Whether looking an answer up on disk is faster than working it out."""


def _pymorphy3(language: str) -> Lemmatise:
    """parse(word)[0].normal_form; where all readings of a known word agree, without ranking them: much faster."""
    morph = import_module("pymorphy3").MorphAnalyzer(lang=language, result_type=None)
    look_up, lemma_of, parse = readings(morph), morph.dictionary.build_normal_form, morph.parse

    def lemmatise(word: str) -> str:
        lemmas = {
            lemma_of(paradigm, index, spelling)
            for spelling, forms in look_up(word.lower())
            for paradigm, index in forms
        }
        # A single letter can also be an initial, which is no word of the dictionary.
        if len(lemmas) == 1 and len(word) > 1:
            return str(lemmas.pop())
        try:
            parses: list[Any] = parse(word)
        except ValueError:  # a letter without a name, such as Tangut's: pymorphy3 asks for it
            return word
        return str(parses[0][2])

    return lemmatise


def _simplemma(language: str) -> Lemmatise:
    lemmatizer = import_module("simplemma").Lemmatizer(cache_max_size=1)

    def lemmatise(word: str) -> str:
        # A few entries are phrases; what is indexed are words.
        return str(lemmatizer.lemmatize(word, language)).replace(" ", "") or word

    return lemmatise


LEXICONS: Mapping[str, Lexicon] = {
    "pymorphy3": Lexicon(load=_pymorphy3, packages=("pymorphy3", "pymorphy3-dicts-{}"), slow=True),
    "simplemma": Lexicon(load=_simplemma, packages=("simplemma",), slow=False),
}


@cache
def versions(name: str, language: str) -> str:
    """The name with the versions of everything that decides its answers; none for none.

    Raises MissingExtra where a package is not installed.

    >>> versions("none", "ru")
    'none'
    """
    if name == "none":
        return name
    packages = [package.format(language) for package in LEXICONS[name].packages]
    try:
        return f"{name}-" + "+".join(version(package) for package in packages)
    except PackageNotFoundError as error:
        raise MissingExtra(
            f"The analyzer of {language!r} needs {' and '.join(packages)}: pip install {' '.join(packages)}"
        ) from error


@cache
def lemmatiser(name: str, language: str) -> Lemmatise:
    """The lemmatiser of that name, loaded once a process."""
    versions(name, language)
    return LEXICONS[name].load(language)
