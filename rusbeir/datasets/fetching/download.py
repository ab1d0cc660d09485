"""Downloads that go on where they were cut, try again and again, and put nothing half in place.

pooch moves a complete file into place; what it is given to fetch with is `Resuming`. Addresses are tried in this
order: those of RUSBEIR_MIRROR (some base addresses, apart by spaces or commas, each put in the place of scheme and
host), then the row's own. HF_ENDPOINT stands for https://huggingface.co, as in the hub's own library.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit, urlunsplit

from rusbeir.errors import BackendError, BadInput
from rusbeir.storage import cannot_write
from rusbeir.types import Progress

_CONNECT_SECONDS = 20.0
_STALL_SECONDS = 60.0
_WAIT_SECONDS = (0.5, 1.0, 2.0, 4.0)
"""Before each new try that got no further than the ones before; a try that gets further begins them anew."""
_CHUNK_BYTES = 1 << 13
"""What a cut can cost; a chunk that is not complete is lost."""
_TOLD_BYTES = 1 << 20
_WORTH_ANOTHER_TRY = frozenset({408, 425, 429, 500, 502, 503, 504})
_HUB = "https://huggingface.co/"


def download(url: str, target: Path, *, check: Callable[[Path], None], remedy: str, progress: Progress) -> None:
    """Put the file of that address at target, complete and checked.

    check raises BadInput for a wrong file. Raises that, or BackendError, whose message ends in the remedy. What
    has come of a broken download lies beside the target, ending in .part, and is gone on with the next time.
    """
    import pooch

    pooch.get_logger().setLevel("WARNING")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.with_name(f".{target.name}.lock")):
            if target.exists():
                return  # Another process has fetched it meanwhile.
            fetch = Resuming(part=target.with_name(f"{target.name}.part"), check=check, progress=progress)
            pooch.retrieve(url, known_hash=None, fname=target.name, path=target.parent, downloader=fetch)
    except _Failed as error:
        raise BackendError(f"Cannot download {url} ({error}). Try again, or {remedy}.") from error
    except OSError as error:
        raise cannot_write(target, error) from error


def addresses(url: str) -> list[str]:
    """The addresses to try, in order."""
    hub = os.environ.get("HF_ENDPOINT", "").rstrip("/")
    if hub and url.startswith(_HUB):
        url = f"{hub}/{url.removeprefix(_HUB)}"
    _, _, path, query, _ = urlsplit(url)
    mirrors = os.environ.get("RUSBEIR_MIRROR", "").replace(",", " ").split()
    return [mirror.rstrip("/") + urlunsplit(("", "", path, query, "")) for mirror in mirrors] + [url]


class _Failed(Exception):
    """No address gave the file; the message says why, in a few words."""


class _Broken(Exception):
    """A try that ended early and is worth another."""


@dataclass(frozen=True, kw_only=True)
class Resuming:
    """What pooch downloads with: into the part file, and from there, checked, to where pooch wants it."""

    part: Path
    check: Callable[[Path], None]
    progress: Progress

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        failures: list[str] = []
        wrong: BadInput | None = None
        for address in addresses(url):
            try:
                self._fetch(address)
                self.check(self.part)
            except _Failed as error:
                failures.append(f"{urlsplit(address).netloc}: {error}" if address != url else str(error))
            except BadInput as error:
                self._discard()
                wrong = BadInput(str(error).replace(str(self.part), address))
            else:
                self.part.replace(output_file)
                self._discard()
                return
        if wrong:
            raise wrong
        raise _Failed("; ".join(failures))

    def _fetch(self, address: str) -> None:
        """All bytes of the address into the part file, in as many tries as it takes while they get further."""
        furthest, tries = 0, 0
        while True:
            try:
                return self._try(address)
            except _Broken as error:
                size = self._size()
                tries = 0 if size > furthest else tries + 1
                furthest = max(furthest, size)
                if tries == len(_WAIT_SECONDS):
                    if not size:
                        self._discard()
                    raise _Failed(str(error)) from error
                time.sleep(_WAIT_SECONDS[tries])

    def _try(self, address: str) -> None:
        import requests

        done, tag = self._size(), self._tag()
        headers = {"Accept-Encoding": "identity"}
        if done and tag:
            # Without If-Range, a file that has changed meanwhile would be put together of two.
            headers |= {"Range": f"bytes={done}-", "If-Range": tag}
        try:
            with requests.get(
                address, headers=headers, stream=True, timeout=(_CONNECT_SECONDS, _STALL_SECONDS)
            ) as response:
                self._refuse(response.status_code, response.reason)
                if not _goes_on(response, done):
                    done = 0
                self._receive(response, done)
        except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
            raise _Broken(_reason(error)) from error
        except requests.RequestException as error:
            raise _Failed(_reason(error)) from error

    def _refuse(self, status: int, reason: str) -> None:
        if status == 416:
            self._discard()
            raise _Broken("the server has less of it than came before")
        if status in _WORTH_ANOTHER_TRY:
            raise _Broken(f"{status} {reason}")
        if status not in (200, 206):
            if not self._size():
                self._discard()
            raise _Failed(f"{status} {reason}")

    def _receive(self, response: Any, done: int) -> None:
        length = response.headers.get("Content-Length", "")
        total = done + int(length) if length.isdigit() and "Content-Encoding" not in response.headers else None
        stage = f"downloading {self.part.name.removesuffix('.part')}"
        with self.part.open("ab" if done else "wb") as file:
            self._tag_file.write_text(_validator(response), encoding="latin-1")
            for chunk in response.iter_content(_CHUNK_BYTES):
                file.write(chunk)
                done += len(chunk)
                if done % _TOLD_BYTES < len(chunk):
                    self.progress(stage, done, total)
            _sync(file)
        self.progress(stage, done, total)
        if total is not None and done != total:
            raise _Broken(f"cut at {done:,} of {total:,} bytes")

    @property
    def _tag_file(self) -> Path:
        return self.part.with_name(f"{self.part.name}.tag")

    def _tag(self) -> str:
        return self._tag_file.read_text(encoding="latin-1") if self._tag_file.is_file() else ""

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def _discard(self) -> None:
        self.part.unlink(missing_ok=True)
        self._tag_file.unlink(missing_ok=True)


def _goes_on(response: Any, done: int) -> bool:
    """Whether the answer begins where the part file ends; a server that knows no ranges sends all of it."""
    ranges = str(response.headers.get("Content-Range"))
    return int(response.status_code) == 206 and ranges.startswith(f"bytes {done}-")


def _validator(response: Any) -> str:
    """What If-Range can be asked with, by which the server knows this version of the file; empty for nothing."""
    tag = str(response.headers.get("ETag", ""))
    return tag if tag and not tag.startswith("W/") else str(response.headers.get("Last-Modified", ""))


def _reason(error: Exception) -> str:
    text = str(error).lower()
    if "timed out" in text or "timeout" in type(error).__name__.lower():
        return f"nothing came for {_STALL_SECONDS:g} s"
    if "incompleteread" in text or "incomplete read" in text:
        return "the connection was cut"
    return type(error).__name__


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of that file, and take the file away at the end; no lock where the system has none."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    while True:
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not path.exists() or os.fstat(file.fileno()).st_ino != path.stat().st_ino:
                continue  # Whoever held it has removed the file: the lock is on nothing.
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return
