"""The display of corpora, datasets and progress in a Python shell or a notebook."""

from __future__ import annotations

import html
import importlib
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, TypeVar, overload

from rusbeir.errors import require
from rusbeir.text import shorten

if TYPE_CHECKING:
    from pandas import DataFrame

    from rusbeir.types import Corpus, Dataset, Doc, Progress

SHOWN = 3
"""The documents, and the queries, that a notebook shows."""
SHOWN_ROWS = 20
"""The rows of a table that a notebook shows, such as the hits of a run."""
_DOC_COLUMNS = ("doc_id", "text", "title", "language")
SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_UPDATES = 0.2


class BrowsableCorpus(ABC):
    """A corpus as Python's collections are: `in`, a length, documents by place, a short repr."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __iter__(self) -> Iterator[Doc]: ...

    @overload
    def __getitem__(self, key: str | SupportsIndex) -> Doc: ...

    @overload
    def __getitem__(self, key: slice) -> list[Doc]: ...

    @abstractmethod
    def __getitem__(self, key: str | SupportsIndex | slice) -> Doc | list[Doc]:
        """The document of that id, or at that place (from 0, or from the end below 0); a slice is a list of them.

        Raises KeyError for an id and IndexError for a place that the corpus does not have.
        """

    def __contains__(self, doc_or_id: object) -> bool:
        """Return whether there is a document of that id, or that document."""
        doc_id = doc_or_id[0] if isinstance(doc_or_id, tuple) and doc_or_id else doc_or_id
        try:
            return isinstance(doc_id, str) and doc_or_id in (doc_id, self[doc_id])
        except KeyError:
            return False

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self):,} documents>"

    def _repr_html_(self) -> str:
        return _caption(repr(self)) + _documents_table(self)


def place_in(n: int, key: object) -> int:
    """The place from 0 of a document of n that was asked for as corpus[key]. Raises IndexError, and TypeError."""
    if not isinstance(key, SupportsIndex):
        raise TypeError(f"A corpus is asked for a document id, a place or a slice, not for a {type(key).__name__}.")
    index = key.__index__()
    if not -n <= index < n:
        raise IndexError(f"The corpus has {n:,} documents, and none at place {index:,}.")
    return index % n


def describe_dataset(dataset: Dataset) -> str:
    """A dataset in one short line."""
    n_judgements = sum(map(len, dataset.qrels.values()))
    return (
        f"<Dataset {dataset.card.name}: language {dataset.card.language}, split {dataset.card.split}, "
        f"{len(dataset.corpus):,} documents, {len(dataset.queries):,} queries, {n_judgements:,} judgements>"
    )


def dataset_html(dataset: Dataset) -> str:
    """A dataset for a notebook: the line, its source and licence, and its first queries with what is judged."""
    card = dataset.card
    facts = " · ".join(shorten(fact) for fact in (card.licence, card.source) if fact)
    queries = (
        (query_id, text, str(len(dataset.qrels[query_id]))) for query_id, text in islice(dataset.queries.items(), SHOWN)
    )
    return (
        _caption(describe_dataset(dataset), facts)
        + _table(("query_id", "text", "judged"), queries, len(dataset.queries))
        + _documents_table(dataset.corpus)
    )


class ShownTable(ABC):
    """A value that a notebook shows as a table, and of which pandas gets the rows."""

    @abstractmethod
    def _caption(self) -> str:
        """Describe what is shown, in one line."""

    @abstractmethod
    def _records(self) -> Iterator[dict[str, Any]]:
        """The rows, flat, all with the same columns or with some left out."""

    def _shown_records(self) -> Iterator[dict[str, Any]]:
        """The rows as a notebook shows them, which may leave columns out and round numbers."""
        return self._records()

    def to_pandas(self) -> DataFrame:
        """Put the rows into a flat table, whose cells are numbers, words or empty.

        Raises:
            MissingExtra: pandas is not installed.
        """
        frame: DataFrame = require("pandas", "to_pandas", "pandas").DataFrame(list(self._records()))
        return frame

    def _repr_html_(self) -> str:
        records = list(islice(self._shown_records(), SHOWN_ROWS + 1))
        names = list(dict.fromkeys(name for record in records for name in record))
        cells = [[_write_cell(record.get(name)) for name in names] for record in records[:SHOWN_ROWS]]
        more = sum(1 for _ in self._records()) if len(records) > SHOWN_ROWS else len(records)
        return _caption(self._caption()) + _table(names, cells, more)


class ShownRun(ShownTable, dict[str, dict[str, float]]):
    """A run that a notebook shows as a table of its first hits, with their texts where the corpus is at hand."""

    corpus: Corpus | None = None
    queries: Mapping[str, str] = MappingProxyType({})

    def _caption(self) -> str:
        return f"<Run: {len(self):,} queries, {sum(map(len, self.values())):,} hits>"

    def _records(self) -> Iterator[dict[str, Any]]:
        for query_id, hits in self.items():
            for rank, (doc_id, score) in enumerate(hits.items(), 1):
                yield {"query_id": query_id, "rank": rank, "score": score, "doc_id": doc_id}

    def _shown_records(self) -> Iterator[dict[str, Any]]:
        for record in self._records():
            query_id = record.pop("query_id")
            yield {"query": self.queries.get(query_id, query_id), **record, **self._texts(record["doc_id"])}

    def _texts(self, doc_id: str) -> dict[str, str]:
        if self.corpus is None:
            return {}
        try:
            doc = self.corpus[doc_id]
        except KeyError:
            return {"title": "", "text": ""}
        return {"title": doc.title, "text": doc.text}


class ShownRows(ShownTable, list[dict[str, Any]]):
    """Result rows that a notebook shows as a table of systems and measures."""

    def _caption(self) -> str:
        return f"<{len(self):,} result rows, measures ×100>"

    def _records(self) -> Iterator[dict[str, Any]]:
        return map(_flatten, self)

    def _shown_records(self) -> Iterator[dict[str, Any]]:
        for row in self:
            yield {
                "dataset": row["dataset"],
                "system": row.get("label", row["system"]),
                **{name: f"{100 * value:.2f}" for name, value in row["measures"].items()},
                "queries": row["n_queries"],
                "no hits": row["n_zero_hit"],
                "tied": row["n_tied"],
            }


class ShownRow(dict[str, Any]):
    """A result row that a notebook shows as a table of one line."""

    def to_pandas(self) -> DataFrame:
        """Put the row into a flat table of one line.

        Raises:
            MissingExtra: pandas is not installed.
        """
        return ShownRows([self]).to_pandas()

    def _repr_html_(self) -> str:
        return ShownRows([self])._repr_html_()


Record = TypeVar("Record", bound="NamedTuple")


class ShownRecords(ShownTable, list[Record]):
    """A list of named tuples, such as the tokens of a text, that a notebook shows as a table."""

    def _caption(self) -> str:
        return f"<{len(self):,} rows>"

    def _records(self) -> Iterator[dict[str, Any]]:
        return (record._asdict() for record in self)


def _flatten(row: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a result row without tables in them: measures by their names, search_seconds, index_bytes."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if key == "measures":
            flat |= value
        elif isinstance(value, Mapping):
            flat |= {f"{name}_{key.removeprefix('measures_')}": member for name, member in value.items()}
        else:
            flat[key] = value
    return flat


def _write_cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return "" if value is None else str(value)


def _caption(line: str, small: str = "") -> str:
    return f"<p>{_inert(line)}{f'<br><small>{_inert(small)}</small>' if small else ''}</p>"


def _documents_table(corpus: Corpus) -> str:
    docs = list(islice(corpus, SHOWN))
    # A corpus in one language has no column for it.
    width = len(_DOC_COLUMNS) if any(doc.language for doc in docs) else len(_DOC_COLUMNS) - 1
    return _table(_DOC_COLUMNS[:width], (doc[:width] for doc in docs), len(corpus))


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], n: int) -> str:
    """The first rows of n as an HTML table, every cell escaped and short."""
    lines = ["".join(f"<td><bdi>{_inert(shorten(cell))}</bdi></td>" for cell in row) for row in rows]
    more = f'<tr><td colspan="{len(header)}">… {n - len(lines):,} more</td></tr>' if n > len(lines) else ""
    head = "".join(f"<th>{name}</th>" for name in header)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}{more}</table>"


def _inert(text: str) -> str:
    """The text as HTML that is nothing but text; a notebook is UTF-8, which has no unpaired surrogates."""
    return html.escape(text.encode("utf-8", "replace").decode())


def report_lines(write: Callable[[str], object], every: float = SECONDS_BETWEEN_LINES) -> Progress:
    """A Progress that writes one line for each stage every so many seconds."""
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
        write(f"{stage}: {done:,}{f' of {total:,}' if total else ''} ({rate:,.0f}/s{remaining})")

    return report


def show_progress(stage: str, done: int, total: int | None) -> None:
    """Show progress: a bar for each stage in a notebook, elsewhere a line on stderr every ten seconds.

    For the argument `progress` of every function that takes one.

    Examples:
        >>> rusbeir.bench("mini/ru", "bm25", progress=rusbeir.show_progress)  # doctest: +SKIP
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    # A shell in a terminal has no kernel and shows no HTML.
    if shell is not None and hasattr(shell, "kernel"):
        _show_bar(stage, done, total)
    else:
        _write_line(stage, done, total)


_write_line = report_lines(lambda line: sys.stderr.write(f"{line}\n"))
_bars: dict[str, tuple[Any, int, float]] = {}
"""Stage -> its bar in the notebook, how much of it was done, and when that was shown."""


def _show_bar(stage: str, done: int, total: int | None) -> None:
    ipython = importlib.import_module("IPython.display")
    now = time.monotonic()
    handle, before, shown_at = _bars.get(stage, (None, 0, 0.0))
    finished = total is not None and done >= total
    if handle is not None and before <= done and not finished and now - shown_at < SECONDS_BETWEEN_UPDATES:
        return
    total_text = "" if total is None else f" of {total:,}"
    bar = "" if total is None else f'<progress value="{done}" max="{total}"></progress> '
    shown = ipython.HTML(f"{bar}{_inert(stage)}: {done:,}{total_text}")
    # A stage that begins again, as in another cell, gets a new bar.
    if handle is None or done < before:
        handle = ipython.display(shown, display_id=True)
    else:
        handle.update(shown)
    if finished:
        _bars.pop(stage, None)
    else:
        _bars[stage] = (handle, done, now)
