"""A real HTTP server that speaks OpenAI's wire format and answers by a script."""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """One answer of the server."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    """Answer nothing until the test is over."""
    cut: bool = False
    """Promise more bytes than are sent, and hang up."""


def completion(
    content: Any = "Hola.", *, finish: str = "stop", tokens: tuple[int, int] | None = (10, 5), **message: Any
):
    """What a server answers when all is well."""
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny-2026-01-01",
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
        ],
    }
    if tokens:
        body["usage"] = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    return Reply(body=json.dumps(body))


def refusal(status: int, message: str, *, code: str = "", kind: str = "", param: str = "", **headers: str) -> Reply:
    """An error as OpenAI words it; headers are given with _ for -."""
    body = {"error": {"message": message, "type": kind or None, "code": code or None, "param": param or None}}
    return Reply(status, json.dumps(body), {name.replace("_", "-"): value for name, value in headers.items()})


class Endpoint:
    """The server: its address, what it will answer, and what it was asked."""

    def __init__(self) -> None:
        self.script: deque[Reply] = deque()
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.over = threading.Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                endpoint.asked.append({"path": self.path, **json.loads(body)})
                endpoint.headers.append({name.lower(): value for name, value in self.headers.items()})
                reply = endpoint.script.popleft() if endpoint.script else completion()
                if reply.hang:
                    endpoint.over.wait(20)
                    self.close_connection = True
                    return
                data = reply.body.encode()
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data) + 50 * reply.cut))
                self.end_headers()
                self.wfile.write(data)
                self.close_connection = reply.cut

            def log_message(self, *_: Any) -> None:
                """Keep the test's output clean."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
