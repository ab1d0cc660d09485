"""Read qrels and runs: TREC, BEIR's tsv and BEIR's JSON, recognised by content; gz by name.

A line of TREC's formats that begins with # is a comment, as it is for trec_eval 10. In BEIR's tsv, which is CSV, it may
begin an id, and a cell may be in quotes.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from rusbeir.datasets.formats.files import name_unpacked, open_file
from rusbeir.datasets.formats.records import Complain, Judgement, Place, collect, not_utf8, parse_json, refuse, repeated
from rusbeir.errors import BadInput
from rusbeir.notebook import ShownRun
from rusbeir.text import has_control, shorten
from rusbeir.types import MAX_GRADE

_V = TypeVar("_V", int, float)

_HEADER = {b"queryid", b"qid", b"query", b"topic", b"topicid"}
_CSV_COLUMNS = (
    {"query", "query_id", "query-id", "qid", "topic"},
    {"document", "doc", "doc_id", "docid", "docno", "corpus-id", "document_id"},
    {"score", "sim", "similarity"},
)
"""What the columns of a run in CSV may be called: query, document, score."""
_MAX_DIGITS = 20
_CONTROL_BYTES = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")
GRADES = range(-MAX_GRADE, MAX_GRADE + 1)
GRADE_BOUNDS = f"an integer from -{MAX_GRADE:,} to {MAX_GRADE:,}"
_JSON_START = re.compile(rb'\s*\{\s*["}]')


def read_qrels(path: str | Path) -> dict[str, dict[str, int]]:
    """Read judgements from a file.

    Args:
        path: TREC's qrels (query, 0, document, grade), BEIR's tsv (query, document, grade; with or without a header),
            or a JSON object of objects; .gz and .zst, too. The content decides, not the name.

    Returns:
        query_id -> {doc_id: grade}, in file order.

    Raises:
        BadInput: With file and line, for another number of columns, a grade that is not an integer from -1,000 to
            1,000, and a repeated pair.

    Examples:
        >>> read_qrels("qrels/test.tsv")["1"]  # doctest: +SKIP
        {'31715818': 1}
    """
    with open_file(Path(path)) as file:
        if _holds_json(file):
            return _read_json(file.read(), str(path), _json_grade)
        qrels = collect(read_judgements(file, str(path), refuse))
    if not qrels:
        raise BadInput(f"{path} has no judgement; a line of qrels is 'query 0 document 1'.")
    return qrels


def read_run(path: str | Path, *, check_ranks: bool = False) -> dict[str, dict[str, float]]:
    """Read a run from a file.

    Args:
        path: TREC's format (query, Q0, document, rank, score, tag; ranks are ignored, as trec_eval does), BEIR's JSON,
            a result file of AIR-Bench, or CSV with the columns query, document and score, under their names or in this
            order; .gz and .zst, too.
        check_ranks: Whether TREC's ranks that contradict the scores are refused.

    Returns:
        query_id -> {doc_id: score}, in file order. Queries that the file leaves out are left out. A notebook shows it
        as a table.

    Raises:
        BadInput: With file and line, for another number of columns, a score that is not a finite number, and a
            repeated pair.

    Examples:
        >>> read_run("bm25.run.gz")["1"]  # doctest: +SKIP
        {'31715818': 12.25, '10786948': 7.5}
    """
    with open_file(Path(path)) as file:
        if _holds_json(file):
            return ShownRun(_read_json(file.read(), str(path), _json_score))
        if name_unpacked(Path(path)).endswith(".csv"):
            return ShownRun(_read_csv_run(file, str(path)))
        return ShownRun(_read_trec_run(file, str(path), check_ranks=check_ranks))


def read_tag(path: str | Path) -> str:
    """Read the tag in the first line of a TREC run; "" for a run in another format."""
    with open_file(Path(path)) as file:
        if not _holds_json(file):
            for line in file:
                if len(fields := line.split()) == 6 and not line.startswith(b"#"):
                    return fields[5].decode("utf-8", "replace")
    return ""


def read_judgements(lines: Iterable[bytes], file: str, complain: Complain) -> Iterator[tuple[Place, Judgement]]:
    """Read the lines of TREC qrels or BEIR's tsv in file order; repeated pairs are yielded, too."""
    separator: bytes | None = None
    columns = 0
    """The number of columns of the first line that has three or four; 0 until then."""
    for number, line in enumerate(lines, 1):
        if line.isspace() or (line.startswith(b"#") and _is_comment(line, separator, columns)):
            continue
        location = Place(file, number)
        fields = line.strip(b"\r\n").split(separator)
        if is_first := not columns:
            # A tab if that gives three or four columns, else any white space.
            shapes = ((delimiter, len(line.strip(b"\r\n").split(delimiter))) for delimiter in (b"\t", None))
            separator, columns = next((shape for shape in shapes if shape[1] in (3, 4)), (None, 0))
            fields = line.strip(b"\r\n").split(separator)
        if separator and columns == 3 and b'"' in line:
            fields = [_unquote(field) for field in fields]
        field = fields[-1].strip()
        digits = field.removeprefix(b"-")
        grade = int(field) if digits.isdigit() and len(digits) <= _MAX_DIGITS and int(field) in GRADES else None
        if is_first and columns and grade is None and fields[0].strip().lower().translate(None, b"-_ ") in _HEADER:
            continue
        if len(fields) != columns:
            complain("columns", location, _wrong_columns(len(fields), columns))
        elif grade is None:
            complain("grade", location, f"the grade {_quote(fields[-1])} is not {GRADE_BOUNDS}")
        elif not fields[0] or not fields[-2]:
            complain("id", location, "the query id or the document id is empty")
        else:
            try:
                judgement = Judgement(fields[0].decode(), fields[-2].decode(), grade)
            except UnicodeDecodeError:
                complain(*(not_utf8(location, line) or ("utf-8", location, "the line is not UTF-8")))
                continue
            if any(map(has_control, judgement[:2])):
                complain("id", location, _control_problem(*judgement[:2]))
            else:
                yield location, judgement


def _is_comment(line: bytes, separator: bytes | None, columns: int) -> bool:
    """Return whether a line with # is a comment; in a tsv of three columns an id may begin so."""
    if columns:
        return separator is None or columns != 3
    *_, grade = fields = line.strip(b"\r\n").split(b"\t")
    return len(fields) != 3 or not grade.strip().removeprefix(b"-").isdigit()


def _unquote(cell: bytes) -> bytes:
    """Read a CSV cell: without its quotes, if it is in quotes and those within are doubled."""
    inner = cell[1:-1].replace(b'""', b"")
    quoted = len(cell) > 1 and cell.startswith(b'"') and cell.endswith(b'"') and b'"' not in inner
    return cell[1:-1].replace(b'""', b'"') if quoted else cell


def _wrong_columns(n_columns: int, columns: int) -> str:
    if columns:
        return f"{n_columns} columns, but the file's first line has {columns}"
    return f"{n_columns} columns; qrels have four (query 0 document grade) or three (query document grade)"


def _read_trec_run(lines: Iterable[bytes], file: str, *, check_ranks: bool) -> dict[str, dict[str, float]]:
    ranks: dict[str, list[tuple[int, float, int]]] = {}
    """query_id -> the rank, the negative score and the line of each hit."""
    run: dict[str, dict[str, float]] = {}
    docs: dict[str, float] = {}
    current: bytes | None = None
    for number, line in enumerate(lines, 1):
        try:
            query, _, doc, rank, text, _ = line.split()
            if query != current and query.startswith(b"#"):
                continue
            score = float(text)
            doc_id = doc.decode()
            if query != current:
                docs = run.setdefault(query.decode(), {})
                current = query
        except ValueError as error:
            if line.isspace() or line.startswith(b"#"):
                continue
            raise _bad_run_line(Place(file, number), line) from error
        if not math.isfinite(score):
            raise _bad_run_line(Place(file, number), line)
        if _CONTROL_BYTES.search(line) and (problem := _control_problem(query.decode(), doc_id)):
            refuse("id", Place(file, number), problem)
        if doc_id in docs:
            raise repeated(Place(file, number), query.decode(), doc_id)
        docs[doc_id] = score
        if check_ranks and rank.isdigit() and len(rank) <= _MAX_DIGITS:
            ranks.setdefault(query.decode(), []).append((int(rank), -score, number))
    for query_id, hits in ranks.items():
        _check_ranks(query_id, hits, file)
    return run


def _check_ranks(query_id: str, hits: list[tuple[int, float, int]], file: str) -> None:
    """Raise BadInput where a hit has a higher score than one of a better rank. Equal ranks say nothing."""
    hits.sort()
    for (better, better_score, _), (rank, score, number) in pairwise(hits):
        if rank > better and score < better_score:
            raise BadInput(
                f"{Place(file, number)}: query {query_id!r} has at rank {rank} the score {-score:g}, which is higher "
                f"than {-better_score:g} at rank {better}. Hits are sorted by score: correct the ranks, or write 0."
            )


def _read_csv_run(file: io.BufferedReader, name: str) -> dict[str, dict[str, float]]:
    """Read a run from CSV, whose first line may name the columns in any order and have others besides."""
    run: dict[str, dict[str, float]] = {}
    columns = [0, 1, 2]
    try:
        lines = codecs.iterdecode(file, "utf-8-sig")
        for number, cells in enumerate(csv.reader(lines, strict=True), 1):
            where = Place(name, number)
            if number == 1 and (named := _find_columns(cells)):
                columns = named
                continue
            if not cells:
                continue
            if len(cells) <= max(columns):
                raise BadInput(f"{where}: {len(cells)} columns; a run has three (query, document, score).")
            query_id, doc_id, text = (cells[column] for column in columns)
            try:
                score = float(text)
            except ValueError:
                score = math.nan
            if not math.isfinite(score):
                raise BadInput(f"{where}: the score {shorten(repr(text))} is not a finite number.")
            if problem := _control_problem(query_id, doc_id):
                refuse("id", where, problem)
            if doc_id in run.setdefault(query_id, {}):
                raise repeated(where, query_id, doc_id)
            run[query_id][doc_id] = score
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadInput(f"{name} is not CSV in UTF-8: {error}.") from error
    return run


def _find_columns(cells: Sequence[str]) -> list[int] | None:
    """Find the indexes of query, document and score in a line of column names; None for a line of values."""
    names = [cell.strip().lower() for cell in cells]
    indexes = [index for known in _CSV_COLUMNS for index, name in enumerate(names) if name in known]
    return indexes if len(indexes) == len(_CSV_COLUMNS) else None


def _bad_run_line(location: Place, line: bytes) -> BadInput:
    fields = line.split()
    if problem := not_utf8(location, line):
        return BadInput(f"{location}: {problem[2]}.")
    if len(fields) != 6:
        return BadInput(f"{location}: {len(fields)} columns; a run has six (query Q0 document rank score tag).")
    return BadInput(f"{location}: the score {_quote(fields[4])} is not a finite number.")


def _control_problem(*ids: str) -> str:
    """Say which of the ids has a control character; "" if none has."""
    bad = next((record_id for record_id in ids if has_control(record_id)), None)
    return "" if bad is None else f"the id {shorten(repr(bad))} has a control character"


def _quote(field: bytes) -> str:
    return repr(field.decode(errors="backslashreplace")[:40])


def _holds_json(file: io.BufferedReader) -> bool:
    return _JSON_START.match(file.peek(1024)) is not None


def _read_json(data: bytes, file: str, value_of: Callable[[Any], _V | None]) -> dict[str, dict[str, _V]]:
    # orjson is strict (UTF-8, finite numbers, depth); json shows repeated keys.
    parse_json(data, file, strict=True)
    try:
        table = json.loads(data, object_pairs_hook=_unique)
    except ValueError as error:
        raise BadInput(f"{file}: {error}.") from error
    if "benchmark_version" in table and "search_results" in table:
        table = table["search_results"]  # a result file of AIR-Bench
        if not isinstance(table, dict):
            raise BadInput(f'{file}: "search_results" must be an object of queries.')
    result: dict[str, dict[str, _V]] = {}
    for query_id, docs in table.items():
        if not isinstance(docs, dict):
            raise BadInput(f"{file}: query {query_id!r} must have an object of documents.")
        if problem := _control_problem(query_id, *docs):
            raise BadInput(f"{file}: {problem}.")
        result[query_id] = {}
        for doc_id, raw in docs.items():
            value = value_of(raw)
            if value is None:
                raise BadInput(
                    f"{file}: query {query_id!r}, document {doc_id!r}: {shorten(repr(raw))} is not a usable number."
                )
            result[query_id][doc_id] = value
    return result


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        repeated = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise ValueError(f"the key {repeated!r} is repeated in one object")
    return table


def _json_grade(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value in GRADES else None


def _json_score(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
