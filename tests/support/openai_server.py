"""A real HTTP server that speaks OpenAI's wire format and answers by a script."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from tests.support import local_server


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
    content: Any = "Hola.",
    *,
    finish: str = "stop",
    tokens: tuple[int, int] | None = (10, 5),
    top_tokens: Mapping[str, float] | None = None,
    **message: Any,
) -> Reply:
    """What a server answers when all is well; top_tokens are the log-probabilities of the first token."""
    choice: dict[str, Any] = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": content, **message},
    }
    if top_tokens is not None:
        top = [{"token": token, "logprob": value, "bytes": None} for token, value in top_tokens.items()]
        choice["logprobs"] = {"content": [{"token": content, "logprob": 0.0, "top_logprobs": top}]}
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny-2026-01-01",
        "choices": [choice],
    }
    if tokens:
        body["usage"] = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    return Reply(body=json.dumps(body))


def embedded(vectors: Iterable[Sequence[float]], model: str) -> dict[str, Any]:
    """What a server of embeddings answers. It says which vector is whose, and they may come in any order."""
    rows = [{"object": "embedding", "index": index, "embedding": list(vector)} for index, vector in enumerate(vectors)]
    return {
        "object": "list",
        "model": model,
        "data": rows[::-1],
        "usage": {"prompt_tokens": 3, "total_tokens": 3},
    }


def refusal(status: int, message: str, *, code: str = "", kind: str = "", param: str = "", **headers: str) -> Reply:
    """An error as OpenAI words it; headers are given with _ for -."""
    body = {"error": {"message": message, "type": kind or None, "code": code or None, "param": param or None}}
    return Reply(status, json.dumps(body), {name.replace("_", "-"): value for name, value in headers.items()})


class Endpoint:
    """The server while its context lasts: its address, what it will answer, and what it was asked."""

    def __init__(self) -> None:
        self.script: deque[Reply] = deque()
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self._over = threading.Event()
        self._running = contextlib.ExitStack()

    def reply(self, asked: dict[str, Any]) -> Reply:
        """The answer when the script is used up."""
        return completion()

    def __enter__(self) -> Self:
        endpoint = self

        class Handler(local_server.Handler):
            def do_POST(self) -> None:
                asked = {"path": self.path, **json.loads(self.body())}
                endpoint.asked.append(asked)
                endpoint.headers.append({name.lower(): value for name, value in self.headers.items()})
                reply = endpoint.script.popleft() if endpoint.script else endpoint.reply(asked)
                self.close_connection = reply.hang or reply.cut
                if reply.hang:
                    endpoint._over.wait(20)
                    return
                data = reply.body.encode()
                promised = {"Content-Length": str(len(data) + 50)} if reply.cut else {}
                self.answer(reply.status, {"Content-Type": "application/json", **promised, **reply.headers}, data)

        self.url = self._running.enter_context(local_server.serving(Handler)) + "/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._running.close()
