"""The offset index of a corpus: where each document starts, and which row an id has, in memory-mapped arrays.

24 bytes a document: offsets.npy (int64, n + 1), hashes.npy (uint64, sorted 64-bit hashes of the ids) and rows.npy
(int64, the row of each hash). A hash only proposes rows; whoever reads compares the id itself.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from rusbeir.datasets.files import open_file
from rusbeir.datasets.records import Place, read_documents, refuse
from rusbeir.errors import BadInput
from rusbeir.storage import atomic_folder
from rusbeir.types import Progress

_REPORT_EVERY = 10_000

Array = npt.NDArray[Any]


class Index(NamedTuple):
    """An open index. sha256 is over the documents' canonical lines (`canonical_line`), in corpus order."""

    offsets: Array
    hashes: Array
    rows: Array
    sha256: str

    def rows_of(self, doc_id: str) -> list[int]:
        """The rows that may hold that id: nearly always one or none."""
        wanted = np.uint64(id_hash(doc_id))
        first, last = (int(np.searchsorted(self.hashes, wanted, side)) for side in ("left", "right"))
        return [int(row) for row in self.rows[first:last]]


def id_hash(record_id: str) -> int:
    """64 bits that stand for an id."""
    return int.from_bytes(hashlib.blake2b(record_id.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def canonical_line(*fields: str | int) -> bytes:
    """One record as the bytes that a fingerprint hashes."""
    return orjson.dumps(fields) + b"\n"


def open_index(folder: Path) -> Index:
    """The index that lies in the folder."""
    meta = orjson.loads((folder / "meta.json").read_bytes())
    offsets, hashes, rows = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("offsets", "hashes", "rows"))
    return Index(offsets, hashes, rows, meta["sha256"])


class _Lines:
    """The lines of a file, with the offset of the line given last."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.start = self.end = file.tell()

    def __iter__(self) -> Iterator[bytes]:
        for line in self._file:
            self.start = self.end
            self.end += len(line)
            yield line


def build_index(
    path: Path, folder: Path, *, ignore_titles: bool, locate: Callable[[int], Place], progress: Progress
) -> None:
    """Index a JSONL corpus in one pass that also checks it; the folder appears when all of it is right.

    locate(row) is asked only for messages. Raises BadInput for an empty corpus and for a repeated id.
    """
    offsets, hashes = array("q"), array("Q")
    digest = hashlib.sha256()
    total = path.stat().st_size
    with open_file(path) as file:
        lines = _Lines(file)
        for _, doc in read_documents(lines, str(path), refuse):
            offsets.append(lines.start)
            hashes.append(id_hash(doc.doc_id))
            digest.update(canonical_line(doc.doc_id, "" if ignore_titles else doc.title, doc.text))
            if len(offsets) % _REPORT_EVERY == 0:
                progress(f"indexing {path.name}", lines.end, total)
    if not hashes:
        raise BadInput(f"{path}: the corpus is empty; a dataset needs at least one document.")
    offsets.append(lines.end)
    starts, by_row = np.frombuffer(offsets, dtype=np.int64), np.frombuffer(hashes, dtype=np.uint64)
    order = np.argsort(by_row, kind="stable")
    ordered = by_row[order]
    _refuse_repeats(path, starts, ordered, order, locate)
    with atomic_folder(folder) as new:
        for name, values in (("offsets", starts), ("hashes", ordered), ("rows", order)):
            np.save(new / f"{name}.npy", values)
        (new / "meta.json").write_bytes(orjson.dumps({"sha256": digest.hexdigest()}))
    progress(f"indexing {path.name}", total, total)


def _refuse_repeats(path: Path, starts: Array, ordered: Array, order: Array, locate: Callable[[int], Place]) -> None:
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    for row, earlier in sorted((int(order[i + 1]), int(order[i])) for i in same):
        doc_id = _id_at(path, int(starts[row]))
        if doc_id == _id_at(path, int(starts[earlier])):
            refuse(
                "repeat",
                locate(row),
                f"the id {doc_id!r} stands already at {locate(earlier)}; ids must be unique",
            )


def _id_at(path: Path, offset: int) -> str:
    with open_file(path) as file:
        file.seek(offset)
        return str(orjson.loads(file.readline())["_id"])
