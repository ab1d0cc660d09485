"""Whether a file is the one that a dataset is made of: by its published checksum, else by that of its first use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rusbeir.datasets.identity import checksum_of, key_of
from rusbeir.errors import BadInput
from rusbeir.storage import atomic_file, cache_folder


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
