"""Stemmers: Snowball's through PyStemmer, and Porter's as Lucene has it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import TypeAlias, cast

import Stemmer

from rusbeir.analysis import porter

Stem: TypeAlias = Callable[[list[str]], list[str]]

SNOWBALL = "snowball:"


def names() -> list[str]:
    """What a recipe's stemmer can be, beside none."""
    return ["porter", *(SNOWBALL + algorithm for algorithm in Stemmer.algorithms())]


def stemmer(name: str) -> Stem:
    """What turns words into their stems; for none, into themselves. For one thread at a time."""
    if name == "porter":
        return lambda words: [porter.stem(word) for word in words]
    if name == "none":
        return list
    # Terms are cached where the stemmer is used; a second cache would only cost memory.
    return cast(Stem, Stemmer.Stemmer(name.removeprefix(SNOWBALL), 0).stemWords)


def versions(name: str) -> str:
    """The name with the version of the library, for signatures.

    >>> versions("none")
    'none'
    """
    return f"{name.replace(':', '-')}-{version('PyStemmer')}" if name.startswith(SNOWBALL) else name
