"""The figures that pages quote, in quotes.toml: `make figures` writes those that it measured, so that none is typed.

A quote is a piece of a page in which every {} is a figure. It says where each figure comes from: a command and a row of
`make figures`, or a row of docs/results.md.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parent.parent
QUOTES = Path(__file__).parent / "quotes.toml"
_NUMBER = r"(-?[0-9](?:[0-9.,]*[0-9])?)"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure that a page quotes: what is measured, and how many decimals are printed."""

    what: str
    """The command, or what a benchmark measures, as `make figures` and docs/results.md print it."""
    measure: str
    digits: int

    def print(self, value: float) -> str:
        return f"{value:,.{self.digits}f}"


@dataclass(frozen=True, kw_only=True)
class Quote:
    """A piece of a page, in which every {} is a figure."""

    page: str
    text: str
    figures: tuple[Figure, ...]

    def find(self, page: str) -> re.Match[str]:
        """The piece on the page, its figures as groups. Raises ValueError unless it is there once."""
        pattern = _NUMBER.join(map(re.escape, self.text.split("{}")))
        matches = list(re.finditer(pattern, page))
        if len(matches) != 1:
            raise ValueError(f"{self.page} has {len(matches)} pieces like {self.text!r}, not 1; see quotes.toml.")
        return matches[0]

    def write(self, page: str, measured: Mapping[tuple[str, str], float]) -> str:
        """The page with the figures that were measured, the others as they are."""
        piece = self.find(page)
        for number in reversed(range(len(self.figures))):
            figure = self.figures[number]
            if (value := measured.get((figure.what, figure.measure))) is not None:
                start, end = piece.span(number + 1)
                page = page[:start] + figure.print(value) + page[end:]
        return page


def read_quotes() -> list[Quote]:
    """All quotes, in the order of quotes.toml."""
    return [
        Quote(page=row["page"], text=row["text"], figures=tuple(_read_figure(figure) for figure in row["figures"]))
        for row in tomllib.loads(QUOTES.read_text(encoding="utf-8"))["quote"]
    ]


def _read_figure(row: Mapping[str, Any]) -> Figure:
    return Figure(what=row["what"], measure=row["measure"], digits=row.get("digits", 2))


def write_pages(measured: Mapping[tuple[str, str], float], project: Path = PROJECT) -> list[str]:
    """Write the figures that were measured into the pages that quote them; the names of the pages that changed."""
    changed = []
    quotes = read_quotes()
    for name in dict.fromkeys(quote.page for quote in quotes):
        path = project / name
        before = page = path.read_text(encoding="utf-8")
        for quote in quotes:
            if quote.page == name:
                page = quote.write(page, measured)
        if page != before:
            path.write_text(page, encoding="utf-8")
            changed.append(name)
    return changed
