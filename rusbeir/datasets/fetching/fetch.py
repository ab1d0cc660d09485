"""The local files of a registered dataset: at hand, in the cache or downloaded, and always checked."""

from __future__ import annotations

import os
from pathlib import Path

from rusbeir.datasets.checksums import check, checksum_of, digest_of
from rusbeir.datasets.fetching.download import download
from rusbeir.datasets.fetching.hub import fetch_repositories
from rusbeir.datasets.registry import Row, row_of
from rusbeir.errors import BadInput
from rusbeir.storage import cache_folder
from rusbeir.types import Progress, silent

_PACKAGE = Path(__file__).parent.parent


def fetch(name: str, progress: Progress = silent) -> Path:
    """The file of that dataset (of several repositories: the first's folder), downloaded where it is nowhere at hand.

    Looked for in each folder of RUSBEIR_DATA, first at the row's path (a repository at hub/<owner>/<name>), then,
    where its checksum is known, as any file of that name below it; then in the cache. Raises BadInput where a
    checksum differs, BackendError where a download fails, MissingExtra where the hub's library is needed.

    >>> fetch("xquad/ru").name  # doctest: +SKIP
    'xquad.ru.json'
    """
    return fetch_row(row_of(name), progress)[0]


def fetch_row(row: Row, progress: Progress) -> tuple[Path, ...]:
    """The file of that row, or the folders of its repositories."""
    if row.bundled:
        return (_PACKAGE / row.bundled,)
    folders = [Path(part).expanduser() for part in os.environ.get("RUSBEIR_DATA", "").split(os.pathsep) if part]
    if row.hub:
        return fetch_repositories(row, folders, progress)
    found = _at_hand(row, folders)
    if found is None:
        found = cache_folder() / "downloads" / row.path
        _fetch_into(found, row, progress)
    return (found,)


def _at_hand(row: Row, folders: list[Path]) -> Path | None:
    for folder in folders:
        exact = folder / row.path
        if exact.is_file():
            return _checked(exact, row)
        for other in sorted(folder.rglob(exact.name)) if row.verified else []:
            if other.is_file() and _is_right(other, row):
                return other
    cached = cache_folder() / "downloads" / row.path
    return _checked(cached, row) if cached.is_file() else None


def _is_right(path: Path, row: Row) -> bool:
    return row.sha256 == checksum_of(path, "sha256") if row.sha256 else row.md5 == checksum_of(path, "md5")


def _checked(path: Path, row: Row) -> Path:
    check(path, row.name, row.path, sha256=row.sha256, md5=row.md5)
    return path


def _fetch_into(target: Path, row: Row, progress: Progress) -> None:
    expected = f" with sha256 {row.sha256}" if row.sha256 else f" with md5 {row.md5}" if row.md5 else ""
    remedy = f"put {row.path}{expected} into a folder named in RUSBEIR_DATA"
    if not row.url:
        raise BadInput(f"{row.name} needs {row.path}, and no address of it is known ({row.source}): {remedy}.")

    def check_part(part: Path) -> None:
        check(part, row.name, row.path, sha256=row.sha256, md5=row.md5, digest=digest_of)

    download(row.url, target, check=check_part, remedy=remedy, progress=progress)
