"""The files of a sheet, on which people answer questions about pairs of texts: CSV, XLSX and HTML, written and read."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rusbeir.audit import clean_text, template_environment
from rusbeir.datasets import Place, open_file
from rusbeir.errors import BadInput, require
from rusbeir.storage import atomic_file
from rusbeir.text import read_csv, shorten

MAX_CHARS = 20_000
"""The longest text on a sheet, in characters; a cell of XLSX holds at most 32,767."""
_MAX_PROMPT_CHARS = 255
"""The longest prompt of a cell that XLSX takes."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, kw_only=True)
class Form:
    """The columns of a sheet."""

    texts: tuple[str, str]
    questions: tuple[str, ...]
    scale: tuple[int, ...]
    """The answers to each question: consecutive integers."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, in their order."""
        return "item", *self.texts, *self.questions, "comments"


class Guide(NamedTuple):
    """The instructions on a sheet."""

    title: str
    instructions: str
    headings: tuple[str, str]
    """The headings above the two texts."""
    questions: Mapping[str, str]
    """Each question of the form in one sentence."""
    scale: Mapping[int, str]
    """What each answer means."""


class Line(NamedTuple):
    """One row of a sheet, without the answers."""

    item: str
    first: str
    second: str


def write_sheet(path: Path, lines: Sequence[Line], form: Form, guide: Guide, fingerprint: str) -> list[Path]:
    """Write <path>.csv, .xlsx and .html and return their paths, without those that exist: they may be filled in.

    A browser keeps the answers of pages with different fingerprints apart.
    """
    lines = [Line(line.item, *(clean_text(text, MAX_CHARS) for text in line[1:])) for line in lines]
    name = path.name
    made: dict[str, Callable[[], bytes]] = {
        "csv": lambda: _format_csv(lines, form),
        "xlsx": lambda: _format_xlsx(lines, form, guide, name),
        "html": lambda: _format_html(lines, form, guide, name, fingerprint),
    }
    paths = []
    for ending, make in made.items():
        if not (whole := path.with_name(f"{name}.{ending}")).exists():
            with atomic_file(whole) as file:
                file.write(make())
            paths.append(whole)
    return paths


def _format_csv(lines: Sequence[Line], form: Form) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(form.columns)
    writer.writerows(
        [[line.item, *map(_escape_formula, line[1:]), *[""] * (len(form.questions) + 1)] for line in lines]
    )
    # Excel needs a byte order mark to recognise UTF-8.
    return text.getvalue().encode("utf-8-sig")


def _escape_formula(text: str) -> str:
    """The text in a form that a spreadsheet shows and does not compute."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _format_xlsx(lines: Sequence[Line], form: Form, guide: Guide, name: str) -> bytes:
    openpyxl = require("openpyxl", "XLSX", "audit")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = name
    sheet.append(form.columns)
    styles = importlib.import_module("openpyxl.styles")
    for cell in sheet[1]:
        cell.font = styles.Font(bold=True)
    for number, line in enumerate(lines, 2):
        for column, text in enumerate(line, 1):
            cell = sheet.cell(row=number, column=column, value=text)
            # Without this, a text that begins with = would be a formula.
            cell.data_type = "s"
            cell.alignment = styles.Alignment(wrap_text=True, vertical="top")
    meanings = "; ".join(f"{answer}: {meaning}" for answer, meaning in guide.scale.items())
    answers = importlib.import_module("openpyxl.worksheet.datavalidation").DataValidation(
        type="whole",
        operator="between",
        formula1=str(form.scale[0]),
        formula2=str(form.scale[-1]),
        allow_blank=True,
        showInputMessage=True,
        prompt=shorten(meanings, _MAX_PROMPT_CHARS),
    )
    sheet.add_data_validation(answers)
    letters = [cell.column_letter for cell in sheet[1]]
    answers.add(f"{letters[3]}2:{letters[-2]}{len(lines) + 1}")
    for letter, width in zip(letters, (14, 60, 60, *(max(10, len(name)) for name in form.questions), 40), strict=True):
        sheet.column_dimensions[letter].width = width
    sheet.freeze_panes = "B2"
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def _format_html(lines: Sequence[Line], form: Form, guide: Guide, name: str, fingerprint: str) -> bytes:
    rows = [dict(zip(form.columns, line, strict=False)) for line in lines]
    template = template_environment().get_template("sheet.html.j2")
    page: str = template.render(rows=rows, name=name, fingerprint=fingerprint[:16], form=form, guide=guide)
    return page.encode()


ENDINGS = (".csv", ".tsv", ".xlsx")
"""The endings of sheets that can be read."""
_DELIMITERS = (",", ";", "\t")


class Sheet(NamedTuple):
    """One rater's answers."""

    name: str
    path: Path
    form: Form
    scores: Mapping[str, Mapping[str, int]]
    """item id -> question -> answer, without those left blank."""


def read_sheet(
    path: str | Path, forms: Sequence[Form], known: Iterable[str] | None = None, *, blank: bool = False
) -> Sheet:
    """The answers on a .csv or .xlsx sheet. known are the ids of all items, where the caller knows them.

    Its form is the first that has one of its questions, else the first of all. Raises BadInput, with file and line, for
    a repeated or unknown item and for an answer that is not on the scale, for a file that is not a sheet, and, unless
    blank, for one without an answer.
    """
    path = Path(path)
    sheet = _read(path, forms, known)
    if not (blank or any(sheet.scores.values())):
        raise BadInput(f"{path} contains no scores.")
    return sheet


def _read(path: Path, forms: Sequence[Form], known: Iterable[str] | None) -> Sheet:
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise BadInput(f"{path} is not a .csv or .xlsx file. Give a filled sheet; from the HTML page, export one.")
    rows = _read_xlsx(path) if ending == ".xlsx" else _read_csv(path)
    _, header = next(rows, (1, []))
    columns = {str(name).strip().lower(): i for i, name in enumerate(header)}
    form = next((form for form in forms if not columns.keys().isdisjoint(form.questions)), forms[0])
    needed = ("item", *form.questions)
    if missing := [name for name in needed if name not in columns]:
        raise BadInput(f"{path} has no column {missing[0]!r}. A sheet has the columns {', '.join(needed)}.")
    ids = None if known is None else set(known)
    scores: dict[str, dict[str, int]] = {}
    for number, row in rows:
        if not any(str(cell).strip() for cell in row):
            continue
        position = Place(str(path), number)
        cells = {name: str(row[i]).strip() if i < len(row) else "" for name, i in columns.items()}
        item = cells["item"]
        if item in scores:
            raise BadInput(f"{position}: the item {item!r} occurs a second time. Delete one of the two rows.")
        if ids is not None and item not in ids:
            raise BadInput(f"{position}: the item {item!r} is not in this sample. Give the sheets of this folder.")
        scores[item] = {
            name: _parse_answer(cells[name], name, form, position) for name in form.questions if cells[name]
        }
    return Sheet(path.stem, path, form, scores)


def _parse_answer(text: str, name: str, form: Form, position: Place) -> int:
    # A spreadsheet may write 4 as 4.0.
    whole = text.removesuffix(".0")
    if whole not in {str(answer) for answer in form.scale}:
        low, high = form.scale[0], form.scale[-1]
        raise BadInput(f"{position}: {name} is {text[:40]!r}. It must be an integer from {low} to {high}.")
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
    reader = read_csv(io.StringIO(text, newline=""), delimiter)
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
