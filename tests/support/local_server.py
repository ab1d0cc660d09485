"""A real HTTP server on this machine, for as long as a test needs it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Sends whole answers, and says nothing on stderr."""

    protocol_version = "HTTP/1.1"

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle(self) -> None:
        # Clients may be killed.
        with contextlib.suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *arguments: object) -> None: ...


@contextlib.contextmanager
def serving(
    handler: Callable[..., BaseHTTPRequestHandler], server: type[ThreadingHTTPServer] = ThreadingHTTPServer
) -> Iterator[str]:
    """The address of a server whose requests the handler answers."""
    with server(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}"
        finally:
            running.shutdown()
            thread.join()
