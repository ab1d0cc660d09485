"""Row number -> document id, in two files: the ids end to end, and where each begins."""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

_BLOB = "doc_ids.utf8"
_OFFSETS = "doc_ids.offsets"
_FLUSH_ROWS = 16_384
_LISTED_ROWS = 2_000_000
"""Corpora up to here have their ids in memory while they are searched (about 60 bytes each)."""


class DocIdWriter:
    """Writes the ids of a corpus in row order; memory does not grow with them."""

    def __init__(self, folder: Path) -> None:
        self.count = 0
        self._blob = (folder / _BLOB).open("wb")
        self._offsets = (folder / _OFFSETS).open("wb")
        self._pending = array("Q", [0])
        self._end = 0

    def add(self, doc_id: str) -> None:
        self.count += 1
        self._end += self._blob.write(doc_id.encode())
        self._pending.append(self._end)
        if len(self._pending) >= _FLUSH_ROWS:
            self._flush()

    def __enter__(self) -> DocIdWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._blob, self._offsets:
            self._flush()

    def _flush(self) -> None:
        self._pending.tofile(self._offsets)
        del self._pending[:]


class DocIds:
    """The ids of an index by row."""

    def __init__(self, folder: Path) -> None:
        self._offsets: npt.NDArray[np.uint64] = np.memmap(folder / _OFFSETS, dtype=np.uint64, mode="r")
        with (folder / _BLOB).open("rb") as file:
            self._blob = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._list: list[str] | None = None
        # Half of what a search of 1,000 hits takes would go into cutting ids out of the file.
        if len(self) <= _LISTED_ROWS:
            self._list = self.of(range(len(self)))

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def of(self, rows: Sequence[int]) -> list[str]:
        """The ids of those rows, in their order."""
        if (ids := self._list) is not None:
            return [ids[row] for row in rows]
        where = np.asarray(rows, dtype=np.int64)
        starts, ends = self._offsets[where].tolist(), self._offsets[where + 1].tolist()
        blob = self._blob
        return [blob[start:end].decode() for start, end in zip(starts, ends, strict=True)]
