"""Requests to providers whose batches have a form of their own, and what their answers become: OpenAI's lines."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import orjson

from rusbeir.errors import BadInput, option, require
from rusbeir.jobs.batch_lines import CUSTOM_ID
from rusbeir.jobs.batch_service import EndpointBatches
from rusbeir.jobs.http import MAX_ANSWER_BYTES
from rusbeir.jobs.llm import NO_HEADERS, explain_failure
from rusbeir.jobs.llm_answer import parse_response, read_error
from rusbeir.jobs.throttle import Transient
from rusbeir.storage import atomic_file

_NAME = re.compile(rb'"(?:custom_id|key)"\s*:\s*"([\w-]+)"')
"""The name of a request in a line of answers, whatever is wrong with the rest of the line."""


@dataclass(frozen=True, kw_only=True)
class NativeBatches(EndpointBatches, ABC):
    """Shared by the providers with a form of their own: requests with their headers, whose errors are Llm.chat's."""

    @property
    @abstractmethod
    def headers(self) -> Mapping[str, str]:
        """Return the headers of each request, with the key."""

    async def send(self, method: str, url: str, **parts: Any) -> Any:
        """Return the whole response to a request; None where the address does not exist."""
        async with self.stream(method, url, **parts) as response:
            if response is not None:
                await response.aread()
            return response

    @contextlib.asynccontextmanager
    async def stream(
        self, method: str, url: str, *, headers: Mapping[str, str] = NO_HEADERS, **parts: Any
    ) -> AsyncIterator[Any]:
        """Open the response to a request, which is read within the block; None where the address does not exist."""
        openai = require("openai", "A language model", "llm")
        if not self._clients:
            # A redirection would send the texts to an address that nobody gave.
            http = openai.DefaultAsyncHttpxClient(follow_redirects=False, timeout=self.llm.timeout_seconds)
            self._clients.append(http)
        client = self._clients[0]
        httpx = sys.modules[openai.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0]]
        try:
            async with client.stream(method, url, headers={**self.headers, **headers}, **parts) as response:
                if response.status_code == HTTPStatus.NOT_FOUND:
                    yield None
                    return
                if not response.is_success:
                    error = read_error((await response.aread()).decode("utf-8", "replace"))
                    raise explain_failure(
                        self.llm, response.status_code, error, response.reason_phrase, response.headers
                    )
                yield response
        except httpx.TimeoutException:
            raise Transient("timeout", detail=f"no answer within {self.llm.timeout_seconds:g} seconds") from None
        except httpx.RequestError as error:
            detail = f"no connection to {self.llm.endpoint}: {type(error).__name__}"
            raise Transient("server", detail=detail, billed=not isinstance(error, httpx.ConnectError)) from None

    async def close(self) -> None:
        """Close the connections. Harmless when repeated."""
        while self._clients:
            await self._clients.pop().aclose()

    async def ask(self, method: str, url: str, **parts: Any) -> dict[str, Any]:
        """Return the JSON object that answers a request. Raises BadInput where the address does not exist."""
        return self.read_object(await self.send(method, url, **parts))

    def read_object(self, response: Any) -> dict[str, Any]:
        """Read the JSON object in a response. Raises BadInput where the address does not exist."""
        if response is None:
            raise BadInput(
                f"{self.address} has no batches of this form. Write the requests to a file with "
                f"{option('batch_out', 'FILE')}, or leave {option('batch', True)} out."
            )
        return parse_response(response.text)

    async def save_answers(
        self, url: str, path: Path, read: Callable[[Mapping[str, Any]], bytes], **parts: Any
    ) -> bool:
        """Write the lines at an address in OpenAI's form, into which read brings each; False where it does not exist.

        Raises ValueError for a line that does not say which request it answers.
        """
        async with self.stream("GET", url, **parts) as response:
            if response is None:
                return False
            with atomic_file(path) as answers:
                async for line in read_lines(response):
                    answers.write(_convert(line, read))
        return True


async def read_lines(response: Any) -> AsyncIterator[bytes]:
    """Read the lines of a response as they come. Raises Transient for one that is too long for an answer.

    Lines of JSON end at line feeds alone: a text may have U+2028 or U+0085, which httpx takes for ends of lines, too.
    """
    line = bytearray()
    async for piece in response.aiter_bytes():
        *ends, rest = piece.split(b"\n")
        for end in ends:
            line += end
            if line.strip():
                yield bytes(line)
            line.clear()
        line += rest
        if len(line) > MAX_ANSWER_BYTES:
            raise Transient("malformed", detail=f"a line of answers is longer than {MAX_ANSWER_BYTES:,} bytes")
    if line.strip():
        yield bytes(line)


def read_name(line: bytes) -> str:
    """Read the name of the request that a line answers. Raises ValueError where the line has none."""
    if (match := _NAME.search(line)) is None:
        raise ValueError("a line does not say which request it answers")
    return match[1].decode()


def _convert(line: bytes, read: Callable[[Mapping[str, Any]], bytes]) -> bytes:
    """Return what read makes of a line; an answer without content where it cannot be read.

    Such a one was billed, and must not take the answers of other lines with it.
    """
    try:
        return read(orjson.loads(line))
    except (AttributeError, KeyError, TypeError, ValueError):
        return write_reply(read_name(line).rpartition("-")[2], HTTPStatus.OK, {})


def read_requests(path: Path) -> Iterable[tuple[str, dict[str, Any]]]:
    """Read (digest in hexadecimal digits, body) of each request in a file that rusbeir wrote.

    Raises BadInput for one that asks for what these providers do not answer.
    """
    with path.open("rb") as file:
        for line in file:
            row = orjson.loads(line)
            if row["body"].get("logprobs"):
                raise BadInput(
                    "Log-probabilities, by which runtime=llm reranks, are only asked for in batches of OpenAI's form: "
                    f"leave {option('batch', True)} out."
                )
            yield row["custom_id"].rpartition("-")[2], row["body"]


def read_schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Read the schema of the answer that a request asks for."""
    form = body.get("response_format") or {}
    schema: Mapping[str, Any] | None = form.get("json_schema", {}).get("schema")
    return schema


def read_max_tokens(body: Mapping[str, Any]) -> int | None:
    """Read how many tokens the answer to a request may have."""
    return body.get("max_tokens") or body.get("max_completion_tokens")


def split_messages(body: Mapping[str, Any]) -> tuple[str, list[Mapping[str, str]]]:
    """Return (the text of the system's messages, the other messages) of a request."""
    system = [message["content"] for message in body["messages"] if message["role"] == "system"]
    return "\n\n".join(system), [message for message in body["messages"] if message["role"] != "system"]


def write_completion(
    model: str,
    text: str,
    finish_reason: str,
    *,
    input_tokens: int,
    output_tokens: int,
    cached_input_tokens: int,
    written_input_tokens: int = 0,
) -> dict[str, Any]:
    """Return an answer as OpenAI's chat completions have it, with the tokens that a cache took in as OpenRouter's."""
    return {
        "model": model,
        "choices": [
            {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text}},
        ],
        "usage": {
            "prompt_tokens": input_tokens,
            "completion_tokens": output_tokens,
            "prompt_tokens_details": {
                "cached_tokens": cached_input_tokens,
                "cache_write_tokens": written_input_tokens,
            },
        },
    }


async def read_pieces(path: Path) -> AsyncIterator[bytes]:
    """Read a file in pieces, so that it is not in memory as a whole."""
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            yield piece


def write_reply(digest: str, status: int, body: Mapping[str, Any]) -> bytes:
    """Return the line of an answer as OpenAI's output files have it."""
    response = {"status_code": status, "body": body}
    row = {"custom_id": CUSTOM_ID.format(digest), "response": response, "error": None}
    return json.dumps(row, ensure_ascii=True).encode() + b"\n"
