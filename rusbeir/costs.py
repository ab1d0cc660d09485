"""Carry over the seconds that a cache saved, so that a row says what a system costs."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from dataclasses import dataclass

from rusbeir.storage import select_by_keys

COSTS = 2
"""The way in which the costs of a row are measured; rows without it include what the cache and the process add."""


@dataclass(kw_only=True)
class CarriedSeconds:
    """Sums the seconds that cached vectors, scores and runs took when they were made."""

    seconds: float = 0.0
    n_parts: int = 0
    """How often the cache saved work."""
    n_unknown: int = 0
    """How often the cache did not know how long that work took."""

    def add(self, seconds: float | None) -> None:
        """Add the seconds of one part; None where they are not known."""
        self.n_parts += 1
        self.n_unknown += seconds is None
        self.seconds += seconds or 0.0


class SecondsTable:
    """Holds the seconds that each cached item took, in the SQLite file that holds the item."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        db.execute("CREATE TABLE IF NOT EXISTS seconds(key BLOB PRIMARY KEY, seconds REAL NOT NULL) WITHOUT ROWID")

    def sum(self, keys: Collection[bytes]) -> float | None:
        """Return the seconds of all keys, each counted once; None where those of any key are not known."""
        keys = set(keys)
        seconds = [row[0] for row in select_by_keys(self._db, "SELECT seconds FROM seconds WHERE key IN", keys)]
        return sum(seconds) if len(seconds) == len(keys) else None

    def keep(self, keys: Collection[bytes], seconds: float) -> None:
        """Share the seconds equally among the keys."""
        rows = [(key, seconds / len(keys)) for key in keys]
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT OR REPLACE INTO seconds VALUES (?, ?)", rows)
        self._db.execute("COMMIT")
