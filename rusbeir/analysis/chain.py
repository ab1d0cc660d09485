"""The steps of a recipe, from text to terms, with a memory of each piece of text between white space."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import NamedTuple

import regex

from rusbeir.analysis import folding, stemmers, tokenisers
from rusbeir.analysis.lemmas import find_lemmas, split_compound
from rusbeir.analysis.pieces import LookUp, Pieces
from rusbeir.analysis.recipes import NO_STOP_WORDS, Recipe, split_names
from rusbeir.analysis.user_rules import LemmaList, SuffixRules, SynonymLine, Synonyms, UserFunction
from rusbeir.errors import BadInput
from rusbeir.processes import in_order

MAX_SHORT_CHARS = 4_096
"""Texts up to this length, analysed one by one, use a dict, which has no set-up cost per text."""

MAX_KNOWN_PIECES = 50_000

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
        self._tokenise = tokenisers.RULES.get(recipe.tokens) or tokenisers.load_segmenter(recipe.tokens)
        if recipe.apostrophe == "hebrew":
            self._tokenise = tokenisers.with_geresh(self._tokenise)
        if recipe.elision or recipe.apostrophe in ("cut", "keep"):
            self._tokenise = tokenisers.around_apostrophes(self._tokenise, recipe.elision, recipe.apostrophe)
        self._look_ups = [self._load_look_up(name) for name in split_names(recipe.lemmas) if name != "none"]
        self._stem = self._load_stemmer()
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
        self._synonyms = self._load_synonyms()

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
        waiting: deque[tuple[Sequence[str], LookUp]] = deque()

        def new_pieces() -> Iterator[list[str]]:
            for texts in batches:
                waiting.append((texts, self._pieces.find(texts)))
                yield waiting[-1][1].new

        for learned in in_order(self.learn, new_pieces(), processes):
            texts, look_up = waiting.popleft()
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
        """What is indexed for each of the words, separated by spaces; empty where it is dropped."""
        recipe = self.recipe
        terms = dict.fromkeys(words, "")
        content_words = [word for word in terms if not self._reason(word, lemmas[word])]
        if recipe.terms != "grams":
            terms |= self._word_terms(content_words, lemmas)
        if recipe.terms != "words":
            for word in content_words:
                padded = f"{_PAD}{self._fold_term(word) if self._fold_term else word}{_PAD}"
                last = max(1, len(padded) - recipe.gram_chars + 1)
                grams = [GRAM + padded[start : start + recipe.gram_chars] for start in range(last)]
                terms[word] = " ".join([terms[word], *grams] if terms[word] else grams)
        return terms

    def _word_terms(self, words: Sequence[str], lemmas: Mapping[str, str]) -> dict[str, str]:
        """The stem of each of the words, and those of the parts of compounds, separated by spaces."""
        recipe = self.recipe
        parts = {word: [lemmas[word] if recipe.stem == "lemma" else word] for word in words}
        if recipe.compounds != "none":
            for word in words:
                parts[word] += split_compound(recipe.language, parts[word][0])
        inputs = list({part for several in parts.values() for part in several})
        stems = dict(zip(inputs, self._stem(inputs), strict=True))
        for part, stem in stems.items():
            if len(stem) < recipe.stem_min_chars:
                stems[part] = stem = part
            term = (self._fold_term(stem) if self._fold_term else stem) or part
            stems[part] = self._synonyms.get(term, term)
        return {word: " ".join([stems[part] for part in several]) for word, several in parts.items()}

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

    def _load_look_up(self, name: str) -> Callable[[Collection[str]], dict[str, str]]:
        """The look-up of the lemmas that a lexicon, a file or a function has for some of the words."""
        rules = self.recipe.find_rules(name)
        if isinstance(rules, LemmaList):
            return rules.prepare(self._fold_all)
        if isinstance(rules, UserFunction):
            lemmatise = rules.prepare()
            return lambda words: {word: lemma for word in words if (lemma := lemmatise(word))}
        language, least = self.recipe.language, self.recipe.lemma_min_chars
        return lambda words: find_lemmas(name, language, [word for word in words if len(word) >= least])

    def _load_stemmer(self) -> stemmers.Stem:
        rules = self.recipe.find_rules(self.recipe.stemmer)
        if isinstance(rules, SuffixRules):
            return rules.prepare(self._fold_all)
        if isinstance(rules, UserFunction):
            stem = rules.prepare()
            return lambda words: [stem(word) or word for word in words]
        return stemmers.load_stemmer(self.recipe.stemmer)

    def _load_synonyms(self) -> dict[str, str]:
        """Term -> the terms that replace it. Raises BadInput, with the line, for words that have no term or two."""
        synonyms: dict[str, str] = {}
        names = split_names(self.recipe.synonyms)
        files = [rules for name in names if isinstance(rules := self.recipe.find_rules(name), Synonyms)]
        if not files or self.recipe.terms == "grams":
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


@lru_cache(maxsize=4)
def load_chain(recipe: Recipe) -> Chain:
    """The chain of that recipe, one per process; only the last four keep what they remember."""
    return Chain(recipe)


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
