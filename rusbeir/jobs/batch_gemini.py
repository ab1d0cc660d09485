"""Gemini's batches (ai.google.dev/gemini-api/docs/batch-api and ai.google.dev/api/batch-mode)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from rusbeir.errors import BackendError
from rusbeir.jobs.batch_lines import CUSTOM_ID
from rusbeir.jobs.batch_native import (
    NativeBatches,
    read_max_tokens,
    read_pieces,
    read_requests,
    read_schema,
    split_messages,
    write_completion,
    write_reply,
)
from rusbeir.jobs.batch_service import MARK, BatchState, expect_id
from rusbeir.storage import atomic_file
from rusbeir.text import shorten

_PREFIX = "BATCH_STATE_"
_OVER = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")
_FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}
"""finishReason -> OpenAI's word; all others are filters of content."""
_LASTING = {3: 400, 9: 400, 11: 400}
"""Codes of gRPC that the same request has again (INVALID_ARGUMENT, FAILED_PRECONDITION, OUT_OF_RANGE) -> that of HTTP.

They are those that google.rpc.Code maps to 400.
"""
_REASON_CHARS = 300


@dataclass(frozen=True, kw_only=True)
class GeminiBatches(NativeBatches):
    """Gemini's batches of a file. For one event loop.

    The address of its model is that of Gemini's endpoint for OpenAI's clients.
    """

    max_requests: int = 50_000
    max_bytes: int = 1_000_000_000
    """2 GB are allowed."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the key."""
        return {"x-goog-api-key": self.llm.key}

    @property
    def _api(self) -> str:
        """The address of the API, such as https://generativelanguage.googleapis.com/v1beta."""
        return self.llm.endpoint.rstrip("/").removesuffix("/openai")

    def _address_of(self, kind: str) -> str:
        """The address of the API for uploads or downloads."""
        host, _, version = self._api.rpartition("/")
        return f"{host}/{kind}/{version}"

    async def upload(self, path: Path, label: str) -> str:
        """Send the requests in Gemini's form, and return the model with the name of the file."""
        model = ""
        converted = path.with_suffix(".gemini.jsonl")
        with atomic_file(converted) as file:
            for digest, body in read_requests(path):
                model = str(body["model"])
                row = {"key": CUSTOM_ID.format(digest), "request": write_request(body)}
                file.write(orjson.dumps(row) + b"\n")
        try:
            name = await self._send_file(converted, label)
        finally:
            converted.unlink()
        return f"{model} {name}"

    async def _send_file(self, path: Path, label: str) -> str:
        size = str(path.stat().st_size)
        start = await self.send(
            "POST",
            f"{self._address_of('upload')}/files",
            json={"file": {"display_name": f"{MARK}-{label}"}},
            headers={
                "X-Goog-Upload-Protocol": "resumable",
                "X-Goog-Upload-Command": "start",
                "X-Goog-Upload-Header-Content-Length": size,
                "X-Goog-Upload-Header-Content-Type": "application/jsonl",
            },
        )
        if start is None or "x-goog-upload-url" not in start.headers:
            raise BackendError(f"{self.address} takes no files for batches.")
        uploaded = await self.send(
            "POST",
            start.headers["x-goog-upload-url"],
            content=read_pieces(path),
            headers={
                "Content-Length": size, "X-Goog-Upload-Offset": "0", "X-Goog-Upload-Command": "upload, finalize"
            },
        )  # fmt: skip
        return expect_id(self.read_object(uploaded)["file"]["name"])

    async def create(self, file: str, label: str) -> str:
        """Start the batch; the label is its displayed name."""
        model, _, name = file.partition(" ")
        batch = {"display_name": f"{MARK}-{label}", "input_config": {"file_name": name}}
        url = f"{self._api}/models/{model.removeprefix('models/')}:batchGenerateContent"
        return expect_id((await self.ask("POST", url, json={"batch": batch}))["name"])

    async def find(self, label: str) -> str | None:
        """The batch that has the label as its displayed name."""
        token = ""
        while True:
            params = {"pageSize": 100, **({"pageToken": token} if token else {})}
            page = await self.ask("GET", f"{self._api}/batches", params=params)
            for batch in page.get("operations", ()):
                if batch.get("metadata", {}).get("displayName") == f"{MARK}-{label}":
                    return str(batch["name"])
            if not (token := page.get("nextPageToken", "")):
                return None

    async def look(self, batch: str) -> BatchState | None:
        """How far it is, by its state."""
        response = await self.send("GET", f"{self._api}/{batch}")
        if response is None:
            return None
        operation = self.read_object(response)
        metadata = operation.get("metadata", {})
        word = str(metadata.get("state", "")).removeprefix(_PREFIX)
        stats = {name: int(count) for name, count in metadata.get("batchStats", {}).items()}
        output = operation.get("response") or metadata.get("output") or {}
        file = output.get("responsesFile")
        error = operation.get("error", {}).get("message") or "no reason"
        return BatchState(
            word=word.lower(),
            is_over=word in _OVER,
            n_answered=stats.get("successfulRequestCount", 0) + stats.get("failedRequestCount", 0),
            files=(str(file),) if file else (),
            error=shorten(error, _REASON_CHARS) if word == "FAILED" else "",
        )

    async def download(self, file: str, path: Path) -> bool:
        """Write the answers of a file as OpenAI's lines."""
        url = f"{self._address_of('download')}/{file}:download"
        return await self.save_answers(url, path, read_result, params={"alt": "media"})

    async def cancel(self, batch: str) -> None:
        """Cancel it; what has been answered is billed, and stays."""
        await self.ask("POST", f"{self._api}/{batch}:cancel")


def write_request(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request as generateContent has it.

    Examples:
        >>> write_request({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9})["generationConfig"]
        {'maxOutputTokens': 9}
    """
    system, messages = split_messages(body)
    schema = read_schema(body)
    settings = {
        "maxOutputTokens": read_max_tokens(body),
        "temperature": body.get("temperature"),
        "seed": body.get("seed"),
        "responseMimeType": None if schema is None else "application/json",
        "responseJsonSchema": schema,
    }
    roles = {"assistant": "model"}
    return {
        **({"systemInstruction": {"parts": [{"text": system}]}} if system else {}),
        "contents": [
            {"role": roles.get(message["role"], "user"), "parts": [{"text": message["content"]}]}
            for message in messages
        ],
        "generationConfig": {name: value for name, value in settings.items() if value is not None},
    }


def read_result(row: Mapping[str, Any]) -> bytes:
    """Return the line of OpenAI's form that says the same as a line of answers."""
    digest, response = str(row["key"]).rpartition("-")[2], row.get("response")
    if response is None:
        error = row.get("error") or {}
        code = error.get("code")
        status = _LASTING.get(code, code) if isinstance(code, int) else 0
        # Others than those of HTTP, such as 1 for a request that was cancelled, pass.
        return write_reply(digest, status if status >= 400 else 0, {"error": error})
    usage = response.get("usageMetadata", {})
    candidate: Mapping[str, Any] = next(iter(response.get("candidates", ())), {})
    parts = candidate.get("content", {}).get("parts", ())
    body = write_completion(
        str(response.get("modelVersion", "")),
        "".join(part.get("text", "") for part in parts if not part.get("thought")),
        _FINISH.get(candidate.get("finishReason", ""), "content_filter"),
        input_tokens=usage.get("promptTokenCount", 0),
        # Thoughts are billed as the answer is.
        output_tokens=usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0),
        cached_input_tokens=usage.get("cachedContentTokenCount", 0),
    )
    return write_reply(digest, 200, body)
