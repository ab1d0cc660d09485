"""A recipe at work: from text to terms, remembering each piece between white space that it has met."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property, lru_cache
from sys import intern
from threading import RLock
from typing import NamedTuple

import regex

from rusbeir.analysis import folding, stemmers, stopwords, tokenisers
from rusbeir.analysis.lemma_cache import lemmas_of
from rusbeir.analysis.recipes import Recipe

CACHE_BYTES = 160 << 20
ENTRY_BYTES = 150
"""About what a remembered piece takes beside its own characters."""

MARK = "\x01"
"""A character that no tokeniser takes into a token; in texts it counts as a space."""

_MARKED = re.compile(f"{MARK}([^{MARK}]*){MARK}")
_NUMBER = regex.compile(r"\p{N}[\p{N}.,]*")


class Token(NamedTuple):
    """The way of one token through the recipe."""

    surface: str
    """As in the text; normalised where normalising moved the borders of tokens."""
    folded: str
    lemma: str
    term: str
    """What is indexed; empty where the token is dropped."""
    dropped: str | None
    """Why it is dropped; None where it is kept."""


class _Known(dict[str, str]):
    """Piece -> its terms with a space before each; a piece not met yet gives itself between two marks."""

    def __missing__(self, piece: str) -> str:
        return MARK + piece + MARK


class Chain:
    """The steps of one recipe.

    What a piece of text between white space gives does not depend on its neighbours: no tokeniser, fold or
    lemmatiser looks across. So each piece is worked out once, many of them in one go, and then looked up.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._lock = RLock()
        self._known = _Known()
        self._bytes = 0

    def lines(self, texts: Iterable[str]) -> list[str]:
        """The terms of each text joined by single spaces."""
        if self._bytes > CACHE_BYTES:
            self._known, self._bytes = _Known(), 0
        known = self._known
        look_up = known.__getitem__
        lines = ["".join(map(look_up, text.replace(MARK, " ").split())) for text in texts]
        waiting = [position for position, line in enumerate(lines) if MARK in line]
        if waiting:
            self._learn({piece for position in waiting for piece in _MARKED.findall(lines[position])}, known)
            for position in waiting:
                lines[position] = _MARKED.sub(lambda marked: known[marked[1]], lines[position])
        return [line[1:] for line in lines]

    def explain(self, text: str) -> list[Token]:
        """The way of each token, in order."""
        tokens: list[Token] = []
        pieces = text.split()
        with self._lock:
            for piece, words in zip(pieces, self._words(pieces), strict=True):
                lemmas = self._lemmas(words)
                terms = self._terms_of(words, lemmas)
                tokens += (
                    Token(surface, word, lemmas[word], terms[word], self._reason(word, lemmas[word]))
                    for surface, word in zip(self._surfaces(piece, words), words, strict=True)
                )
        return tokens

    def _learn(self, pieces: Collection[str], known: dict[str, str]) -> None:
        with self._lock:
            words_of = self._words(pieces)
            words = {word for words in words_of for word in words}
            terms = self._terms_of(words, self._lemmas(words))
            spaced = {word: intern(f" {term}") if term else "" for word, term in terms.items()}
            known |= zip(pieces, ("".join([spaced[word] for word in words]) for words in words_of), strict=True)
            self._bytes += ENTRY_BYTES * len(pieces) + 4 * sum(map(len, pieces))

    def _words(self, pieces: Collection[str]) -> list[list[str]]:
        """The folded tokens of each piece."""
        tokens = list(map(self._tokenise, self._fold_all(pieces)))
        if not self.recipe.possessive:
            return tokens
        return [[_without_possessive(token) for token in piece] for piece in tokens]

    def _surfaces(self, piece: str, words: list[str]) -> list[str]:
        """The tokens of the piece as they stand in it, where folding has not moved their borders."""
        for text in (piece, folding.NORMALISATIONS[self.recipe.normalise](piece)):
            if len(surfaces := self._tokenise(text)) == len(words):
                return surfaces
        return words

    def _terms_of(self, words: Collection[str], lemmas: Mapping[str, str]) -> dict[str, str]:
        """What is indexed for each of the words; empty where it is dropped."""
        kept = {word: lemmas[word] for word in words if not self._reason(word, lemmas[word])}
        if self.recipe.stem == "surface":
            kept = {word: word for word in kept}
        inputs = list(set(kept.values()))
        stems = dict(zip(inputs, self._stem(inputs), strict=True))
        return {word: stems[kept[word]] or kept[word] if word in kept else "" for word in words}

    def _reason(self, word: str, lemma: str) -> str | None:
        """Why the word is dropped; None where it is kept."""
        if word in self._stop_surfaces:
            return "stop word"
        if lemma in self._stop_lemmas:
            return "lemma is a stop word"
        if len(word) < self.recipe.min_chars:
            return f"shorter than {self.recipe.min_chars}"
        if self.recipe.numbers == "drop" and _NUMBER.fullmatch(word):
            return "number"
        return None

    def _lemmas(self, words: Collection[str]) -> dict[str, str]:
        if self.recipe.lemmas == "none":
            return {word: word for word in words}
        shortest = self.recipe.lemma_min_chars
        found = lemmas_of(self.recipe.lemmas, self.recipe.language, [word for word in words if len(word) >= shortest])
        distinct = list(set(found.values()))
        folded = dict(zip(distinct, self._fold_all(distinct), strict=True))
        return {word: folded[found[word]] or word if word in found else word for word in words}

    def _fold_all(self, pieces: Collection[str]) -> list[str]:
        # One long text is folded much faster than many short ones, and no fold makes or takes a line break.
        return self._fold("\n".join(pieces)).split("\n") if pieces else []

    @cached_property
    def _fold(self) -> folding.Fold:
        return folding.folder(self.recipe.normalise, self.recipe.case, self.recipe.fold)

    @cached_property
    def _tokenise(self) -> tokenisers.Tokenise:
        return tokenisers.TOKENISERS[self.recipe.tokens]

    @cached_property
    def _stem(self) -> stemmers.Stem:
        return stemmers.stemmer(self.recipe.stemmer)

    @cached_property
    def _stop_surfaces(self) -> frozenset[str]:
        return self._stop_words if self.recipe.stop_match != "lemma" else frozenset()

    @cached_property
    def _stop_lemmas(self) -> frozenset[str]:
        return self._stop_words if self.recipe.stop_match != "surface" else frozenset()

    @cached_property
    def _stop_words(self) -> frozenset[str]:
        return frozenset(self._fold_all([*stopwords.words(self.recipe.stop), *self.recipe.stop_extra]))


@lru_cache(maxsize=4)
def chain_of(recipe: Recipe) -> Chain:
    """The chain of that recipe, one a process; only the last few keep what they remember."""
    return Chain(recipe)


def _without_possessive(token: str) -> str:
    return token[:-2] if len(token) > 2 and token[-1] in "sS" and token[-2] in "'’＇" else token
