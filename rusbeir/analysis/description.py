"""Describe a language's recipe: its steps, what each does to an example, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, TypedDict

from rusbeir.analysis import lemmas, tokenisers
from rusbeir.analysis.chain import Chain
from rusbeir.analysis.language_registry import read_language
from rusbeir.analysis.lines import find_lines, read_lines
from rusbeir.analysis.recipes import NO_STOP_WORDS, Recipe
from rusbeir.analysis.stemmers import SNOWBALL
from rusbeir.analysis.subwords import HF
from rusbeir.analysis.traps import RESPELLINGS

N_TIMED_WORDS = 1_000
MAX_EXAMPLE_CHARS = 40
"""Longer texts are not taken for examples."""


class Step(TypedDict):
    """A step of a recipe."""

    step: str
    value: str
    text: str
    """A text whose terms the step changes; empty where no test line is such a text."""
    without: str
    """The terms of the text by the recipe without the step, separated by spaces."""
    terms: str


class Package(TypedDict):
    """An installed package that a recipe uses."""

    name: str
    version: str
    megabytes: float


class Cost(TypedDict):
    """The cost of the default profile, measured now."""

    load_seconds: float
    new_words_per_second: float
    """One process, words that it has not seen; known words take a hundredth of the time or less."""
    packages: list[Package]


class Description(TypedDict):
    """A language and its default profile."""

    language: str
    name: str
    why: str
    path: str
    extends: str
    steps: list[Step]
    profiles: dict[str, str]
    """Profile -> signature."""
    cost: Cost


def describe_language(code: str) -> Description:
    """Describe a language: the steps of its default profile with examples, its profiles, and what it costs.

    Args:
        code: The BCP 47 code of a language that has a language file.

    Returns:
        The description. Examples are texts of the language's test lines, if it has any.

    Raises:
        UnknownName: The language has no file.
        MissingExtra: A package that the language needs is not installed.

    Examples:
        >>> [step["step"] for step in describe_language("kk")["steps"]]
        ['normalise', 'case', 'fold invisible', 'tokens', 'stop words']
    """
    language = read_language(code)
    recipe = language.profiles["default"]
    path = find_lines(code)
    texts = [text for line in (read_lines(path) if path else []) for text in (line.text, line.expected) if text]
    cost = _measure_cost(recipe, texts)
    return {
        "language": language.code,
        "name": language.name,
        "why": language.why,
        "path": str(language.path),
        "extends": language.extends,
        "steps": _demonstrate(recipe, texts),
        "profiles": {name: profile.signature for name, profile in language.profiles.items()},
        "cost": cost,
    }


def _measure_cost(recipe: Recipe, texts: Sequence[str]) -> Cost:
    """The time that the first text takes, and that of new words: those of the texts, and made ones."""
    started = time.perf_counter()
    chain = Chain(recipe)
    chain.terms("a")
    loaded = time.perf_counter()
    words = list(dict.fromkeys(word for text in texts for word in text.split())) or ["a"]
    made = [f"{first}{second}" for first in words for second in words[: 1 + N_TIMED_WORDS // len(words)]]
    chain.learn(made[:N_TIMED_WORDS])
    ended = time.perf_counter()
    return {
        "load_seconds": round(loaded - started, 2),
        "new_words_per_second": round(len(made[:N_TIMED_WORDS]) / max(ended - loaded, 1e-6)),
        "packages": [_describe_package(name) for name in _list_packages(recipe)],
    }


def _list_packages(recipe: Recipe) -> list[str]:
    """The packages that carry out the steps, as PyPI names them."""
    names = [name for name in recipe.lemmas.split("+") if name in lemmas.LEXICONS]
    packages = [package.format(recipe.language) for name in names for package in lemmas.LEXICONS[name].packages]
    packages += ["PyStemmer"] if recipe.stemmer.startswith(SNOWBALL) else []
    packages += tokenisers.SEGMENTERS[recipe.tokens].packages if recipe.tokens in tokenisers.SEGMENTERS else []
    packages += ["tokenizers"] if recipe.tokens.startswith(HF) else []
    return packages


def _describe_package(name: str) -> Package:
    package = distribution(name)
    paths = [Path(str(package.locate_file(file))) for file in package.files or ()]
    size = sum(path.stat().st_size for path in paths if path.is_file())
    return {"name": name, "version": package.version, "megabytes": round(size / 1e6, 1)}


def _demonstrate(recipe: Recipe, texts: Sequence[str]) -> list[Step]:
    """Pair each step with a text whose terms it changes: the shortest of the texts, and of their respellings."""
    respelled = [respell(text) for text in texts for _, respell in RESPELLINGS.values()]
    stopped = [f"{word} {text}" for word in sorted(recipe.stop.words)[:1] for text in texts[:1]]
    candidates = [
        *sorted((text for text in texts if len(text) <= MAX_EXAMPLE_CHARS), key=len),
        *sorted((text for text in respelled if len(text) <= MAX_EXAMPLE_CHARS), key=len),
        *stopped,
    ]
    # Runs of characters would hide what the other steps do.
    words = replace(recipe, terms="words")
    chain = Chain(words)
    with_step = {text: " ".join(chain.terms(text)) for text in dict.fromkeys(candidates)}
    steps: list[Step] = []
    for step, value in recipe.steps.items():
        if step == "terms":
            runs = Chain(recipe)
            examples = ((text, terms, " ".join(runs.terms(text))) for text, terms in with_step.items())
        else:
            other = Chain(replace(words, **_without(words, step)))
            examples = ((text, " ".join(other.terms(text)), terms) for text, terms in with_step.items())
        text, without, terms = next((row for row in examples if row[1] != row[2]), ("", "", ""))
        steps.append({"step": step, "value": value, "text": text, "without": without, "terms": terms})
    return steps


def _without(recipe: Recipe, step: str) -> Mapping[str, Any]:
    """The settings by which the recipe leaves the step out."""
    setting, _, fold = step.partition(" ")
    if setting in ("fold", "term_fold"):
        return {setting: tuple(name for name in getattr(recipe, setting) if name != fold)}
    if step == "stop words":
        return {"stop": NO_STOP_WORDS, "stop_extra": ()}
    return {setting: getattr(Recipe(language=recipe.language), setting)}
