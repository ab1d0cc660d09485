"""Credentials of servers: read from the environment alone, sent with each request, hidden in every message."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, unquote, urlsplit

from rusbeir.errors import BadInput

API_KEY, USER, PASSWORD, CA = "ES_API_KEY", "ES_USER", "ES_PASSWORD", "ES_CA_CERTS"
AWS_REGION = "ES_AWS_REGION"
"""The region of an Amazon OpenSearch domain: where it is set, requests are signed with the keys of AWS's variables."""
AWS_KEY, AWS_SECRET, AWS_TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
_SHORTEST_SECRET = 4


@dataclass(frozen=True, kw_only=True, repr=False)
class Credentials:
    """The credentials of the environment at one moment; empty where it has none."""

    api_key: str
    user: str
    password: str
    region: str
    key: str
    secret: str
    token: str

    @property
    def source(self) -> str:
        """The variable that decides how requests are authorised; empty where they are not."""
        chosen = ((AWS_REGION, self.region), (API_KEY, self.api_key), (USER, self.user))
        return next((name for name, value in chosen if value), "")

    @property
    def basic(self) -> str:
        return base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    def make_headers(self, method: str, url: str, body: bytes) -> dict[str, str]:
        """Make the headers that authorise one request."""
        if self.source == AWS_REGION:
            headers = {"x-amz-date": f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}", "x-amz-content-sha256": _hash(body)}
            headers |= {"x-amz-security-token": self.token} if self.token else {}
            service = "aoss" if ".aoss." in urlsplit(url).netloc else "es"
            return headers | {"authorization": self.sign(method, url, headers, body, service)}
        if self.source == API_KEY:
            return {"authorization": f"ApiKey {self.api_key}"}
        return {"authorization": f"Basic {self.basic}"} if self.source else {}

    def sign(self, method: str, url: str, headers: Mapping[str, str], body: bytes, service: str) -> str:
        """Sign a request for AWS by Signature Version 4: the header `authorization` to be sent with these headers.

        Args:
            method: The method of HTTP.
            url: The whole address, as it is sent.
            headers: What is signed beside the host: at least `x-amz-date`; names in lower case.
            body: The body; empty for none.
            service: AWS's name of the service, `es` or `aoss`.

        Returns:
            The algorithm, the scope of the key, the names of the signed headers and the signature.
        """
        address, moment = urlsplit(url), headers["x-amz-date"]
        default_port = ":443" if address.scheme == "https" else ":80"
        signed = dict(sorted({**headers, "host": address.netloc.removesuffix(default_port)}.items()))
        names = ";".join(signed)
        pairs = [part.partition("=") for part in address.query.split("&") if part]
        query = sorted((_encode(name), _encode(value)) for name, _, value in pairs)
        lines = [
            method,
            # The path is encoded once more, whatever it was before.
            quote(address.path or "/", safe="/~"),
            "&".join(f"{name}={value}" for name, value in query),
            *(f"{name}:{' '.join(value.split())}" for name, value in signed.items()),
            "",
            names,
            _hash(body),
        ]
        scope = [moment[:8], self.region, service, "aws4_request"]
        text = "\n".join(["AWS4-HMAC-SHA256", moment, "/".join(scope), _hash("\n".join(lines).encode())])
        key = f"AWS4{self.secret}".encode()
        for part in scope:
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        return f"AWS4-HMAC-SHA256 Credential={self.key}/{'/'.join(scope)}, SignedHeaders={names}, Signature={signature}"


def read_credentials() -> Credentials:
    """Read what the environment says now. Raises BadInput for what cannot be sent."""
    names = (API_KEY, USER, PASSWORD, AWS_REGION, AWS_KEY, AWS_SECRET, AWS_TOKEN)
    return Credentials(**dict(zip(Credentials.__dataclass_fields__, map(_read, names), strict=True)))


def hide(text: str) -> str:
    """Hide the credentials, which servers and gateways like to quote."""
    known = read_credentials()
    for secret in (known.api_key, known.basic, known.password, known.secret, known.token):
        text = text.replace(secret, "[hidden]") if len(secret) >= _SHORTEST_SECRET else text
    return text


def explain_rejection() -> str:
    """Say which variable a server that rejects the credentials hints at."""
    source = read_credentials().source
    remedies = {
        API_KEY: f"{API_KEY} is wrong or expired",
        USER: f"{USER} or {PASSWORD} is wrong",
        AWS_REGION: f"{AWS_KEY}, {AWS_SECRET} or {AWS_TOKEN} is wrong or expired",
    }
    return remedies.get(source, f"set {API_KEY}, or {USER} and {PASSWORD}, in the environment")


def _read(name: str) -> str:
    value = os.environ.get(name, "")
    if name in (USER, PASSWORD, AWS_SECRET):
        # They are sent as base64 or not at all; spaces may be part of them, the end of a line is not.
        return value.strip("\r\n")
    value = value.strip()
    # The HTTP library would quote the value in its own error.
    if not (value.isascii() and value.isprintable()):
        raise BadInput(f"{name} holds characters that cannot be sent in an HTTP header. Set it again without them.")
    return value


def _encode(text: str) -> str:
    return quote(unquote(text), safe="-_.~")


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
