"""The local file of a registered dataset: at hand, in the cache or downloaded, always with its checksum."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rusbeir.datasets.identity import digest_of, sha256_of
from rusbeir.datasets.rows import Row, row_of
from rusbeir.errors import BackendError, BadInput
from rusbeir.storage import atomic_file, cache_folder
from rusbeir.types import Progress, silent

_PACKAGE = Path(__file__).parent
_TIMEOUT_SECONDS = 60
_CHUNK_BYTES = 1 << 16


def fetch(name: str, progress: Progress = silent) -> Path:
    """The file of that dataset, downloaded where it is nowhere at hand.

    Looked for in each folder of RUSBEIR_DATA, first at the row's path, then as any file of that name below it
    with the right checksum; then in the cache. Raises BadInput where a checksum differs, BackendError where a
    download fails.

    >>> fetch("xquad/ru").name  # doctest: +SKIP
    'xquad.ru.json'
    """
    row = row_of(name)
    if row.bundled:
        return _PACKAGE / row.bundled
    found = _at_hand(row)
    if found is not None:
        return found
    if not row.url:
        raise BadInput(
            f"{row.name} needs {row.path}, and no address of it is known ({row.source}). "
            f"Put the file with sha256 {row.sha256} into a folder named in RUSBEIR_DATA."
        )
    target = _cached(row)
    _download(row, target, progress)
    return target


def _at_hand(row: Row) -> Path | None:
    for folder in _data_folders():
        exact = folder / row.path
        if exact.is_file():
            return _checked(exact, row)
        for other in sorted(folder.rglob(exact.name)):
            if other.is_file() and sha256_of(other) == row.sha256:
                return other
    cached = _cached(row)
    return _checked(cached, row) if cached.is_file() else None


def _data_folders() -> Iterator[Path]:
    for folder in os.environ.get("RUSBEIR_DATA", "").split(os.pathsep):
        if folder:
            yield Path(folder).expanduser()


def _cached(row: Row) -> Path:
    return cache_folder() / "downloads" / row.path


def _checked(path: Path, row: Row) -> Path:
    found = sha256_of(path)
    if found != row.sha256:
        raise _wrong_checksum(str(path), row, found)
    return path


def _wrong_checksum(what: str, row: Row, found: str) -> BadInput:
    return BadInput(
        f"{what} is not the file that {row.name} is made of: expected sha256 {row.sha256}, found {found}. "
        "Remove it or replace it."
    )


def _download(row: Row, target: Path, progress: Progress) -> None:
    import pooch
    import requests

    bar = _Bar(f"downloading {target.name}", progress)
    get = pooch.HTTPDownloader(progressbar=bar, chunk_size=_CHUNK_BYTES, timeout=_TIMEOUT_SECONDS)
    with atomic_file(target) as file:
        try:
            get(row.url, file, None)
        except requests.RequestException as error:
            raise BackendError(
                f"Cannot download {row.url} ({type(error).__name__}). "
                f"Try again, or put {row.path} into a folder named in RUSBEIR_DATA."
            ) from error
        file.flush()
        found = digest_of(Path(file.name))
        if found != row.sha256:
            raise _wrong_checksum(row.url, row, found)


class _Bar:
    """What pooch wants of a progress bar, told to a Progress."""

    def __init__(self, stage: str, progress: Progress) -> None:
        self.total: int | None = None
        self._stage = stage
        self._progress = progress
        self._done = 0

    def update(self, n_bytes: int) -> None:
        self._done += n_bytes
        self._progress(self._stage, self._done, self.total or None)

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        """Leave the last figure as it is."""
