"""A proxy before a node that spoils the first sending of every bulk request, as a busy server or a bad network does."""

from __future__ import annotations

import contextlib
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Literal

import orjson

from tests.support import local_server

Trouble = Literal["items", "request", "answer"]
"""Some documents are rejected; the connection is cut in the request; or in the answer, when all has arrived."""

REJECTED = {
    "create": {
        "status": 429,
        "error": {
            "type": "es_rejected_execution_exception",
            "reason": "rejected execution of primary operation [coordinating_and_primary_bytes=0, max=1]",
        },
    }
}


@contextlib.contextmanager
def flaky_bulk(target: str, trouble: Trouble) -> Iterator[tuple[str, list[str]]]:
    """Yields its address, and the paths of the requests that were spoiled."""
    seen: set[bytes] = set()
    spoiled: list[str] = []

    class Handler(local_server.Handler):
        def pass_on(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length // 2)
            first = body.split(b"\n", 1)[0]
            spoil = "/_bulk" in self.path and first not in seen
            seen.add(first)
            if spoil and trouble == "request":
                self.cut()
                return
            body += self.rfile.read(length - len(body))
            if spoil and trouble == "items":
                self.reject_some(body)
            elif spoil:
                status, headers, answer = self.fetch(body)
                self.answer(status, {**headers, "Content-Length": str(2 * len(answer))}, answer)
                self.cut()
            else:
                self.answer(*self.fetch(body))

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = pass_on

        def reject_some(self, body: bytes) -> None:
            """Every third document is not taken."""
            lines = body.splitlines(keepends=True)
            pairs = [b"".join(lines[at : at + 2]) for at in range(0, len(lines), 2)]
            status, headers, answer = self.fetch(b"".join(pair for place, pair in enumerate(pairs) if place % 3))
            taken = iter(orjson.loads(answer)["items"])
            items = [next(taken) if place % 3 else REJECTED for place in range(len(pairs))]
            spoiled.append(self.path)
            self.answer(status, headers, orjson.dumps({"errors": True, "items": items}))

        def cut(self) -> None:
            spoiled.append(self.path)
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def fetch(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            kinds = {name: self.headers[name] for name in ("Content-Type", "Accept") if name in self.headers}
            request = urllib.request.Request(f"{target}{self.path}", body or None, kinds, method=self.command)
            try:
                answer = urllib.request.urlopen(request)
            except urllib.error.HTTPError as error:
                answer = error
            with answer:
                kind = answer.headers.get("Content-Type", "application/json")
                headers = {"Content-Type": kind, "X-Elastic-Product": "Elasticsearch"}
                return answer.status, headers, answer.read()

    with local_server.serving(Handler) as url:
        yield url, spoiled
