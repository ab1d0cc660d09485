"""Analyzer: turns texts into terms by a profile of a language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from rusbeir.analysis.chain import Token, load_chain
from rusbeir.analysis.recipes import Recipe, read_recipe
from rusbeir.text import batched

MAX_BATCH_CHARS = 1 << 19
MAX_BATCH_TEXTS = 4096

TOLERATED_DOCUMENTS = 0.01
"""The share of documents without terms up to which there is no warning."""


@dataclass(frozen=True)
class Analyzer:
    """Turns texts of one language into terms. Lexicons are loaded with the first text.

    Raises UnknownName where the language has no language file, or the file no such profile, and BadInput where the
    file is wrong.

    >>> Analyzer("ru").analyze("Всё о старых замках")
    ['стар', 'замок']
    """

    language: str
    profile: str = "default"

    def __post_init__(self) -> None:
        _ = self.recipe

    @cached_property
    def recipe(self) -> Recipe:
        """Every setting."""
        return read_recipe(self.language, self.profile)

    @property
    def signature(self) -> str:
        """The settings and library versions that decide the terms; without white space."""
        return self.recipe.signature

    def analyze(self, text: str) -> list[str]:
        """The terms of the text in order; [] where nothing is left."""
        return load_chain(self.recipe).terms(text)

    def analyze_lines(self, texts: Iterable[str], *, processes: int | None = None) -> Iterator[str]:
        """The terms of each text joined by single spaces, in order; holds a few batches of texts at a time.

        processes: how many worker processes learn new words while this one reads and looks up; with 1, this process
        does all, and with None, until workers pay. The terms do not depend on it.
        """
        batches = batched(texts, MAX_BATCH_TEXTS, chars=len, max_chars=MAX_BATCH_CHARS)
        return load_chain(self.recipe).stream(batches, processes)

    def analyze_many(self, texts: Iterable[str], *, processes: int | None = None) -> Iterator[list[str]]:
        """The terms of each text, in order, streamed; processes as in analyze_lines.

        >>> list(Analyzer("en").analyze_many(["The dogs", "bark"]))
        [['dog'], ['bark']]
        """
        return (line.split() for line in self.analyze_lines(texts, processes=processes))

    def explain(self, text: str) -> list[Token]:
        """Each token at every step from the text to its term, or why it is dropped.

        >>> [(token.surface, token.lemma, token.dropped) for token in Analyzer("ru").explain("На столе")]
        [('На', 'на', 'stop word'), ('столе', 'стол', None)]
        """
        return load_chain(self.recipe).explain(text)


def empty_warning(kind: Literal["documents", "queries"], n_empty: int, n_total: int) -> str | None:
    """One line where more than 1 % of the documents, or any query, has no terms; None where all is well.

    >>> empty_warning("documents", 1, 100) is None
    True
    >>> empty_warning("queries", 1, 100)
    '1 of 100 queries (1.00 %) have no terms after analysis and can find nothing; check language and profile.'
    """
    tolerated = TOLERATED_DOCUMENTS * n_total if kind == "documents" else 0
    if n_empty <= tolerated:
        return None
    effect = "can find nothing" if kind == "queries" else "cannot be found"
    share = f"{n_empty:,} of {n_total:,} {kind} ({100 * n_empty / n_total:.2f} %)"
    return f"{share} have no terms after analysis and {effect}; check language and profile."
