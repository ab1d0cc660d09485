"""Files: opened plain or gz, from a folder or from a zip, and identified by their checksums.

Every failure is reported in one line.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import hashlib
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Protocol

from rusbeir.errors import BackendError, BadInput, require
from rusbeir.storage import atomic_file, cache_folder
from rusbeir.text import digest

_BUFFER_BYTES = 1 << 18
_TAIL_BYTES = 1 << 12
"""The end of a block, in which nearly always a line begins."""
MAX_UNPACKED_BYTES, MAX_RATIO = 64 << 20, 100
"""What a packed file may unpack to: so many bytes, or so many times its size. Texts shrink to a third or a tenth."""
PACKED = (".gz", ".zst")
"""The endings of files that are unpacked while they are read."""
MAX_LINE_BYTES = 256 << 20
"""The longest line that is read: a record of gigabytes is a mistake, and takes several times its size in memory."""
_CHECKSUM = re.compile(rb"[0-9a-f]{32}|[0-9a-f]{64}")


class Bundle(Protocol):
    """The files of one dataset, named by paths relative to its root."""

    @property
    def label(self) -> str:
        """The prefix of a file's name in messages."""
        ...

    @property
    def names(self) -> frozenset[str]: ...

    def open(self, name: str) -> AbstractContextManager[io.BufferedReader]:
        """Open the bytes of that file, without a byte order mark, unpacked if its name ends in .gz or .zst."""
        ...


@dataclass(frozen=True)
class Folder:
    """The files of a folder and of the folders in it."""

    path: Path

    @property
    def label(self) -> str:
        return f"{self.path}/"

    @cached_property
    def names(self) -> frozenset[str]:
        files = (file for pattern in ("*", "*/*") for file in self.path.glob(pattern) if file.is_file())
        return frozenset(file.relative_to(self.path).as_posix() for file in files)

    def open(self, name: str) -> AbstractContextManager[io.BufferedReader]:
        return open_file(self.path / name)


@dataclass(frozen=True)
class Zip:
    """The members of a zip, below the folder that holds queries, or the folder of that name that does.

    A zip with a member whose name points outside of its folder is refused, though no member is ever unpacked
    under its name.
    """

    path: Path
    within: str = ""

    @property
    def label(self) -> str:
        return f"{self.path}:{self._root}"

    @cached_property
    def names(self) -> frozenset[str]:
        root = self._root
        return frozenset(name.removeprefix(root) for name in self._members if name.startswith(root))

    def open(self, name: str) -> AbstractContextManager[io.BufferedReader]:
        return _stream(f"{self.label}{name}", name, lambda: self._member(self._root + name))

    @cached_property
    def _members(self) -> tuple[str, ...]:
        with (
            _stream(str(self.path), "", lambda: self.path.open("rb")) as file,
            zipfile.ZipFile(file) as archive,
        ):
            names = archive.namelist()
        for name in names:
            _refuse_escape(self.path, name)
        return tuple(name for name in names if not name.endswith("/") and not name.startswith("__MACOSX/"))

    @cached_property
    def _root(self) -> str:
        holders = [
            folder
            for folder, _, file in (name.rpartition("queries.jsonl") for name in self._members)
            if file in {"", *PACKED} and (not folder or folder.endswith("/"))
        ]
        if self.within:
            matching = [folder for folder in holders if f"/{folder}".endswith(f"/{self.within}/")]
            return min(matching, key=len, default=f"{self.within}/")
        return min(holders, key=len, default="")

    def _member(self, name: str) -> IO[bytes]:
        # An open member keeps the archive's file open.
        with zipfile.ZipFile(self.path) as archive:
            try:
                packed = archive.getinfo(name).compress_size
                return io.BufferedReader(
                    _Unpacked(archive.open(name), f"{self.path}:{name}", lambda: packed), _BUFFER_BYTES
                )
            except RuntimeError as error:
                raise BadInput(f"{self.path}: cannot unpack {name!r} ({error}); pack it again.") from error


def name_unpacked(path: Path) -> str:
    """Return the name of a file without the ending of its packing.

    >>> name_unpacked(Path("qrels/test.tsv.gz"))
    'test.tsv'
    """
    return path.name.removesuffix(path.suffix) if path.suffix in PACKED else path.name


def open_file(path: Path) -> AbstractContextManager[io.BufferedReader]:
    """Open the bytes of a file, without a byte order mark, unpacked if its name ends in .gz or .zst."""
    return _stream(str(path), path.name, lambda: io.BufferedReader(_Plain(path), _BUFFER_BYTES))


def _unpack(file: IO[bytes], name: str) -> Any:
    """Unpack a packed file, by the ending of its name."""
    if name.endswith(".gz"):
        return gzip.GzipFile(fileobj=file)
    # Python reads Zstandard from 3.14 on; Arrow, which tables need anyway, has it as well.
    pyarrow = require("pyarrow", f"Reading {name}", "hf")
    return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, mode="r"), "zstd")


@contextlib.contextmanager
def _stream(label: str, name: str, opener: Callable[[], IO[bytes]]) -> Iterator[io.BufferedReader]:
    try:
        with contextlib.ExitStack() as stack:
            file: Any = stack.enter_context(opener())
            if name.endswith(PACKED):
                unpacked = stack.enter_context(_unpack(file, name))
                # A buffer makes reading lines several times as fast.
                file = io.BufferedReader(_Unpacked(unpacked, label, file.tell), _BUFFER_BYTES)
            if file.peek(len(codecs.BOM_UTF8)).startswith(codecs.BOM_UTF8):
                file.read(len(codecs.BOM_UTF8))
            yield file
    except _LongLine as error:
        raise BadInput(
            f"{label}:{_find_line(name, opener, error.start)}: the line has more than "
            f"{MAX_LINE_BYTES >> 20} MiB. Every record is one line: cut the record into smaller ones, or put line ends "
            "between records."
        ) from None
    except (
        zipfile.BadZipFile, gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError, NotImplementedError,
        UnicodeDecodeError,
    ) as error:  # fmt: skip
        raise BadInput(f"{label}: cannot be unpacked ({error}); copy or download it again.") from error
    except FileNotFoundError as error:
        raise BadInput(f"No file {label}.") from error
    except IsADirectoryError as error:
        raise BadInput(f"{label} is a folder; give a file.") from error
    except OSError as error:
        if error.errno is None:  # Arrow's word for data that are not Zstandard's
            raise BadInput(f"{label}: cannot be unpacked ({error}); copy or download it again.") from error
        raise BackendError(f"Cannot read {label}: {error.strerror or error}.") from error


class _LongLine(Exception):
    """A line is longer than MAX_LINE_BYTES. start is the byte at which it begins."""

    def __init__(self, start: int) -> None:
        super().__init__(start)
        self.start = start


def _find_line(name: str, opener: Callable[[], IO[bytes]], start: int) -> int:
    """Find the number of the line that begins at that byte of what a file holds."""
    with contextlib.ExitStack() as stack:
        file: Any = stack.enter_context(opener())
        if name.endswith(PACKED):
            file = stack.enter_context(_unpack(file, name))
        left, line = start, 1
        while block := file.read(min(_BUFFER_BYTES, left)):
            left -= len(block)
            line += block.count(b"\n")
    return line


class _LineBound:
    """Refuses a line longer than MAX_LINE_BYTES while it is read, by one look into each block."""

    line_start = seen = 0
    """Where the last line begins, and where the bytes seen end."""

    def look(self, block: memoryview) -> None:
        """See the next bytes of the file. Raises _LongLine."""
        for tail in (block[-_TAIL_BYTES:], block):
            if (last := bytes(tail).rfind(b"\n")) >= 0:
                self.line_start = self.seen + len(block) - len(tail) + last + 1
                break
        self.seen += len(block)
        if self.seen - self.line_start > MAX_LINE_BYTES:
            raise _LongLine(self.line_start)


class _Plain(io.FileIO, _LineBound):
    """A file whose lines are bounded. A file that is read as a whole may be one line."""

    def readinto(self, buffer: Any) -> int:
        size = super().readinto(buffer)
        self.look(memoryview(buffer)[:size])
        return size

    def seek(self, offset: int, whence: int = 0) -> int:
        position = super().seek(offset, whence)
        self.line_start = self.seen = position
        return position


class _Unpacked(io.RawIOBase, _LineBound):
    """The content of a packed file, as long as that is in proportion: a few bytes may unpack to terabytes."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile, label: str, packed: Callable[[], int]) -> None:
        self._file, self._label, self._packed = file, label, packed
        self._done = 0
        self._whole = False

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._done

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._done += len(data)
        if self._done > MAX_UNPACKED_BYTES and self._done > MAX_RATIO * self._packed():
            raise BadInput(
                f"{self._label} unpacks to more than {MAX_RATIO} times its size, as no dataset does: do not trust it. "
                "If it is right, unpack it yourself."
            )
        if not self._whole:
            self.look(memoryview(data))
        return len(data)

    def readall(self) -> bytes:
        """Return the rest of the file, which may be one line."""
        self._whole = True
        return super().readall()

    def close(self) -> None:
        self._file.close()
        super().close()


def _refuse_escape(path: Path, name: str) -> None:
    parts = name.replace("\\", "/").split("/")
    if ".." in parts or not parts[0] or ":" in parts[0]:
        raise BadInput(
            f"{path}: the member {name!r} points outside of the archive; do not trust this zip, "
            "get it from its publisher again."
        )


def file_key(path: Path) -> str:
    """Return a key that changes when the file is written: a digest of its path, size, times and inode.

    Programs may set the time of modification back; nobody sets that of the last change of the inode.
    """
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise BadInput(f"No file {path}.") from error
    changes = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return digest(str(path.resolve()), *map(str, changes))


def compute_checksum(path: Path, algorithm: str) -> str:
    """Compute the sha256 or md5 (hex) of the file's bytes, read now."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, algorithm).hexdigest()
    except OSError as error:
        raise BackendError(f"Cannot read {path}: {error.strerror or error}.") from error


def checksum_of(path: Path, algorithm: str = "sha256") -> str:
    """Return the sha256 or md5 (hex) of the file's bytes; kept in the cache until the file changes."""
    known = cache_folder() / "checksums" / f"{file_key(path)}.{algorithm}"
    if known.is_file() and _CHECKSUM.fullmatch(cached := known.read_bytes()):
        return cached.decode()
    computed = compute_checksum(path, algorithm)
    # A cache that cannot be written serves to read.
    with contextlib.suppress(BackendError), atomic_file(known) as out:
        out.write(computed.encode("ascii"))
    return computed


def verify_file(
    file: Path,
    dataset: str,
    name: str,
    *,
    sha256: str = "",
    md5: str = "",
    checksum: Callable[[Path, str], str] = checksum_of,
) -> None:
    """Raise BadInput, with both checksums, if the file is not the expected one.

    Without a checksum, the sha256 is recorded in the cache under the name on first use, and compared from then on.
    """
    if sha256 or md5:
        kind, expected = ("sha256", sha256) if sha256 else ("md5", md5)
        # Of two that differ, the kept one may be damaged.
        if checksum(file, kind) != expected and (computed := compute_checksum(file, kind)) != expected:
            raise BadInput(
                f"{file} is not the file that {dataset} is made of: expected {kind} {expected}, found {computed}. "
                "Remove it or replace it."
            )
        return
    computed = checksum(file, "sha256")
    record = cache_folder() / "recorded" / digest(name)
    if not record.is_file():
        with atomic_file(record) as out:
            out.write(computed.encode("ascii"))
    elif (expected := record.read_text(encoding="ascii")) != computed:
        raise BadInput(
            f"{file} has changed since {dataset} was first used: then sha256 {expected}, now {computed}. "
            f"Restore the first file, or remove {record} to accept the new one."
        )
