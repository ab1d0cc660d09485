"""Analyzer: a language and a profile, made into terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from rusbeir.analysis.chain import Token, chain_of
from rusbeir.analysis.parallel import analyzed_lines
from rusbeir.analysis.recipes import Recipe, recipe


@dataclass(frozen=True)
class Analyzer:
    """Turns texts of one language into terms. Lexicons are loaded when the first text comes.

    Raises UnknownName where the language has no file in analyzers/ or the file has no such profile.

    >>> Analyzer("ru").analyze("Всё о старых замках")
    ['стар', 'замок']
    """

    language: str
    profile: str = "default"

    def __post_init__(self) -> None:
        _ = self.recipe

    @cached_property
    def recipe(self) -> Recipe:
        """Every setting of it."""
        return recipe(self.language, self.profile)

    @property
    def signature(self) -> str:
        """The settings and library versions that decide the terms; without white space."""
        return self.recipe.signature

    def analyze(self, text: str) -> list[str]:
        """The terms of the text in order; [] where nothing is left."""
        return chain_of(self.recipe).terms(text)

    def analyze_lines(self, texts: Iterable[str], *, processes: int | None = None) -> Iterator[str]:
        """The terms of each text joined by single spaces, in order, streamed.

        processes: how many to use; None decides by the length of the stream and the machine.
        The results do not depend on it.
        """
        return analyzed_lines(self.recipe, texts, processes)

    def analyze_many(self, texts: Iterable[str], *, processes: int | None = None) -> Iterator[list[str]]:
        """The terms of each text, in order, streamed; processes as in analyze_lines.

        >>> list(Analyzer("en").analyze_many(["The dogs", "bark"]))
        [['dog'], ['bark']]
        """
        return (line.split() for line in self.analyze_lines(texts, processes=processes))

    def explain(self, text: str) -> list[Token]:
        """The way of each token from the text to its term, or why it is dropped.

        >>> [(token.surface, token.lemma, token.dropped) for token in Analyzer("ru").explain("На столе")]
        [('На', 'на', 'stop word'), ('столе', 'стол', None)]
        """
        return chain_of(self.recipe).explain(text)
