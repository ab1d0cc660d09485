"""The lines of batch files: requests as OpenAI's Batch API and offline runners take them, and what they answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from rusbeir.errors import BadInput
from rusbeir.jobs.http import MAX_ANSWER_BYTES
from rusbeir.text import shorten

URL = "/v1/chat/completions"
CUSTOM_ID = "rusbeir-{}"
"""The name of a request in files, by the hexadecimal digits of its digest."""
_CUSTOM_ID = re.compile(r"rusbeir-([0-9a-f]{32})")


class Reply(NamedTuple):
    """What a line says of one request."""

    location: str
    """The file and the line."""
    key: bytes
    """The request's digest."""
    status: int
    """HTTP status; 0 where the request was not answered at all."""
    body: str
    """The body of the response, or what was said instead of one."""


def write_request(key: bytes, body: bytes) -> bytes:
    """Return the line of a request, whose body is JSON.

    >>> write_request(bytes(16), b'{"model":"tiny"}').decode()[:62]
    '{"custom_id":"rusbeir-00000000000000000000000000000000","method'
    """
    return b'{"custom_id":"rusbeir-%s","method":"POST","url":"%s","body":%s}\n' % (
        key.hex().encode(),
        URL.encode(),
        body,
    )


def open_answers(path: Path) -> IO[bytes]:
    """Open the file. Raises BadInput where it cannot be read."""
    try:
        return path.open("rb")
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {error.strerror}. Give a file of answers.") from error


def read_replies(file: IO[bytes], name: str) -> Iterator[Reply]:
    """Read what each line of a file of answers says, in the file's order.

    Runners put the message of an error into the response or next to it. Raises BadInput, with the line, for a file of
    something else.
    """
    number = 0
    while line := file.readline(MAX_ANSWER_BYTES + 1):
        number += 1
        location = f"{name}:{number}"
        if len(line) > MAX_ANSWER_BYTES:
            raise BadInput(f"{location} is longer than {MAX_ANSWER_BYTES:,} bytes, so it is not an answer of a batch.")
        if not line.strip():
            continue
        row = _parse(line, location)
        custom_id = row.get("custom_id")
        if not isinstance(custom_id, str):
            raise BadInput(f"{location} has no custom_id, so it does not say which request it answers.")
        if (match := _CUSTOM_ID.fullmatch(custom_id)) is None:
            raise BadInput(
                f"{location} answers {shorten(repr(custom_id), 60)}, which is not a request of rusbeir. "
                "Give the answers to the file that rusbeir wrote."
            )
        yield Reply(location, bytes.fromhex(match[1]), *_read_response(row))


def _parse(line: bytes, location: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{location} is not JSON ({error}), so it is not an answer of a batch.") from error
    if not isinstance(row, dict):
        raise BadInput(f"{location} is not a JSON object, so it is not an answer of a batch.")
    return row


def _read_response(row: dict[str, Any]) -> tuple[int, str]:
    """Return (status, body) of a line."""
    response = row.get("response")
    response = response if isinstance(response, dict) else {}
    status, body = response.get("status_code"), response.get("body")
    if body is None:
        body = row.get("error")
        body = body if isinstance(body, dict) and "error" in body else {"error": body}
    if type(status) is not int:
        # Some runners leave it out where all is well.
        status = 200 if isinstance(body, dict) and "choices" in body and not row.get("error") else 0
    return status, json.dumps(body, ensure_ascii=False)
