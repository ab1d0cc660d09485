"""Lemmas: the lexicons that recipes can name, and a cache on disk that processes share."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import RLock
from types import SimpleNamespace
from typing import Any, TypeAlias

from rusbeir.errors import MissingExtra
from rusbeir.storage import WRITE_AHEAD, cache_folder, open_database

logger = logging.getLogger(__name__)

MAX_LEMMAS_PER_STEP = 2_000
"""Lemmas computed between two look-ups of what other processes have added to the cache."""

MAX_MEMORY_WORDS = 400_000
"""Lemmas kept in memory where the file cannot be used."""


def find_lemmas(lexicon: str, language: str, words: Collection[str], *, min_chars: int = 1) -> dict[str, str]:
    """The lemma of each of the words that have so many characters; answers of a slow lexicon are cached on disk."""
    lemmatise = load_lemmatiser(lexicon, language)
    words = [word for word in words if len(word) >= min_chars]
    if not LEXICONS[lexicon].slow:
        # A few entries of simplemma's are phrases, but words are indexed.
        return {word: lemmatise(word).replace(" ", "") or word for word in words}
    cache = _cache(cache_folder() / "lemmas" / f"{describe_lexicon(lexicon, language)}.sqlite")
    lemmas = cache.find(words)
    missing = sorted(word for word in words if word not in lemmas)
    for start in range(0, len(missing), MAX_LEMMAS_PER_STEP):
        step = missing[start : start + MAX_LEMMAS_PER_STEP]
        by_others = cache.find(step) if start else {}
        new = {word: lemmatise(word) for word in step if word not in by_others}
        cache.add(new)
        lemmas |= by_others
        lemmas |= new
    return lemmas


@dataclass(eq=False)
class LemmaCache:
    """word -> lemma in an SQLite file with a write-ahead log: many readers and writers, never half-written.

    A file that cannot be used is reported once through logging and replaced by memory. Safe between threads,
    and reopened in a forked process.
    """

    path: Path
    _lock: RLock = field(default_factory=RLock, init=False)
    _connection: sqlite3.Connection | None = field(default=None, init=False)
    _owner: int = field(default=0, init=False)
    """The process that has the connection."""
    _memory: dict[str, str] | None = field(default=None, init=False)
    """The lemmas where the file cannot be used."""

    def find(self, words: Collection[str]) -> dict[str, str]:
        """The lemmas of those words that are known."""
        with self._lock:
            if self._memory is None:
                try:
                    rows = self._open().execute(
                        "SELECT word, lemma FROM json_each(?) CROSS JOIN lemmas ON word = value",
                        (json.dumps(sorted(words), ensure_ascii=False),),
                    )
                    return dict(rows)
                except (OSError, sqlite3.Error) as error:
                    self._give_up(error)
            memory = self._memory or {}
            return {word: memory[word] for word in words if word in memory}

    def add(self, lemmas: Mapping[str, str]) -> None:
        """Add them in one transaction."""
        with self._lock:
            if self._memory is None:
                try:
                    with self._open() as connection:
                        connection.executemany("INSERT OR IGNORE INTO lemmas VALUES (?, ?)", sorted(lemmas.items()))
                    return
                except (OSError, sqlite3.Error) as error:
                    self._give_up(error)
            if self._memory is None or len(self._memory) + len(lemmas) > MAX_MEMORY_WORDS:
                self._memory = {}
            self._memory.update(lemmas)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None or self._owner != os.getpid():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # A power failure may lose the last lemmas but cannot damage the file; they are computed again.
            connection = open_database(self.path, WRITE_AHEAD, "synchronous = NORMAL", "mmap_size = 268435456")
            connection.isolation_level = "IMMEDIATE"
            connection.execute(
                "CREATE TABLE IF NOT EXISTS lemmas(word TEXT PRIMARY KEY, lemma TEXT NOT NULL) WITHOUT ROWID;"
            )
            self._connection, self._owner = connection, os.getpid()
        return self._connection

    def _give_up(self, error: Exception) -> None:
        logger.warning(
            "Cannot use the lemma cache %s (%s), so each run computes lemmas again. "
            "Delete the file, or set RUSBEIR_CACHE to a writable folder.",
            self.path,
            error,
        )
        if self._connection is not None and self._owner == os.getpid():
            self._connection.close()
        self._connection = None
        self._memory = {}


_cache = lru_cache(maxsize=8)(LemmaCache)


Lemmatise: TypeAlias = Callable[[str], str]


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """A lemmatiser that a recipe can name."""

    load: Callable[[str], Lemmatise]
    """Makes a function from a lower-cased word to its likeliest lemma, which may be a phrase, for a language code."""
    packages: tuple[str, ...]
    """The packages that decide its answers, as PyPI names them; {} is replaced by the language code."""
    slow: bool
    """Whether looking an answer up on disk is faster than computing it."""


def _pymorphy3(language: str, *, guess_verbs: bool = True) -> Lemmatise:
    """Without guess_verbs, a word that the dictionary lacks, often a name, is not read as a verb: Лютера, лютереть."""
    parse = import_module("pymorphy3").MorphAnalyzer(lang=language, result_type=None).parse

    def lemmatise(word: str) -> str:
        try:
            parses: list[Any] = parse(word)
        except ValueError:  # a letter without a Unicode name, such as Tangut's, for which pymorphy3 asks
            return word
        if not guess_verbs and type(parses[0][4][-1][0]).__name__ in ("KnownSuffixAnalyzer", "UnknownPrefixAnalyzer"):
            parses = [reading for reading in parses if reading[1].POS not in ("VERB", "INFN", "GRND")] or parses
        return str(parses[0][2])

    return lemmatise


SIMPLEMMA_CODES = {"bs": "hbs", "hr": "hbs", "no": "nb", "sr": "hbs", "fil": "tl"}


@lru_cache(maxsize=4)
def _simplemma_dictionary(code: str) -> Mapping[str, str]:
    """One language's words with their lemmas; simplemma itself keeps those of eight, which can take gigabytes."""
    factory = import_module("simplemma.strategies.dictionaries").DefaultDictionaryFactory(cache_max_size=0)
    dictionary: Mapping[str, str] = factory.get_dictionary(code)
    return dictionary


def _simplemma(language: str) -> Lemmatise:
    code = SIMPLEMMA_CODES.get(language, language)
    dictionaries = SimpleNamespace(get_dictionary=_simplemma_dictionary)
    strategy = import_module("simplemma.strategies").DefaultStrategy(dictionary_factory=dictionaries)
    lemmatizer = import_module("simplemma").Lemmatizer(cache_max_size=1, lemmatization_strategy=strategy)
    return partial(lemmatizer.lemmatize, lang=code)


LEXICONS: Mapping[str, Lexicon] = {
    "pymorphy3": Lexicon(load=_pymorphy3, packages=("pymorphy3", "pymorphy3-dicts-{}"), slow=True),
    "pymorphy3-nouns": Lexicon(
        load=partial(_pymorphy3, guess_verbs=False), packages=("pymorphy3", "pymorphy3-dicts-{}"), slow=True
    ),
    "simplemma": Lexicon(load=_simplemma, packages=("simplemma",), slow=False),
}


@cache
def describe_lexicon(name: str, language: str) -> str:
    """The name of a lexicon with the versions of every package that decides the lemmas; none for none.

    Raises MissingExtra where a package is not installed.

    >>> describe_lexicon("none", "ru")
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


@lru_cache(maxsize=4)
def load_lemmatiser(name: str, language: str) -> Lemmatise:
    """The lemmatiser of that name; the last four stay loaded, since a dictionary takes 30 to 600 MB."""
    describe_lexicon(name, language)
    return LEXICONS[name].load(language)


MIN_PART_CHARS = 4
"""The words of a compound have at least as many letters: shorter ones are found by chance."""


def split_compound(language: str, word: str) -> list[str]:
    """The lemmas of the words that a compound consists of; [] for other words.

    The parts get the lemmas that they have as single words, which then find them. Where several borders leave both
    parts in simplemma's dictionary, the one nearest to the middle is taken.

    >>> split_compound("de", "bundesregierungschef")
    ['bund', 'regierung', 'chef']
    """
    if len(word) < 2 * MIN_PART_CHARS or not word.isalpha():
        return []
    code = SIMPLEMMA_CODES.get(language, language)
    known, lemmatise = _simplemma_dictionary(code), load_lemmatiser("simplemma", language)
    write = str.capitalize if language in _CAPITAL_NOUNS else str
    middle = len(word) / 2
    for border in sorted(
        range(MIN_PART_CHARS, len(word) - MIN_PART_CHARS + 1), key=lambda border: abs(border - middle)
    ):
        parts = word[:border], word[border:]
        if parts[1] not in _SUFFIXES and all(write(part) in known for part in parts):
            split = (split_compound(language, part) or [lemmatise(part).casefold()] for part in parts)
            return [lemma for lemmas in split for lemma in lemmas]
    return []


_CAPITAL_NOUNS = ("de", "lb")
"""Languages whose nouns, and so the parts of compounds, the dictionary has with a capital."""
_SUFFIXES = ("schaft", "schap", "skap")
"""Ends of derived words, such as Gesellschaft, that are also words."""
