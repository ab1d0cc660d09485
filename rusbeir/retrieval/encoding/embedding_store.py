"""Embeddings of one encoder, kept in a file by the content of their texts, so that each is computed once.

Vectors are on disk before SQLite learns of them, and each is written where the last known one ends. So a kill loses
none that was added, and the file ends with the same bytes as without the kill.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rusbeir.costs import SecondsTable
from rusbeir.errors import BackendError
from rusbeir.retrieval.encoding.encoder import Vectors, check_vectors
from rusbeir.storage import WRITE_AHEAD, cannot_write, hold_when_free, open_database, reporting_sqlite, select_by_keys

BLOCK_TEXTS = 64
"""The texts that are encoded at once, where an encoder does not batch them itself."""

READ_TEXTS = 16_384
"""The texts of a pool whose rows are read together: a whole pool."""

_VECTORS = "vectors"
_ROWS = "rows.sqlite"


class EmbeddingStore:
    """Holds vectors in a folder: float32 or float16 [n, dim], rows in the order of adding; a row never changes."""

    read_texts = READ_TEXTS

    def __init__(self, folder: Path, dtype: str) -> None:
        self.folder = folder
        self.dtype = np.dtype(dtype)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(folder, error) from error
        with reporting_sqlite(self.folder, "embeddings", in_cache=True):
            self._db = open_database(folder / _ROWS, WRITE_AHEAD)
            self._db.execute("CREATE TABLE IF NOT EXISTS row(key BLOB PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID")
            self._db.execute("CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL)")
            self._seconds = SecondsTable(self._db)

    @property
    def dim(self) -> int | None:
        """The dimensions of every vector; None while the store is empty."""
        return self._meta("dim")

    def __len__(self) -> int:
        return self._meta("count") or 0

    def check(self, answer: Any, texts: Sequence[str], encoder: str) -> Vectors:
        """Return the encoder's answer as rows to add; encoder is its name in messages. Raises as check_vectors does."""
        return check_vectors(answer, texts, self.dim, encoder)

    def find_or_add(self, texts: Sequence[str], make: Callable[[Sequence[str]], Iterable[Any]]) -> list[int]:
        """Return the row of each text; make returns the rows [n, dim] of missing texts, in one process at a time.

        It may return them in parts, in order: each is on disk before the next is asked for. Raises BackendError where
        the disk fails.
        """
        keys = [_key(text) for text in texts]
        row_of = self._find(keys)
        if len(row_of) < len(set(keys)):
            with hold_when_free(self.folder / "lock", self.folder):
                # Another process may have added some meanwhile.
                row_of = self._find(keys)
                missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in row_of}
                new = list(missing)
                for rows in make(list(missing.values())) if missing else ():
                    row_of |= self._add(new[: len(rows)], rows)
                    del new[: len(rows)]
        return [row_of[key] for key in keys]

    def find(self, texts: Sequence[str]) -> list[int | None]:
        """Return the row of each text, None where the store does not hold it."""
        row_of = self._find(keys := [_key(text) for text in texts])
        return [row_of.get(key) for key in keys]

    def sum_seconds(self, texts: Sequence[str]) -> float | None:
        """Return the seconds that encoding those texts took; None where those of any text are not known."""
        with reporting_sqlite(self.folder, "embeddings", in_cache=True):
            return self._seconds.sum([_key(text) for text in texts])

    def keep_seconds(self, texts: Sequence[str], seconds: float) -> None:
        """Keep the seconds that encoding those texts took in total."""
        with reporting_sqlite(self.folder, "embeddings", in_cache=True):
            self._seconds.keep([_key(text) for text in texts], seconds)

    def open_pool(self, name: str) -> EmbeddingStore:
        """Open a store of the same kind, for the rows of a pool that is not whole yet."""
        return EmbeddingStore(self.folder / name, self.dtype.name)

    def remove(self) -> None:
        """Close the store and remove its files."""
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def clear(self) -> None:
        """Forget all rows. A kill leaves the store whole or empty."""
        with reporting_sqlite(self.folder, "embeddings", in_cache=True):
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM row")
            self._db.execute("DELETE FROM meta")
            self._db.execute("COMMIT")

    def map_vectors(self) -> tuple[npt.NDArray[Any], mmap.mmap | None]:
        """Return all vectors as [n, dim] on disk, and the mapping behind them; nothing is read before it is used."""
        count, dim = len(self), self.dim or 0
        numbers, mapping = map_file(self.folder / _VECTORS, self.dtype, count * dim)
        return numbers.reshape(count, dim), mapping

    def read(self, rows: Sequence[int]) -> Vectors:
        """Return the vectors of those rows, in their order."""
        vectors, _ = self.map_vectors()
        return np.ascontiguousarray(vectors[np.asarray(rows, dtype=np.int64)], dtype=np.float32)

    def close(self) -> None:
        self._db.close()

    def _find(self, keys: Sequence[bytes]) -> dict[bytes, int]:
        with reporting_sqlite(self.folder, "embeddings", in_cache=True):
            return dict(select_by_keys(self._db, "SELECT key, row FROM row WHERE key IN", set(keys)))

    def _add(self, keys: Sequence[bytes], vectors: npt.NDArray[Any]) -> dict[bytes, int]:
        count, dim = len(self), vectors.shape[1]
        write_at(self.folder / _VECTORS, count * dim, vectors.astype(self.dtype))
        rows = dict(zip(keys, range(count, count + len(keys)), strict=True))
        with reporting_sqlite(self.folder, "embeddings", in_cache=True):
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT INTO row VALUES (?, ?)", rows.items())
            meta = [("dim", dim), ("count", count + len(keys))]
            self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", meta)
            self._db.execute("COMMIT")
        return rows

    def _meta(self, name: str) -> int | None:
        with reporting_sqlite(self.folder, "embeddings", in_cache=True):
            row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def write_at(path: Path, start: int, items: npt.NDArray[Any]) -> None:
    """Write the items, synced, after the first `start` items of the file."""
    try:
        path.touch()
        with path.open("r+b") as file:
            file.seek(start * items.itemsize)
            file.write(items.data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise cannot_write(path, error) from error


def map_file(path: Path, dtype: np.dtype[Any], count: int) -> tuple[npt.NDArray[Any], mmap.mmap | None]:
    """Return the first `count` items of the file, on disk, and the mapping behind them (None for no items)."""
    if not count:
        return np.empty(0, dtype), None
    try:
        with path.open("rb") as file:
            mapping = mmap.mmap(file.fileno(), count * dtype.itemsize, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise BackendError(
            f"The embeddings {path} are damaged ({error}). Remove them: `rusbeir cache clear embeddings`."
        ) from error
    return np.frombuffer(mapping, dtype), mapping
