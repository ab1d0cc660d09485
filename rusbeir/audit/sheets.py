"""Sheets on which people score translations, without knowing whose they are: CSV, XLSX and one HTML page each."""

from __future__ import annotations

import csv
import hashlib
import importlib
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from rusbeir.audit.aligned import QA, open_port
from rusbeir.audit.judge import DIMENSIONS, SCALE, describe_dimensions
from rusbeir.audit.report import clean_text, template_environment
from rusbeir.audit.sampling import draw
from rusbeir.datasets.formats.files import open_file
from rusbeir.datasets.formats.records import Place
from rusbeir.errors import BadInput, MissingExtra
from rusbeir.storage import atomic_file
from rusbeir.translation.languages import english_name
from rusbeir.types import Progress, silent

FOLDER, KEY = "sheets", "key.json"
TEXTS = ("source", "translation")
COLUMNS = ("item", *TEXTS, *DIMENSIONS, "comments")
MAX_CHARS = 20_000
"""Of a text on a sheet; a cell of XLSX holds 32,767."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Line(NamedTuple):
    """What stands in one row of a sheet."""

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
    """Write qa/sheets/rater-1.csv, .xlsx and .html and so on, and give back their paths.

    All raters have the same texts, each in an order of their own. Some (a tenth, where duplicates is None) come
    twice under another id, in the second half: they show how far a rater agrees with themself. The sheets tell
    nothing of scores and flags; qa/sheets/key.json does. Raises BadInput where the port was not checked, and where
    sheets of another sample lie there already.
    """
    port = open_port(folder, source=source, progress=progress)
    if raters < 1:
        raise BadInput(f"--raters {raters}: there must be at least 1.")
    items = draw(port, n, seed)
    n_twice = len(items) // 10 if duplicates is None else duplicates
    if not 0 <= n_twice <= len(items):
        raise BadInput(f"--duplicates {n_twice}: give 0 to {len(items)}, the texts of the sample.")
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
        raise BadInput(f"{home} holds the sheets of another sample: move it away, so that no scores are lost.")
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
        lines = [Line(line.item, *(clean_text(text, MAX_CHARS) for text in line[1:])) for line in _behind(first, again)]
        for ending, made in (("csv", _csv), ("xlsx", _xlsx), ("html", _html)):
            path = home / f"{name}.{ending}"
            if path.exists():
                # Somebody may have filled it in.
                continue
            with atomic_file(path) as file:
                file.write(made(lines, name, port.languages, key["fingerprint"]))
            paths.append(path)
    return paths


def _behind(first: Sequence[Line], again: Sequence[Line]) -> list[Line]:
    """The lines, with those that come again spread over the second half."""
    lines = list(first)
    middle = len(lines) // 2
    for n, line in enumerate(again):
        lines.insert(middle + 1 + round((n + 1) * (len(first) - middle) / (len(again) + 1)) + n, line)
    return lines


def _csv(lines: Sequence[Line], name: str, languages: tuple[str, str], fingerprint: str) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows([[line.item, *map(_harmless, line[1:]), *[""] * 5] for line in lines])
    # With a byte order mark, without which Excel takes UTF-8 for something else.
    return text.getvalue().encode("utf-8-sig")


def _harmless(text: str) -> str:
    """The text as a spreadsheet shows it and does not calculate it."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _xlsx(lines: Sequence[Line], name: str, languages: tuple[str, str], fingerprint: str) -> bytes:
    openpyxl = _openpyxl()
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
            # A text that begins with = is a text.
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


def _html(lines: Sequence[Line], name: str, languages: tuple[str, str], fingerprint: str) -> bytes:
    # In a script no text may look like a tag or a comment.
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


def _openpyxl() -> Any:
    try:
        return importlib.import_module("openpyxl")
    except ImportError as error:
        raise MissingExtra("XLSX needs openpyxl: pip install 'rusbeir[audit]'") from error


def _digest(seed: int, *parts: str) -> str:
    return hashlib.sha256("\0".join([str(seed), *parts]).encode()).hexdigest()[:12]


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
