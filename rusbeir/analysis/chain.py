"""A recipe at work: text to terms, with a memory of each piece of text between white space."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from threading import RLock
from typing import NamedTuple

import regex

from rusbeir.analysis import folding, stemmers, tokenisers
from rusbeir.analysis.lemmas import find_lemmas
from rusbeir.analysis.pieces import Pieces, pack, unpack
from rusbeir.analysis.recipes import Recipe

MAX_SHORT_CHARS = 4_096
"""Texts up to this length, analysed one by one, use a dict, which has no set-up cost per text."""

MAX_KNOWN_PIECES = 50_000

_NUMBER = regex.compile(r"\p{N}[\p{N}.,]*")


class Token(NamedTuple):
    """One token at each step of the recipe."""

    surface: str
    """As in the text; normalised where normalisation moved the borders of tokens."""
    folded: str
    lemma: str
    term: str
    """What is indexed; empty where the token is dropped."""
    dropped: str | None
    """Why it is dropped; None where it is kept."""


class Chain:
    """The steps of one recipe.

    The terms of a piece of text between white space do not depend on its neighbours: no tokeniser, fold or lemmatiser
    looks across white space. So each piece is analysed once, many of them together, and then looked up.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._fold = folding.make_fold(recipe.normalise, recipe.case, recipe.fold)
        self._tokenise = tokenisers.TOKENISERS[recipe.tokens]
        self._stem = stemmers.load_stemmer(recipe.stemmer)
        stop_words = frozenset(self._fold_all([*recipe.stop.words, *recipe.stop_extra]))
        self._stop_surfaces = stop_words if recipe.stop_match != "lemma" else frozenset()
        self._stop_lemmas = stop_words if recipe.stop_match != "surface" else frozenset()
        self._pieces = Pieces(self._learn)
        self._known: dict[str, str] = {}
        self._lock = RLock()

    def terms(self, text: str) -> list[str]:
        """The terms of the text."""
        if len(text) > MAX_SHORT_CHARS:
            return self.lines([text])[0].split()
        known = self._known
        pieces = text.split()
        if missing := list({piece for piece in pieces if piece not in known}):
            if len(known) > MAX_KNOWN_PIECES:
                # Other threads may still read the full dict.
                known = self._known = {}
                missing = list(set(pieces))
            known.update(zip(missing, self._learn(missing), strict=True))
        return "".join([known[piece] for piece in pieces]).split()

    def lines(self, texts: Sequence[str]) -> list[str]:
        """The terms of each text joined by single spaces."""
        return unpack(self.block(pack(texts))) if texts else []

    def block(self, packed: bytes) -> bytes:
        """The same for packed texts, as a packed block with a space before each term."""
        with self._lock:
            return self._pieces.analyse(packed)

    def explain(self, text: str) -> list[Token]:
        """The tokens of the text in order, each at every step."""
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

    def _learn(self, pieces: Collection[str]) -> list[str]:
        """The terms of each piece, with a space before each term."""
        with self._lock:
            words_of = self._words(pieces)
            words = {word for words in words_of for word in words}
            terms = self._terms_of(words, self._lemmas(words))
            spaced = {word: f" {term}" if term else "" for word, term in terms.items()}
            return ["".join([spaced[word] for word in words]) for words in words_of]

    def _words(self, pieces: Collection[str]) -> list[list[str]]:
        """The folded tokens of each piece."""
        tokens = list(map(self._tokenise, self._fold_all(pieces)))
        if not self.recipe.possessive:
            return tokens
        return [[_without_possessive(token) for token in piece] for piece in tokens]

    def _surfaces(self, piece: str, words: list[str]) -> list[str]:
        """The tokens of the piece as in the text, unless folding has moved their borders."""
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
        found = find_lemmas(self.recipe.lemmas, self.recipe.language, [word for word in words if len(word) >= shortest])
        distinct = list(set(found.values()))
        folded = dict(zip(distinct, self._fold_all(distinct), strict=True))
        return {word: folded[found[word]] or word if word in found else word for word in words}

    def _fold_all(self, pieces: Collection[str]) -> list[str]:
        # One long text is folded much faster than many short ones, and no fold adds or removes line breaks.
        return self._fold("\n".join(pieces)).split("\n") if pieces else []


@lru_cache(maxsize=4)
def load_chain(recipe: Recipe) -> Chain:
    """The chain of that recipe, one per process; only the last four keep what they remember."""
    return Chain(recipe)


def _without_possessive(token: str) -> str:
    return token[:-2] if len(token) > 2 and token[-1] in "sS" and token[-2] in "'’＇" else token
