"""Document ids by row number, in two files: the ids end to end, and the byte at which each begins."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

_BLOB = "doc_ids.utf8"
_OFFSETS = "doc_ids.offsets"
_MAX_LISTED_ROWS = 2_000_000
"""Corpora up to this size have their ids in memory while they are searched (about 60 bytes each)."""


class DocIdWriter:
    """Writes the ids of a corpus in row order; memory does not grow with them."""

    def __init__(self, folder: Path) -> None:
        self.count = 0
        self._end = 0
        self._blob = (folder / _BLOB).open("wb")
        self._offsets = (folder / _OFFSETS).open("wb")
        self._offsets.write(bytes(8))

    def add(self, doc_id: str) -> None:
        self.count += 1
        self._end += self._blob.write(doc_id.encode())
        self._offsets.write(self._end.to_bytes(8, sys.byteorder))

    def close(self) -> None:
        with self._blob, self._offsets:
            pass


class DocIds:
    """The ids of an index by row."""

    def __init__(self, folder: Path) -> None:
        self._offsets: npt.NDArray[np.uint64] = np.memmap(folder / _OFFSETS, dtype=np.uint64, mode="r")
        with (folder / _BLOB).open("rb") as file:
            self._blob = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._list: list[str] | None = None
        # Half of what a search of 1,000 hits takes would go into cutting ids out of the file.
        if len(self) <= _MAX_LISTED_ROWS:
            self._list = self.read(range(len(self)))

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def read(self, rows: Sequence[int]) -> list[str]:
        """Read the ids of those rows, in their order."""
        if (ids := self._list) is not None:
            return [ids[row] for row in rows]
        where = np.asarray(rows, dtype=np.int64)
        starts, ends = self._offsets[where].tolist(), self._offsets[where + 1].tolist()
        blob = self._blob
        return [blob[start:end].decode() for start, end in zip(starts, ends, strict=True)]
