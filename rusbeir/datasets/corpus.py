"""A corpus on disk: a plain JSONL file, and an offset index for it in the cache; its ids alone, for other indexes."""

from __future__ import annotations

import hashlib
import mmap
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, SupportsIndex, overload

import numpy as np
import numpy.typing as npt
import orjson

from rusbeir.datasets.formats.files import checksum_of, compute_checksum, file_key, open_file
from rusbeir.datasets.formats.records import (
    LANGUAGE_KEY,
    Extra,
    Place,
    parse_record,
    read_documents,
    read_language,
    refuse,
)
from rusbeir.errors import BackendError, BadInput, RusbeirError
from rusbeir.notebook import BrowsableCorpus, place_in
from rusbeir.storage import atomic_folder, cache_folder
from rusbeir.text import digest
from rusbeir.types import Doc, Progress, canonical_line, silent

_KEYS = frozenset({"_id", "title", "text", LANGUAGE_KEY})
_META = "meta.json"
_ARRAYS = ("offsets", "hashes", "rows")
_INDEX_VERSION = "6"
"""Raised when the files of an index change, so that indexes of an older version are not used."""


class JsonlCorpus(BrowsableCorpus):
    """Documents of a JSONL file in file order, read when asked for; memory does not grow with the corpus.

    It can be pickled and shared between threads: every look-up opens the file again.
    """

    def __init__(self, path: Path, index_folder: Path, *, ignore_titles: bool = False) -> None:
        self.path = path
        self.ignore_titles = ignore_titles
        self._index_folder = index_folder
        self._offsets, self._hashes, self._rows = (
            np.load(index_folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS
        )
        meta = orjson.loads((index_folder / _META).read_bytes())
        self.sha256: str = meta["sha256"]
        self.spaced_id: str = meta["spaced_id"]
        """The first document id that has white space, which TREC's formats cannot hold; "" if there is none."""
        self.languages: Mapping[str, int] = meta["languages"]
        """Language -> the number of its documents, the tag "" counting those that name none."""

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Doc]:
        return (self._read(line)[0] for line in self._lines())

    def whole(self) -> Iterator[tuple[Doc, Extra]]:
        """Yield the documents, each with the keys of its record other than _id, title, text and lang."""
        for line in self._lines():
            doc, record = self._read(line)
            yield doc, {key: value for key, value in record.items() if key not in _KEYS}

    @overload
    def __getitem__(self, key: str | SupportsIndex) -> Doc: ...

    @overload
    def __getitem__(self, key: slice) -> list[Doc]: ...

    def __getitem__(self, key: str | SupportsIndex | slice) -> Doc | list[Doc]:
        if isinstance(key, slice):
            return [self[row] for row in range(len(self))[key]]
        if isinstance(key, str):
            id_hash = np.uint64(hash_id(key))
            first, last = (int(np.searchsorted(self._hashes, id_hash, side)) for side in ("left", "right"))
            # Nearly always one row or none.
            rows = self._rows[first:last].tolist()
        else:
            rows = [place_in(len(self), key)]
        for row in rows:
            start, end = self._offsets[row : row + 2].tolist()
            try:
                # Without a buffer, a document costs one read of its own size.
                with self.path.open("rb", buffering=0) as file:
                    file.seek(start)
                    doc, _ = self._read(file.read(end - start))
            except OSError as error:
                raise BackendError(f"Cannot read {self.path}: {error.strerror or error}.") from error
            if doc.doc_id == key or not isinstance(key, str):
                return doc
        raise KeyError(key)

    def __reduce__(self) -> tuple[Callable[..., JsonlCorpus], tuple[Path, Path, bool]]:
        return _reopen, (self.path, self._index_folder, self.ignore_titles)

    def _lines(self) -> Iterator[bytes]:
        with open_file(self.path) as file:
            file.seek(int(self._offsets[0]))
            for line in file:
                if not line.isspace():
                    yield line

    def _read(self, line: bytes) -> tuple[Doc, dict[str, Any]]:
        """Read the document of a line, and its record."""
        try:
            record = parse_record(line)
            title = "" if self.ignore_titles else record.get("title") or ""
            tag = record.get(LANGUAGE_KEY)
            language = (read_language(tag) or "") if tag else ""
            return Doc(str(record["_id"]), record["text"], title, language), record
        except (orjson.JSONDecodeError, AttributeError, KeyError) as error:
            raise BadInput(f"{self.path} was changed while it was being read. Start again.") from error


def open_corpus(
    path: Path,
    *,
    ignore_titles: bool = False,
    locate: Callable[[int], Place] | None = None,
    progress: Progress = silent,
) -> JsonlCorpus:
    """Open the corpus of a plain JSONL file (_id, text, title, lang), indexed on first use.

    locate(row) tells where a document came from, for messages; by default, the line of this file. Raises BadInput
    with file and line for a line that is not JSON, has no _id, or repeats one, and for an empty corpus.

    Examples:
        >>> corpus = open_corpus(Path("scifact/corpus.jsonl"))  # doctest: +SKIP
        >>> corpus["4983"].title  # doctest: +SKIP
        'Microstructural development of human newborn cerebral white matter assessed in vivo by …'
    """
    folder = _index_folder(path, ignore_titles)
    if not folder.is_dir():
        with open_file(path) as file:
            build_index(
                path,
                ((doc, file.tell()) for _, doc, _ in read_documents(file, str(path), refuse)),
                start=file.tell(),
                total=path.stat().st_size,
                ignore_titles=ignore_titles,
                locate=locate or partial(_line_of, path),
                progress=progress,
            )
    try:
        meta = orjson.loads((folder / _META).read_bytes())
        arrays = [checksum_of(folder / f"{name}.npy") for name in _ARRAYS]
        if meta.pop("check") != digest(orjson.dumps(meta).decode(), *arrays):
            raise ValueError("it has changed since it was written")
    except (KeyError, OSError, RusbeirError, TypeError, ValueError) as error:
        raise BackendError(
            f"The index of {path} in {folder} is damaged ({error}). Remove it with `rusbeir cache clear corpora`; it "
            "is then made again."
        ) from error
    return JsonlCorpus(path, folder, ignore_titles=ignore_titles)


def _index_folder(path: Path, ignore_titles: bool) -> Path:
    return cache_folder() / "corpora" / digest(_INDEX_VERSION, file_key(path), str(ignore_titles))


def _line_of(path: Path, row: int) -> Place:
    with open_file(path) as file:
        location, *_ = next(islice(read_documents(file, str(path), refuse), row, None))
    return location


def _reopen(path: Path, index_folder: Path, ignore_titles: bool) -> JsonlCorpus:
    return JsonlCorpus(path, index_folder, ignore_titles=ignore_titles)


_REPORT_EVERY = 10_000

Array = npt.NDArray[Any]


def hash_id(record_id: str) -> int:
    """Return a 64-bit hash of an id."""
    return int.from_bytes(hashlib.blake2b(record_id.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def build_index(
    path: Path,
    documents: Iterable[tuple[Doc, int]],
    *,
    start: int = 0,
    total: int = 0,
    ignore_titles: bool,
    locate: Callable[[int], Place],
    progress: Progress,
) -> None:
    """Index a JSONL corpus in one pass; its folder in the cache appears when all of it is valid.

    documents are those of the file, each with the byte at which its line ends. The file need not be there before the
    last of them: it may be written as they pass. start is where the first begins, total the bytes of the file, 0 if
    not known yet. locate(row) is called only for messages. Raises BadInput for an empty corpus and for a repeated id.
    """
    offsets, hashes = array("q"), array("Q")
    spaced_id = ""
    content = hashlib.sha256()
    languages: Counter[str] = Counter()
    end = start
    for doc, doc_end in documents:
        # A row starts where the one before ended, so blank lines belong to the row after them.
        offsets.append(end)
        end = doc_end
        hashes.append(hash_id(doc.doc_id))
        if not spaced_id and doc.doc_id.split() != [doc.doc_id]:
            spaced_id = doc.doc_id
        languages[doc.language] += 1
        title = "" if ignore_titles else doc.title
        content.update(canonical_line(doc.doc_id, title, doc.text, language=doc.language))
        if total and len(offsets) % _REPORT_EVERY == 0:
            # How many there will be is estimated from the bytes read.
            progress(f"indexing {path.name}", len(offsets), round(len(offsets) * total / end))
    if not hashes:
        raise BadInput(f"{path}: the corpus is empty; a dataset needs at least one document.")
    offsets.append(end)
    starts, by_row = np.frombuffer(offsets, dtype=np.int64), np.frombuffer(hashes, dtype=np.uint64)
    order = np.argsort(by_row, kind="stable")
    ordered = by_row[order]
    if len(same := np.flatnonzero(ordered[1:] == ordered[:-1])):
        _refuse_repeats(path, starts, [(int(order[i + 1]), int(order[i])) for i in same], locate)
    with atomic_folder(_index_folder(path, ignore_titles), keyed=True) as new:
        for name, values in zip(_ARRAYS, (starts, ordered, order), strict=True):
            np.save(new / f"{name}.npy", values)
        arrays = [compute_checksum(new / f"{name}.npy", "sha256") for name in _ARRAYS]
        meta = {"sha256": content.hexdigest(), "spaced_id": spaced_id, "languages": dict(languages)}
        check = digest(orjson.dumps(meta).decode(), *arrays)
        (new / _META).write_bytes(orjson.dumps({**meta, "check": check}))
    progress(f"indexing {path.name}", len(hashes), len(hashes))


def _refuse_repeats(
    path: Path, starts: Array, pairs: Iterable[tuple[int, int]], locate: Callable[[int], Place]
) -> None:
    """Raise BadInput if the documents of a pair of rows, whose hashes are equal, have the same id."""
    for row, earlier in sorted(pairs):
        with path.open("rb") as file:
            ids = []
            for n in (row, earlier):
                file.seek(starts[n])
                ids.append(str(parse_record(file.read(starts[n + 1] - starts[n]))["_id"]))
        if ids[0] == ids[1]:
            location, first = locate(row), locate(earlier)
            refuse("repeat", location, f"the id {ids[0]!r} is used already at {first}; ids must be unique")


_ID_TEXT, _ID_ENDS = "doc_ids.utf8", "doc_ids.offsets"
"""Files of an index: the ids of its documents end to end, and the byte at which each begins."""
_MAX_LISTED_ROWS = 2_000_000
"""Corpora up to this size have their ids in memory while they are searched (about 60 bytes each)."""


def write_ids(folder: Path, docs: Iterable[Doc]) -> Generator[Doc, None, None]:
    """Yield the documents, and write their ids to the folder as they pass; memory does not grow with them."""
    end = 0
    with (folder / _ID_TEXT).open("wb") as texts, (folder / _ID_ENDS).open("wb") as ends:
        ends.write(bytes(8))
        for doc in docs:
            end += texts.write(doc.doc_id.encode())
            ends.write(end.to_bytes(8, sys.byteorder))
            yield doc


class DocIds:
    """The ids that write_ids wrote, by row."""

    def __init__(self, folder: Path) -> None:
        self._offsets: npt.NDArray[np.uint64] = np.memmap(folder / _ID_ENDS, dtype=np.uint64, mode="r")
        with (folder / _ID_TEXT).open("rb") as file:
            self._text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.count = len(self._offsets) - 1
        self._list: list[str] | None = None
        # Half of what a search of 1,000 hits takes would go into cutting ids out of the file.
        if self.count <= _MAX_LISTED_ROWS:
            self._list = self.read(range(self.count))

    def read(self, rows: Sequence[int]) -> list[str]:
        """Read the ids of those rows, in their order."""
        if (ids := self._list) is not None:
            return [ids[row] for row in rows]
        indices = np.asarray(rows, dtype=np.int64)
        starts, ends = self._offsets[indices].tolist(), self._offsets[indices + 1].tolist()
        text = self._text
        return [text[start:end].decode() for start, end in zip(starts, ends, strict=True)]
