"""Sheets that people have filled in, read back with every mistake named by its place."""

from __future__ import annotations

import csv
import importlib
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rusbeir.audit.rubric import DIMENSIONS, SCALE
from rusbeir.datasets.files import open_file
from rusbeir.datasets.records import Place
from rusbeir.errors import BadInput, MissingExtra

_DELIMITERS = (",", ";", "\t")
_MAX_CELL_CHARS = 1 << 24


class Sheet(NamedTuple):
    """One rater's scores."""

    name: str
    path: Path
    scores: Mapping[str, Mapping[str, int]]
    """item id -> dimension -> score, those that were given."""


def read_sheet(path: str | Path, known: Iterable[str] | None = None) -> Sheet:
    """The scores of a .csv or .xlsx sheet. known are the ids that there are, where the caller knows them.

    Raises BadInput, with file and line, for a doubled or unknown item, for a score that is no integer from 1 to 5,
    and for a file that is no sheet.
    """
    path = Path(path)
    readers = {".csv": _csv_rows, ".tsv": _csv_rows, ".xlsx": _xlsx_rows}
    if path.suffix.lower() not in readers:
        raise BadInput(f"{path}: a sheet is a .csv or .xlsx file; the HTML page exports one.")
    rows = readers[path.suffix.lower()](path)
    _, header = next(rows, (1, []))
    columns = {str(name).strip().lower(): i for i, name in enumerate(header)}
    if missing := [name for name in ("item", *DIMENSIONS) if name not in columns]:
        raise BadInput(f"{path}: no column {missing[0]!r}; a sheet has item, {', '.join(DIMENSIONS)}.")
    ids = None if known is None else set(known)
    scores: dict[str, dict[str, int]] = {}
    for number, row in rows:
        if not any(str(cell).strip() for cell in row):
            continue
        place = Place(str(path), number)
        cells = {name: str(row[i]).strip() if i < len(row) else "" for name, i in columns.items()}
        item = cells["item"]
        if item in scores:
            raise BadInput(f"{place}: the item {item!r} stands a second time; leave one of the rows.")
        if ids is not None and item not in ids:
            raise BadInput(f"{place}: the item {item!r} belongs to no text of this sample; is it another port's sheet?")
        scores[item] = {name: _score(cells[name], name, place) for name in DIMENSIONS if cells[name]}
    if not any(scores.values()):
        raise BadInput(f"{path} holds no score.")
    return Sheet(path.stem, path, scores)


def _score(text: str, name: str, place: Place) -> int:
    # A spreadsheet may write 4 as 4.0.
    whole = text.removesuffix(".0")
    if whole not in {str(score) for score in SCALE}:
        raise BadInput(f"{place}: {name} is {text[:40]!r}; a score is an integer from {SCALE[0]} to {SCALE[-1]}.")
    return int(whole)


def _csv_rows(path: Path) -> Iterator[tuple[int, list[Any]]]:
    with open_file(path) as file:
        data = file.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 (byte {error.start + 1}); save it as CSV UTF-8, or as .xlsx.") from error
    head = text.partition("\n")[0]
    # What a spreadsheet parts columns by depends on its language.
    delimiter = max(_DELIMITERS, key=head.count)
    csv.field_size_limit(_MAX_CELL_CHARS)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            yield reader.line_num, list(row)
    except csv.Error as error:
        raise BadInput(f"{path}:{reader.line_num}: no CSV ({error}).") from error


def _xlsx_rows(path: Path) -> Iterator[tuple[int, list[Any]]]:
    try:
        openpyxl = importlib.import_module("openpyxl")
    except ImportError as error:
        raise MissingExtra("XLSX needs openpyxl: pip install 'rusbeir[audit]'") from error
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        for number, row in enumerate(book.active.iter_rows(values_only=True), 1):
            yield number, ["" if cell is None else cell for cell in row]
    except (OSError, ValueError, KeyError, AttributeError, zipfile.BadZipFile) as error:
        raise BadInput(f"{path} cannot be read as XLSX ({error}).") from error
