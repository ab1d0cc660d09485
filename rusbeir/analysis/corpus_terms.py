"""The terms that an analyzer makes of a collection of documents: how many, which are common, and what is dropped."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from rusbeir.analysis.analyzer import Analyzer
from rusbeir.analysis.chain import GRAM
from rusbeir.types import Doc

EXPLAINED_DOCUMENTS = 1_000
EXPLAINED_CHARS = 200_000
"""The first documents, up to this many and about this many characters, are explained word by word."""
SHOWN = 10
"""How many rows each list has."""
SHOWN_WORDS = 5

Key = TypeVar("Key", str, tuple[str, str])


class CommonTerm(NamedTuple):
    """A term that many documents have."""

    term: str
    documents: int
    occurrences: int
    words: list[str]
    """The commonest words that become this term, from the explained documents."""


class JoinedTerm(NamedTuple):
    """A term that many different words become, which may be right or too much."""

    term: str
    n_words: int
    words: list[str]
    """The commonest of them."""


class DroppedWord(NamedTuple):
    """A word that is not indexed."""

    word: str
    occurrences: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class TermStatistics:
    """Statistics of the terms that one analyzer makes of a collection of documents."""

    signature: str
    n_documents: int
    n_empty: int
    """The documents without terms, which no query finds."""
    empty: list[str]
    """The ids of the first of them."""
    n_terms: int
    n_distinct: int
    n_once: int
    """The distinct terms that occur once."""
    max_terms: int
    """The number of terms of the longest document."""
    common: list[CommonTerm]
    n_explained: int
    """How many documents, the first ones, were looked through for words that are joined or dropped."""
    joined: list[JoinedTerm]
    dropped: list[DroppedWord]


def count_terms(analyzer: Analyzer, documents: Iterable[Doc]) -> TermStatistics:
    """Count the terms of documents, which are read once; memory grows with the distinct terms alone."""
    stream = iter(documents)
    first = list(_take_first(stream))
    pending = deque[str]()

    def texts() -> Iterator[str]:
        for doc in chain(first, stream):
            pending.append(doc.doc_id)
            yield doc.full_text

    occurrences, n_documents_of = Counter[str](), Counter[str]()
    empty: list[str] = []
    n_documents = n_empty = max_terms = 0
    for terms in analyzer.analyze_many(texts()):
        doc_id = pending.popleft()
        # Runs of characters are many, and say little to a reader: where there are words, these are counted.
        words = [term for term in terms if not term.startswith(GRAM)] if analyzer.recipe.terms == "both" else terms
        occurrences.update(words)
        n_documents_of.update(set(words))
        n_documents += 1
        max_terms = max(max_terms, len(words))
        if not terms:
            n_empty += 1
            if len(empty) < SHOWN:
                empty.append(doc_id)
    words_of, dropped = _explain_words(analyzer, first)
    n_words = Counter({term: len(words) for term, words in words_of.items() if len(words) > 1})
    return TermStatistics(
        signature=analyzer.signature,
        n_documents=n_documents,
        n_empty=n_empty,
        empty=empty,
        n_terms=occurrences.total(),
        n_distinct=len(occurrences),
        n_once=sum(count == 1 for count in occurrences.values()),
        max_terms=max_terms,
        common=[
            CommonTerm(term, count, occurrences[term], _list_words(words_of.get(term, Counter())))
            for term, count in _rank(n_documents_of)
        ],
        n_explained=len(first),
        joined=[JoinedTerm(term, count, _list_words(words_of[term])) for term, count in _rank(n_words)],
        dropped=[DroppedWord(word, count, reason) for (word, reason), count in _rank(dropped)],
    )


def _take_first(stream: Iterator[Doc]) -> Iterator[Doc]:
    """Take the documents that are explained word by word."""
    n_chars = 0
    for doc in islice(stream, EXPLAINED_DOCUMENTS):
        yield doc
        n_chars += len(doc.full_text)
        if n_chars >= EXPLAINED_CHARS:
            return


def _explain_words(
    analyzer: Analyzer, documents: Iterable[Doc]
) -> tuple[dict[str, Counter[str]], Counter[tuple[str, str]]]:
    """Count the words that become each term, and the words that are dropped, with the reason."""
    words_of: dict[str, Counter[str]] = {}
    dropped = Counter[tuple[str, str]]()
    for doc in documents:
        for token in analyzer.explain(doc.full_text):
            if token.dropped:
                dropped[token.folded, token.dropped] += 1
            for term in token.term.split():
                if analyzer.recipe.terms == "grams" or not term.startswith(GRAM):
                    words_of.setdefault(term, Counter())[token.folded] += 1
    return words_of, dropped


def _rank(counts: Counter[Key], n: int = SHOWN) -> list[tuple[Key, int]]:
    """The n highest counts, equal ones in the order of their keys."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:n]


def _list_words(words: Counter[str]) -> list[str]:
    return [word for word, _ in _rank(words, SHOWN_WORDS)]
