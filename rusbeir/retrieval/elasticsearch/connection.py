"""A connection to Elasticsearch: its address, credentials and TLS, errors in one line each, and repetition."""

from __future__ import annotations

import base64
import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from rusbeir.errors import BackendError, BadInput, option, require
from rusbeir.text import shorten

T = TypeVar("T")

logger = logging.getLogger(__name__)

URL = "RUSBEIR_ES_URL"
"""The variable read where no address is given: URLs of the nodes, separated by commas."""
DEFAULT_URL = "http://127.0.0.1:9200"
API_KEY, USER, PASSWORD, CA = "ES_API_KEY", "ES_USER", "ES_PASSWORD", "ES_CA_CERTS"
"""Credentials come from these variables alone."""

REQUEST_SECONDS = 60
RETRY_SECONDS = 180
"""How long after its first failure a request is repeated while the server is away or too busy."""
_MAJORS = (8, 9)
_HOST = re.compile(r"[\w-]{1,63}(\.[\w-]{1,63})*\.?|[0-9a-f.]*:[0-9a-f:.]*")
"""A name or an IPv6 address."""
_MAX_REASON_CHARS = 300
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""The errors that reading an answer raises when it does not have the shape of Elasticsearch's."""
BUSY = {429, 502, 503, 504}
BLOCKED = "cluster_block_exception"
"""The kind of error of a cluster that has no master yet (503), and of an index that may not be written."""


class Unavailable(BackendError):
    """The server did not answer or asked for patience: the same request may succeed later."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """One cluster, by the URLs of some of its nodes."""

    urls: tuple[str, ...]
    client: Any
    """elasticsearch.Elasticsearch; threads may share it."""

    @property
    def address(self) -> str:
        return ",".join(self.urls)

    @cached_property
    def version(self) -> str:
        """The server's version, such as `8.18.0`; '' where it does not say, or the credentials may not ask.

        Raises BackendError where nothing answers, or where the server is too old or not Elasticsearch.
        """

        def read(answer: Any) -> str:
            number = str(answer.get("version", {}).get("number", ""))
            if number and int(number.split(".")[0]) not in _MAJORS:
                number = shorten(number, 20)
                raise BackendError(
                    f"{self.address} is Elasticsearch {number}; rusbeir works with 8.x and 9.x. Upgrade it."
                )
            return number

        return self.ask("GET", "/", allow=(403, 404), read=read) or ""

    @property
    def release(self) -> str:
        """`elasticsearch-8.18`, or `elasticsearch` where the server does not say."""
        return "-".join(("elasticsearch", *filter(None, [".".join(self.version.split(".")[:2])])))

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        allow: tuple[int, ...] = (),
        content: str = "json",
        read: Callable[[Any], Any] = lambda answer: answer,
    ) -> Any:
        """Send a request and return what read makes of the parsed answer; None for a status in `allow`.

        Raises Unavailable where the same request may succeed later, else BackendError, also where read fails.
        """
        from elastic_transport import TransportError
        from elasticsearch import ApiError

        headers = {"accept": "application/json"}
        if body is not None:
            headers["content-type"] = "application/json" if content == "json" else "application/x-ndjson"
        try:
            return read(self.client.perform_request(method, path, headers=headers, body=body).body)
        except UNREADABLE as error:
            raise self._unexpected(f"{method} {path.partition('?')[0]}: {type(error).__name__} {error}") from error
        except ApiError as error:
            if error.status_code in allow:
                return None
            raise self._refusal(error) from error
        except TransportError as error:
            raise self._unreachable(error) from error

    def _unexpected(self, detail: str) -> BackendError:
        detail = shorten(_hide_credentials(detail), _MAX_REASON_CHARS)
        return BackendError(f"{self.address} does not answer as Elasticsearch does ({detail}). Check the URL.")

    def _refusal(self, error: Any) -> BackendError:
        from elasticsearch import UnsupportedProductError

        if isinstance(error, UnsupportedProductError):
            return BackendError(f"{self.address} is not Elasticsearch (OpenSearch has another API). Check the URL.")
        status, reason, kind = error.status_code, reason_of(error.body), kind_of(error.body)
        if status == 401:
            cause = f"{API_KEY} is wrong or expired" if os.environ.get(API_KEY) else f"set {API_KEY} in the environment"
            if not os.environ.get(API_KEY) and os.environ.get(USER):
                cause = f"{USER} or {PASSWORD} is wrong"
            return BackendError(f"{self.address} rejects the credentials (401): {cause}.")
        if kind == "index_closed_exception":
            name = shorten(str(error.body["error"].get("index", "")), 100)
            return BackendError(f"{self.address} has closed the index {name}. Open it: POST /{name}/_open.")
        if kind == BLOCKED and status != 503:
            return BackendError(describe_block(self.address, reason))
        if status == 403:
            return BackendError(f"{self.address} forbids this with the given credentials (403): {reason}")
        if status in BUSY:
            return Unavailable(f"{self.address} is too busy or not ready ({status}): {reason}")
        return BackendError(f"{self.address} answered {status}: {reason}")

    def _unreachable(self, error: Any) -> BackendError:
        from elastic_transport import ConnectionTimeout, SerializationError, TlsError

        text = " ".join(_hide_credentials(str(error.message)).split())
        if isinstance(error, TlsError):
            return BackendError(f"No TLS with {self.address}: {_explain_tls_failure(text)}")
        if isinstance(error, ConnectionTimeout):
            return Unavailable(f"{self.address} did not answer in time ({REQUEST_SECONDS} s). Is it overloaded?")
        if isinstance(error, SerializationError):
            return self._unexpected(text)
        reason = shorten(text, _MAX_REASON_CHARS)
        return Unavailable(
            f"No Elasticsearch answers at {self.address} ({reason}). Start one (`docker compose up -d`), or name "
            f"yours with {option('es_url', python='the address in engine=')} or {URL}; a server with TLS "
            f"has an https:// address."
        )


def connect(address: str = "") -> Server:
    """Name the server at that address, else at RUSBEIR_ES_URL, else on this machine; nothing is sent yet.

    Raises BadInput for an address that is not a URL or holds a password, and MissingExtra without the client.
    """
    text = address or os.environ.get(URL) or DEFAULT_URL
    urls = tuple(_normalise_url(part.strip()) for part in text.split(","))
    return _server(urls, *(os.environ.get(name, "") for name in (API_KEY, USER, PASSWORD, CA)))


def retry(work: Callable[[], T]) -> T:
    """Return the result of the work, which is repeated at growing intervals while the server is unavailable."""
    from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

    failed: list[float] = []

    def stop(state: RetryCallState) -> bool:
        if not failed and state.outcome:
            logger.warning("%s Asking again for up to %d s.", state.outcome.exception(), RETRY_SECONDS)
        # The work itself may take long: the time counts from its first failure.
        failed.append(state.outcome_timestamp or 0.0)
        return failed[-1] - failed[0] >= RETRY_SECONDS

    retrying = Retrying(
        retry=retry_if_exception_type(Unavailable),
        wait=wait_random_exponential(multiplier=0.2, max=5),
        stop=stop,
        reraise=True,
    )
    return retrying(work)


def reason_of(body: Any) -> str:
    """Quote why the server refused, innermost cause first, in one line."""
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(error, Mapping):
        roots = error.get("root_cause")
        causes = [error, *(root for root in (roots if isinstance(roots, list) else []) if isinstance(root, Mapping))]
        while isinstance(causes[-1].get("caused_by"), Mapping):
            causes.append(causes[-1]["caused_by"])
        reasons = [str(cause["reason"]) for cause in reversed(causes) if cause.get("reason")]
        error = "; ".join(dict.fromkeys(reasons)) or error.get("type", "no reason given")
    return shorten(_hide_credentials(str(error)), _MAX_REASON_CHARS)


def kind_of(body: Any) -> str:
    """Read the type of the error, such as `mapper_parsing_exception`; '' where the answer has none."""
    error = body.get("error", body) if isinstance(body, Mapping) else None
    return str(error.get("type", "")) if isinstance(error, Mapping) else ""


def _hide_credentials(text: str) -> str:
    """Hide the credentials, which servers and gateways like to quote."""
    user, password = os.environ.get(USER, ""), os.environ.get(PASSWORD, "")
    basic = base64.b64encode(f"{user}:{password}".encode()).decode()
    for secret in (os.environ.get(API_KEY, ""), basic, password):
        text = text.replace(secret, "[hidden]") if len(secret) > 3 else text
    return text


def describe_block(address: str, reason: str) -> str:
    """Say why an index may not be written, and what to do."""
    if "flood" in reason or "read-only" in reason:
        return (
            f"{address} has made the index read-only ({reason}). Free disk space on its nodes; it lifts the block "
            "itself below the high watermark, and the same command then resumes."
        )
    if "index write (api)" in reason:
        return f"{address} has published the index, loaded by another process ({reason}). Run the same command again."
    return f"{address} blocks the index: {reason}"


def _normalise_url(url: str) -> str:
    if "@" in url:
        raise BadInput(
            f"The URL of {url.rpartition('@')[2]} holds credentials. Put them into {API_KEY} or {USER} and {PASSWORD}."
        )
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host) or port == 0:
        raise BadInput(f"{url!r} is not the URL of a server. Write it as {DEFAULT_URL}.")
    port = port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}{parts.path.rstrip('/')}"


@cache
def _server(urls: tuple[str, ...], api_key: str, user: str, password: str, ca: str) -> Server:
    make_client = require("elasticsearch", "The engine elasticsearch", "elasticsearch").Elasticsearch
    options: dict[str, Any] = {}
    if api_key:
        options["api_key"] = api_key
    elif user:
        options["basic_auth"] = (user, password)
    if ca and any(url.startswith("https:") for url in urls):
        if not Path(ca).is_file():
            raise BadInput(f"{CA} names {ca}, which is not a file.")
        options["ca_certs"] = ca
    client = make_client(
        list(urls),
        request_timeout=REQUEST_SECONDS,
        max_retries=2 * len(urls),
        retry_on_timeout=len(urls) > 1,
        retry_on_status=(502, 503, 504),
        connections_per_node=16,
        **options,
    )
    return Server(urls=urls, client=client)


def _explain_tls_failure(text: str) -> str:
    if "expired" in text:
        return "its certificate has expired. Renew it."
    if "WRONG_VERSION_NUMBER" in text or "wrong version number" in text:
        return "the server uses plain HTTP. Write http:// in its address."
    if "self-signed" in text or "self signed" in text or "unable to get local issuer" in text:
        return f"its certificate is signed by an unknown CA. Set {CA} to that CA's file."
    return shorten(text, _MAX_REASON_CHARS)
