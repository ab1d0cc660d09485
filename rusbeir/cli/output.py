"""Printing for every verb: results to stdout, everything else to stderr, colours only on a terminal."""

from __future__ import annotations

import contextlib
import math
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from rusbeir.notebook import report_lines
from rusbeir.types import Progress, silent

DEFAULT_COLUMNS = 160
"""The width of a table off a terminal, where COLUMNS is not set."""
MIN_SHORTENED = 20
"""Columns are left out rather than names made shorter than this."""
MIN_FOLDED = 24
"""Words are not broken in columns of text, unless they are longer."""
MIN_CELL = 8
_NOT_IN_JSON = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def escape(text: str, *, keep: str = "\n") -> str:
    """The text with escapes such as \\x1b in place of what a terminal would obey, or cannot show.

    Ids, names and texts come from files of strangers. keep are characters that are left as they are.

    >>> escape("a\\x1b[2J")
    'a\\\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else ascii(char)[1:-1] for char in text)


quiet = False
"""Whether --quiet is given: no progress and no notes."""


def print_json(document: Any) -> None:
    """Print one JSON document on stdout."""
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    # JSON itself escapes the rest.
    sys.stdout.write(_NOT_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")


def echo(line: object) -> None:
    """Print one line of a result on stdout."""
    sys.stdout.write(escape(str(line)) + "\n")


def note(message: str) -> None:
    """Print one line for a person on stderr; with --quiet only what begins with "rusbeir:", such as an error."""
    if quiet and not message.startswith("rusbeir:"):
        return
    sys.stderr.write(escape(message) + "\n")
    sys.stderr.flush()


def note_estimates(rows: Sequence[Mapping[str, Any]], *, of_verb: bool = False) -> None:
    """Say what estimates assume, and which options they lack, which may be those of the verb itself."""
    from rusbeir.jobs import ask_for_prices

    for line in dict.fromkeys(row["assumption"] for row in rows if row["assumption"]):
        note(line)
    for missing in dict.fromkeys(tuple(row["missing_options"]) for row in rows if row["missing_options"]):
        note(f"The price is not known: {ask_for_prices(missing, of_verb=of_verb)}.")
    for row in rows:
        ways = {"in batches": row.get("batch_cost"), "with the prompt in the provider's cache": row.get("cached_cost")}
        if not row["missing_options"] and any(cost is not None for cost in ways.values()):
            others = (f", {cost:,.4f} {way}" for way, cost in ways.items() if cost is not None)
            note(f"{row['cost']:,.4f} USD one by one{''.join(others)}.")
    note("Nothing was sent.")


def print_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    shortened: Sequence[str] = (),
    optional: Sequence[str] = (),
) -> None:
    """Print a table on stdout, as wide as the terminal, COLUMNS or 160 characters.

    The first column and those of `right`, which are right-aligned, are never broken. To make them fit, columns of
    `optional` are left out in this order, then cells of `shortened` lose their middle; other columns fold.
    """
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table

    rows = [[escape(cell) for cell in row] for row in rows]
    # Two words above numbers are two lines.
    columns = [
        [name.replace(" ", "\n") if name in right else name, *(row[column] for row in rows)]
        for column, name in enumerate(header)
    ]
    total = shutil.get_terminal_size((DEFAULT_COLUMNS, 0)).columns
    inner = total - 2
    widths = [max(cell_len(line) for cell in cells for line in cell.split("\n")) for cells in columns]
    folds = [column > 0 and name not in (*right, *shortened) for column, name in enumerate(header)]
    least = [
        min(width, max(cell_len(word) for cell in cells for word in (cell.split() or [""])), MIN_FOLDED) if fold
        else min(width, MIN_SHORTENED) if name in shortened
        else width
        for name, cells, width, fold in zip(header, columns, widths, folds, strict=True)
    ]  # fmt: skip
    shown, left_out = list(range(len(header))), list[str]()
    for name in optional:
        if sum(least[column] + 1 for column in shown) - 1 > inner:
            left_out.append(name)
            shown.remove(header.index(name))
    gap = 2 if sum(widths[column] + 2 for column in shown) - 2 <= inner else 1
    cut = [column for column in shown if header[column] in shortened]
    room = inner - gap * (len(shown) - 1) - sum(least[column] for column in shown if column not in cut)
    fitting = [limit for limit in range(MIN_CELL, total) if sum(min(widths[column], limit) for column in cut) <= room]
    limit = max(fitting, default=MIN_CELL)

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, gap - 1, 0, 0), header_style="bold")
    for column in shown:
        table.add_column(
            columns[column][0],
            justify="right" if header[column] in right else "left",
            no_wrap=not folds[column],
            overflow="fold",
            min_width=min(widths[column], limit) if column in cut else least[column],
        )
    for row in rows:
        table.add_row(*(shorten_middle(row[column], limit) if column in cut else row[column] for column in shown))
    narrowest = (min(least[column], limit) if column in cut else least[column] for column in shown)
    needed = 2 + gap * (len(shown) - 1) + sum(narrowest)
    console = Console(file=sys.stdout, width=max(total, needed), markup=False, highlight=False)
    console.print(table)
    if left_out:
        note(f"Columns left out at a width of {total}: {', '.join(left_out)}. --json has everything.")


@contextlib.contextmanager
def page(n_lines: int) -> Iterator[None]:
    """Show what the block prints on stdout page by page, if stdout is a terminal with fewer lines than that."""
    if not sys.stdout.isatty() or n_lines < shutil.get_terminal_size().lines:
        yield
        return
    import io
    import pydoc

    with contextlib.redirect_stdout(io.StringIO()) as printed:
        yield
    pydoc.pager(printed.getvalue())


def shorten_middle(text: str, max_chars: int) -> str:
    """The text, at most max_chars characters long; an ellipsis marks what was left out of its middle.

    >>> shorten_middle("bm25(profile=rusbeir-paper)", 15)
    'bm25(pr…-paper)'
    """
    if len(text) <= max_chars:
        return text
    tail = (max_chars - 1) // 2
    return f"{text[: max_chars - 1 - tail]}…{text[len(text) - tail :]}"


@contextlib.contextmanager
def progress() -> Iterator[Progress]:
    """Show progress: bars with rate and remaining time on a terminal, else a plain line every ten seconds."""
    if quiet:
        yield silent
    elif sys.stderr.isatty():
        with _show_bars() as report:
            yield report
    else:
        yield report_lines(note)


@contextlib.contextmanager
def _show_bars() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text(f"{task.speed:,.0f}/s" if task.speed else "")

    bars = Bars(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    tasks: dict[str, Any] = {}

    def report(stage: str, done: int, total: int | None) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(escape(stage, keep=""), total=total)
        bars.update(tasks[stage], completed=done, total=total)

    with bars:
        yield report


def format_duration(seconds: float | None) -> str:
    """Two units of time, such as 2 h 5 min.

    >>> format_duration(7_500.0)
    '2 h 5 min'
    """
    if seconds is None:
        return "not known"
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{math.ceil(seconds)} s"
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
