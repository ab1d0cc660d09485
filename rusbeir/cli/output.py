"""Printing for every verb: results to stdout, everything else to stderr, colours only on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from rusbeir.types import Progress


def print_json(document: Any) -> None:
    """Print one JSON document on stdout."""
    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")


def note(message: str) -> None:
    """Print one line for a person on stderr."""
    sys.stderr.write(message + "\n")
    sys.stderr.flush()


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print a table on stdout; columns named in `right` are right-aligned. Nothing is cut unless it is a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in header:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    terminal = sys.stdout.isatty()
    Console(file=sys.stdout, width=None if terminal else 400, markup=False, highlight=False).print(table)


@contextlib.contextmanager
def progress() -> Iterator[Progress]:
    """Show progress: bars with rate and remaining time on a terminal, else a plain line every ten seconds."""
    if sys.stderr.isatty():
        with _show_bars() as report:
            yield report
    else:
        yield _report_lines()


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
        TextColumn("{task.description}"),
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
            tasks[stage] = bars.add_task(stage, total=total)
        bars.update(tasks[stage], completed=done, total=total)

    with bars:
        yield report


def _report_lines(every: float = 10.0) -> Progress:
    started: dict[str, float] = {}
    last: dict[str, float] = {}

    def report(stage: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        first = started.setdefault(stage, now)
        if now - last.setdefault(stage, first) < every:
            return
        last[stage] = now
        rate = done / (now - first)
        remaining = f", {(total - done) / rate:,.0f} s left" if total and rate else ""
        note(f"{stage}: {done:,}{f' of {total:,}' if total else ''} ({rate:,.0f}/s{remaining})")

    return report
