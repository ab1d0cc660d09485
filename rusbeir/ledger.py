"""Read and append the result rows of a folder, and find rows to reuse."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from rusbeir.datasets import read_jsonl
from rusbeir.storage import append_line
from rusbeir.types import Dataset

ResultRow: TypeAlias = dict[str, Any]
"""A result row: one JSON object, as docs/json.md describes it."""

logger = logging.getLogger(__name__)

ROWS = "rows.jsonl"
_WORDS = ("dataset", "language", "split", "system", "engine", "signature", "fingerprint", "run", "per_query")
_ROW = {
    **dict.fromkeys(_WORDS, str), "measures": {str: float}, "n_zero_hit": int, "n_tied": int,
    "seconds": {str: float}, "bytes": {str: int}, "costs?": int, "cost?": float, "label?": str,
}  # fmt: skip
"""rusbeir reads these members of a result row."""


def read_rows(out: str | Path = "results") -> Iterator[ResultRow]:
    """Read the rows of a results folder, in the order in which they were made; none where it has no rows.

    Args:
        out: The folder that `bench` wrote into.

    Yields:
        One row at a time, as docs/json.md describes it.

    Raises:
        BadInput: A line is not a result row; the message names the line.
    """
    path = Path(out) / ROWS
    if not path.exists():
        return
    yield from read_jsonl(path, _ROW, "Remove the line.")


class Ledger:
    """Holds the rows of a results folder, which are read once, and those that this process adds.

    Without reuse nothing is read, not even a damaged file, and no row is reused.
    """

    def __init__(self, out: Path, *, reuse: bool = True) -> None:
        self.out = out
        self._reuse = reuse
        self._rows = list(read_rows(out)) if reuse else []

    @property
    def systems(self) -> set[str]:
        """The names of all systems that have a row to reuse."""
        return {row["system"] for row in self._rows}

    def find(
        self, dataset: Dataset, query_language: str, system: str, signature: str, measures: Sequence[str]
    ) -> ResultRow | None:
        """Find the newest row of the same recipe on the same data that holds all measures and still has its run."""
        card = dataset.card
        recipe = (card.name, card.split, system, signature, dataset.fingerprint, query_language)
        for row in reversed(self._rows):
            same = recipe == (
                *(row[name] for name in ("dataset", "split", "system", "signature", "fingerprint")),
                row.get("query_language", row["language"]),
            )
            # A damaged row may have a name that no file can have.
            with contextlib.suppress(OSError):
                if same and all(name in row["measures"] for name in measures) and Path(row["run"]).exists():
                    logger.debug("%s on %s: the row in %s is reused", system, card.name, self.out / ROWS)
                    return row
        return None

    def add(self, row: ResultRow) -> None:
        """Append a row to the file."""
        append_line(self.out / ROWS, orjson.dumps(row))
        if self._reuse:
            self._rows.append(row)
