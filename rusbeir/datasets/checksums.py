"""What tells one file from another: a cheap key while it lies there, and its checksums, kept in the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from rusbeir.errors import BackendError, BadInput
from rusbeir.storage import atomic_file, cache_folder


def key_of(*parts: object) -> str:
    """32 hex digits that stand for these parts, to name an entry of the cache."""
    return hashlib.sha256("\0".join(str(part) for part in parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def file_key(path: Path) -> str:
    """A key that changes when the file at that path is written: of its path, size and time."""
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise BadInput(f"No file {path}.") from error
    return key_of(path.resolve(), status.st_size, status.st_mtime_ns)


def sha256_of(path: Path) -> str:
    """The sha256 (hex) of the file's bytes; read once, then known from the cache until the file changes."""
    return checksum_of(path, "sha256")


def digest_of(path: Path, algorithm: str) -> str:
    """That checksum (hex) of the file's bytes, read now."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, algorithm).hexdigest()
    except OSError as error:
        raise BackendError(f"Cannot read {path}: {error.strerror or error}.") from error


def checksum_of(path: Path, algorithm: str) -> str:
    """The sha256 or md5 (hex) of the file's bytes, known as sha256_of does."""
    suffix = "" if algorithm == "sha256" else f".{algorithm}"
    known = cache_folder() / "checksums" / (file_key(path) + suffix)
    if known.is_file():
        return known.read_text(encoding="ascii")
    digest = digest_of(path, algorithm)
    with atomic_file(known) as out:
        out.write(digest.encode("ascii"))
    return digest


def check(
    file: Path,
    dataset: str,
    name: str,
    *,
    sha256: str = "",
    md5: str = "",
    digest: Callable[[Path, str], str] = checksum_of,
) -> None:
    """Raise BadInput, with both checksums, where the file is not the expected one.

    Without a checksum, the sha256 is recorded in the cache under the name at first, and compared from then on.
    """
    if sha256 or md5:
        kind, expected = ("sha256", sha256) if sha256 else ("md5", md5)
        if (found := digest(file, kind)) != expected:
            raise BadInput(
                f"{file} is not the file that {dataset} is made of: expected {kind} {expected}, found {found}. "
                "Remove it or replace it."
            )
        return
    found = digest(file, "sha256")
    record = cache_folder() / "recorded" / key_of(name)
    if not record.is_file():
        with atomic_file(record) as out:
            out.write(found.encode("ascii"))
        return
    expected = record.read_text(encoding="ascii")
    if found != expected:
        raise BadInput(
            f"{file} has changed since {dataset} was first used: then sha256 {expected}, now {found}. "
            f"Get the first one back, or remove {record} to take the new one."
        )
