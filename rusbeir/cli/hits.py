"""Hits of a query for people who look at them: what matched, and what each word adds to a score."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rusbeir.analysis import Analyzer
from rusbeir.errors import UnknownName
from rusbeir.retrieval import Bm25System, Prepared, System, read_hit, search_without_self
from rusbeir.text import shorten
from rusbeir.types import Dataset, join_title

SHOWN_CHARS = 160
_LEAD_CHARS = 40
"""How much of a text is shown before its first match."""
_READ_CHARS = 4_000
"""How much of a text is looked through for matches."""
_EXPLAINED_DEPTH = 1_000
"""How deep a hit may fall without one of the words."""


@dataclass(frozen=True, kw_only=True)
class Searcher:
    """A system that is ready to search the documents of a dataset."""

    dataset: Dataset
    system: System
    prepared: Prepared
    k: int

    def search(self, query: str) -> list[dict[str, Any]]:
        """The hits with rank, score, doc_id, text and title, in a pool also with their language."""
        scores = self._score(query, self.k)
        documents = [read_hit(self.dataset.corpus, doc_id)._asdict() for doc_id in scores]
        if not self.dataset.languages:
            documents = [{key: value for key, value in doc.items() if key != "language"} for doc in documents]
        return [
            {"rank": rank, "score": score, **doc}
            for rank, (score, doc) in enumerate(zip(scores.values(), documents, strict=True), start=1)
        ]

    def explain(self, query: str, doc_id: str) -> list[tuple[str, float | None]]:
        """Pair each word of the query with the document's score without it; None where it is no longer a near hit.

        This asks the system itself, so that it holds for every system.
        """
        words = query.split()
        rows: list[tuple[str, float | None]] = []
        for index, word in enumerate(words):
            rest = " ".join(words[:index] + words[index + 1 :])
            scores = self._score(rest, _EXPLAINED_DEPTH) if rest else {}
            rows.append((word, scores.get(doc_id)))
        return rows

    def _score(self, query: str, k: int) -> Mapping[str, float]:
        k = min(k, len(self.dataset.corpus))
        return search_without_self(self.prepared.retriever, {"q": query}, k, ())["q"]


class Highlighter:
    """Finds the words of a text of which the system's analyzer, else that of the language, makes terms of the query."""

    def __init__(self, system: System, language: str) -> None:
        self._language = language
        self._analyzers: dict[str, Analyzer | None] = {}
        if isinstance(system, Bm25System) and isinstance(system.analyzer, Analyzer):
            self._analyzers[language] = system.analyzer

    def mark(self, query: str, title: str, text: str, language: str = "") -> str:
        """A line of title and text around the first match, with matches in brackets.

        language is that of the text, where it is another than that of the dataset.
        """
        whole = " ".join(join_title(title, text[:_READ_CHARS], " — ").split())
        spans = list(self._find(query, whole, self._find_analyzer(language or self._language)))
        start = max(0, spans[0][0] - _LEAD_CHARS) if spans and spans[0][1] > SHOWN_CHARS else 0
        shown = ("…" if start else "") + shorten(whole[start:], SHOWN_CHARS)
        shift = start - (1 if start else 0)
        for first, last in reversed(spans):
            first, last = first - shift, last - shift
            # The last character stands for what was cut, if anything was.
            if last < len(shown) or len(whole) - start <= SHOWN_CHARS:
                shown = f"{shown[:first]}[{shown[first:last]}]{shown[last:]}"
        return shown

    def _find_analyzer(self, language: str) -> Analyzer | None:
        if language not in self._analyzers:
            self._analyzers[language] = None
            with contextlib.suppress(UnknownName):
                self._analyzers[language] = Analyzer(language)
        return self._analyzers[language]

    def _find(self, query: str, text: str, analyzer: Analyzer | None) -> Iterator[tuple[int, int]]:
        if analyzer is None:
            return
        terms = set(analyzer.analyze(query))
        offset = 0
        for token in analyzer.explain(text):
            start = text.find(token.surface, offset)
            if start < 0:
                continue  # Normalising moved the borders of this token.
            offset = start + len(token.surface)
            if terms.intersection(token.term.split()):
                yield start, offset
