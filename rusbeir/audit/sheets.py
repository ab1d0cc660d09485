"""Sheets on which people score translations without knowing their origin: a CSV, an XLSX and an HTML file each."""

from __future__ import annotations

import csv
import hashlib
import importlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from rusbeir.audit.aligned import QA, open_port
from rusbeir.audit.judge import DIMENSIONS, SCALE, describe_dimensions
from rusbeir.audit.report import clean_text, template_environment
from rusbeir.audit.sampling import draw_sample
from rusbeir.datasets.formats.files import open_file
from rusbeir.datasets.formats.records import Place
from rusbeir.errors import BadInput, option, require
from rusbeir.languages import english_name
from rusbeir.storage import atomic_file
from rusbeir.text import shorten
from rusbeir.types import Progress, silent

FOLDER, KEY = "sheets", "key.json"
TEXTS = ("source", "translation")
COLUMNS = ("item", *TEXTS, *DIMENSIONS, "comments")
MAX_CHARS = 20_000
"""The longest text on a sheet, in characters; a cell of XLSX holds at most 32,767."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Line(NamedTuple):
    """One row of a sheet, without the scores."""

    item: str
    source: str
    translation: str


def make_sheets(
    folder: str | Path,
    *,
    n: int = 100,
    seed: int = 0,
    raters: int = 2,
    duplicates: int | None = None,
    source: str | Path | None = None,
    progress: Progress = silent,
) -> list[Path]:
    """Write qa/sheets/rater-1.csv, .xlsx and .html, the same for each rater, and return the paths.

    All raters get the same texts in different orders. Some texts (a tenth, where duplicates is None) are repeated
    under another id in the second half, to show how far raters agree with themselves. The sheets do not contain scores
    or flags; qa/sheets/key.json does. Raises BadInput for a port that has not been checked, and where the folder
    contains sheets of another sample.
    """
    port = open_port(folder, source=source, progress=progress)
    if raters < 1:
        raise BadInput(f"{option('raters', raters)} is too small. Give at least 1.")
    items = draw_sample(port, n, seed)
    n_twice = len(items) // 10 if duplicates is None else duplicates
    if not 0 <= n_twice <= len(items):
        raise BadInput(
            f"{option('duplicates', n_twice)} is not possible. Give 0 to {len(items)}, the number of texts "
            f"in the sample."
        )
    twice = {item.item_id: _digest(seed, "again", item.item_id) for item in items[:n_twice]}
    key: dict[str, Any] = {
        "port": port.dataset.card.name,
        "fingerprint": port.dataset.fingerprint,
        "seed": seed,
        "items": {
            item.item_id: {"kind": item.kind, "id": item.record_id, "weight": item.weight, **item.stratum._asdict()}
            for item in items
        },
        "duplicates": {again: first for first, again in twice.items()},
    }
    home = port.folder / QA / FOLDER
    data = orjson.dumps(key, option=orjson.OPT_INDENT_2) + b"\n"
    if (home / KEY).exists() and (home / KEY).read_bytes() != data:
        raise BadInput(
            f"{home} contains the sheets of another sample. Move the folder away, so that no scores are lost."
        )
    with atomic_file(home / KEY) as file:
        file.write(data)
    paths = []
    for rater in range(1, raters + 1):
        name = f"rater-{rater}"
        first = sorted(
            (Line(item.item_id, item.source, item.translation) for item in items),
            key=lambda line: _digest(seed, name, line.item),
        )
        again = [line._replace(item=twice[line.item]) for line in first if line.item in twice]
        lines = [
            Line(line.item, *(clean_text(text, MAX_CHARS) for text in line[1:]))
            for line in _insert_repeats(first, again)
        ]
        for ending, made in (("csv", _format_csv), ("xlsx", _format_xlsx), ("html", _format_html)):
            path = home / f"{name}.{ending}"
            if path.exists():
                # A rater may have filled it in.
                continue
            with atomic_file(path) as file:
                file.write(made(lines, name, port.languages, key["fingerprint"]))
            paths.append(path)
    return paths


def _insert_repeats(first: Sequence[Line], again: Sequence[Line]) -> list[Line]:
    """The lines, with the repeated ones spread over the second half."""
    lines = list(first)
    middle = len(lines) // 2
    for n, line in enumerate(again):
        lines.insert(middle + 1 + round((n + 1) * (len(first) - middle) / (len(again) + 1)) + n, line)
    return lines


def _format_csv(lines: Sequence[Line], name: str, languages: tuple[str, str], fingerprint: str) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows([[line.item, *map(_escape_formula, line[1:]), *[""] * 5] for line in lines])
    # Excel needs a byte order mark to recognise UTF-8.
    return text.getvalue().encode("utf-8-sig")


def _escape_formula(text: str) -> str:
    """The text in a form that a spreadsheet shows and does not compute."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _format_xlsx(lines: Sequence[Line], name: str, languages: tuple[str, str], fingerprint: str) -> bytes:
    openpyxl = require("openpyxl", "XLSX", "audit")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = name
    sheet.append(COLUMNS)
    styles = importlib.import_module("openpyxl.styles")
    for cell in sheet[1]:
        cell.font = styles.Font(bold=True)
    for number, line in enumerate(lines, 2):
        for place, text in enumerate(line, 1):
            cell = sheet.cell(row=number, column=place, value=text)
            # Without this, a text that begins with = would be a formula.
            cell.data_type = "s"
            cell.alignment = styles.Alignment(wrap_text=True, vertical="top")
    scores = importlib.import_module("openpyxl.worksheet.datavalidation").DataValidation(
        type="whole",
        operator="between",
        formula1=str(SCALE[0]),
        formula2=str(SCALE[-1]),
        allow_blank=True,
    )
    sheet.add_data_validation(scores)
    scores.add(f"D2:G{len(lines) + 1}")
    for column, width in zip("ABCDEFGH", (14, 60, 60, 10, 10, 14, 18, 40), strict=True):
        sheet.column_dimensions[column].width = width
    sheet.freeze_panes = "B2"
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def _format_html(lines: Sequence[Line], name: str, languages: tuple[str, str], fingerprint: str) -> bytes:
    # Inside a script element no text may look like a tag or a comment.
    data = orjson.dumps([line._asdict() for line in lines]).decode()
    for char in "<>&\u2028\u2029":
        data = data.replace(char, f"\\u{ord(char):04x}")
    page: str = (
        template_environment()
        .get_template("sheet.html.j2")
        .render(
            data=data,
            name=name,
            fingerprint=fingerprint[:16],
            languages=[english_name(language) for language in languages],
            dimensions=describe_dimensions(),
            scale=SCALE,
            columns=COLUMNS,
        )
    )
    return page.encode()


def _digest(seed: int, *parts: str) -> str:
    return hashlib.sha256("\0".join([str(seed), *parts]).encode()).hexdigest()[:12]


_DELIMITERS = (",", ";", "\t")
_MAX_CELL_CHARS = 1 << 24


class Sheet(NamedTuple):
    """One rater's scores."""

    name: str
    path: Path
    scores: Mapping[str, Mapping[str, int]]
    """item id -> dimension -> score, without those left blank."""


def read_sheet(path: str | Path, known: Iterable[str] | None = None) -> Sheet:
    """The scores on a .csv or .xlsx sheet. known are the ids of all items, where the caller knows them.

    Raises BadInput, with file and line, for a repeated or unknown item and for a score that is not an integer from 1
    to 5, and for a file that is not a sheet.
    """
    path = Path(path)
    readers = {".csv": _read_csv, ".tsv": _read_csv, ".xlsx": _read_xlsx}
    if path.suffix.lower() not in readers:
        raise BadInput(f"{path} is not a .csv or .xlsx file. Give a filled sheet; from the HTML page, export one.")
    rows = readers[path.suffix.lower()](path)
    _, header = next(rows, (1, []))
    columns = {str(name).strip().lower(): i for i, name in enumerate(header)}
    if missing := [name for name in ("item", *DIMENSIONS) if name not in columns]:
        raise BadInput(f"{path} has no column {missing[0]!r}. A sheet has the columns item, {', '.join(DIMENSIONS)}.")
    ids = None if known is None else set(known)
    scores: dict[str, dict[str, int]] = {}
    for number, row in rows:
        if not any(str(cell).strip() for cell in row):
            continue
        place = Place(str(path), number)
        cells = {name: str(row[i]).strip() if i < len(row) else "" for name, i in columns.items()}
        item = cells["item"]
        if item in scores:
            raise BadInput(f"{place}: the item {item!r} occurs a second time. Delete one of the two rows.")
        if ids is not None and item not in ids:
            raise BadInput(f"{place}: the item {item!r} is not in this sample. Give the sheets of this port.")
        scores[item] = {name: _parse_score(cells[name], name, place) for name in DIMENSIONS if cells[name]}
    if not any(scores.values()):
        raise BadInput(f"{path} contains no scores.")
    return Sheet(path.stem, path, scores)


def _parse_score(text: str, name: str, place: Place) -> int:
    # A spreadsheet may write 4 as 4.0.
    whole = text.removesuffix(".0")
    if whole not in {str(score) for score in SCALE}:
        raise BadInput(f"{place}: {name} is {text[:40]!r}. A score is an integer from {SCALE[0]} to {SCALE[-1]}.")
    return int(whole)


def _read_csv(path: Path) -> Iterator[tuple[int, list[Any]]]:
    with open_file(path) as file:
        data = file.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 (byte {error.start + 1}). Save it as CSV UTF-8 or as .xlsx.") from error
    head = text.partition("\n")[0]
    # Spreadsheets separate columns by a character that depends on their language.
    delimiter = max(_DELIMITERS, key=head.count)
    csv.field_size_limit(_MAX_CELL_CHARS)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            yield reader.line_num, list(row)
    except csv.Error as error:
        raise BadInput(f"{path}:{reader.line_num}: not valid CSV ({error}).") from error


def _read_xlsx(path: Path) -> Iterator[tuple[int, list[Any]]]:
    openpyxl = require("openpyxl", "XLSX", "audit")
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        for number, row in enumerate(book.active.iter_rows(values_only=True), 1):
            yield number, ["" if cell is None else cell for cell in row]
    except Exception as error:  # whatever openpyxl and its parsers of XML raise for a broken file
        reason = shorten(str(error)) or type(error).__name__
        raise BadInput(f"{path} cannot be read as XLSX ({reason}). Save it again, or as CSV UTF-8.") from error
