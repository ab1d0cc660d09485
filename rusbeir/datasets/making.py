"""Make a dataset of what people have: lists, dicts, data frames, tables on disk."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsIndex

from rusbeir.datasets.columns import (
    DOCUMENT,
    JUDGEMENT,
    QUERY,
    Column,
    Columns,
    choose_columns,
    describe_columns,
    join_values,
    read_columns,
)
from rusbeir.datasets.corpus import JsonlCorpus
from rusbeir.datasets.formats import tables
from rusbeir.datasets.formats.files import name_unpacked
from rusbeir.datasets.formats.frames import open_frame
from rusbeir.datasets.formats.records import NO_LANGUAGE, Query, collect, read_language, refuse
from rusbeir.datasets.formats.trec import read_qrels
from rusbeir.datasets.loading import open_documents
from rusbeir.datasets.opening import open_reader
from rusbeir.errors import BadInput
from rusbeir.text import shorten
from rusbeir.types import (
    MAX_GRADE,
    Doc,
    HashedCorpus,
    MemoryCorpus,
    MultilingualQueries,
    Qrels,
    Queries,
    require_id,
    require_string,
    select_queries,
    silent,
)

logger = logging.getLogger(__name__)


def make_parts(
    corpus: Any, queries: Any, qrels: Any, columns: str | Mapping[str, str | Sequence[str]] | None, language: str
) -> tuple[HashedCorpus, Queries, Qrels]:
    """Make the documents, the queries and the judgements of `Dataset.of`, which says what may be given."""
    named = read_columns(columns)
    documents, texts = _make_corpus(corpus, language, named), make_queries(queries, named)
    judged = _check_qrels(_make_qrels(qrels, named))
    if unknown := [query_id for query_id in judged if query_id not in texts]:
        n = f"{len(unknown)} queries" if len(unknown) > 1 else "a query"
        raise BadInput(f"The qrels judge {n} without a text, such as {unknown[0]!r}; add them to the queries.")
    for query_id in judged or texts:
        require_string(texts[query_id], "text", "Query {!r}", query_id)
    query_ids = (query_id for query_id in texts if query_id in judged or not judged)
    return documents, select_queries(texts, query_ids), judged


def _make_corpus(corpus: Any, language: str, columns: Columns) -> HashedCorpus:
    """Make a corpus of documents: as it is, in memory, or, for the path of a table, on disk."""
    if isinstance(corpus, HashedCorpus):
        return corpus
    if isinstance(corpus, (str, Path)):
        return _open_table(Path(corpus), language, columns)
    if isinstance(corpus, Mapping) and open_frame(corpus) is None:
        raise BadInput(
            "The corpus is a mapping; expected documents: a table, or a list of dicts with `_id` and `text`."
        )
    return MemoryCorpus(_read_documents(corpus, columns))


def _open_table(path: Path, language: str, columns: Columns) -> JsonlCorpus:
    reader, card, _ = open_reader(path, language=language, split=None, columns=columns, progress=silent)
    return open_documents(reader, card.ignore_titles)


def _read_documents(source: Any, columns: Columns) -> Iterator[Any]:
    """Read the documents of a table or of records; what is neither is left to the corpus to refuse."""
    for number, (record, chosen) in enumerate(_choose(source, "Document {} of the corpus", DOCUMENT, columns), 1):
        if isinstance(record, Mapping):
            doc_id, text, title, tag = (join_values(record, parts) for parts in chosen)
            if text is None:
                raise BadInput(
                    f"Document {number} of the corpus ({doc_id!r}) has no text. Give it one, or join columns: "
                    "columns={'text': ['name', 'description']}."
                )
            language = _read_language(
                tag if chosen[3] else record.get("lang"), f"Document {number} of the corpus ({doc_id!r})"
            )
            yield Doc(_text_id(doc_id), text, (title if chosen[2] else record.get("title")) or "", language)
        else:
            yield record


def make_queries(queries: Any, columns: Columns) -> Queries:
    """Make query_id -> text of a mapping, a table or its path, records, or texts, whose ids are q1, q2 and so on."""
    if queries is None:
        return {}
    if isinstance(queries, (str, Path)):
        records: list[Query] = [query for _, query in tables.read_queries([Path(queries)], refuse, columns)]
    elif isinstance(queries, Mapping) and open_frame(queries) is None:
        return queries
    else:
        records = list(_read_queries(queries, columns))
    made: dict[str, str] = {}
    for query_id, text, _ in records:
        if query_id in made:
            raise BadInput(f"The query id {query_id!r} is repeated; ids must be unique.")
        made[query_id] = text
    languages = {query.query_id: query.language for query in records if query.language}
    return MultilingualQueries(made, languages) if languages else made


def _read_queries(source: Any, columns: Columns) -> Iterator[Query]:
    for number, (record, chosen) in enumerate(_choose(source, "Query {}", QUERY, columns), 1):
        if isinstance(record, str):
            yield Query(f"q{number}", record)
        elif isinstance(record, Mapping):
            query_id, text, tag = (join_values(record, parts) for parts in chosen)
            language = _read_language(tag if chosen[2] else record.get("lang"), f"Query {query_id!r}")
            yield Query(_text_id(query_id), text, language)
        elif isinstance(record, tuple) and len(record) == 2:
            yield Query(_text_id(record[0]), record[1])
        else:
            raise BadInput(
                f"Query {number} is {shorten(repr(record), 60)}; expected a text, a pair of id and text, or a dict "
                "with `_id` and `text`."
            )


def _make_qrels(qrels: Any, columns: Columns) -> Qrels:
    """Make query_id -> {doc_id: grade} of such a mapping, of {query_id: [doc_id]}, a table or its path, or triples."""
    if qrels is None:
        return {}
    if isinstance(qrels, (str, Path)):
        return read_judgement_file(Path(qrels), columns)
    if isinstance(qrels, Mapping) and open_frame(qrels) is None:
        return {
            query_id: dict.fromkeys(grades, 1) if isinstance(grades, (list, tuple, set, frozenset)) else grades
            for query_id, grades in qrels.items()
        }
    made: dict[str, dict[str, int]] = {}
    for query_id, doc_id, grade in _read_judgements(qrels, columns):
        if doc_id in made.setdefault(query_id, {}):
            raise BadInput(f"Query {query_id!r} and document {doc_id!r} are paired a second time.")
        made[query_id][doc_id] = grade
    return made


def _check_qrels(qrels: Qrels) -> dict[str, dict[str, int]]:
    """Copy judgements without the queries that have no judgement, which no file of qrels can hold."""
    judged: dict[str, dict[str, int]] = {}
    for query_id, grades in qrels.items():
        require_id(query_id, "A query of the qrels")
        if not isinstance(grades, Mapping):
            raise BadInput(
                f"The qrels of query {query_id!r} are {shorten(repr(grades))}; expected {{document id: grade}}."
            )
        for doc_id, grade in grades.items():
            require_id(doc_id, "A document judged for query {!r}", query_id)
            if isinstance(grade, bool) or not isinstance(grade, SupportsIndex) or abs(int(grade)) > MAX_GRADE:
                raise BadInput(
                    f"The grade of document {doc_id!r} for query {query_id!r} is {shorten(repr(grade))}; expected an "
                    f"integer from -{MAX_GRADE:,} to {MAX_GRADE:,}."
                )
            judged.setdefault(query_id, {})[doc_id] = int(grade)
    return judged


def read_judgement_file(path: Path, columns: Columns) -> dict[str, dict[str, int]]:
    """Read judgements from a table (.csv, .jsonl, .parquet), or from what `read_qrels` takes."""
    name = name_unpacked(path)
    if name.endswith((".csv", ".jsonl", ".parquet", ".arrow")) or (columns and name.endswith(".tsv")):
        return collect(tables.read_judgements([path], refuse, columns))
    return read_qrels(path)


def _read_judgements(source: Any, columns: Columns) -> Iterator[tuple[str, str, Any]]:
    for number, (record, chosen) in enumerate(_choose(source, "Judgement {}", JUDGEMENT, columns), 1):
        if isinstance(record, Mapping):
            query_id, doc_id, grade = (join_values(record, parts) for parts in chosen)
            if (read := tables.read_grade(grade)) is not None:
                grade = read
        elif isinstance(record, (tuple, list)) and len(record) in (2, 3):
            query_id, doc_id, grade = (*record, 1)[:3]
        else:
            raise BadInput(
                f"Judgement {number} is {shorten(repr(record), 60)}; expected (query id, document id, grade), or a "
                "dict with `query_id`, `doc_id` and `grade`."
            )
        yield _text_id(query_id), _text_id(doc_id), grade


def _choose(
    source: Any, what: str, roles: tuple[Column, ...], named: Columns
) -> Iterator[tuple[Any, list[tuple[str, ...]]]]:
    """Choose the records of a source, each with its columns that hold what is wanted; for others than records, []."""
    named = {column.key: named[column.key] for column in roles if column.key in named}
    frame = open_frame(source)
    if frame is None and not isinstance(source, Iterable):
        raise BadInput(f"{what.replace(' {}', '')}: a {type(source).__name__} is not a table; pass a table or a list.")
    records = source if frame is None else frame.records()
    chosen: list[tuple[str, ...]] = []
    if frame:
        chosen = choose_columns("The table", roles, frame.names, named)
        logger.info("Columns: %s", describe_columns(roles, chosen))
    for number, record in enumerate(records, 1):
        if not isinstance(record, Mapping):
            yield record, []
            continue
        chosen = chosen or choose_columns(what.format(number), roles, record, named)
        yield record, chosen


def _read_language(value: Any, where: str) -> str:
    """Read the language that a record names. Raises BadInput for what is not one."""
    language = read_language(value)
    if language is None:
        raise BadInput(f"{where} has {NO_LANGUAGE}: {shorten(repr(value), 40)}.")
    return language


def _text_id(value: Any) -> Any:
    """The id as text, where it is a number; other values are refused where ids are checked."""
    if isinstance(value, str):
        return value
    known = tables.read_id(value)
    return value if known is None else known
