"""Servers that speak Anthropic's Message Batches and Gemini's batches, on top of the same states, faults and model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.support.batch_server import PAGE, BatchServer

_MISSING = 404, b'{"error": {"message": "No such object", "type": "not_found_error"}}'
_OVER = ("completed", "failed", "expired", "cancelled")


class AnthropicServer(BatchServer):
    """Anthropic's: requests come with the batch, results are those of the batch, and there is no metadata.

    Messages have no seed: a second attempt differs by its temperature.
    """

    def answer(self, method: str, path: str, query: str, body: bytes) -> tuple[Any, ...]:
        headers = {name.lower(): value for name, value in self.headers.items()}
        assert headers["x-api-key"]
        assert headers["anthropic-version"] == "2023-06-01"
        match method, path.strip("/").split("/"):
            case "POST", ["messages", "batches"]:
                return _json(self._show(self._start(json.loads(body)["requests"])))
            case "GET", ["messages", "batches"]:
                newest = list(self.batches.values())[::-1]
                after = re.search(r"after_id=([\w-]+)", query)
                start = [row["id"] for row in newest].index(after[1]) + 1 if after else 0
                page = [self._show(self._advance(row)) for row in newest[start : start + PAGE]]
                more = start + PAGE < len(newest)
                return _json({"data": page, "has_more": more, "last_id": page[-1]["id"] if page else None})
            case "GET", ["messages", "batches", name] if name in self.batches:
                return _json(self._show(self._advance(self.batches[name])))
            case "POST", ["messages", "batches", name, "cancel"]:
                self.batches[name]["ending"] = "cancelled"
                return _json({**self._show(self.batches[name]), "processing_status": "canceling"})
            case "GET", ["messages", "batches", name, "results"] if name in self.batches:
                return 200, b"".join(map(_line, self._results(self.batches[name])))
        return _MISSING

    def _start(self, requests: list[dict[str, Any]]) -> dict[str, Any]:
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", row["custom_id"]) for row in requests)
        assert all(row["params"]["max_tokens"] for row in requests)
        name = f"file-{len(self.files) + 1}"
        self.files[name] = json.dumps(requests).encode()
        return self._create({"input_file_id": name, "endpoint": "/v1/chat/completions", "completion_window": "24h"})

    def read_rows(self, file: bytes) -> list[dict[str, Any]]:
        return [{"custom_id": row["custom_id"], "body": _read_params(row["params"])} for row in json.loads(file)]

    def _show(self, batch: dict[str, Any]) -> dict[str, Any]:
        results = list(self._results(batch)) if batch["status"] in _OVER else []
        names = {"succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
        counts = {name: sum(row["result"]["type"] == name for row in results) for name in names}
        total = len(self.read_rows(self.files[batch["input_file_id"]]))
        return {
            "id": batch["id"], "type": "message_batch", "created_at": "2026-11-01T00:00:00Z",
            "processing_status": "ended" if batch["status"] in _OVER else "in_progress",
            "request_counts": {"processing": total - len(results), **counts}, "results_url": "…",
        }  # fmt: skip

    def _results(self, batch: dict[str, Any]) -> Any:
        answered = set()
        for name in (batch["output_file_id"], batch["error_file_id"]):
            for line in self.files[name].splitlines() if name else ():
                row = json.loads(line)
                if row["response"] is None:
                    continue
                answered.add(row["custom_id"])
                yield {"custom_id": row["custom_id"], "result": _write_message(row["response"])}
        left = {"cancelled": "canceled", "expired": "expired", "failed": "canceled"}.get(batch["status"])
        for row in self.read_rows(self.files[batch["input_file_id"]]) if left else ():
            if row["custom_id"] not in answered:
                yield {"custom_id": row["custom_id"], "result": {"type": left}}


def _read_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """A request of the Messages API as the model of the tests reads it."""
    assert not params.keys() & {"seed", "response_format"}
    assert params["output_config"]["format"]["type"] == "json_schema"
    system = [{"role": "system", "content": block["text"]} for block in params.get("system", ())]
    body = {"model": params["model"], "messages": [*system, *params["messages"]]}
    return {**body, "seed": int(params["temperature"] > 0), "temperature": params["temperature"]}


def _write_message(response: Mapping[str, Any]) -> dict[str, Any]:
    body = response["body"]
    if response["status_code"] != 200:
        kind = "invalid_request_error" if response["status_code"] == 400 else "api_error"
        error = {"type": kind, "message": body["error"]["message"]}
        return {"type": "errored", "error": {"type": "error", "error": error, "request_id": "r"}}
    message = body["choices"][0]["message"]
    refused = bool(message.get("refusal"))
    return {
        "type": "succeeded",
        "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "stop_sequence": None,
            "content": [] if refused else [{"type": "text", "text": message["content"]}],
            "stop_reason": "refusal" if refused else "end_turn",
            "usage": {
                "input_tokens": body["usage"]["prompt_tokens"] - 5, "cache_read_input_tokens": 3,
                "cache_creation_input_tokens": 2, "output_tokens": body["usage"]["completion_tokens"],
            },
        },
    }  # fmt: skip


class GeminiServer(BatchServer):
    """Gemini's: a file is uploaded in two steps, a batch is an operation, and its name is displayed."""

    def answer(self, method: str, path: str, query: str, body: bytes) -> tuple[Any, ...]:
        headers = {name.lower(): value for name, value in self.headers.items()}
        assert headers["x-goog-api-key"]
        path = f"/v1{path}" if path.startswith("beta") else path
        if method == "POST" and path == "/upload/v1beta/files":
            assert headers["x-goog-upload-command"] == "start"
            root = self.url.removesuffix("/v1")
            return (
                200,
                b"",
                {"X-Goog-Upload-URL": f"{root}/session?size={headers['x-goog-upload-header-content-length']}"},
            )
        if method == "POST" and path == "/session":
            assert headers["x-goog-upload-command"] == "upload, finalize"
            assert len(body) == int(query.removeprefix("size="))
            name = f"file-{len(self.files) + 1}"
            self.files[name] = body
            return _json({"file": {"name": f"files/{name}", "state": "ACTIVE"}})
        if match := re.fullmatch(r"/v1beta/models/([\w.-]+):batchGenerateContent", path):
            batch = json.loads(body)["batch"]
            order = {"input_file_id": batch["input_config"]["file_name"].removeprefix("files/")}
            order |= {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
            row = self._create({**order, "metadata": {"name": batch["display_name"], "model": match[1]}})
            return _json(self._show(row))
        if path == "/v1beta/batches":
            newest = list(self.batches.values())[::-1]
            token = re.search(r"pageToken=(\d+)", query)
            start = int(token[1]) if token else 0
            page = {"operations": [self._show(row) for row in newest[start : start + PAGE]]}
            return _json({**page, **({"nextPageToken": str(start + PAGE)} if start + PAGE < len(newest) else {})})
        if match := re.fullmatch(r"/v1beta/batches/([\w-]+)(:cancel)?", path):
            if match[2]:
                self.batches[match[1]]["ending"] = "cancelled"
                return 200, b"{}"
            return _json(self._show(self._advance(self.batches[match[1]])))
        if match := re.fullmatch(r"/download/v1beta/files/([\w,-]+):download", path):
            assert query == "alt=media"
            lines = [line for name in match[1].split(",") for line in self.files[name].splitlines()]
            return 200, b"".join(_line(_write_answer(json.loads(line))) for line in lines)
        return _MISSING

    def read_rows(self, file: bytes) -> list[dict[str, Any]]:
        rows = [json.loads(line) for line in file.splitlines()]
        return [{"custom_id": row["key"], "body": _read_request(row["request"])} for row in rows]

    def _show(self, batch: dict[str, Any]) -> dict[str, Any]:
        word = {"completed": "SUCCEEDED", "validating": "PENDING", **{name: name.upper() for name in _OVER[1:]}}
        files = [name for name in (batch["output_file_id"], batch["error_file_id"]) if name]
        output = {"responsesFile": f"files/{','.join(files)}"} if files else {}
        counts = batch["request_counts"] or {"completed": 0, "failed": 0}
        metadata = {
            "displayName": batch["metadata"]["name"], "state": f"BATCH_STATE_{word.get(batch['status'], 'RUNNING')}",
            "batchStats": {
                "successfulRequestCount": str(counts["completed"]), "failedRequestCount": str(counts["failed"])
            },
        }  # fmt: skip
        shown = {"name": f"batches/{batch['id']}", "metadata": metadata, "done": batch["status"] in _OVER}
        if batch["status"] == "failed":
            shown["error"] = {"code": 3, "message": batch["errors"]["data"][0]["message"]}
        return {**shown, **({"response": output} if output else {})}


def _read_request(request: Mapping[str, Any]) -> dict[str, Any]:
    settings = request["generationConfig"]
    assert settings["responseMimeType"] == "application/json"
    assert settings["responseJsonSchema"]["type"] == "object"
    assert settings["maxOutputTokens"]
    system = [
        {"role": "system", "content": part["text"]} for part in request.get("systemInstruction", {}).get("parts", ())
    ]
    messages = [{"role": "user", "content": content["parts"][0]["text"]} for content in request["contents"]]
    return {"messages": [*system, *messages], "seed": settings["seed"]}


def _write_answer(row: Mapping[str, Any]) -> dict[str, Any]:
    if row["response"] is None:
        return {"key": row["custom_id"], "error": {"code": 1, "message": "The operation was cancelled."}}
    body = row["response"]["body"]
    if row["response"]["status_code"] != 200:
        error = {"code": row["response"]["status_code"], "message": body["error"]["message"], "status": "X"}
        return {"key": row["custom_id"], "error": error}
    message, usage = body["choices"][0]["message"], body["usage"]
    tokens = {
        "promptTokenCount": usage["prompt_tokens"], "cachedContentTokenCount": 3, "thoughtsTokenCount": 2,
        "candidatesTokenCount": usage["completion_tokens"] - 2,
    }  # fmt: skip
    thought = {"text": "Let me see.", "thought": True}
    candidate = {"content": {"parts": [thought, {"text": message["content"]}], "role": "model"}, "finishReason": "STOP"}
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}}
    answer = blocked if message.get("refusal") else {"candidates": [candidate]}
    return {"key": row["custom_id"], "response": {**answer, "usageMetadata": tokens, "modelVersion": "tiny"}}


def _json(value: Any) -> tuple[int, bytes]:
    return 200, json.dumps(value).encode()


def _line(row: Mapping[str, Any]) -> bytes:
    """A line of answers, whose texts are as they are: JSON needs no escapes beyond ASCII."""
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"
