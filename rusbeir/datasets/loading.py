"""A dataset by its name or its path, whatever format it is in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from rusbeir.datasets.corpus import JsonlCorpus, open_corpus
from rusbeir.datasets.identity import key_of, sha256_of
from rusbeir.datasets.index import canonical_line
from rusbeir.datasets.opening import open_source
from rusbeir.datasets.records import Place, document_line, refuse
from rusbeir.datasets.source import Source, WholeSource
from rusbeir.datasets.trec import collect
from rusbeir.errors import BadInput
from rusbeir.storage import atomic_file, cache_folder
from rusbeir.types import Dataset, Doc, Progress, Qrels, Queries, silent

_REPORT_EVERY = 10_000
_COPY = 2
"""Raised when copies are made otherwise, so that those of an older version are left alone."""


def load(
    name_or_path: str | Path,
    *,
    language: str | None = None,
    split: str | None = None,
    progress: Progress = silent,
) -> Dataset:
    """The dataset of a registered name or alias, or at a path, which may end in a view: squad.json/sentences.

    A path's language and split come from its card.json, else from the arguments; the only split there is
    need not be named. Raises UnknownName, or BadInput with file and line.

    >>> load("xquad/ru").corpus["0-0"].text[1:15]  # doctest: +SKIP
    'Защита Пэнтерс'
    """
    opened = open_source(name_or_path, language=language, split=split, progress=progress)
    corpus = _open_documents(opened.source, opened.ignore_titles, progress)
    qrels = collect(opened.source.judgements(refuse))
    queries = _judged_queries(opened.source, qrels)
    card = opened.card(fingerprint(corpus.sha256, queries, qrels))
    return Dataset(corpus=corpus, queries=queries, qrels=qrels, card=card)


def query_metadata(
    name_or_path: str | Path, *, language: str | None = None, split: str | None = None, progress: Progress = silent
) -> dict[str, dict[str, Any]]:
    """query id -> the keys of its record besides _id and text, of the queries that have any; as load.

    What documents have besides, their corpus tells: JsonlCorpus.whole.
    """
    source = open_source(name_or_path, language=language, split=split, progress=progress).source
    if not isinstance(source, WholeSource):
        return {}
    return {query.query_id: besides for _, query, besides in source.whole_queries(refuse) if besides}


def fingerprint(corpus_sha256: str, queries: Queries, qrels: Qrels) -> str:
    """The sha256 (hex) of what a dataset holds, equal for the same content in any format.

    Over JSON lines: the sha256 over [id, title, text] of each document in corpus order, then
    [query id, text] sorted by id, then [query id, document id, grade] sorted by both ids.
    """
    digest = hashlib.sha256(canonical_line(corpus_sha256))
    for query_id in sorted(queries):
        digest.update(canonical_line(query_id, queries[query_id]))
    for query_id in sorted(qrels):
        for doc_id in sorted(qrels[query_id]):
            digest.update(canonical_line(query_id, doc_id, qrels[query_id][doc_id]))
    return digest.hexdigest()


def _open_documents(source: Source, ignore_titles: bool, progress: Progress) -> JsonlCorpus:
    def locate(row: int) -> Place:
        place, _ = next(islice(source.documents(refuse), row, None))
        return place

    path = source.plain_corpus or _copied(source, progress)
    return open_corpus(path, ignore_titles=ignore_titles, locate=locate, progress=progress)


def _copied(source: Source, progress: Progress) -> Path:
    """The documents as a JSONL file in the cache, made on first use."""
    key = key_of(_COPY, source.recipe, *map(sha256_of, source.corpus_files))
    path = cache_folder() / "copies" / f"{key}.jsonl"
    if path.is_file():
        return path
    with atomic_file(path) as file:
        for n, (doc, besides) in enumerate(_whole_documents(source), 1):
            file.write(document_line(doc, besides))
            if n % _REPORT_EVERY == 0:
                progress("copying documents", n, None)
    return path


def _whole_documents(source: Source) -> Iterator[tuple[Doc, dict[str, Any]]]:
    if isinstance(source, WholeSource):
        return ((doc, besides) for _, doc, besides in source.whole_documents(refuse))
    return ((doc, {}) for _, doc in source.documents(refuse))


def _judged_queries(source: Source, qrels: Qrels) -> dict[str, str]:
    queries: dict[str, str] = {}
    file = ""
    for place, query in source.queries(refuse):
        file = place.file
        if query.query_id not in qrels:
            continue
        if query.query_id in queries:
            refuse("repeat", place, f"the query id {query.query_id!r} stands a second time; ids must be unique")
        queries[query.query_id] = query.text
    file = file or str(source.corpus_files[0])
    if not queries:
        raise BadInput(f"{file}: none of its queries is judged in the split {source.split!r}.")
    missing = [query_id for query_id in qrels if query_id not in queries]
    if missing:
        n = len(missing)
        raise BadInput(f"{file}: {n} judged queries of the split have no text, such as {missing[0]!r}.")
    return queries
