"""A connection to Elasticsearch or OpenSearch: address, credentials and TLS, errors in one line each, repetition.

Both are asked through elastic-transport, which has neither's product check: what a server is, it says itself.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import orjson

from rusbeir.errors import BackendError, BadInput, option, require
from rusbeir.retrieval.elasticsearch.credentials import (
    API_KEY,
    AWS_KEY,
    AWS_REGION,
    AWS_SECRET,
    CA,
    PASSWORD,
    USER,
    Credentials,
    explain_rejection,
    hide,
    read_credentials,
)
from rusbeir.text import shorten

T = TypeVar("T")

logger = logging.getLogger(__name__)

URL = "RUSBEIR_ES_URL"
"""The variable read where no address is given: URLs of the nodes, separated by commas."""
DEFAULT_URL = "http://127.0.0.1:9200"
REQUEST_SECONDS = 60
RETRY_SECONDS = 180
"""How long after its first failure a request is repeated while the server is away or too busy."""
ELASTICSEARCH, OPENSEARCH = "elasticsearch", "opensearch"
"""The products, by the names of their engines."""
TITLES: Mapping[str, str] = {ELASTICSEARCH: "Elasticsearch", OPENSEARCH: "OpenSearch"}
_MAJORS: Mapping[str, tuple[int, ...]] = {ELASTICSEARCH: (8, 9), OPENSEARCH: (2, 3)}
_PRODUCT_HEADER = "x-elastic-product"
"""Elasticsearch names itself in every answer, also where the root may not be read."""
_HOST = re.compile(r"[\w-]{1,63}(\.[\w-]{1,63})*\.?|[0-9a-f.]*:[0-9a-f:.]*")
"""A name or an IPv6 address."""
_MAX_REASON_CHARS = 300
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""The errors that reading an answer raises when it does not have the shape of Elasticsearch's."""
BUSY = {429, 502, 503, 504}
BLOCKED = "cluster_block_exception"
"""The kind of error of a cluster that has no master yet (503), and of an index that may not be written."""


_LOST_NODE = {"node_disconnected_exception", "node_not_connected_exception", "node_closed_exception"}
"""The kinds of error of a node that is gone: OpenSearch answers 500 where Elasticsearch answers 503."""


class Unavailable(BackendError):
    """The server did not answer or asked for patience: the same request may succeed later."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """One cluster, by the URLs of some of its nodes."""

    urls: tuple[str, ...]
    transport: Any
    """elastic_transport.Transport; threads may share it."""
    engine: str = ""
    """The product that it has to be; either where empty."""
    credentials: Credentials

    @property
    def address(self) -> str:
        return ",".join(self.urls)

    @property
    def product(self) -> str:
        """ELASTICSEARCH or OPENSEARCH: what was asked for, which all answers are held to, or what the server says."""
        return self.engine or self._product

    @cached_property
    def _product(self) -> str:
        """What the server says it is.

        Raises BackendError where nothing answers, and where it is neither. One that may not be asked, and does not
        name Elasticsearch in its answers, is taken for OpenSearch unless Elasticsearch has been asked for.
        """
        status, headers, answer = self._exchange("GET", "/")
        if headers.get(_PRODUCT_HEADER) == TITLES[ELASTICSEARCH]:
            return ELASTICSEARCH
        version = answer.get("version") if isinstance(answer, Mapping) else None
        named = isinstance(version, Mapping) and version.get("distribution") == OPENSEARCH
        if named or (status in (403, 404) and self.engine != ELASTICSEARCH):
            return OPENSEARCH
        if status >= 300 and status not in (403, 404):
            raise self._refusal(status, answer)
        raise BackendError(f"{self.address} is not Elasticsearch, nor OpenSearch. Check the URL.")

    @cached_property
    def version(self) -> str:
        """The server's version, such as `8.18.0`; '' where it does not say, or the credentials may not ask.

        Raises BackendError where nothing answers, or where the server is too old or another product.
        """

        def read(answer: Any) -> str:
            of_nodes = [node.get("version", "") for node in answer.get("nodes", {}).values()]
            number = shorten(str([*of_nodes, answer.get("version", {}).get("number", "")][0]), 20)
            majors = _MAJORS[self.product]
            if number and int(number.split(".")[0]) not in majors:
                if of_nodes:  # The root may not be read, so the product is a guess.
                    return ""
                supported = " and ".join(f"{major}.x" for major in majors)
                raise BackendError(
                    f"{self.address} is {TITLES[self.product]} {number}; rusbeir works with {supported}. Upgrade it."
                )
            return number

        paths = ("/", "/_nodes/_local?filter_path=nodes.*.version")
        return next(filter(None, (self.ask("GET", path, allow=(403, 404), read=read) for path in paths)), "")

    @property
    def release(self) -> str:
        """`elasticsearch-8.18`, or `elasticsearch` where the server does not say."""
        version = ".".join(self.version.split(".")[:2])
        return "-".join(filter(None, [self.product, version]))

    @property
    def similarity(self) -> str:
        """The server's name of BM25 with the old factor k1 + 1, which `BM25` lost in OpenSearch 3.

        Raises BackendError where OpenSearch does not say its version: one name would change scores, the other fail.
        """
        if self.product == OPENSEARCH and not self.version:
            raise BackendError(
                f"{self.address} does not say its version, and BM25 has another factor in OpenSearch 2 than in 3. "
                "Allow these credentials GET / or GET /_nodes/_local."
            )
        return "LegacyBM25" if self.release.startswith("opensearch-3") else "BM25"

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
        status, headers, answer = self._exchange(method, path, body, content)
        if status in allow:
            return None
        if status >= 300:
            raise self._refusal(status, answer)
        self._check_product(headers)
        try:
            return read(answer)
        except UNREADABLE as error:
            raise self._unexpected(f"{method} {path.partition('?')[0]}: {type(error).__name__} {error}") from error

    def _exchange(
        self, method: str, path: str, body: Any = None, content: str = "json"
    ) -> tuple[int, Mapping[str, str], Any]:
        """Send a request: status, headers and parsed body of its answer. Raises BackendError where none came."""
        from elastic_transport import TransportError

        if body is not None and not isinstance(body, bytes):
            body = orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)
        headers = {"accept": "application/json"}
        if body is not None:
            headers["content-type"] = "application/json" if content == "json" else "application/x-ndjson"
        headers |= self.credentials.make_headers(method, self.urls[0] + path, body or b"")
        try:
            meta, answer = self.transport.perform_request(method, path, headers=headers, body=body)
        except TransportError as error:
            raise self._unreachable(error) from error
        return meta.status, meta.headers, answer

    def _check_product(self, headers: Mapping[str, str]) -> None:
        """Raise BackendError where the sender of these headers is not the product that was asked for."""
        product = ELASTICSEARCH if headers.get(_PRODUCT_HEADER) == TITLES[ELASTICSEARCH] else self._product
        if self.engine not in ("", product):
            raise BackendError(
                f"{self.address} is {TITLES[product]}, not {TITLES[self.engine]}. Use {option('engine', product)}."
            )

    @property
    def _title(self) -> str:
        return TITLES[self.engine or ELASTICSEARCH]

    def _unexpected(self, detail: str) -> BackendError:
        detail = shorten(hide(detail), _MAX_REASON_CHARS)
        return BackendError(f"{self.address} does not answer as {self._title} does ({detail}). Check the URL.")

    def _refusal(self, status: int, answer: Any) -> BackendError:
        reason, kind = reason_of(answer), kind_of(answer)
        if status == 401:
            return BackendError(f"{self.address} rejects the credentials (401): {explain_rejection()}.")
        if kind == "index_closed_exception":
            name = shorten(str(answer["error"].get("index", "")), 100)
            return BackendError(f"{self.address} has closed the index {name}. Open it: POST /{name}/_open.")
        if kind == BLOCKED and status != 503:
            return BackendError(describe_block(self.address, reason))
        if status == 403:
            return BackendError(f"{self.address} forbids this with the given credentials (403): {reason}")
        if is_passing(status, answer):
            return Unavailable(f"{self.address} is too busy or not ready ({status}): {reason}")
        return BackendError(f"{self.address} answered {status}: {reason}")

    def _unreachable(self, error: Any) -> BackendError:
        from elastic_transport import ConnectionTimeout, SerializationError, TlsError

        text = " ".join(hide(str(error.message)).split())
        if isinstance(error, TlsError):
            return BackendError(f"No TLS with {self.address}: {_explain_tls_failure(text)}")
        if isinstance(error, ConnectionTimeout):
            return Unavailable(f"{self.address} did not answer in time ({REQUEST_SECONDS} s). Is it overloaded?")
        if isinstance(error, SerializationError):
            return self._unexpected(text)
        reason = shorten(text, _MAX_REASON_CHARS)
        return Unavailable(
            f"No {self._title} answers at {self.address} ({reason}). Start one (`docker compose up -d`), or name "
            f"yours with {option('es_url', python='the address in engine=')} or {URL}; a server with TLS "
            f"has an https:// address."
        )


def connect(address: str = "", engine: str = "") -> Server:
    """Name the server at that address, else at RUSBEIR_ES_URL, else on this machine; nothing is sent yet.

    With an engine the server has to be that product. Raises BadInput for an address that is not a URL or holds a
    password, and MissingExtra without the client.
    """
    text = address or os.environ.get(URL) or DEFAULT_URL
    urls = tuple(_normalise_url(part.strip()) for part in text.split(","))
    return _server(urls, engine, read_credentials(), os.environ.get(CA, ""))


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
        reasons = [str(cause["reason"]) for cause in reversed(_list_causes(error)) if cause.get("reason")]
        quoted = "; ".join(dict.fromkeys(reasons)) or error.get("message") or error.get("Message")
        error = quoted or error.get("type", "no reason given")
    return shorten(hide(str(error)), _MAX_REASON_CHARS)


def _list_causes(error: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """List the error, its roots, and what caused the last of them."""
    roots = error.get("root_cause")
    causes = [error, *(root for root in (roots if isinstance(roots, list) else []) if isinstance(root, Mapping))]
    while isinstance(causes[-1].get("caused_by"), Mapping):
        causes.append(causes[-1]["caused_by"])
    return causes


def is_passing(status: Any, body: Any) -> bool:
    """Return whether the same request may succeed later."""
    error = body.get("error") if isinstance(body, Mapping) else None
    causes = _list_causes(error) if isinstance(error, Mapping) else []
    return status in BUSY or any(str(cause.get("type")) in _LOST_NODE for cause in causes)


def kind_of(body: Any) -> str:
    """Read the type of the error, such as `mapper_parsing_exception`; '' where the answer has none."""
    error = body.get("error", body) if isinstance(body, Mapping) else None
    return str(error.get("type", "")) if isinstance(error, Mapping) else ""


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
def _server(urls: tuple[str, ...], engine: str, credentials: Credentials, ca: str) -> Server:
    if credentials.source == AWS_REGION and len(urls) > 1:
        raise BadInput(f"{AWS_REGION} signs requests for one address, and {len(urls)} are named: a domain has one.")
    if credentials.source == AWS_REGION and not (credentials.key and credentials.secret):
        raise BadInput(f"{AWS_REGION} is set, so requests are signed: set {AWS_KEY} and {AWS_SECRET}, or unset it.")
    transport = require("elastic_transport", f"The engine {engine or ELASTICSEARCH}", "elasticsearch")
    options: dict[str, Any] = {"request_timeout": REQUEST_SECONDS, "connections_per_node": 16}
    if ca and any(url.startswith("https:") for url in urls):
        if not Path(ca).is_file():
            raise BadInput(f"{CA} names {ca}, which is not a file.")
        options["ca_certs"] = ca
    nodes = [replace(transport.client_utils.url_to_node_config(url), **options) for url in urls]
    return Server(
        urls=urls,
        engine=engine,
        credentials=credentials,
        transport=transport.Transport(
            nodes,
            max_retries=2 * len(urls),
            retry_on_timeout=len(urls) > 1,
            retry_on_status=(502, 503, 504),
            meta_header=False,
        ),
    )


def _explain_tls_failure(text: str) -> str:
    if "expired" in text:
        return "its certificate has expired. Renew it."
    if "WRONG_VERSION_NUMBER" in text or "wrong version number" in text:
        return "the server uses plain HTTP. Write http:// in its address."
    if "self-signed" in text or "self signed" in text or "unable to get local issuer" in text:
        return f"its certificate is signed by an unknown CA. Set {CA} to that CA's file."
    return shorten(text, _MAX_REASON_CHARS)
