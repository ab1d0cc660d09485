"""Analyzer, which turns texts into terms by a profile of a language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rusbeir.analysis.chain import Chain, Token, load_chain
from rusbeir.analysis.language_registry import read_recipe, read_subword_recipe
from rusbeir.analysis.recipes import Recipe, extend_recipe
from rusbeir.errors import BadInput
from rusbeir.notebook import ShownRecords
from rusbeir.text import batched

MAX_BATCH_CHARS = 1 << 19
MAX_BATCH_TEXTS = 4096

TOLERATED_DOCUMENTS = 0.01
"""The share of documents without terms up to which there is no warning."""


@dataclass(frozen=True)
class Analyzer:
    """Turn texts of one language into terms. Lexicons are loaded with the first text.

    Args:
        language: A BCP 47 tag, such as ru or zh-Hans. A language without a file is cut into words as Unicode says, and
            into runs of four characters, with a warning.
        profile: A profile of the language; `rusbeir languages ru` lists them.
        stop: A file of stop words that are added to those of the profile: a word a line, in lower case.
        synonyms: A file of lines such as `car, automobile`, whose words become one term, and `tv => television`.
        tokens: `hf:NAME` or `hf:FILE`: the profile unicode, whose words are cut into the subwords of a model, which
            Hugging Face's hub or a tokenizer.json has. Nothing is cut if empty.

    Raises:
        UnknownName: The language has no such profile, or BCP 47 no such language, or the hub no such tokenizer.
        BadInput: A file is wrong; the message names file and line. Or there are both a profile and tokens.

    Examples:
        >>> Analyzer("ru").analyze("Всё о старых замках")
        ['стар', 'замок']
    """

    language: str
    profile: str = "default"
    stop: str | Path = field(default="", kw_only=True)
    synonyms: str | Path = field(default="", kw_only=True)
    tokens: str = field(default="", kw_only=True)
    recipe: Recipe = field(init=False, repr=False, compare=False)
    """Every setting of the profile, with the stop words and synonyms of the analyzer's own files."""

    def __post_init__(self) -> None:
        if self.tokens and self.profile != "default":
            raise BadInput(f"Subwords take no profile: leave out {self.profile!r} or tokens={self.tokens}.")
        recipe = (
            read_subword_recipe(self.language, self.tokens) if self.tokens else read_recipe(self.language, self.profile)
        )
        if self.stop or self.synonyms:
            recipe = extend_recipe(recipe, stop=self.stop, synonyms=self.synonyms)
        object.__setattr__(self, "recipe", recipe)

    @property
    def signature(self) -> str:
        """The settings, the library versions and the digests of files that decide the terms; without white space."""
        return self.recipe.signature

    def load(self) -> Chain:
        """Load the lexicons, and what was learned, to stay in memory for as long as the result is held."""
        return load_chain(self.recipe)

    def analyze(self, text: str) -> list[str]:
        """Make the terms of a text.

        Returns:
            The terms in the order of the text; [] where nothing is left.

        Examples:
            >>> Analyzer("en").analyze("The dogs bark")
            ['dog', 'bark']
        """
        return load_chain(self.recipe).terms(text)

    def analyze_lines(self, texts: Iterable[str], *, processes: int | None = None) -> Iterator[str]:
        """Make the terms of many texts, as lines.

        Args:
            texts: Texts of any length, which are read as they are needed; a few batches are in memory at a time.
            processes: The number of worker processes that learn new words while this one reads and looks up. 1: this
                process does all. None: it does all until workers pay. The terms do not depend on it.

        Yields:
            The terms of each text joined by single spaces, in the order of the texts.

        Examples:
            >>> list(Analyzer("en").analyze_lines(["The dogs", "bark"]))
            ['dog', 'bark']
        """
        batches = batched(texts, MAX_BATCH_TEXTS, chars=len, max_chars=MAX_BATCH_CHARS)
        return load_chain(self.recipe).stream(batches, processes)

    def analyze_many(self, texts: Iterable[str], *, processes: int | None = None) -> Iterator[list[str]]:
        """Make the terms of many texts, as lists.

        Args:
            texts: Texts of any length, which are read as they are needed.
            processes: The number of worker processes, as in analyze_lines.

        Yields:
            The terms of each text, in the order of the texts.

        Examples:
            >>> list(Analyzer("en").analyze_many(["The dogs", "bark"]))
            [['dog'], ['bark']]
        """
        return (line.split() for line in self.analyze_lines(texts, processes=processes))

    def explain(self, text: str) -> ShownRecords[Token]:
        """Show each token at every step from the text to its term, or why it is dropped.

        Returns:
            The tokens in the order of the text, those that are dropped included. A notebook shows them as a table.

        Examples:
            >>> [(token.surface, token.lemma, token.dropped) for token in Analyzer("ru").explain("На столе")]
            [('На', 'на', 'stop word'), ('столе', 'стол', None)]
        """
        return ShownRecords(load_chain(self.recipe).explain(text))


def empty_warning(kind: Literal["documents", "queries"], n_empty: int, n_total: int) -> str | None:
    """Warn of texts without terms: more than 1 % of the documents, or any query.

    Args:
        kind: What the texts are.
        n_empty: How many of them have no terms.
        n_total: How many there are.

    Returns:
        One line that says how many cannot be found or can find nothing; None where all is well.

    Examples:
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
