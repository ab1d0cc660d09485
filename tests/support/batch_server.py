"""A real HTTP server that speaks OpenAI's Files and Batch APIs, on top of a model that answers by a function."""

from __future__ import annotations

import json
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Self

from tests.support import local_server
from tests.support.batch_files import add, answer_line
from tests.support.openai_server import Reply, refusal

PAGE = 2
"""Batches in a page of the list, so that few make several."""


class BatchServer:
    """The server while its context lasts. Each look at a batch takes it a state further.

    failing is the share of lines that fail, at their first asking alone; endings are the last states of the first
    batches, completed after those. calls counts requests by method and path; paid counts answers by the request's body.
    """

    states = ("validating", "in_progress", "finalizing")

    def __init__(self, reply: Callable[[Mapping[str, Any]], Reply] = add, *, failing: float = 0.0) -> None:
        self.reply = reply
        self.failing = failing
        self.endings: list[str] = []
        self.batches: dict[str, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        self.paid: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.refusals: dict[str, list[Reply]] = {}
        """Method and path -> what is answered next, once each; a cut one is done all the same."""
        self.url = ""
        self.headers: Mapping[str, str] = {}
        """Those of the request that is answered."""
        self._failed: set[str] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        server = self

        class Handler(local_server.Handler):
            def do_GET(self) -> None:
                self.respond()

            def do_POST(self) -> None:
                self.respond()

            def respond(self) -> None:
                body = self.body()
                path, _, query = self.path.removeprefix("/v1").partition("?")
                call = f"{self.command} {re.sub(r'(batch|file)-[0-9]+', 'ID', path)}"
                with server._lock:
                    server.calls[call] += 1
                    queue = server.refusals.get(call)
                    reply = queue.pop(0) if queue else None
                    server.headers = dict(self.headers)
                    done = None if reply and not reply.cut else server.answer(self.command, path, query, body)
                if reply is not None and reply.cut:
                    self.close_connection = True
                    return
                status, data, *more = (reply.status, reply.body.encode()) if reply else done
                self.answer(status, {"Content-Type": "application/json", **(more[0] if more else {})}, data)

        self._running = local_server.serving(Handler)
        self.url = self._running.__enter__() + "/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self._running.__exit__(None, None, None)

    def forget(self) -> None:
        """Begin again: no batch, no file, and nothing is paid."""
        with self._lock:
            for state in (self.batches, self.files, self.paid, self._failed):
                state.clear()

    def answer(self, method: str, path: str, query: str, body: bytes) -> tuple[int, bytes]:
        """(status, body) of a request."""
        parts = path.strip("/").split("/")
        match method, parts:
            case "POST", ["files"]:
                name = f"file-{len(self.files) + 1}"
                assert b'name="purpose"' in body
                self.files[name] = _file_part(body)
                return _json({"id": name, "object": "file", "bytes": len(body), "created_at": 1, "filename": "r",
                              "purpose": "batch", "status": "processed"})  # fmt: skip
            case "POST", ["batches"]:
                return _json(self._create(json.loads(body)))
            case "GET", ["batches"]:
                newest = list(self.batches.values())[::-1]
                after = re.search(r"after=([\w-]+)", query)
                start = [row["id"] for row in newest].index(after[1]) + 1 if after else 0
                page = newest[start : start + PAGE]
                return _json({"object": "list", "data": page, "has_more": start + PAGE < len(newest)})
            case "GET", ["batches", name] if name in self.batches:
                return _json(self._advance(self.batches[name]))
            case "POST", ["batches", name, "cancel"]:
                batch = self.batches[name]
                batch["ending"] = "cancelled"
                return _json({**batch, "status": "cancelling"})
            case "GET", ["files", name, "content"] if name in self.files:
                return 200, self.files[name]
            case "POST", ["chat", "completions"]:
                reply = self.reply(json.loads(body))
                self.paid[json.dumps(json.loads(body), sort_keys=True)] += 1
                return reply.status, reply.body.encode()
        missing = refusal(404, "No such object")
        return missing.status, missing.body.encode()

    def _create(self, order: dict[str, Any]) -> dict[str, Any]:
        assert order["endpoint"] == "/v1/chat/completions"
        assert order["completion_window"] == "24h"
        name = f"batch-{len(self.batches) + 1}"
        self.batches[name] = {
            "id": name, "object": "batch", "endpoint": order["endpoint"], "input_file_id": order["input_file_id"],
            "completion_window": "24h", "status": "validating", "created_at": 1, "metadata": order.get("metadata"),
            "output_file_id": None, "error_file_id": None, "errors": None, "request_counts": None,
            "ending": self.endings.pop(0) if self.endings else "completed", "looks": 0,
        }  # fmt: skip
        return self.batches[name]

    def _advance(self, batch: dict[str, Any]) -> dict[str, Any]:
        if batch["status"] in ("completed", "failed", "expired", "cancelled"):
            return batch
        batch["looks"] += 1
        if batch["looks"] < len(self.states) and batch["ending"] != "cancelled":
            batch["status"] = self.states[batch["looks"]]
            return batch
        batch["status"] = batch["ending"]
        if batch["ending"] == "failed":
            batch["errors"] = {"object": "list", "data": [{"code": "invalid", "message": "line 1 is too long"}]}
            return batch
        rows = self.read_rows(self.files[batch["input_file_id"]])
        answered = rows if batch["ending"] == "completed" else rows[: len(rows) // 2]
        output, errors = [], []
        for row in answered:
            if self._fails(row["custom_id"]):
                errors.append(answer_line(row["custom_id"], refusal(500, "down")))
                continue
            reply = self.reply(row["body"])
            if reply.status == 200:
                self.paid[json.dumps(row["body"], sort_keys=True)] += 1
            (output if reply.status == 200 else errors).append(answer_line(row["custom_id"], reply))
        if batch["ending"] == "expired":
            expired = {"code": "batch_expired", "message": "This request could not be executed in time."}
            errors += [{"id": "x", "custom_id": row["custom_id"], "response": None, "error": expired}
                       for row in rows[len(answered) :]]  # fmt: skip
        for field, lines in (("output_file_id", output), ("error_file_id", errors)):
            random.Random(len(self.files)).shuffle(lines)
            if lines:
                batch[field] = f"file-{len(self.files) + 1}"
                self.files[batch[field]] = "".join(json.dumps(line) + "\n" for line in lines).encode()
        batch["request_counts"] = {"total": len(rows), "completed": len(output), "failed": len(errors)}
        return batch

    def read_rows(self, file: bytes) -> list[dict[str, Any]]:
        """The requests in a file."""
        return [json.loads(line) for line in file.splitlines()]

    def _fails(self, custom_id: str) -> bool:
        digest = custom_id.rpartition("-")[2]
        if digest in self._failed or random.Random(digest).random() >= self.failing:
            return False
        self._failed.add(digest)
        return True


def _json(value: Any) -> tuple[int, bytes]:
    return 200, json.dumps(value).encode()


def _file_part(body: bytes) -> bytes:
    """The content of the part "file" of a form."""
    boundary = body.partition(b"\r\n")[0]
    part = next(part for part in body.split(boundary) if b'name="file"' in part)
    return part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
