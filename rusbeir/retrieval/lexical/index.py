"""An index in a folder: built whole or not at all, and opened only by the recipe that made it."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import orjson

from rusbeir.analysis import empty_warning
from rusbeir.errors import BackendError, BadInput, RusbeirError
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.lexical.doc_ids import DocIds, DocIdWriter
from rusbeir.retrieval.lexical.engines import Hits, IndexKey, LexicalEngine, Searcher, Terms
from rusbeir.storage import atomic_folder
from rusbeir.types import Corpus, Doc, Progress, Queries, Run, TextAnalyzer

T = TypeVar("T")

__all__ = ["RECIPE", "Built", "IndexKey", "build", "open_index"]

RECIPE = "key.json"
_REPORT_DOCS = 1_000


@dataclass(frozen=True, kw_only=True)
class Built:
    """What a finished index holds, and what it took to make."""

    documents: int
    empty_documents: int
    """Documents that analysed to nothing."""
    analyse_seconds: float
    """Time spent waiting for the analyzer (and for the corpus behind it)."""
    index_seconds: float
    bytes: int
    """Of the files, and of what lies on a server."""
    files: dict[str, int]
    """File name -> bytes, by which a truncated or missing file is noticed."""


def build(
    folder: Path,
    key: IndexKey,
    corpus: Corpus,
    analyzer: LineAnalyzer,
    engine: LexicalEngine,
    bm25: Bm25,
    progress: Progress,
) -> None:
    """Make the index; the folder appears, complete, at the end.

    Raises BackendError where it cannot be written.
    """
    if not len(corpus):
        raise BadInput("The corpus is empty: there is nothing to index.")
    started = time.perf_counter()
    with atomic_folder(folder) as temporary:
        rows = _Rows(corpus, analyzer, bm25, progress)
        with DocIdWriter(temporary) as ids:
            elsewhere = engine.build(temporary, rows.stream(ids), bm25, key)
        seconds = time.perf_counter() - started
        files = {
            str(path.relative_to(temporary)): path.stat().st_size
            for path in sorted(temporary.rglob("*"))
            if path.is_file()
        }
        built = Built(
            documents=ids.count,
            empty_documents=rows.empty,
            analyse_seconds=rows.analyse_seconds,
            index_seconds=seconds - rows.analyse_seconds,
            bytes=sum(files.values()) + elsewhere,
            files=files,
        )
        document = {"recipe": asdict(key), "built": asdict(built)}
        (temporary / RECIPE).write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))


def open_index(
    folder: Path, key: IndexKey, analyzer: LineAnalyzer, engine: LexicalEngine, bm25: Bm25
) -> tuple[LexicalRetriever, Built]:
    """The index in that folder, and what its build noted.

    Raises BadInput where another recipe made it, and BackendError where it is damaged.
    """
    found, built = _read_recipe(folder)
    for part, is_, asked in (
        ("recipe", found.signature, key.signature),
        ("corpus", found.fingerprint, key.fingerprint),
    ):
        if is_ != asked:
            raise BadInput(f"The index {folder} has {part} {is_}, but {asked} was asked for. Build its own.")
    for name, size in built.files.items():
        path = folder / name
        if not path.is_file():
            raise _damaged(folder, f"{name} is missing")
        if path.stat().st_size != size:
            raise _damaged(folder, f"{name} has {path.stat().st_size} bytes instead of {size}")
    searcher = _or_damaged(folder, lambda: engine.open(folder, bm25))
    ids = _or_damaged(folder, lambda: DocIds(folder))
    retriever = LexicalRetriever(signature=key.signature, analyzer=analyzer, searcher=searcher, doc_ids=ids)
    return retriever, built


class _Rows:
    """The corpus as lines of terms, with the time and the empty documents counted on the way."""

    def __init__(self, corpus: Corpus, analyzer: LineAnalyzer, bm25: Bm25, progress: Progress) -> None:
        self.analyse_seconds = 0.0
        self.empty = 0
        self._corpus = corpus
        self._analyzer = analyzer
        self._width = len(bm25.field_names)
        self._progress = progress
        self._ids: deque[str] = deque()
        """Of the documents that the analyzer was given and has not yet given back."""

    def stream(self, ids: DocIdWriter) -> Iterator[Terms]:
        total = len(self._corpus)
        lines = self._analyzer.analyze_lines(self._texts(ids))
        rows = zip(*[lines] * self._width, strict=True)
        clock = time.perf_counter
        done = 0
        started = clock()
        for row in rows:
            self.analyse_seconds += clock() - started
            if not any(row):
                self.empty += 1
            yield self._ids.popleft(), row
            done += 1
            if done % _REPORT_DOCS == 0:
                self._progress("index", done, total)
            started = clock()
        self.analyse_seconds += clock() - started
        self._progress("index", done, total)

    def _texts(self, ids: DocIdWriter) -> Iterator[str]:
        for doc in self._corpus:
            ids.add(doc.doc_id)
            self._ids.append(doc.doc_id)
            if self._width == 1:
                yield _flat(doc)
            else:
                yield doc.title
                yield doc.text


def _flat(doc: Doc) -> str:
    return f"{doc.title} {doc.text}" if doc.title else doc.text


def _read_recipe(folder: Path) -> tuple[IndexKey, Built]:
    try:
        document = orjson.loads((folder / RECIPE).read_bytes())
        return IndexKey(**document["recipe"]), Built(**document["built"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(folder, f"{RECIPE} cannot be read") from error


def _or_damaged(folder: Path, opened: Callable[[], T]) -> T:
    try:
        return opened()
    except RusbeirError:
        raise
    except (OSError, ValueError, KeyError) as error:
        raise _damaged(folder, str(error)) from error


def _damaged(folder: Path, why: str) -> BackendError:
    line = " ".join(why.split())
    return BackendError(
        f"The index {folder} is damaged ({line}). Remove it with `rusbeir cache clear indexes`; it is then built anew."
    )


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
