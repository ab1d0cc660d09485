"""Chat with a model behind any OpenAI-compatible endpoint: one request, one checked answer, tokens counted."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import TracebackType
from typing import Any, Literal
from urllib.parse import urlsplit

from rusbeir.errors import BackendError, BadInput, MissingExtra
from rusbeir.jobs.llm_answer import FREE, Answer, Price, Rejected, Usage
from rusbeir.jobs.throttle import Transient, retry_after_seconds

logger = logging.getLogger(__name__)

SHOWN_CHARS = 200

_REPEATABLE = {408: "timeout", 409: "server", 425: "server", 429: "rate-limited"}
# How servers word it when one request is at fault, by what they say in code, type and message.
_REFUSALS = (
    (
        "too-long",
        re.compile(r"context.?(length|size|window)|too (long|large|many tokens)|maximum.{0,40}(tokens|length)"),
    ),
    ("refused", re.compile(r"content.?(filter|policy|management)|safety|responsible.?ai|moderation")),
)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
# Options that some models refuse, and what takes their place; None is nothing.
_SUBSTITUTES: Mapping[str, str | None] = {
    "max_tokens": "max_completion_tokens",
    "temperature": None,
    "seed": None,
    "response_format": None,
}


@dataclass(frozen=True, kw_only=True)
class Llm:
    """A model at an endpoint. For one event loop; close it, or use it as an async context manager.

    Repeats nothing itself: give its calls to a Throttle. The key stands in no message and no log line.
    """

    model: str
    endpoint: str
    key: str = field(repr=False)
    timeout_seconds: float = 120.0
    price: Price = FREE
    usage: Usage = field(default_factory=Usage, compare=False)
    _clients: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)
    _refused_options: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    @classmethod
    def from_environment(cls, model: str, *, timeout_seconds: float = 120.0, price: Price = FREE) -> Llm:
        """The model at OPENAI_BASE_URL, with the key OPENAI_API_KEY.

        Raises BadInput, naming the variable, where one is missing or no address.

        >>> Llm.from_environment("qwen3-30b", timeout_seconds=60)  # doctest: +SKIP
        Llm(model='qwen3-30b', endpoint='http://localhost:8000/v1', ...)
        """
        endpoint = _variable("OPENAI_BASE_URL", "the endpoint's address, such as http://localhost:8000/v1")
        key = _variable("OPENAI_API_KEY", "the endpoint's key; any word will do for a server that asks for none")
        parts = urlsplit(endpoint)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise BadInput("OPENAI_BASE_URL is no address: it must begin with http:// or https:// and name a host.")
        if parts.username or parts.password:
            raise BadInput("OPENAI_BASE_URL holds a name or password: leave them out, the key is OPENAI_API_KEY.")
        if not key.isascii() or not key.isprintable():
            raise BadInput("OPENAI_API_KEY holds characters that no key has: set it anew, without quotes or line ends.")
        return cls(model=model, endpoint=endpoint, key=key, timeout_seconds=timeout_seconds, price=price)

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

    @property
    def spent(self) -> float:
        """The cost of all answers so far."""
        return self.price.of(self.usage.input_tokens, self.usage.output_tokens)

    async def chat(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        schema: Mapping[str, Any] | None = None,
        temperature: float = 0.0,
        seed: int | None = None,
        max_tokens: int | None = None,
        top_logprobs: int | None = None,
    ) -> Answer:
        """The model's answer to messages ({"role": …, "content": …}), JSON by the schema where the server obeys it.

        An option that the model refuses (temperature, seed, schema) is left out from then on, with a warning: check
        the answer against the schema. Raises Transient for what is worth repeating (rate-limited, timeout, server,
        malformed, empty), Rejected for this request alone, BadInput for a wrong key or model, BackendError for a
        quota that is used up, and MissingExtra without the package openai.
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
            asked = self._allowed({name: value for name, value in options.items() if value is not None})
            try:
                body = await self._post("chat", {"model": self.model, "messages": list(messages), **asked})
            except _OptionRefused as refusal:
                if refusal.option in self._refused_options and refusal.option not in asked:
                    raise Rejected("rejected", refusal.detail) from None
                self._refused_options.add(refusal.option)
                logger.warning("%s refuses %s: %s", self.model, refusal.option, refusal.detail)
            else:
                return self._answer(body)

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors that the endpoint answers, in the order of the texts; not more than it answers.

        Raises as chat, and BackendError where the answer does not say whose each vector is.

        >>> await llm.embed(["Water boils."])  # doctest: +SKIP
        [[0.0123, -0.0456, ...]]
        """
        request = {"model": self.model, "input": list(texts), "encoding_format": "float"}
        response = self._parsed(await self._post("embeddings", request))
        self.usage.answers += 1
        self.usage.input_tokens += _count(_object(response.get("usage")), "prompt_tokens")
        data = response.get("data")
        try:
            rows = [(int(row["index"]), [float(number) for number in row["embedding"]]) for row in data or []]
        except (TypeError, ValueError, KeyError) as error:
            raise Transient("malformed", detail=f"the answer holds no vectors ({error!r})") from None
        if not rows:
            raise Transient("empty", detail=self._shown(f"the answer has no vectors: {response}"))
        rows.sort(key=lambda row: row[0])
        indexes = [index for index, _ in rows]
        if indexes != list(range(len(rows))):
            raise BackendError(
                self._shown(
                    f"{self.endpoint} does not say whose its vectors are: nothing was kept. Their `index` must be "
                    f"0 to {len(rows) - 1}, each once, not {', '.join(map(str, indexes))}"
                )
            )
        return [row for _, row in rows]

    def _allowed(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options without those refused before, or with their substitutes."""
        names = {name: _SUBSTITUTES[name] if name in self._refused_options else name for name in options}
        return {name: options[option] for option, name in names.items() if name is not None}

    async def _post(self, kind: Literal["chat", "embeddings"], request: Mapping[str, Any]) -> str:
        """The body of the server's answer to one request."""
        openai = _openai()
        if not self._clients:
            settings = {"base_url": self.endpoint, "api_key": self.key, "timeout": self.timeout_seconds}
            self._clients.append(openai.AsyncOpenAI(**settings, max_retries=0))
        # None of the client's errors is kept as a cause: they hold the request, and with it the key.
        try:
            client = self._clients[0]
            resource = client.chat.completions if kind == "chat" else client.embeddings
            response = await resource.with_raw_response.create(**request)
            return str(response.text)
        except openai.APITimeoutError:
            raise Transient("timeout", detail=f"no answer within {self.timeout_seconds:g} seconds") from None
        except openai.APIStatusError as error:
            raise self._failure(error) from None
        except openai.APIConnectionError as error:
            cause = str(error.__cause__ or error)
            raise Transient("server", detail=self._shown(f"no connection to {self.endpoint}: {cause}")) from None
        except UnicodeEncodeError:
            raise Rejected("rejected", "the text holds lone surrogates, which are no characters") from None

    def _failure(self, error: Any) -> Exception:
        """What an HTTP error status means."""
        status = int(error.status_code)
        body = error.body if isinstance(error.body, dict) else {}
        said = str(body.get("message") or error.body or "")
        detail = self._shown(f"{status} {said or error.response.reason_phrase}")
        words = " ".join(str(body.get(name) or "") for name in ("code", "type", "message")).lower()
        option = str(body.get("param") or "").partition(".")[0]
        if status == 429 and "insufficient_quota" in words:
            return BackendError(f"The quota at {self.endpoint} is used up ({detail}). Everything finished is saved.")
        if status in _REPEATABLE or status >= 500:
            return Transient(
                _REPEATABLE.get(status, "server"), detail=detail, retry_after=_retry_after(error.response.headers)
            )
        if status in {401, 403}:
            return BadInput(f"{self.endpoint} does not accept the key in OPENAI_API_KEY ({detail}).")
        if status == 404:
            return BadInput(f"{self.endpoint} has no model {self.model!r}, or is not the right address ({detail}).")
        if status == 400 and option in _SUBSTITUTES and "unsupported" in words:
            return _OptionRefused(option, detail)
        return Rejected(next((name for name, pattern in _REFUSALS if pattern.search(words)), "rejected"), detail)

    def _answer(self, body: str) -> Answer:
        """The answer in a response, checked; its tokens are counted."""
        response = self._parsed(body)
        usage = _object(response.get("usage"))
        input_tokens, output_tokens = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
        self.usage.answers += 1
        self.usage.input_tokens += input_tokens
        self.usage.output_tokens += output_tokens
        choices = response.get("choices")
        if not isinstance(choices, list) or not choices:
            # Some gateways answer 200 with an error inside.
            raise Transient("empty", detail=self._shown(f"the answer has no choices: {body}"))
        choice = _object(choices[0])
        message = _object(choice.get("message"))
        text = message.get("content") or ""
        if not message or not isinstance(text, str):
            raise Transient("malformed", detail=self._shown(f"the answer has no message: {body}"))
        if _SURROGATE.search(text):
            raise Transient("malformed", detail="the answer holds half a character (a lone surrogate)")
        return Answer(
            text,
            str(choice.get("finish_reason") or ""),
            input_tokens,
            output_tokens,
            str(message.get("refusal") or ""),
            str(response.get("model") or ""),
            _first_tokens(choice),
        )

    def _parsed(self, body: str) -> dict[str, Any]:
        try:
            response = json.loads(body)
        except ValueError:
            raise Transient("malformed", detail=self._shown(f"the answer is no JSON: {body}")) from None
        if not isinstance(response, dict):
            raise Transient("malformed", detail=self._shown(f"the answer is no object: {body}"))
        return response

    def _shown(self, text: str) -> str:
        """One line for a message, short and without the key, which servers like to quote."""
        line = " ".join(text.replace(self.key, "[key]").split())
        return line if len(line) <= SHOWN_CHARS else line[: SHOWN_CHARS - 1] + "…"


class _OptionRefused(Exception):
    """The model does not take an option of the request."""

    def __init__(self, option: str, detail: str) -> None:
        super().__init__(option)
        self.option = option
        self.detail = detail


def _openai() -> Any:
    try:
        return import_module("openai")
    except ImportError as error:
        raise MissingExtra("A language model needs the package openai: pip install 'rusbeir[llm]'") from error


def _variable(name: str, meaning: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise BadInput(f"{name} is not set: it holds {meaning}.")
    return value


def _retry_after(headers: Mapping[str, str]) -> float | None:
    milliseconds = retry_after_seconds(headers.get("retry-after-ms"))
    return retry_after_seconds(headers.get("retry-after")) if milliseconds is None else milliseconds / 1000


def _first_tokens(choice: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    content = _object(choice.get("logprobs")).get("content")
    first = _object(content[0]) if isinstance(content, list) and content else {}
    top = first.get("top_logprobs")
    found = [_object(token) for token in top] if isinstance(top, list) else []
    return tuple(
        (str(token.get("token")), float(token["logprob"]))
        for token in found
        if isinstance(token.get("logprob"), (int, float))
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and value > 0 else 0
