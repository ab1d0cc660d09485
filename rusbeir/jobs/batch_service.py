"""Providers that answer batches of requests: what is asked of one, and OpenAI's Batch API."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pkgutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from rusbeir.errors import BadInput, RusbeirError, option, require, unknown
from rusbeir.jobs.batch_lines import URL
from rusbeir.jobs.llm import Llm
from rusbeir.jobs.throttle import Transient
from rusbeir.storage import atomic_file
from rusbeir.text import shorten

MARK = "rusbeir"
"""The name in a batch's metadata under which it has its label."""
_OVER = ("completed", "failed", "expired", "cancelled")
_WINDOW = "24h"
_REASON_CHARS = 300


class Unsettled(Exception):
    """A provider shows only when a batch is over whether it has a label; the message is the batch that it waits for."""


class BatchState(NamedTuple):
    """How far a batch is at its provider."""

    word: str
    """The provider's own word, such as in_progress."""
    is_over: bool
    n_answered: int
    files: tuple[str, ...]
    """What its answers are downloaded by."""
    error: str
    """Why the provider refused it; "" where it did not."""


class BatchService(Protocol):
    """A provider of batches. Its methods raise what Llm.chat raises for failed requests."""

    @property
    def address(self) -> str:
        """Return where it is."""
        ...

    @property
    def key_mark(self) -> str:
        """Return what tells its key from another one, eight hex digits: batches of another project cannot be seen."""
        ...

    @property
    def max_requests(self) -> int:
        """Return how many requests a batch has at most."""
        ...

    @property
    def max_bytes(self) -> int:
        """Return how long a file of requests is at most."""
        ...

    async def upload(self, path: Path, label: str) -> str:
        """Send a file of requests, and return its id there. Costs nothing."""
        ...

    async def create(self, file: str, label: str) -> str:
        """Start the batch of an uploaded file under that label, and return its id."""
        ...

    async def find(self, label: str) -> str | None:
        """The id of the batch with that label; None where there is none. May raise Unsettled."""
        ...

    async def look(self, batch: str) -> BatchState | None:
        """How far the batch is; None where the provider does not know it, or does not show it to this key."""
        ...

    async def download(self, file: str, path: Path) -> bool:
        """Write the answers of a file, as read_replies reads them; False where the file is gone."""
        ...

    async def cancel(self, batch: str) -> None:
        """Ask that no more of its requests be answered."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


SERVICES = {
    "anthropic": "rusbeir.jobs.batch_anthropic:AnthropicBatches",
    "gemini": "rusbeir.jobs.batch_gemini:GeminiBatches",
    "openai": "rusbeir.jobs.batch_service:OpenAiBatches",
}
"""The forms of batches -> "module:class", imported on use."""
API_VARIABLE = "RUSBEIR_BATCH_API"
_HOSTS = {"api.anthropic.com": "anthropic", "generativelanguage.googleapis.com": "gemini"}


def open_service(llm: Llm) -> BatchService:
    """Open the batches of a model's provider, by its host or by the form that RUSBEIR_BATCH_API names.

    Raises UnknownName for a form that does not exist.
    """
    name = os.environ.get(API_VARIABLE, "").strip() or _HOSTS.get(urlsplit(llm.endpoint).hostname or "", "openai")
    if name not in SERVICES:
        raise unknown(f"form of batches in {API_VARIABLE}", name, SERVICES)
    service: BatchService = pkgutil.resolve_name(SERVICES[name])(llm=llm)
    return service


@contextlib.contextmanager
def refusing_malformed() -> Iterator[None]:
    """Raise Transient where what a provider answers has not the form that is documented."""
    try:
        yield
    except RusbeirError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        detail = f"the answer has not the form of a batch's ({type(error).__name__}: {error})"
        raise Transient("malformed", detail=shorten(detail), billed=False) from None


def expect_id(value: Any) -> str:
    """Return the id that a provider gives. Raises TypeError for what cannot be one."""
    if not isinstance(value, str) or not value:
        raise TypeError(f"the id is {shorten(repr(value), 60)}")
    return value


def mark_key(key: str) -> str:
    """Return eight hex digits that tell a key from others, and do not give it away.

    Examples:
        >>> mark_key("none")
        'e3331964'
    """
    return hashlib.blake2b(key.encode(), digest_size=4).hexdigest()


@dataclass(frozen=True, kw_only=True)
class EndpointBatches:
    """Shared by the providers of batches; a base class, as each answers at a model's endpoint, with its key."""

    llm: Llm
    """Whose address, key and errors are the provider's."""
    _clients: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def address(self) -> str:
        """The endpoint's."""
        return self.llm.endpoint

    @property
    def key_mark(self) -> str:
        """The digest of the endpoint's key."""
        return mark_key(self.llm.key)


@dataclass(frozen=True, kw_only=True)
class OpenAiBatches(EndpointBatches):
    """OpenAI's Batch API (platform.openai.com/docs/guides/batch), and servers that speak it. For one event loop."""

    max_requests: int = 50_000
    max_bytes: int = 200_000_000

    async def upload(self, path: Path, label: str) -> str:
        """Send the file for batches, from disk."""
        openai = require("openai", "A language model", "llm")
        with path.open("rb") as file, self._reporting() as client:
            try:
                uploaded = await client.files.create(file=(f"{MARK}-{label}.jsonl", file), purpose="batch")
            except openai.NotFoundError:
                raise BadInput(
                    f"{self.address} has no Batch API. Write the requests to a file with "
                    f"{option('batch_out', 'FILE')}, or leave {option('batch', True)} out."
                ) from None
        return expect_id(uploaded.id)

    async def create(self, file: str, label: str) -> str:
        """Start the batch; the label is in its metadata."""
        with self._reporting() as client:
            batch = await client.batches.create(
                input_file_id=file, endpoint=URL, completion_window=_WINDOW, metadata={MARK: label}
            )
        return expect_id(batch.id)

    async def find(self, label: str) -> str | None:
        """The batch that has the label in its metadata."""
        with self._reporting() as client:
            async for batch in client.batches.list(limit=100):
                if (batch.metadata or {}).get(MARK) == label:
                    return expect_id(batch.id)
        return None

    async def look(self, batch: str) -> BatchState | None:
        """How far it is, by its status."""
        openai = require("openai", "A language model", "llm")
        with self._reporting() as client:
            try:
                state = await client.batches.retrieve(batch)
            except openai.NotFoundError:
                return None
        errors = (state.errors.data or []) if state.errors else []
        counts = state.request_counts
        return BatchState(
            word=state.status,
            is_over=state.status in _OVER,
            n_answered=counts.completed + counts.failed if counts else 0,
            files=tuple(file for file in (state.output_file_id, state.error_file_id) if file),
            error=shorten("; ".join(str(error.message) for error in errors), _REASON_CHARS)
            if state.status == "failed"
            else "",
        )

    async def download(self, file: str, path: Path) -> bool:
        """Write the file as it is, a piece at a time; providers remove files after some weeks."""
        openai = require("openai", "A language model", "llm")
        with self._reporting() as client:
            try:
                with atomic_file(path) as answers:
                    async with client.files.with_streaming_response.content(file) as response:
                        async for piece in _pieces(response):
                            answers.write(piece)
            except openai.NotFoundError:
                return False
        return True

    async def cancel(self, batch: str) -> None:
        """Cancel it; what has been answered is billed, and stays."""
        with self._reporting() as client:
            await client.batches.cancel(batch)

    async def close(self) -> None:
        """Close the connections. Harmless when repeated."""
        while self._clients:
            await self._clients.pop().close()

    @contextlib.contextmanager
    def _reporting(self) -> Iterator[Any]:
        """The client, whose errors are told as those of requests one by one."""
        if not self._clients:
            self._clients.append(self.llm.connect(bounded=False))
        with self.llm.reporting():
            yield self._clients[0]


async def _pieces(response: Any) -> AsyncIterator[bytes]:
    async for piece in response.iter_bytes(1 << 16):
        yield piece
