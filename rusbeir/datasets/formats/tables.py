"""Records of table files: JSON lines, TSV, CSV, parquet and arrow, under the column names that the field uses.

Rows are streamed, so memory does not grow with the table (for parquet, it holds one row group).
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rusbeir.datasets.columns import (
    DOCUMENT,
    JUDGEMENT,
    QUERY,
    Column,
    Columns,
    choose_columns,
    describe_columns,
    join_values,
)
from rusbeir.datasets.formats import trec
from rusbeir.datasets.formats.files import Zip, name_unpacked, open_file
from rusbeir.datasets.formats.hub_layout import READABLE
from rusbeir.datasets.formats.records import (
    ID_RULE,
    NO_LANGUAGE,
    Complain,
    Judgement,
    Place,
    Query,
    Span,
    not_utf8,
    read_language,
    read_objects,
    refuse,
)
from rusbeir.errors import BackendError, BadInput, require
from rusbeir.text import has_control, read_csv, shorten
from rusbeir.types import Doc

_BATCH_ROWS = 1000
_HEADER_BYTES = 1 << 12
_DIGITS = re.compile(r"\s*-?[0-9]{1,20}\s*")

Record = Mapping[str, Any]
_BY_NAME: Columns = MappingProxyType({})
"""No column is named by the caller: each is recognised by its name."""


SPAN = (
    QUERY[0],
    Column("span", ("pos_char_span",), True),
    Column("length in characters", ("pos_char_length",), True),
    Column("length in tokens", ("pos_token_length",), True),
)
"""Columns of PosIR's queries: where the relevant document answers them. A translation has those of the English text."""


def read_documents(files: Iterable[Path], complain: Complain, named: Columns = _BY_NAME) -> Iterator[tuple[Place, Doc]]:
    """Read the documents of the tables, in the order of the files. Raises BadInput if a column is missing."""
    for location, (doc_id, text, title, tag) in _values(files, DOCUMENT, complain, named):
        if (known := read_id(doc_id)) is None:
            complain(
                "id", location, f"the document id is {shorten(repr(doc_id))}; it must be a string that is {ID_RULE}"
            )
        elif not isinstance(text, str) or not isinstance(title, str | None):
            key = "text" if not isinstance(text, str) else "title"
            complain("field", location, f"document {known!r} has no {key} that is a string")
        elif (language := read_language(tag)) is None:
            complain("field", location, f"document {known!r} has {NO_LANGUAGE}")
        else:
            yield location, Doc(known, text, title or "", language)


def read_queries(files: Iterable[Path], complain: Complain, named: Columns = _BY_NAME) -> Iterator[tuple[Place, Query]]:
    """Read the queries of the tables; as read_documents."""
    for location, (query_id, text, tag) in _values(files, QUERY, complain, named):
        if (known := read_id(query_id)) is None:
            complain(
                "id", location, f"the query id is {shorten(repr(query_id))}; it must be a string that is {ID_RULE}"
            )
        elif not isinstance(text, str):
            complain("field", location, f"query {known!r} has no text that is a string")
        elif (language := read_language(tag)) is None:
            complain("field", location, f"query {known!r} has {NO_LANGUAGE}")
        else:
            yield location, Query(known, text, language)


def read_judgements(
    files: Iterable[Path], complain: Complain, named: Columns = _BY_NAME
) -> Iterator[tuple[Place, Judgement]]:
    """Read the judgements of the tables; a .tsv is read as any TREC qrels."""
    for file in files:
        if ".tsv" in file.suffixes and not named:
            with open_file(file) as lines:
                yield from trec.read_judgements(lines, str(file), complain)
            continue
        for location, (query_id, doc_id, grade) in _values([file], JUDGEMENT, complain, named):
            ids = read_id(query_id), read_id(doc_id)
            if ids[0] is None or ids[1] is None:
                complain("id", location, "the query id or the document id is empty or has a control character")
            elif (value := read_grade(grade)) is None:
                complain("grade", location, f"the grade {shorten(repr(grade), 40)} is not {trec.GRADE_BOUNDS}")
            else:
                yield location, Judgement(ids[0], ids[1], value)


def read_spans(files: Iterable[Path], complain: Complain) -> Iterator[tuple[Place, Span]]:
    """Read the spans in the columns of PosIR's queries; none where the tables lack these columns."""
    for location, (query_id, span, chars, tokens) in _values(files, SPAN, complain, _BY_NAME):
        known, ends = read_id(query_id), span if isinstance(span, list) else []
        if span is None and chars is None:
            continue
        if known is None or len(ends) != 2 or not all(map(_is_number, (*ends, chars, tokens))):
            complain("span", location, "the query has no span [start, end] with a length in characters and in tokens")
        elif not 0 <= ends[0] <= ends[1] <= chars:
            complain("span", location, f"query {known!r}: the span {ends} is not in a text of {chars:,} characters")
        else:
            yield location, Span(known, ends[0], ends[1], int(chars), int(tokens))


def read_records(
    files: Iterable[Path], columns: tuple[Column, ...], complain: Complain
) -> Iterator[tuple[Place, Record]]:
    """Read rows of the tables as column -> value, each table having the columns asked for."""
    for file in files:
        for location, _, record in _checked_rows(file, columns, complain, _BY_NAME):
            yield location, record


def describe_table(file: Path, named: Columns) -> str:
    """Describe the columns that hold documents, such as "id=sku,text=description"; "" for what is not a table."""
    if not file.is_file() or not file.name.endswith(READABLE):
        return ""
    rows = _checked_rows(file, DOCUMENT, refuse, named)
    return next((describe_columns(DOCUMENT, chosen) for _, chosen, _ in rows), "")


def _values(
    files: Iterable[Path], columns: tuple[Column, ...], complain: Complain, named: Columns
) -> Iterator[tuple[Place, list[Any]]]:
    for file in files:
        for location, chosen, record in _checked_rows(file, columns, complain, named):
            # An optional key that the first record of a JSONL lacks may be in later ones.
            values = (parts or column.names[:1] for parts, column in zip(chosen, columns, strict=True))
            yield location, [join_values(record, parts) for parts in values]


def _checked_rows(
    file: Path, columns: tuple[Column, ...], complain: Complain, named: Columns
) -> Iterator[tuple[Place, list[tuple[str, ...]], Record]]:
    named = {column.key: named[column.key] for column in columns if column.key in named}
    chosen: list[tuple[str, ...]] = []
    for location, record in _rows(file, columns, complain, named):
        chosen = chosen or choose_columns(str(file), columns, record, named)
        yield location, chosen, record


def _rows(
    file: Path, columns: tuple[Column, ...], complain: Complain, named: Columns
) -> Iterator[tuple[Place, Record]]:
    name = name_unpacked(file)
    if name.endswith((".parquet", ".arrow")):
        return _arrow_rows(file, columns, named)
    if name.endswith(".tsv"):
        return _tsv_rows(file, columns, complain, named)
    if name.endswith(".csv"):
        return _csv_rows(file, complain)
    return _json_rows(file, columns, complain, named)


def _json_rows(
    file: Path, columns: tuple[Column, ...], complain: Complain, named: Columns
) -> Iterator[tuple[Place, Record]]:
    keys = [name for column in columns for name in (*column.names, *named.get(column.key, ()))]
    with _open(file) as lines:
        for location, record in read_objects(lines, str(file), keys, complain):
            yield location, _take_original(record) if "topics" in record else record


def _take_original(record: dict[str, Any]) -> dict[str, Any]:
    """Take the original of a topic of NeuCLIR or HC4, which lists it with its translations."""
    topics = record["topics"] if isinstance(record["topics"], list) else []
    versions = [version for version in topics if isinstance(version, dict)]
    return {**record, **next((version for version in versions if version.get("source") == "original"), {})}


def _open(file: Path) -> AbstractContextManager[io.BufferedReader]:
    """Open the file's lines; of a zip, those of its one member."""
    if file.suffix != ".zip":
        return open_file(file)
    bundle = Zip(file)
    members = [name for name in bundle.names if name.endswith(".jsonl")]
    if len(members) != 1:
        raise BadInput(f"{file} holds {len(members)} .jsonl files; expected one.")
    return bundle.open(members[0])


def _tsv_rows(
    file: Path, columns: tuple[Column, ...], complain: Complain, named: Columns
) -> Iterator[tuple[Place, Record]]:
    """Read rows of a TSV with a header of known names, else of the required columns (MS MARCO: id and text)."""
    known = {name for column in columns for name in column.names}
    header = [column.names[0] for column in columns if not column.optional]
    with open_file(file) as lines:
        for number, line in enumerate(lines, 1):
            location = Place(str(file), number)
            if problem := not_utf8(location, line):
                complain(*problem)
                continue
            fields = line.decode().rstrip("\r\n").split("\t")
            if number == 1 and ({*fields} <= known or named or _is_header(fields, columns)):
                header = fields
            elif len(fields) != len(header):
                complain("columns", location, f"{len(fields)} columns; expected {len(header)} ({', '.join(header)})")
            else:
                yield location, dict(zip(header, fields, strict=True))


def _is_header(fields: list[str], columns: tuple[Column, ...]) -> bool:
    """Return whether the cells are names of columns, all that are needed and others."""
    try:
        return bool(choose_columns("", columns, fields, _BY_NAME))
    except BadInput:
        return False


def _csv_rows(file: Path, complain: Complain) -> Iterator[tuple[Place, Record]]:
    with open_file(file) as data, io.TextIOWrapper(data, encoding="utf-8", newline="") as text:
        # Spreadsheets write semicolons where a comma is the decimal sign.
        first = data.peek(_HEADER_BYTES)[:_HEADER_BYTES].partition(b"\n")[0]
        delimiter = max(",;\t", key=lambda char: first.count(char.encode()))
        rows = read_csv(text, delimiter)
        try:
            header = next(rows, [])
            for row in filter(None, rows):
                location = Place(str(file), rows.line_num)
                if len(row) == len(header):
                    yield location, dict(zip(header, row, strict=True))
                else:
                    complain("columns", location, f"the line does not have {len(header)} columns")
        except (csv.Error, UnicodeDecodeError) as error:
            raise BadInput(f"{file}:{rows.line_num}: not CSV in UTF-8 ({error}).") from error


def _arrow_rows(file: Path, columns: tuple[Column, ...], named: Columns) -> Iterator[tuple[Place, Record]]:
    with _rewording(file), _open_batches(file) as (present, read):
        number = 0
        chosen = choose_columns(str(file), columns, present, named)
        for batch in read(list(dict.fromkeys(name for parts in chosen for name in parts))):
            for record in batch.to_pylist():
                number += 1
                yield Place(str(file), within=f"row {number}"), record


@contextlib.contextmanager
def _open_batches(file: Path) -> Iterator[tuple[list[str], Callable[[list[str]], Iterator[Any]]]]:
    """Open the columns of a table, and what reads some of them in record batches.

    By pyarrow itself: the package datasets reads groups of rows ahead in threads that abort a process which ends
    early, and loads torch.
    """
    if file.suffix == ".arrow":
        pyarrow = require("pyarrow", f"Reading {file.name}", "hf")
        with pyarrow.memory_map(str(file)) as source, pyarrow.ipc.open_stream(source) as batches:
            yield batches.schema.names, lambda names: (batch.select(names) for batch in batches)
    else:
        parquet = require("pyarrow.parquet", f"Reading {file.name}", "hf")
        with parquet.ParquetFile(file) as table:
            yield (
                table.schema_arrow.names,
                lambda names: table.iter_batches(_BATCH_ROWS, columns=names, use_threads=False),
            )


@contextlib.contextmanager
def _rewording(file: Path) -> Iterator[None]:
    pyarrow = require("pyarrow", f"Reading {file.name}", "hf")
    try:
        yield
    except (pyarrow.ArrowException, UnicodeDecodeError, zipfile.BadZipFile) as error:
        reason = next(iter(str(error).splitlines()), "").rstrip(".")
        raise BadInput(f"{file}: cannot be read ({reason}); copy or download it again.") from error
    except OSError as error:
        raise BackendError(f"Cannot read {file}: {error.strerror or error}.") from error


def read_id(value: object) -> str | None:
    """Read the id that a cell holds; None for what cannot be one."""
    if isinstance(value, str):
        return value if value.strip() and not has_control(value) else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # A data frame makes floats of a column of integers where one is missing.
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def read_grade(value: object) -> int | None:
    """Read the grade that a cell holds; None for what is not an integer within the bounds."""
    if isinstance(value, str):
        return int(value) if _DIGITS.fullmatch(value) and int(value) in trec.GRADES else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value in trec.GRADES else None
