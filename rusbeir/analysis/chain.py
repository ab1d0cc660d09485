"""The steps of a recipe, from text to terms, with a memory of each piece of text between white space."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import tee
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast
from weakref import WeakValueDictionary

import regex
import Stemmer

from rusbeir.analysis import folding, tokenisers
from rusbeir.analysis.lemmas import find_lemmas, split_compound
from rusbeir.analysis.pieces import Pieces
from rusbeir.analysis.recipes import NO_STOP_WORDS, Recipe
from rusbeir.analysis.stemmers import SNOWBALL, stem_porter
from rusbeir.analysis.user_rules import Fold as FoldWords
from rusbeir.analysis.user_rules import LemmaList, Rules, SuffixRules, SynonymLine, Synonyms, UserFunction
from rusbeir.errors import BadInput
from rusbeir.processes import in_order

if TYPE_CHECKING:
    from rusbeir.analysis.patterns import PatternRules

MAX_SHORT_CHARS = 4_096
"""Texts up to this length, analysed one by one, use a dict, which has no set-up cost per text."""

MAX_KNOWN_PIECES = 50_000

Stem: TypeAlias = Callable[[list[str]], list[str]]

_NUMBER = regex.compile(r"\p{N}[\p{N}.,]*")

GRAM = "~"
"""The first character of a gram, which no word has."""
_PAD = "_"
"""The borders of a word in its grams."""


class Token(NamedTuple):
    """One token at each step of the recipe."""

    surface: str
    """The characters of the text; normalised ones where normalisation moved the borders of tokens."""
    folded: str
    lemma: str
    term: str
    """What is indexed, separated by spaces where it is more than one term; empty where the token is dropped."""
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
        self._tokenise = tokenisers.RULES.get(recipe.tokens) or tokenisers.load_tokeniser(recipe.tokens)
        if recipe.apostrophe == "hebrew":
            self._tokenise = tokenisers.with_geresh(self._tokenise)
        if recipe.elision or recipe.apostrophe in ("cut", "keep"):
            self._tokenise = tokenisers.around_apostrophes(self._tokenise, recipe.elision, recipe.apostrophe)
        lemma_rules = {rules.name: rules for rules in recipe.rules if not isinstance(rules, (SuffixRules, Synonyms))}
        self._look_ups = [
            _look_up_rules(lemma_rules[name], self._fold_all)
            if name in lemma_rules
            else partial(find_lemmas, name, recipe.language, min_chars=recipe.lemma_min_chars)
            for name in recipe.lemmas.split("+")
            if name != "none"
        ]
        stem_rules = next((rules for rules in recipe.rules if rules.name == recipe.stemmer), None)
        self._stem = _load_stemmer(stem_rules or recipe.stemmer, self._fold_all)
        self._fold_term = folding.make_fold("none", "none", recipe.term_fold) if recipe.term_fold else None
        stop_words = frozenset(self._fold_all([*recipe.stop.words, *recipe.stop_extra]))
        if self._fold_term:  # stop words written without their accents, too
            stop_words |= frozenset(map(self._fold_term, stop_words))
        self._with_stop_words = None
        if recipe.keep_only_stop_words and stop_words:
            self._with_stop_words = Chain(
                replace(recipe, stop=NO_STOP_WORDS, stop_extra=(), keep_only_stop_words=False)
            )
        self._stop_surfaces = stop_words if recipe.stop_match != "lemma" else frozenset()
        self._stop_lemmas = stop_words if recipe.stop_match != "surface" else frozenset()
        self._pieces = Pieces()
        self._known: dict[str, str] = {}
        self._lock = RLock()
        self._synonyms = self._load_synonyms() if recipe.synonyms != "none" else {}

    def __reduce__(self) -> tuple[Callable[[Recipe], Chain], tuple[Recipe]]:
        # Another process has its own lexicons, and what it remembers.
        return load_chain, (self.recipe,)

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
            known.update(zip(missing, self.learn(missing), strict=True))
        terms = "".join([known[piece] for piece in pieces]).split()
        return terms if terms or not self._with_stop_words else self._with_stop_words.terms(text)

    def lines(self, texts: Sequence[str]) -> list[str]:
        """The terms of each text joined by single spaces."""
        return list(self.stream([texts], 1)) if texts else []

    def stream(self, batches: Iterable[Sequence[str]], processes: int | None) -> Iterator[str]:
        """Yield a line for each text of batches that are not empty; a Crew of that many processes learns new pieces."""
        # Batches are looked up before they are learned, a few ahead of those that have their lines.
        ahead, waiting = tee((texts, self._pieces.find(texts)) for texts in batches)
        for learned in in_order(self.learn, (look_up.new for _, look_up in ahead), processes):
            texts, look_up = next(waiting)
            lines = self._pieces.lines(look_up, learned)
            empty = [row for row, line in enumerate(lines) if not line and texts[row]]
            if empty and self._with_stop_words:
                lines_with_stop_words = self._with_stop_words.lines([texts[row] for row in empty])
                for row, line in zip(empty, lines_with_stop_words, strict=True):
                    lines[row] = line
            yield from lines

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
        if self._with_stop_words and all(token.dropped for token in tokens):
            return self._with_stop_words.explain(text)
        return tokens

    def learn(self, pieces: Collection[str]) -> list[str]:
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
        """The tokens of the piece as in the text, unless folding has moved their borders; with endings that are cut."""
        for text in (piece, folding.NORMALISATIONS[self.recipe.normalise](piece)):
            if len(surfaces := self._tokenise(text)) == len(words):
                return tokenisers.find_in_text(surfaces, text, self.recipe.apostrophe)
        return words

    def _terms_of(self, words: Collection[str], lemmas: Mapping[str, str]) -> dict[str, str]:
        """Return what is indexed for each word, separated by spaces; empty where a word is dropped."""
        recipe = self.recipe
        terms = dict.fromkeys(words, "")
        content_words = [word for word in terms if not self._reason(word, lemmas[word])]
        if recipe.terms == "grams":
            return terms | {word: self._grams_of(word) for word in content_words}
        parts = {word: [lemmas[word] if recipe.stem == "lemma" else word] for word in content_words}
        if recipe.compounds != "none":
            for word in content_words:
                parts[word] += split_compound(recipe.language, parts[word][0])
        inputs = list({part for several in parts.values() for part in several})
        stems = dict(zip(inputs, self._stem(inputs), strict=True))
        for part, stem in stems.items():
            if len(stem) < recipe.stem_min_chars:
                stems[part] = stem = part
            term = (self._fold_term(stem) if self._fold_term else stem) or part
            stems[part] = self._synonyms.get(term, term)
        for word, several in parts.items():
            terms[word] = " ".join([stems[part] for part in several])
            if recipe.terms == "both":
                terms[word] += f" {self._grams_of(word)}"
        return terms

    def _grams_of(self, word: str) -> str:
        """The grams of a word, separated by spaces."""
        padded = f"{_PAD}{self._fold_term(word) if self._fold_term else word}{_PAD}"
        last = max(1, len(padded) - self.recipe.gram_chars + 1)
        return " ".join([GRAM + padded[start : start + self.recipe.gram_chars] for start in range(last)])

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
        """The lemma of each of the words by the first source that knows it; else the word."""
        if not self._look_ups:
            return {word: word for word in words}
        lemmas: dict[str, str] = {}
        for look_up in self._look_ups:
            lemmas |= look_up([word for word in words if word not in lemmas])
        distinct = list(set(lemmas.values()))
        folded = dict(zip(distinct, self._fold_all(distinct), strict=True))
        return {word: folded[lemmas[word]] or word if word in lemmas else word for word in words}

    def _load_synonyms(self) -> dict[str, str]:
        """Term -> the terms that replace it. Raises BadInput, with the line, for words that have no term or two."""
        synonyms: dict[str, str] = {}
        names = self.recipe.synonyms.split("+")
        files = [rules for rules in self.recipe.rules if isinstance(rules, Synonyms) and rules.name in names]
        if self.recipe.terms == "grams":
            return synonyms
        words_alone = replace(self.recipe, synonyms="none", terms="words", keep_only_stop_words=False)
        analyse = Chain(words_alone).terms
        for file in files:
            for line in file.lines:
                for term, replacement in _analyse_line(line, file.path, analyse):
                    if synonyms.setdefault(term, replacement) != replacement:
                        raise BadInput(
                            f"{file.path}:{line.number}: the term {term!r} is replaced by {synonyms[term]!r} already. "
                            "Write all its synonyms in one line."
                        )
        return synonyms

    def _fold_all(self, pieces: Collection[str]) -> list[str]:
        # One long text is folded much faster than many short ones, and no fold adds or removes line breaks.
        return self._fold("\n".join(pieces)).split("\n") if pieces else []


_chains: WeakValueDictionary[Recipe, Chain] = WeakValueDictionary()


@lru_cache(maxsize=4)
def load_chain(recipe: Recipe) -> Chain:
    """The chain of that recipe, one per process; the last four keep what they remember, and those that are in use."""
    chain = _chains.get(recipe)
    if chain is None:
        chain = _chains[recipe] = Chain(recipe)
    return chain


def _look_up_rules(
    rules: LemmaList | PatternRules | UserFunction, fold: FoldWords
) -> Callable[[Collection[str]], dict[str, str]]:
    """The look-up of the lemmas that a file or a user's function has for some of the words."""
    if isinstance(rules, LemmaList):
        return rules.prepare(fold)
    if isinstance(rules, UserFunction):
        lemmatise = rules.prepare()
        return lambda words: {word: lemma for word in words if (lemma := lemmatise(word))}
    apply = rules.prepare(fold)
    return lambda words: dict(zip(words, apply(list(words)), strict=True))


def _load_stemmer(source: Rules | str, fold: FoldWords) -> Stem:
    """The stemmer of a user's rules, or of that name; none maps words to themselves. For one thread at a time."""
    if isinstance(source, UserFunction):
        stem = source.prepare()
        return lambda words: [stem(word) or word for word in words]
    if not isinstance(source, (str, LemmaList, Synonyms)):
        return source.prepare(fold)
    if source == "porter":
        return lambda words: list(map(stem_porter, words))
    if source == "none":
        return list
    # Terms are cached where the stemmer is used; a second cache would only cost memory.
    return cast(Stem, Stemmer.Stemmer(str(source).removeprefix(SNOWBALL), 0).stemWords)


def _analyse_line(line: SynonymLine, path: Path, analyse: Callable[[str], list[str]]) -> Iterator[tuple[str, str]]:
    """The term of each of the words, with the terms that replace it."""
    terms = {word: analyse(word) for word in (*line.words, line.replacement)}
    for word, made in terms.items():
        if not made:
            raise BadInput(
                f"{path}:{line.number}: {word!r} has no term after analysis; it may be a stop word. Remove it here, or "
                "from the stop words."
            )
    replacement = terms[line.replacement]
    # A compound is followed by its parts, which would be added to every synonym.
    joined = replacement[0] if line.replacement in line.words else " ".join(replacement)
    for word in line.words:
        yield terms[word][0], joined


def _without_possessive(token: str) -> str:
    return token[:-2] if len(token) > 2 and token[-1] in "sS" and token[-2] in "'’＇" else token
