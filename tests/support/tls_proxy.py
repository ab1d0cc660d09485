"""A reverse proxy in front of a node, as managed clusters have: TLS, and only those with the right API key."""

from __future__ import annotations

import contextlib
import datetime
import http.server
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import trustme

from tests.support import local_server


@contextlib.contextmanager
def tls_proxy(target: str, folder: Path, *, key: str, expired: bool = False, closed: str = "") -> Iterator[str]:
    """Yields its https:// address; the CA's certificate is folder/ca.pem. `closed` is a path that it forbids."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    until = datetime.datetime(2001, 1, 1) if expired else None
    certificate = authority.issue_cert("127.0.0.1", not_after=until, not_before=datetime.datetime(2000, 1, 1))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)

    class Handler(local_server.Handler):
        def pass_on(self) -> None:
            body = self.body() or None
            if self.headers.get("Authorization") != f"ApiKey {key}":
                self.pass_back(401, {}, b'{"error":{"type":"security_exception","reason":"unable to authenticate"}}')
                return
            if closed and self.path == closed:
                self.pass_back(403, {}, b'{"error":{"type":"security_exception","reason":"action is unauthorized"}}')
                return
            headers = {name: self.headers[name] for name in ("Content-Type", "Accept") if name in self.headers}
            request = urllib.request.Request(f"{target}{self.path}", body, headers, method=self.command)
            try:
                with urllib.request.urlopen(request) as answer:
                    self.pass_back(answer.status, dict(answer.headers), answer.read())
            except urllib.error.HTTPError as error:
                with error:
                    self.pass_back(error.code, dict(error.headers), error.read())

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = pass_on

        def pass_back(self, status: int, headers: dict[str, str], body: bytes) -> None:
            kinds = [value for name, value in headers.items() if name.lower() == "content-type"]
            kind = kinds[0] if kinds else "application/json"
            product = {name: value for name, value in headers.items() if name.lower() == "x-elastic-product"}
            self.answer(status, {"Content-Type": kind, **product}, body)

    class Server(http.server.ThreadingHTTPServer):
        def get_request(self):
            raw, address = super().get_request()
            raw.settimeout(10)
            return context.wrap_socket(raw, server_side=True), address

        def handle_error(self, request, client_address) -> None:
            """A handshake that failed is the client's to tell."""

    with local_server.serving(Handler, Server) as url:
        yield url.replace("http", "https")
