"""The one corpus class: a plain JSONL file on disk with an offset index beside it in the cache."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from rusbeir.datasets.checksums import file_key, key_of
from rusbeir.datasets.formats.files import open_file
from rusbeir.datasets.formats.records import Place, read_documents, refuse
from rusbeir.errors import BackendError, BadInput
from rusbeir.storage import atomic_folder, cache_folder
from rusbeir.types import Doc, Progress, canonical_line, silent

_KEYS = frozenset({"_id", "title", "text"})
_LAYOUT = 1
"""Raised when the index's files change, so that indexes of an older version are left alone."""


class JsonlCorpus:
    """Documents of a JSONL file in file order, read when asked for; memory does not grow with the corpus.

    It can be pickled and shared between threads: every look-up opens the file for itself.
    """

    def __init__(self, path: Path, index_folder: Path, *, ignore_titles: bool = False) -> None:
        self.path = path
        self.ignore_titles = ignore_titles
        self._index_folder = index_folder
        self._index: Index = open_index(index_folder)

    @property
    def sha256(self) -> str:
        """Over the documents' content in corpus order, whatever file they came in."""
        return self._index.sha256

    def __len__(self) -> int:
        return len(self._index.rows)

    def __iter__(self) -> Iterator[Doc]:
        return map(self._doc, self._lines())

    def whole(self) -> Iterator[tuple[Doc, dict[str, Any]]]:
        """The documents, each with the keys that its record has besides _id, title and text."""
        for line in self._lines():
            doc = self._doc(line)
            record = orjson.loads(line)
            yield doc, {key: value for key, value in record.items() if key not in _KEYS}

    def __getitem__(self, doc_id: str) -> Doc:
        for row in self._index.rows_of(doc_id):
            doc = self._doc(self._line(row))
            if doc.doc_id == doc_id:
                return doc
        raise KeyError(doc_id)

    def __reduce__(self) -> tuple[Callable[..., JsonlCorpus], tuple[Path, Path, bool]]:
        return _reopened, (self.path, self._index_folder, self.ignore_titles)

    def _lines(self) -> Iterator[bytes]:
        with open_file(self.path) as file:
            file.seek(int(self._index.offsets[0]))
            for line in file:
                if not line.isspace():
                    yield line

    def _line(self, row: int) -> bytes:
        start, end = self._index.offsets[row : row + 2].tolist()
        try:
            # Without a buffer, so that a document costs one read of its own size.
            with self.path.open("rb", buffering=0) as file:
                file.seek(start)
                return file.read(end - start)
        except OSError as error:
            raise BackendError(f"Cannot read {self.path}: {error.strerror or error}.") from error

    def _doc(self, line: bytes) -> Doc:
        try:
            record = orjson.loads(line)
            title = "" if self.ignore_titles else record.get("title") or ""
            return Doc(str(record["_id"]), record["text"], title)
        except (orjson.JSONDecodeError, AttributeError, KeyError) as error:
            raise BadInput(f"{self.path} was changed while it was being read; start again.") from error


def open_corpus(
    path: Path,
    *,
    ignore_titles: bool = False,
    locate: Callable[[int], Place] | None = None,
    progress: Progress = silent,
) -> JsonlCorpus:
    """The corpus of a plain JSONL file (_id, text, title), indexed on first use.

    locate(row) tells where a document came from, for messages; without it, the file's own lines. Raises
    BadInput with file and line for a line that is not JSON, has no _id, or repeats one, and for an empty corpus.

    >>> corpus = open_corpus(Path("scifact/corpus.jsonl"))  # doctest: +SKIP
    >>> corpus["4983"].title  # doctest: +SKIP
    'Microstructural development of human newborn cerebral white matter assessed in vivo by …'
    """
    folder = cache_folder() / "corpora" / key_of(_LAYOUT, file_key(path), ignore_titles)
    if not folder.is_dir():
        build_index(
            path,
            folder,
            ignore_titles=ignore_titles,
            locate=locate or (lambda row: _line_of(path, row)),
            progress=progress,
        )
    return JsonlCorpus(path, folder, ignore_titles=ignore_titles)


def _line_of(path: Path, row: int) -> Place:
    with open_file(path) as file:
        place, _ = next(islice(read_documents(file, str(path), refuse), row, None))
    return place


def _reopened(path: Path, index_folder: Path, ignore_titles: bool) -> JsonlCorpus:
    return JsonlCorpus(path, index_folder, ignore_titles=ignore_titles)


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
