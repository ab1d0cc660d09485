"""Read the result rows of a folder, which `rusbeir.experiment` writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from rusbeir.datasets import read_jsonl

ResultRow: TypeAlias = dict[str, Any]
"""A result row: one JSON object, as docs/json.md describes it."""

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
