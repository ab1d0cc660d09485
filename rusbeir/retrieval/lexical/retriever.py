"""Searching an open index: queries analysed, shared out over threads, rows turned into document ids."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from rusbeir.analysis import empty_warning
from rusbeir.errors import BadInput
from rusbeir.retrieval.lexical.doc_ids import DocIds
from rusbeir.retrieval.lexical.engines import Hits, Searcher
from rusbeir.types import Queries, Run, TextAnalyzer

logger = logging.getLogger(__name__)

_BATCH = 64
"""Queries a thread takes at once."""


class LineAnalyzer(TextAnalyzer, Protocol):
    """An analyzer that also streams."""

    def analyze_lines(self, texts: Iterable[str], *, processes: int | None = None) -> Iterator[str]:
        """The terms of each text joined by single spaces, in order; '' where nothing is left."""
        ...


@dataclass(frozen=True, kw_only=True)
class LexicalRetriever:
    """Answers queries from one index. Searches share nothing, and threads may search at once."""

    signature: str
    analyzer: LineAnalyzer
    searcher: Searcher
    doc_ids: DocIds

    def search(self, queries: Queries, k: int) -> Run:
        """At most k hits a query by falling score, equal scores in corpus order; {} where nothing matches."""
        if k < 1:
            raise BadInput(f"k is {k}; ask for at least 1 hit a query.")
        lines = self.analyzer.analyze_lines(queries.values())
        items = [(query_id, line.split()) for query_id, line in zip(queries, lines, strict=True)]
        n_empty = sum(not terms for _, terms in items)
        if warning := empty_warning("queries", n_empty, len(items)):
            logger.warning("%s", warning)
        depth = min(k, len(self.doc_ids))
        batches = [items[start : start + _BATCH] for start in range(0, len(items), _BATCH)]

        def answer(batch: list[tuple[str, list[str]]]) -> list[tuple[str, dict[str, float]]]:
            asked = [terms for _, terms in batch if terms]
            found = iter(self.searcher.search(asked, depth) if asked else [])
            return [(query_id, self._hits(next(found)) if terms else {}) for query_id, terms in batch]

        if len(batches) < 2:
            return dict(pair for batch in batches for pair in answer(batch))
        with ThreadPoolExecutor(_threads()) as pool:
            return dict(pair for answered in pool.map(answer, batches) for pair in answered)

    def _hits(self, hits: Hits) -> dict[str, float]:
        rows, scores = hits
        return dict(zip(self.doc_ids.of(rows), scores, strict=True))


def _threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
