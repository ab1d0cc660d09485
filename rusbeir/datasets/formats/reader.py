"""The DatasetReader that every format gives, and the table of formats.

A new format is a module with two functions and a row of FORMATS; or, in a package of its own, an entry point of the
group `rusbeir.readers` that names a Format.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol, runtime_checkable

from rusbeir.datasets.columns import Columns
from rusbeir.datasets.formats.records import Complain, Extra, Judgement, Place, Query, Span
from rusbeir.errors import BackendError, RusbeirError
from rusbeir.types import Doc
from rusbeir.user_sources import find_entry_points, load_entry_point

logger = logging.getLogger(__name__)


class DatasetReader(Protocol):
    """A dataset on disk, as three streams of records with their places, in file order."""

    @property
    def split(self) -> str:
        """The split of the judgements."""
        ...

    @property
    def id_suffixes(self) -> tuple[str, ...]:
        """The suffixes that the format adds to ids: ("",) for none, several if a document has several copies."""
        ...

    @property
    def corpus_files(self) -> tuple[Path, ...]:
        """The files that the documents come from."""
        ...

    @property
    def plain_corpus(self) -> Path | None:
        """The corpus as a JSONL file that can be used in place; None if it must be copied first."""
        ...

    @property
    def recipe(self) -> str:
        """The way in which the documents are made of these files; with the files' checksums, the key of the copy."""
        ...

    def documents(self, complain: Complain) -> Iterator[tuple[Place, Doc, Extra]]:
        """Yield the documents in order, each with its line and the further keys of its record."""
        ...

    def queries(self, complain: Complain) -> Iterator[tuple[Place, Query, Extra]]:
        """Yield the queries in order, each with its line and the further keys of its record."""
        ...

    def judgements(self, complain: Complain) -> Iterator[tuple[Place, Judgement]]:
        """Yield the judgements in order, each with its line."""
        ...


@runtime_checkable
class GivesSpans(Protocol):
    """A DatasetReader that may know where in their documents the queries are answered."""

    def spans(self, complain: Complain) -> Iterator[tuple[Place, Span]]:
        """Return the spans in file order; none where this dataset has none."""
        ...


@runtime_checkable
class OpensSplits(Protocol):
    """A DatasetReader that opens other splits of its files without listing these again: there may be thousands."""

    def open_split(self, split: str) -> DatasetReader:
        """Open the reader of another split that Format.splits names."""
        ...


@dataclass(frozen=True, kw_only=True)
class ReadRequest:
    """A path, and how it is to be read. split None means the only one; options are the format's own."""

    path: Path
    language: str
    languages: tuple[str, ...] = ()
    """The languages among which those of its documents are, where they are in several; the language is then "mul"."""
    split: str | None = None
    view: str | None = None
    """Which of several datasets made of the same files is meant; None for the format's first."""
    also: tuple[Path, ...] = ()
    """Other folders that hold parts of the same dataset, as repositories of judgements do."""
    judged: bool = True
    """Whether it must have judgements; without them, documents alone are enough."""
    columns: Columns = field(default_factory=dict)
    """The columns of tables that the caller names; others are recognised by their names."""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Format:
    """The functions that recognise and open one format, named "module:function" and imported when used."""

    open: str
    """Takes a ReadRequest and returns a DatasetReader. Raises BadInput or UnknownName."""
    claims: str = ""
    """Takes a Path and tells whether it is in this format; empty if no path can be recognised."""
    splits: str = ""
    """Takes a Path and a view or None, and returns the names of the splits; empty where a path has only one."""
    ignore_titles: bool = False
    """Whether a path of this format is read without titles if no card says otherwise."""
    takes_columns: bool = False
    """Whether it reads tables, whose columns can be named: ReadRequest.columns."""
    parts: tuple[str, ...] = ("corpus", "queries", "qrels")
    """The roles of its files in repositories of the Hugging Face hub."""


_HERE = "rusbeir.datasets.formats"
_BEIR_SPLITS = f"{_HERE}.beir:list_splits"
FORMATS = {
    "hub": Format(
        claims=f"{_HERE}.hub:is_hub",
        open=f"{_HERE}.hub:open_hub",
        splits=f"{_HERE}.hub:list_splits",
        takes_columns=True,
    ),
    "beir": Format(claims=f"{_HERE}.beir:is_beir", open=f"{_HERE}.beir:open_beir", splits=_BEIR_SPLITS),
    "cocktail": Format(
        claims=f"{_HERE}.beir:is_cocktail",
        open=f"{_HERE}.beir:open_cocktail",
        splits=_BEIR_SPLITS,
        ignore_titles=True,
    ),
    "squad": Format(claims=f"{_HERE}.squad:is_squad", open=f"{_HERE}.squad:open_squad"),
    "ntrex": Format(claims=f"{_HERE}.ntrex:is_ntrex", open=f"{_HERE}.ntrex:open_ntrex"),
    "table": Format(
        claims=f"{_HERE}.hub:is_table", open=f"{_HERE}.hub:open_table", parts=("corpus",), takes_columns=True
    ),
    "pairs": Format(open=f"{_HERE}.question_passage:open_pairs", parts=("pairs",)),
    "irds": Format(open=f"{_HERE}.irds:open_irds"),
}


@cache
def read_formats() -> Mapping[str, Format]:
    """FORMATS and those of installed packages, which are asked first whether a path is theirs.

    A package cannot replace one of FORMATS. One that cannot be imported is skipped with a warning.
    """
    added: dict[str, Format] = {}
    for entry_point in find_entry_points("rusbeir.readers"):
        try:
            added[entry_point.name] = load_entry_point("reader", entry_point, Format)[0]
        except RusbeirError as error:
            logger.warning("%s", error)
    return {**added, **FORMATS}


def call_format(kind: Format, function: str, path: Path, *args: Any) -> Any:
    """Call one of a format's functions. Raises BackendError where that of an installed package fails."""
    try:
        return resolve_name(function)(*args)
    except RusbeirError:
        raise
    except (Exception, SystemExit) as error:
        if kind in FORMATS.values():
            raise
        raise BackendError(
            f"The reader of {path} fails ({function}): {type(error).__name__}: {error}. Its package must be mended."
        ) from error


def find_format(path: Path) -> Format | None:
    """Find the format that claims the path; None if there is none. A package whose function fails is skipped, too."""
    for name, kind in read_formats().items():
        try:
            if kind.claims and resolve_name(kind.claims)(path):
                return kind
        except (Exception, SystemExit) as error:
            if name in FORMATS:
                raise
            logger.warning("The reader %s fails (%s): %s: %s", name, kind.claims, type(error).__name__, error)
    return None
