"""Anthropic's Message Batches (platform.claude.com/docs/en/build-with-claude/batch-processing)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from rusbeir.jobs.batch_native import (
    NativeBatches,
    read_lines,
    read_max_tokens,
    read_name,
    read_requests,
    read_schema,
    split_messages,
    write_completion,
    write_reply,
)
from rusbeir.jobs.batch_service import BatchState, Unsettled, expect_id

_VERSION = "2023-06-01"
_MARK_DIGITS = 24
"""The digits of a label in each custom_id, which has 64 characters at most."""
_FINISH = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "content_filter"}
"""stop_reason -> OpenAI's word; all others are "stop"."""
_REFUSED = {"invalid_request_error": 400, "request_too_large": 413}
"""Errors that the same request has again. Others pass, and are not billed."""
_BOUNDS = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
    }
)
"""Keywords of JSON Schema for which structured outputs refuse a request."""
_NAMED = ("properties", "$defs", "definitions")
"""Keywords whose values are schemas by names, which may be those of keywords."""
_VALUES = ("enum", "const")
"""Keywords whose values are no schemas."""
_MAX_TOKENS = 4096
"""Messages need a limit; requests of rusbeir have one but for those of the user's own questions."""


@dataclass(frozen=True, kw_only=True)
class AnthropicBatches(NativeBatches):
    """Anthropic's batches. For one event loop.

    They have neither files nor metadata: the requests are sent as the batch is created, and its label is in the
    custom_id of each, which results alone show. So a batch whose creation was not answered is found once it has ended.
    """

    max_requests: int = 100_000
    max_bytes: int = 32_000_000
    """256 MB are allowed; a smaller batch keeps what is in memory small."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the key and the version of the API."""
        return {"x-api-key": self.llm.key, "anthropic-version": _VERSION}

    @property
    def _batches(self) -> str:
        return f"{self.llm.endpoint.rstrip('/')}/messages/batches"

    async def upload(self, path: Path, label: str) -> str:
        """Return the path: the requests are sent with the batch."""
        return str(path)

    async def create(self, file: str, label: str) -> str:
        """Send the requests, each with the label in its custom_id."""
        requests = [
            {"custom_id": f"{label[:_MARK_DIGITS]}-{digest}", "params": write_params(body)}
            for digest, body in read_requests(Path(file))
        ]
        content = orjson.dumps({"requests": requests})
        headers = {"content-type": "application/json"}
        response = await self.send("POST", self._batches, content=content, headers=headers)
        return expect_id(self.read_object(response)["id"])

    async def find(self, label: str) -> str | None:
        """The batch whose results have the label. Raises Unsettled while one is under way that may have it."""
        under_way = None
        after: str | None = None
        while True:
            params = {"limit": 100, **({"after_id": after} if after else {})}
            page = await self.ask("GET", self._batches, params=params)
            for batch in page["data"]:
                if batch["processing_status"] != "ended":
                    under_way = str(batch["id"])
                elif await self._has_label(batch["id"], label):
                    return str(batch["id"])
            if not page.get("has_more"):
                break
            after = page["last_id"]
        if under_way is not None:
            raise Unsettled(under_way)
        return None

    async def look(self, batch: str) -> BatchState | None:
        """How far it is, by its status and its counts."""
        response = await self.send("GET", f"{self._batches}/{batch}")
        if response is None:
            return None
        state = self.read_object(response)
        counts = state["request_counts"]
        is_over = state["processing_status"] == "ended"
        return BatchState(
            word="cancelled" if is_over and counts["canceled"] else state["processing_status"],
            is_over=is_over,
            n_answered=sum(count for name, count in counts.items() if name != "processing"),
            files=(batch,) if is_over else (),
            error="",
        )

    async def download(self, file: str, path: Path) -> bool:
        """Write the results of a batch as OpenAI's lines."""
        return await self.save_answers(f"{self._batches}/{file}/results", path, read_result)

    async def cancel(self, batch: str) -> None:
        """Cancel it; what has been answered is billed, and stays."""
        await self.ask("POST", f"{self._batches}/{batch}/cancel")

    async def _has_label(self, batch: str, label: str) -> bool:
        """Whether the first result of a batch that has ended has the label."""
        async with self.stream("GET", f"{self._batches}/{batch}/results") as response:
            if response is None:
                return False
            async for line in read_lines(response):
                return read_name(line).startswith(f"{label[:_MARK_DIGITS]}-")
        return False


def write_params(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request as the Messages API has it: the prompt that requests share may come from the provider's cache.

    It has no seeds.

    Examples:
        >>> write_params({"model": "haiku", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9})
        {'model': 'haiku', 'max_tokens': 9, 'messages': [{'role': 'user', 'content': 'Hi'}]}
    """
    system, messages = split_messages(body)
    params: dict[str, Any] = {"model": body["model"], "max_tokens": read_max_tokens(body) or _MAX_TOKENS}
    params["messages"] = messages
    if system:
        params["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
    if "temperature" in body:
        params["temperature"] = body["temperature"]
    if (schema := read_schema(body)) is not None:
        params["output_config"] = {"format": {"type": "json_schema", "schema": _loosen(schema)}}
    return params


def _loosen(schema: Any) -> Any:
    """Return a schema without bounds on values, which those who read the answers check."""
    if isinstance(schema, list):
        return [_loosen(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    loose: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _NAMED:
            loose[name] = {key: _loosen(part) for key, part in value.items()}
        elif name not in _BOUNDS:
            loose[name] = value if name in _VALUES else _loosen(value)
    return loose


def read_result(row: Mapping[str, Any]) -> bytes:
    """Return the line of OpenAI's form that says the same as a result."""
    digest, result = str(row["custom_id"]).rpartition("-")[2], row["result"]
    if result["type"] == "succeeded":
        message, usage = result["message"], result["message"]["usage"]
        cached, written = (usage.get(f"cache_{name}_input_tokens") or 0 for name in ("read", "creation"))
        body = write_completion(
            message["model"],
            "".join(block["text"] for block in message["content"] if block["type"] == "text"),
            _FINISH.get(message["stop_reason"], "stop"),
            input_tokens=usage["input_tokens"] + cached + written,
            output_tokens=usage["output_tokens"],
            cached_input_tokens=cached,
            written_input_tokens=written,
        )
        return write_reply(digest, 200, body)
    if result["type"] == "errored":
        error = result["error"].get("error", result["error"])
        return write_reply(digest, _REFUSED.get(error.get("type"), 500), {"error": error})
    return write_reply(digest, 0, {"error": {"message": f"the request was {result['type']}"}})
