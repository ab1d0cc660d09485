"""An index in a folder: built whole or not at all, and opened only with the key that it was built for."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import chain, groupby, repeat, tee
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import orjson

from rusbeir.analysis import GRAM, empty_warning
from rusbeir.datasets import DocIds, checksum_of, compute_checksum, write_ids
from rusbeir.errors import BackendError, BadInput, RusbeirError
from rusbeir.processes import cpu_count
from rusbeir.retrieval.lexical.engines import IndexKey, LexicalEngine, RemoteEngine, Searcher, Terms
from rusbeir.storage import atomic_folder
from rusbeir.text import batched
from rusbeir.types import Corpus, Doc, Progress, Queries, Run, TextAnalyzer, join_title

if TYPE_CHECKING:
    from rusbeir.retrieval.lexical.bm25 import Bm25

logger = logging.getLogger(__name__)

RECIPE = "recipe.json"
"""Name of the file in which an index notes its key and its build."""
_REPORT_DOCS = 1_000
_BATCH_QUERIES = 64
"""Queries a thread takes at once."""


class LineAnalyzer(TextAnalyzer, Protocol):
    """An analyzer that also streams."""

    def analyze_lines(self, texts: Iterable[str], *, processes: int | None = None) -> Iterator[str]:
        """The terms of each text joined by single spaces, in order; '' where nothing is left."""
        ...


@runtime_checkable
class AnalyzesByLanguage(Protocol):
    """An optional ability of analyzers: to analyse documents by their languages."""

    def of_language(self, language: str) -> LineAnalyzer: ...


@dataclass(frozen=True, kw_only=True)
class Built:
    """A finished index: what it holds, and what it took to make."""

    documents: int
    empty_documents: int
    """Documents that analysed to nothing."""
    analyse_seconds: float
    """Time spent waiting for the analyzer (and for the corpus behind it)."""
    index_seconds: float
    bytes: int
    """The size of the files, and of the index on a server."""
    files: dict[str, str]
    """File name -> sha256, by which a damaged or missing file is noticed."""


def build(
    folder: Path,
    key: IndexKey,
    corpus: Corpus,
    analyzer: LineAnalyzer,
    engine: LexicalEngine,
    bm25: Bm25,
    progress: Progress,
) -> None:
    """Build the index; the folder appears, complete, at the end.

    Raises BackendError where it cannot be written.
    """
    if not len(corpus):
        raise BadInput("The corpus is empty: there is nothing to index.")
    started = time.perf_counter()
    with atomic_folder(folder, keyed=True) as temporary:
        with contextlib.closing(write_ids(temporary, corpus)) as docs:
            stream = _TermStream(docs, len(corpus), analyzer, bm25, progress)
            remote_bytes = 0
            if isinstance(engine, RemoteEngine):
                remote_bytes = engine.load(temporary, stream.rows(), bm25, key)
            else:
                engine.build(temporary, stream.rows(), bm25)
        seconds = time.perf_counter() - started
        paths = [path for path in sorted(temporary.rglob("*")) if path.is_file()]
        built = Built(
            documents=stream.done,
            empty_documents=stream.empty,
            analyse_seconds=stream.analyse_seconds,
            index_seconds=seconds - stream.analyse_seconds,
            bytes=sum(path.stat().st_size for path in paths) + remote_bytes,
            files={str(path.relative_to(temporary)): compute_checksum(path, "sha256") for path in paths},
        )
        document = {"recipe": asdict(key), "built": asdict(built)}
        (temporary / RECIPE).write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))


def open_index(
    folder: Path, key: IndexKey, analyzer: LineAnalyzer, engine: LexicalEngine, bm25: Bm25
) -> tuple[LexicalRetriever, Built]:
    """Open the index in that folder; also returns what its build noted.

    Raises BadInput where it was built for another key, and BackendError where it is damaged.
    """
    with _reporting_damage(folder, f"{RECIPE} cannot be read"):
        document = orjson.loads((folder / RECIPE).read_bytes())
        known, built = IndexKey(**document["recipe"]), Built(**document["built"])
    for part, value, expected in (
        ("recipe", known.signature, key.signature),
        ("corpus", known.fingerprint, key.fingerprint),
    ):
        if value != expected:
            raise BadInput(f"The index {folder} has {part} {value}, but {expected} was asked for. Build its own.")
    with _reporting_damage(folder):
        for name, sha256 in built.files.items():
            if not (folder / name).is_file():
                raise ValueError(f"{name} is missing")
            if checksum_of(folder / name) != sha256:
                raise ValueError(f"{name} has changed since it was written")
        searcher, ids = engine.open(folder, bm25), DocIds(folder)
    return LexicalRetriever(signature=key.signature, analyzer=analyzer, searcher=searcher, doc_ids=ids), built


@dataclass
class _TermStream:
    """The corpus as lines of terms; counts the time and the empty documents on the way."""

    docs: Iterable[Doc]
    total: int
    """How many documents there are, for progress."""
    analyzer: LineAnalyzer
    bm25: Bm25
    progress: Progress
    analyse_seconds: float = 0.0
    done: int = 0
    empty: int = 0

    def rows(self) -> Iterator[Terms]:
        """Yield the documents as engines take them."""
        # The analyzer reads documents a few batches ahead of those whose terms are there.
        ahead, waiting = tee(self.docs)
        lines = self._analyze(ahead)
        rows: Iterator[tuple[str, ...]] = zip(*[lines] * len(self.bm25.parts[0][0]), strict=True)
        if self.bm25.gram_weight:
            rows = (
                (*(_select(line, grams=False) for line in row), *(_select(line, grams=True) for line in row))
                for row in rows
            )
        clock = time.perf_counter
        started = clock()
        for row in rows:
            self.analyse_seconds += clock() - started
            if not any(row):
                self.empty += 1
            yield next(waiting).doc_id, row
            self.done += 1
            if self.done % _REPORT_DOCS == 0:
                self.progress("index", self.done, self.total)
            started = clock()
        self.analyse_seconds += clock() - started
        self.progress("index", self.done, self.total)

    def _analyze(self, docs: Iterable[Doc]) -> Iterator[str]:
        """Analyse the fields of documents, those of one language after another in the analyzer of each."""
        flat = self.bm25.fields == "flat"
        of_language = self.analyzer.of_language if isinstance(self.analyzer, AnalyzesByLanguage) else None
        groups = groupby(docs, key=lambda doc: doc.language) if of_language else [("", docs)]
        return chain.from_iterable(
            (of_language(language) if of_language else self.analyzer).analyze_lines(
                text
                for doc in group
                for text in ((join_title(doc.title, doc.text),) if flat else (doc.title, doc.text))
            )
            for language, group in groups
        )


def _select(line: str, *, grams: bool) -> str:
    return " ".join([term for term in line.split(" ") if term.startswith(GRAM) == grams])


@contextlib.contextmanager
def _reporting_damage(folder: Path, why: str = "") -> Iterator[None]:
    """Turn errors in reading the folder into a BackendError of one line."""
    try:
        yield
    except RusbeirError:
        raise
    except (AttributeError, OSError, ValueError, KeyError, TypeError) as error:
        line = " ".join((why or str(error)).split())
        raise BackendError(
            f"The index {folder} is damaged ({line}). "
            "Remove it with `rusbeir cache clear indexes`; it is then built again."
        ) from error


@dataclass(frozen=True, kw_only=True)
class LexicalRetriever:
    """Answers queries from one index. Searches share nothing, and threads may search at once."""

    signature: str
    analyzer: LineAnalyzer
    searcher: Searcher
    doc_ids: DocIds

    def search(self, queries: Queries, k: int) -> Run:
        """Find at most k hits per query by falling score, equal scores in corpus order; {} where nothing matches."""
        lines = self.analyzer.analyze_lines(queries.values())
        terms = {query_id: line.split() for query_id, line in zip(queries, lines, strict=True)}
        n_empty = sum(not line for line in terms.values())
        if n_empty and (warning := empty_warning("queries", n_empty, len(terms))):
            logger.warning("%s", warning)
        return self.search_terms(terms, k)

    def search_terms(self, terms: Mapping[str, Sequence[str]], k: int) -> Run:
        """Find hits for the terms of queries, query_id -> terms, as search does."""
        if k < 1:
            raise BadInput(f"k is {k}; ask for at least 1 hit per query.")
        with_terms = [query_id for query_id in terms if terms[query_id]]
        batches = list(batched([terms[query_id] for query_id in with_terms], _BATCH_QUERIES))
        depths = repeat(min(k, self.doc_ids.count))
        if len(batches) < 2:
            answers = list(map(self.searcher.search, batches, depths))
        else:
            with ThreadPoolExecutor(cpu_count()) as pool:
                answers = list(pool.map(self.searcher.search, batches, depths))
        hits = dict(zip(with_terms, chain.from_iterable(answers), strict=True))
        return {
            query_id: dict(zip(self.doc_ids.read(rows), scores, strict=True))
            for query_id, (rows, scores) in ((query_id, hits.get(query_id, ((), ()))) for query_id in terms)
        }
