"""Answers of bounded size, whatever a server sends: for clients of httpx and of its fork httpx2, which openai uses."""

from __future__ import annotations

import sys
import zlib
from typing import Any

from rusbeir.jobs.throttle import Transient
from rusbeir.text import shorten

MAX_ANSWER_BYTES = 8 << 20
"""The longest answer that is read, decompressed: hundreds of times the longest translation."""
_GZIP_BITS = 16 + zlib.MAX_WBITS


def bound_answers(client: Any, max_bytes: int = MAX_ANSWER_BYTES) -> Any:
    """Return the async client, which from now on reads at most max_bytes of an answer, and reads them as UTF-8.

    A request raises Transient for a longer answer, whose connection is closed, and for one that cannot be unpacked.
    Time is not limited here: the Throttle cuts a request that takes too long.
    """

    async def read(response: Any) -> None:
        encoding = response.headers.pop("content-encoding", "").lower() or "identity"
        if encoding not in {"identity", "gzip"}:
            raise Transient("malformed", detail=f"the answer is packed as {shorten(encoding, 40)}, not as gzip")
        unpacker = zlib.decompressobj(_GZIP_BITS) if encoding == "gzip" else None
        body = bytearray()
        try:
            async for chunk in response.stream:
                body += unpacker.decompress(chunk, max_bytes + 1 - len(body)) if unpacker else chunk
                if len(body) > max_bytes:
                    raise Transient("malformed", detail=f"the answer is longer than {max_bytes:,} bytes")
                if unpacker and unpacker.eof:
                    break
        except zlib.error as error:
            raise Transient("malformed", detail=f"the answer cannot be unpacked ({error})") from None
        if unpacker and body and not unpacker.eof:
            raise Transient("malformed", detail="the answer was cut")
        await response.stream.aclose()
        response.stream = sys.modules[type(response).__module__].ByteStream(bytes(body))
        # JSON is UTF-8, whatever charset the header names.
        response.encoding = "utf-8"

    client.headers["Accept-Encoding"] = "gzip"
    client.event_hooks = {"response": [read]}
    return client
