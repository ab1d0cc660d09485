"""What HTTP answers of translation services mean: worth repeating, this text's own fault, or nothing for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from rusbeir.errors import BadInput
from rusbeir.jobs import Transient, retry_after_seconds
from rusbeir.translation.backends.outcomes import shown

TOO_LONG = frozenset({413, 414, 431})
"""Statuses of a request with more text than the server takes."""

_REPEATABLE = {408: "timeout", 425: "server", 429: "rate-limited", 529: "rate-limited"}


def transient(status: int, said: str, headers: Mapping[str, str]) -> Transient | None:
    """What to raise for a status that is worth repeating; None for any other."""
    # A redirection leads to a page for people: a login, a captcha, maintenance.
    reason = _REPEATABLE.get(status, "server" if status >= 500 or 300 <= status < 400 else "")
    if not reason:
        return None
    return Transient(
        reason, detail=shown(f"{status} {said}").strip(), retry_after=retry_after_seconds(headers.get("retry-after"))
    )


def address(value: str, what: str) -> str:
    """An address without a slash at its end; BadInput, naming what gave it, where it is none."""
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.password:
        raise BadInput(
            f"{what} is no address: it must begin with http:// or https://, name a host and hold no password."
        )
    return value.rstrip("/")


def redirected(httpx: Any, endpoint: str) -> Any:
    """An httpx transport that sends every request to another host, path and query unchanged."""
    base = httpx.URL(endpoint)

    class Redirected(httpx.AsyncHTTPTransport):  # type: ignore[misc]
        async def handle_async_request(self, request: Any) -> Any:
            request.url = request.url.copy_with(scheme=base.scheme, host=base.host, port=base.port)
            request.headers["Host"] = base.netloc.decode("ascii")
            return await super().handle_async_request(request)

    return Redirected()
