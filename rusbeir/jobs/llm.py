"""A client of models behind any OpenAI-compatible endpoint: one request, one checked answer, tokens counted."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MappingProxyType, TracebackType
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from rusbeir.errors import BackendError, BadInput, require
from rusbeir.jobs.batch_exchange import Exchange
from rusbeir.jobs.budget import Charge, Meter
from rusbeir.jobs.http import MAX_ANSWER_BYTES, bound_answers
from rusbeir.jobs.llm_answer import (
    FREE,
    Answer,
    Price,
    Rejected,
    bound_chat,
    parse_response,
    read_answer,
    read_error,
    read_usage,
    read_vectors,
)
from rusbeir.jobs.throttle import Transient, find_passing_reason, retry_after_seconds
from rusbeir.text import shorten

T = TypeVar("T")

logger = logging.getLogger(__name__)

# How servers word it when one request is at fault, by what they say in code, type and message.
_REFUSALS = (
    (
        "too-long",
        re.compile(r"context.?(length|size|window)|too (long|large|many tokens)|maximum.{0,40}(tokens|length)"),
    ),
    ("refused", re.compile(r"content.?(filter|policy|management)|safety|responsible.?ai|moderation")),
)
# Options that some models refuse, and what takes their place; None is nothing.
_SUBSTITUTES: Mapping[str, str | None] = {
    "max_tokens": "max_completion_tokens",
    "temperature": None,
    "seed": None,
    "response_format": None,
}


NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Llm:
    """A model at an endpoint. For one event loop; close it, or use it as an async context manager.

    It repeats no request: let a Throttle make its calls. The key appears in no message and no log line. What a request
    costs is reserved at its meter before it is sent, at one token a byte of the prompt and max_tokens for the answer,
    which no tokeniser exceeds, and corrected by the tokens that the server counts.
    """

    model: str
    endpoint: str
    key: str = field(repr=False)
    query: str = field(default="", repr=False)
    """What followed the ? of the endpoint's address, such as key=…; it is sent with every request."""
    timeout_seconds: float = 120.0
    """The time for a whole request, to the last byte of its answer."""
    max_answer_bytes: int = MAX_ANSWER_BYTES
    price: Price = FREE
    meter: Meter = field(default_factory=Meter, repr=False, compare=False)
    exchange: Exchange | None = field(default=None, repr=False, compare=False)
    """Has answers to requests that it collected before; without one, every request is sent."""
    _clients: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)
    _refused_options: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    @classmethod
    def from_environment(cls, model: str, *, timeout_seconds: float = 120.0, price: Price = FREE) -> Llm:
        """Return the model at OPENAI_BASE_URL, with the key OPENAI_API_KEY.

        Raises BadInput, naming the variable, where one is missing or cannot be right.

        Examples:
            >>> Llm.from_environment("qwen3-30b", timeout_seconds=60)  # doctest: +SKIP
            Llm(model='qwen3-30b', endpoint='http://localhost:8000/v1', ...)
        """
        endpoint = _variable("OPENAI_BASE_URL", "the endpoint's address, such as http://localhost:8000/v1")
        key = _variable("OPENAI_API_KEY", "the endpoint's key (any word, if the server asks for none)")
        parts = urlsplit(endpoint)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise BadInput("OPENAI_BASE_URL is not an address: it must begin with http:// or https:// and name a host.")
        if parts.username or parts.password:
            raise BadInput(
                "OPENAI_BASE_URL contains a user name or password. Leave them out; the key goes into OPENAI_API_KEY."
            )
        if not key.isascii() or not key.isprintable():
            raise BadInput(
                "OPENAI_API_KEY contains characters that no key has. Set it again, without quotes or line ends."
            )
        return cls(
            model=model,
            endpoint=urlunsplit(parts._replace(query="", fragment="")),
            key=key,
            query=parts.query,
            timeout_seconds=timeout_seconds,
            price=price,
        )

    async def __aenter__(self) -> Llm:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. Harmless when repeated."""
        while self._clients:
            await self._clients.pop().close()

    async def chat(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        schema: Mapping[str, Any] | None = None,
        temperature: float = 0.0,
        seed: int | None = None,
        max_tokens: int | None = None,
        top_logprobs: int | None = None,
        repeat: bool = False,
    ) -> Answer:
        """The model's answer to messages ({"role": …, "content": …}), JSON by the schema where the server obeys it.

        An option that the model refuses (temperature, seed, schema) is left out from then on, with a warning: check
        the answer against the schema. repeat says that the request asks again for what an answered one did not bring,
        and is counted. Raises Transient for failures worth repeating (rate-limited, timeout, server,
        malformed, empty), Rejected for this request alone, BadInput for a wrong key or model, BackendError for a
        quota that is used up, BudgetReached, MissingExtra without the package openai, and Postponed where the
        exchange has no answer yet.
        """
        options: dict[str, Any] = {"temperature": temperature, "seed": seed, "max_tokens": max_tokens}
        if top_logprobs is not None:
            options |= {"logprobs": True, "top_logprobs": top_logprobs}
        if schema is not None:
            options["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": dict(schema), "strict": True},
            }
        while True:
            sent = self._allowed({name: value for name, value in options.items() if value is not None})
            request = {"model": self.model, "messages": list(messages), **sent}
            bound = bound_chat(messages, schema, max_tokens or 0, self.price)
            try:
                if self.exchange is not None and (reply := self.exchange.fetch(request, *bound, repeat)) is not None:
                    return self._read_reply(*reply)
                self.meter.repeats += repeat
                repeat = False
                async with self.meter.request(*bound) as charge:
                    return self._read(read_answer, await self._post("chat", request), charge)
            except _OptionRefused as refusal:
                if refusal.option in self._refused_options and refusal.option not in sent:
                    raise Rejected("rejected", refusal.detail) from None
                self.meter.repeats += 1
                # Requests that were under way together are refused together.
                if refusal.option not in self._refused_options:
                    self._refused_options.add(refusal.option)
                    logger.warning("%s refuses %s: %s", self.model, refusal.option, refusal.detail)

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of the texts, in their order; fewer where the endpoint sends fewer.

        Raises as chat does, and BackendError where the response does not say which text each vector is of.

        Examples:
            >>> await llm.embed(["Water boils."])  # doctest: +SKIP
            [[0.0123, -0.0456, ...]]
        """
        request = {"model": self.model, "input": list(texts), "encoding_format": "float"}
        prompt = [{"content": text} for text in texts]
        async with self.meter.request(*bound_chat(prompt, None, 0, self.price)) as charge:
            rows = self._read(read_vectors, await self._post("embeddings", request), charge)
        indexes = [index for index, _ in rows]
        if indexes != list(range(len(rows))):
            raise BackendError(
                self._redact(
                    f"{self.endpoint} does not say which text each vector is of, so nothing was kept. Their `index` "
                    f"must be 0 to {len(rows) - 1}, each once, not {', '.join(map(str, indexes))}"
                )
            )
        return [vector for _, vector in rows]

    def _allowed(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options without those refused before, or with their substitutes."""
        names = {name: _SUBSTITUTES[name] if name in self._refused_options else name for name in options}
        return {name: options[option] for option, name in names.items() if name is not None}

    async def _post(self, kind: Literal["chat", "embeddings"], request: Mapping[str, Any]) -> str:
        """Return the body of the server's answer to one request."""
        if not self._clients:
            self._clients.append(self.connect())
        client = self._clients[0]
        resource = client.chat.completions if kind == "chat" else client.embeddings
        with self.reporting():
            async with asyncio.timeout(self.timeout_seconds):
                return str((await resource.with_raw_response.create(**request)).text)

    def connect(self, *, bounded: bool = True) -> Any:
        """Open a client of the package openai for this endpoint; bounded says whether long answers are refused."""
        openai = require("openai", "A language model", "llm")
        settings = {"base_url": self.endpoint, "api_key": self.key, "timeout": self.timeout_seconds}
        query = dict(parse_qsl(self.query, keep_blank_values=True)) or None
        # A redirection would send the texts to an address that nobody gave.
        http = openai.DefaultAsyncHttpxClient(follow_redirects=False)
        if bounded:
            http = bound_answers(http, self.max_answer_bytes)
        return openai.AsyncOpenAI(**settings, default_query=query, max_retries=0, http_client=http)

    @contextlib.contextmanager
    def reporting(self) -> Iterator[None]:
        """Raise what failures of a client's request mean, as chat does, in place of its own errors."""
        openai = require("openai", "A language model", "llm")
        # None of the client's errors is kept as a cause: they hold the request, and with it the key.
        try:
            yield
        except (openai.APITimeoutError, TimeoutError):
            raise Transient("timeout", detail=f"no answer within {self.timeout_seconds:g} seconds") from None
        except openai.APIStatusError as error:
            raise explain_failure(
                self, error.status_code, error.body, error.response.reason_phrase, error.response.headers
            ) from None
        except openai.APIConnectionError as error:
            cause = str(error.__cause__ or error)
            raise Transient(
                "server",
                detail=self._redact(f"no connection to {self.endpoint}: {cause}"),
                # A server that hangs up in the middle of an answer has received the texts.
                billed=type(error.__cause__).__name__ != "ConnectError",
            ) from None
        except UnicodeEncodeError:
            raise Rejected(
                "rejected", "the text contains unpaired surrogates, which cannot be encoded as UTF-8"
            ) from None

    def _read_reply(self, status: int, body: str) -> Answer:
        """Return the answer in a response that came with a batch, where it was counted. Raises as chat does."""
        if status != HTTPStatus.OK:
            raise explain_failure(self, status, read_error(body))
        return self._read(read_answer, body, Charge())

    def _read(self, read: Callable[[Mapping[str, Any]], T], body: str, charge: Charge) -> T:
        """Return what read finds in the body of a response, whose tokens are counted."""
        try:
            response = parse_response(body)
            usage = read_usage(response)
            charge.input_tokens, charge.output_tokens, charge.cached_input_tokens = usage[:3]
            # A server that counts no tokens has billed at most what was reserved.
            if any(usage):
                charge.cost = self.price.of(*usage)
            return read(response)
        except Transient as error:
            raise Transient(error.reason, detail=self._redact(f"{error.detail}: {body}")) from None

    def _redact(self, text: str) -> str:
        """The text as one short line for a message, without the key and the query, which servers like to quote."""
        # A short value, such as api-version=1, is not a secret and may be a part of any word.
        values = [value for _, value in parse_qsl(self.query) if len(value) >= 8]
        for secret in (self.key, *values):
            text = text.replace(secret, "[key]")
        return shorten(text)


class _OptionRefused(BackendError):
    """The model does not take an option of the request."""

    def __init__(self, option: str, detail: str) -> None:
        super().__init__(option)
        self.option = option
        self.detail = detail


def explain_failure(
    llm: Llm, status: int, error: Any, phrase: str = "", headers: Mapping[str, str] = NO_HEADERS
) -> Exception:
    """Return the exception that an HTTP error status of the model's endpoint means; error is what its body says."""
    body = error if isinstance(error, dict) else {}
    message = str(body.get("message") or error or "")
    detail = llm._redact(f"{status} {message or phrase}")
    words = " ".join(str(body.get(name) or "") for name in ("code", "type", "message")).lower()
    option = str(body.get("param") or "").partition(".")[0]
    if status == 429 and "insufficient_quota" in words:
        return BackendError(f"The quota at {llm.endpoint} is used up ({detail}). Everything finished is saved.")
    if reason := find_passing_reason(status):
        return Transient(
            reason,
            detail=detail,
            retry_after=_retry_after(headers),
            billed=False,
        )
    if 300 <= status < 400:
        address = headers.get("location", "nowhere")
        return Transient("server", detail=llm._redact(f"{status} leads to {address}, which OPENAI_BASE_URL is not"))
    if status in {401, 403}:
        return BadInput(f"{llm.endpoint} does not accept the key in OPENAI_API_KEY ({detail}).")
    if status == 404:
        return BadInput(f"{llm.endpoint} has no model {llm.model!r}, or is not the right address ({detail}).")
    if status == 400 and option in _SUBSTITUTES and "unsupported" in words:
        return _OptionRefused(option, detail)
    return Rejected(next((name for name, pattern in _REFUSALS if pattern.search(words)), "rejected"), detail)


def _variable(name: str, meaning: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise BadInput(f"{name} is not set. Set it to {meaning}.")
    return value


def _retry_after(headers: Mapping[str, str]) -> float | None:
    milliseconds = retry_after_seconds(headers.get("retry-after-ms"))
    return retry_after_seconds(headers.get("retry-after")) if milliseconds is None else milliseconds / 1000
