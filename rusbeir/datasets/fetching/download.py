"""Downloads that resume where they were cut, are repeated when they fail, and put nothing incomplete in place.

Addresses are tried in this order: those of RUSBEIR_MIRROR (base addresses, separated by spaces or commas, each put in
the place of scheme and host), then the entry's own. HF_ENDPOINT stands for https://huggingface.co, as in the hub's
own library.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from rusbeir.errors import BackendError, BadInput
from rusbeir.storage import cache_folder, cannot_write, hold_when_free
from rusbeir.text import digest, hide_passwords
from rusbeir.types import Progress

_CONNECT_SECONDS = 20.0
_STALL_SECONDS = 60.0
_WAIT_SECONDS = (0.5, 1.0, 2.0, 4.0)
"""Before each further try without progress; a try that receives more bytes starts the list again."""
_CHUNK_BYTES = 1 << 13
"""The most that a cut connection can cost; an incomplete chunk is lost."""
_REPORT_BYTES = 1 << 20
MAX_BYTES = 32 << 30
"""The most that one file may hold: several times the largest that is registered, so that no server fills the disk."""
_TEMPORARY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_HUB = "https://huggingface.co/"


class NotAtHand(BadInput):
    """Files of a dataset are neither in a folder of RUSBEIR_DATA nor in the cache, and are not to be fetched."""


def download(url: str, target: Path, *, check: Callable[[Path], None], remedy: str, progress: Progress) -> None:
    """Put the file of that address at target, complete and checked, unless another process has done so meanwhile.

    check raises BadInput for a wrong file. Raises that, or BackendError, whose message ends in the remedy. The part
    of a broken download is kept next to the target, ending in .part, and the next call resumes it.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(target, error) from error
    with contextlib.closing(hold_when_free(cache_folder() / "locks" / digest(str(target)), target)):
        if target.exists():
            return
        part = _Part(path=target.with_name(f"{target.name}.part"), progress=progress)
        try:
            _fetch_from_any(url, part, check)
            part.path.replace(target)
            part.discard()
        except _Failed as error:
            raise BackendError(f"Cannot download {url} ({error}). Try again, or {remedy}.") from error
        except OSError as error:
            raise cannot_write(target, error) from error


def list_addresses(url: str) -> list[str]:
    """List the addresses to try, in order."""
    hub = os.environ.get("HF_ENDPOINT", "").rstrip("/")
    if hub and url.startswith(_HUB):
        url = f"{hub}/{url.removeprefix(_HUB)}"
    _, _, path, query, _ = urlsplit(url)
    mirrors = os.environ.get("RUSBEIR_MIRROR", "").replace(",", " ").split()
    return [mirror.rstrip("/") + urlunsplit(("", "", path, query, "")) for mirror in mirrors] + [url]


class _Failed(Exception):
    """No address gave the file; the message says why, in a few words."""


class _Broken(Exception):
    """A try ended early and is worth another."""


def _fetch_from_any(url: str, part: _Part, check: Callable[[Path], None]) -> None:
    failures: list[str] = []
    wrong: BadInput | None = None
    for address in list_addresses(url):
        try:
            part.fetch(address)
            return check(part.path)
        except _Failed as error:
            failures.append(f"{urlsplit(hide_passwords(address)).netloc}: {error}" if address != url else str(error))
        except BadInput as error:
            part.discard()
            wrong = BadInput(str(error).replace(str(part.path), hide_passwords(address)))
    raise wrong or _Failed("; ".join(failures))


@dataclass(frozen=True, kw_only=True)
class _Part:
    """The file that a download is collected in, and next to it the tag of the version that it is a part of."""

    path: Path
    progress: Progress

    def fetch(self, address: str) -> None:
        """Receive all bytes of the address, in as many tries as it takes as long as they bring more."""
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
                        self.discard()
                    raise _Failed(str(error)) from error
                time.sleep(_WAIT_SECONDS[tries])

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self._tag_file.unlink(missing_ok=True)

    def _try(self, address: str) -> None:
        import requests

        done = self._size()
        tag = self._tag_file.read_text(encoding="latin-1") if self._tag_file.is_file() else ""
        headers = {"Accept-Encoding": "identity"}
        if done and tag:
            # Without If-Range, the parts of two versions of a file could be joined.
            headers |= {"Range": f"bytes={done}-", "If-Range": tag}
        try:
            with requests.get(
                address, headers=headers, stream=True, timeout=(_CONNECT_SECONDS, _STALL_SECONDS)
            ) as response:
                self._refuse(response.status_code, response.reason)
                # A server that does not support ranges sends the whole file.
                start = str(response.headers.get("Content-Range"))
                resumes = response.status_code == 206 and start.startswith(f"bytes {done}-")
                self._receive(response, done if resumes else 0)
        except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
            raise _Broken(_reason(error)) from error
        except requests.RequestException as error:
            raise _Failed(_reason(error)) from error

    def _refuse(self, status: int, reason: str) -> None:
        if status == 416:
            self.discard()
            raise _Broken("the server's file is shorter than the part that was received before")
        if status in _TEMPORARY_STATUS:
            raise _Broken(f"{status} {reason}")
        if status not in (200, 206):
            if not self._size():
                self.discard()
            raise _Failed(f"{status} {reason}")

    def _receive(self, response: Any, done: int) -> None:
        length = response.headers.get("Content-Length", "")
        total = done + int(length) if length.isdigit() and "Content-Encoding" not in response.headers else None
        stage = f"downloading {self.path.name.removesuffix('.part')}"
        if (total or 0) > MAX_BYTES:
            raise _Failed(f"the server's file has {total:,} bytes, more than the {MAX_BYTES:,} of any dataset")
        # If-Range takes a strong tag or a date.
        tag = str(response.headers.get("ETag", ""))
        if not tag or tag.startswith("W/"):
            tag = str(response.headers.get("Last-Modified", ""))
        with self.path.open("ab" if done else "wb") as file:
            self._tag_file.write_text(tag, encoding="latin-1")
            for chunk in response.iter_content(_CHUNK_BYTES):
                file.write(chunk)
                done += len(chunk)
                if done > MAX_BYTES:
                    self.discard()
                    raise _Failed(f"the server's file has more than the {MAX_BYTES:,} bytes of any dataset")
                if done % _REPORT_BYTES < len(chunk):
                    self.progress(stage, done, total)
            file.flush()
            os.fsync(file.fileno())
        self.progress(stage, done, total)
        if total is not None and done != total:
            raise _Broken(f"cut at {done:,} of {total:,} bytes")

    @property
    def _tag_file(self) -> Path:
        return self.path.with_name(f"{self.path.name}.tag")

    def _size(self) -> int:
        return self.path.stat().st_size if self.path.is_file() else 0


def _reason(error: Exception) -> str:
    text = str(error).lower()
    if "timed out" in text or "timeout" in type(error).__name__.lower():
        return f"no data for {_STALL_SECONDS:g} s"
    if "incompleteread" in text or "incomplete read" in text:
        return "the connection was cut"
    return type(error).__name__
