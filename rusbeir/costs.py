"""Count what a system costs: seconds, with those that a cache saved carried over, and the memory of this process."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import re
import sqlite3
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from rusbeir.text import batched

COSTS = 2
"""How the costs of a row are measured; rows without this number are of versions that measured cache and process."""

_MAX_KEYS_PER_QUERY = 500


@dataclass(kw_only=True)
class CarriedSeconds:
    """The seconds that cached vectors, scores and runs took when they were made."""

    seconds: float = 0.0
    n_parts: int = 0
    """How often the cache saved work."""
    n_unknown: int = 0
    """How often it did not know how long that work took."""

    def add(self, seconds: float | None) -> None:
        """Charge the seconds of one part; None where they are not known."""
        self.n_parts += 1
        self.n_unknown += seconds is None
        self.seconds += seconds or 0.0


class SecondsTable:
    """The seconds that each cached item took, in the SQLite file that holds the item."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        db.execute("CREATE TABLE IF NOT EXISTS seconds(key BLOB PRIMARY KEY, seconds REAL NOT NULL) WITHOUT ROWID")

    def sum(self, keys: Collection[bytes]) -> float | None:
        """The seconds of all keys, each counted once; None where those of any are not known."""
        keys = set(keys)
        n_known, total = 0, 0.0
        for part in batched(keys, _MAX_KEYS_PER_QUERY):
            marks = ",".join("?" * len(part))
            count, seconds = self._db.execute(
                f"SELECT count(*), total(seconds) FROM seconds WHERE key IN ({marks})", part
            ).fetchone()
            n_known, total = n_known + count, total + seconds
        return total if n_known == len(keys) else None

    def keep(self, keys: Collection[bytes], seconds: float) -> None:
        """Share the seconds equally among the keys."""
        rows = [(key, seconds / len(keys)) for key in keys]
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT OR REPLACE INTO seconds VALUES (?, ?)", rows)
        self._db.execute("COMMIT")


def reset_peak_rss() -> int | None:
    """The resident size now, in bytes, from which `peak_rss` counts again; None where the peak cannot be reset."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError, TypeError):
        # Pages that an earlier system freed would otherwise be used without growth.
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return peak_rss() or None


def peak_rss() -> int:
    """The peak resident size of this process since its start or the last reset, in bytes; 0 on Windows."""
    # On Linux getrusage includes the process that started this one; /proc gives this one's own peak.
    with contextlib.suppress(OSError):
        if own := re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text()):
            return 1024 * int(own[1])
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
