"""The local files of a registered dataset: found, cached or downloaded, and always verified."""

from __future__ import annotations

import os
from pathlib import Path

from rusbeir.datasets.fetching.download import NotAtHand, download
from rusbeir.datasets.fetching.hub import fetch_repositories
from rusbeir.datasets.formats.files import checksum_of, compute_checksum, verify_file
from rusbeir.datasets.registry import RegistryEntry, get_entry
from rusbeir.storage import cache_folder
from rusbeir.types import Progress, silent

_PACKAGE = Path(__file__).parent.parent


def fetch(name: str, progress: Progress = silent) -> Path:
    """The file of that dataset (of several repositories: the first's folder), downloaded if it is not found locally.

    It is looked for in each folder of RUSBEIR_DATA, first at the entry's path (a repository at hub/<owner>/<name>),
    then, if its checksum is known, as any file of that name below it; then in the cache. Raises BadInput if a checksum
    differs, BackendError if a download fails, MissingExtra if the hub's library is needed.

    Examples:
        >>> fetch("xquad/ru").name  # doctest: +SKIP
        'xquad.ru.json'
    """
    return fetch_entry(get_entry(name), progress)[0]


def fetch_entry(entry: RegistryEntry, progress: Progress, *, allow_download: bool = True) -> tuple[Path, ...]:
    """The file of that entry, or the folders of its repositories. Raises NotAtHand for what may not be downloaded."""
    if entry.bundled:
        return (_PACKAGE / entry.bundled,)
    folders = [Path(part).expanduser() for part in os.environ.get("RUSBEIR_DATA", "").split(os.pathsep) if part]
    if entry.hub:
        return fetch_repositories(entry, folders, progress, allow_download=allow_download)
    for folder in folders:
        exact = folder / entry.path
        if exact.is_file():
            verify_file(exact, entry.name, entry.path, sha256=entry.sha256, md5=entry.md5)
            return (exact,)
        for other in sorted(folder.rglob(exact.name)) if entry.verified else []:
            kind, expected = ("sha256", entry.sha256) if entry.sha256 else ("md5", entry.md5)
            if other.is_file() and checksum_of(other, kind) == expected:
                return (other,)
    cached = cache_folder() / "downloads" / entry.path
    if cached.is_file():
        verify_file(cached, entry.name, entry.path, sha256=entry.sha256, md5=entry.md5)
    else:
        _download(entry, cached, progress, allow_download)
    return (cached,)


def _download(entry: RegistryEntry, target: Path, progress: Progress, allow_download: bool) -> None:
    expected = f" with sha256 {entry.sha256}" if entry.sha256 else f" with md5 {entry.md5}" if entry.md5 else ""
    remedy = f"put {entry.path}{expected} into a folder named in RUSBEIR_DATA"
    if not entry.url:
        raise NotAtHand(f"{entry.name} needs {entry.path}, whose address is not known ({entry.source}): {remedy}.")
    if not allow_download:
        raise NotAtHand(
            f"{entry.name} needs {entry.path}, which is not on this machine: `rusbeir datasets fetch {entry.name}`, "
            f"or {remedy}."
        )

    def check(part: Path) -> None:
        verify_file(part, entry.name, entry.path, sha256=entry.sha256, md5=entry.md5, checksum=compute_checksum)

    download(entry.url, target, check=check, remedy=remedy, progress=progress)
