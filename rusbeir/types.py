"""What the rooms hand to each other. Everything handed to a function is read-only to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

Queries: TypeAlias = Mapping[str, str]
"""query_id -> text."""

Qrels: TypeAlias = Mapping[str, Mapping[str, int]]
"""query_id -> {doc_id: grade}; grade 0 is judged and not relevant."""

Run: TypeAlias = Mapping[str, Mapping[str, float]]
"""query_id -> {doc_id: score}; higher is better; every query is present, an unanswered one with {}."""

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Called as progress(stage, done, total); total is None where it is not known."""


def silent(stage: str, done: int, total: int | None) -> None:
    """Report nothing: the Progress of a caller who does not want any."""


class Doc(NamedTuple):
    """One document of a corpus."""

    doc_id: str
    text: str
    title: str = ""


class Corpus(Protocol):
    """Documents in file order, streamed; never required to fit in memory."""

    def __iter__(self) -> Iterator[Doc]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, doc_id: str) -> Doc:
        """The document of that id; KeyError where there is none."""
        ...


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is known of a dataset: where it comes from, how it is to be read, and what it held."""

    name: str
    language: str
    split: str
    fingerprint: str
    """sha256 (hex) of the content: the corpus's own, in its order, then queries and qrels sorted by id."""
    licence: str = ""
    source: str = ""
    revision: str = ""
    ignore_titles: bool = False
    self_suffixes: tuple[str, ...] = ()
    """Where not empty, a hit with the id query_id + suffix is the query itself: removed before the cut-off."""
    provenance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A benchmark: documents, the judged queries of one split, their judgements, and a card."""

    corpus: Corpus
    queries: Queries
    qrels: Qrels
    card: Card


class TextAnalyzer(Protocol):
    """Turns a text into the terms that an engine indexes."""

    @property
    def signature(self) -> str: ...

    def analyze(self, text: str) -> list[str]:
        """The terms of the text in order; [] where nothing is left."""
        ...


class Retriever(Protocol):
    """Answers queries from one corpus."""

    @property
    def signature(self) -> str: ...

    def search(self, queries: Queries, k: int) -> Run:
        """At most k hits a query, ordered by falling score; a query without hits has {}."""
        ...
