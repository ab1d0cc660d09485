"""The responses of an OpenAI-compatible endpoint: read, checked, priced, and estimated beforehand."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from rusbeir.errors import BackendError, BadInput, option
from rusbeir.jobs.throttle import Limits, Transient, read_backends

PRICES = ("input_price", "output_price")
"""The options with the prices of a language model, in USD per million tokens."""
ALL_PRICES = (*PRICES, "cached_price", "batch_share")
"""These, the price of input tokens that a provider has in its cache, and what a batch costs of all of them."""
CACHED_PROMPT_TOKENS = 1024
"""The shortest beginning of a request that large providers keep in their caches."""
TOKENS_PER_SECOND = 50
"""The speed at which a server is assumed to answer one request, where nothing is known of it."""
CHARS_PER_TOKEN = 3
"""An endpoint's tokenizer is unknown; Cyrillic has about three characters to a token."""
_WRITTEN = 1.25
"""What an input token costs that a provider writes to its cache, where another one costs 1: Anthropic's price."""
_MAX_TOKENS = 1 << 40
"""A server that counts more counts wrongly."""
_DATE = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")
"""The end of a model's name that says which version it is."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class Answer(NamedTuple):
    """A model's answer. text is "" where it refused or had nothing to say.

    finish_reason is the server's: "stop", "length" (cut at max_tokens), "content_filter"; "" where it gives none.
    Tokens are 0 where the server does not count them. refusal is the model's own wording, where the server reports
    it separately; model the server's name of the model that answered. first_tokens are the likeliest first tokens of
    the answer with their log-probabilities, where they were asked for.
    """

    text: str
    finish_reason: str
    input_tokens: int
    output_tokens: int
    refusal: str = ""
    model: str = ""
    first_tokens: tuple[tuple[str, float], ...] = ()


class Price(NamedTuple):
    """Money per million tokens sent and answered."""

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None
    """That of input tokens that the provider has in its cache; None where they cost the same."""
    batch: float | None = None
    """What a batch costs of all of these; None where nothing is known."""

    def of(
        self, input_tokens: int, output_tokens: int, cached_input_tokens: int = 0, written_input_tokens: int = 0
    ) -> float:
        """Return the cost of so many tokens; those read from a cache or written to it are among the input tokens.

        Examples:
            >>> Price(0.5, 2.0).of(1_000_000, 100_000)
            0.7
            >>> Price(0.5, 2.0, cached=0.1).of(1_000_000, 100_000, 500_000)
            0.5
            >>> Price(0.5, 2.0).of(1_000_000, 100_000, written_input_tokens=400_000)
            0.75
        """
        cached = self.input if self.cached is None else self.cached
        n_cached = min(cached_input_tokens, input_tokens)
        n_uncached = input_tokens - n_cached
        n_weighed = n_uncached + (_WRITTEN - 1) * min(written_input_tokens, n_uncached)
        return (n_weighed * self.input + n_cached * cached + output_tokens * self.output) / 1e6

    def compare(self, requests: int, input_tokens: int, output_tokens: int, prompt_tokens: int) -> Costs:
        """Return what requests cost that begin with the same prompt, by how they are sent.

        Examples:
            >>> Price(1.0, 4.0, cached=0.1, batch=0.5).compare(100, 1_000_000, 250_000, prompt_tokens=5_000)
            Costs(batch_cost=1.0, cached_cost=1.5545)
            >>> Price(1.0, 4.0).compare(100, 1_000_000, 250_000, prompt_tokens=5_000)
            Costs(batch_cost=None, cached_cost=None)
        """
        cached = (requests - 1) * prompt_tokens if prompt_tokens >= CACHED_PROMPT_TOKENS else 0
        return Costs(
            batch_cost=None if self.batch is None else self.of(input_tokens, output_tokens) * self.batch,
            cached_cost=None if self.cached is None else self.of(input_tokens, output_tokens, cached),
        )


class Costs(NamedTuple):
    """What an estimate would cost otherwise than one by one; None where the price is not known."""

    batch_cost: float | None
    cached_cost: float | None
    """The cost where the provider has in its cache what all requests begin with, if that is long enough."""


FREE = Price()
_TOKENS_PER_MESSAGE = 16
"""More than any chat template adds to a message."""


def bound_chat(
    messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None, max_tokens: int, price: Price
) -> tuple[int, float]:
    """Return (characters of a chat, what it costs at most): one token a byte of the prompt, max_tokens for the answer.

    Examples:
        >>> bound_chat([{"role": "user", "content": "Да"}], None, 10, Price(1.0, 2.0))
        (2, 4e-05)
    """
    texts = [message["content"] for message in messages]
    tokens = sum(len(text.encode("utf-8", "replace")) for text in texts) + _TOKENS_PER_MESSAGE * len(texts)
    # Some servers put the schema into the prompt.
    tokens += len(orjson.dumps(schema)) if schema else 0
    return sum(map(len, texts)), price.of(tokens, max_tokens)


class Rejected(BackendError):
    """The endpoint will never answer this request, though it may answer others.

    reason is "too-long", "refused" (by a content filter) or "rejected", detail what the server said.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"The endpoint rejects the request ({reason}: {detail}).")
        self.reason = reason
        self.detail = detail


def parse_response(body: str) -> dict[str, Any]:
    """Parse the JSON object in the body of a response. Raises Transient where there is none."""
    try:
        response = json.loads(body)
    except (ValueError, RecursionError):
        raise Transient("malformed", detail="the response is not JSON") from None
    if not isinstance(response, dict):
        raise Transient("malformed", detail="the response is not a JSON object")
    return response


def count_tokens(response: Mapping[str, Any], kind: str) -> int:
    """Read how many tokens a response counts as prompt_tokens or completion_tokens; 0 where it does not."""
    value = _object(response.get("usage")).get(kind)
    return value if isinstance(value, int) and 0 < value <= _MAX_TOKENS else 0


class Usage(NamedTuple):
    """The tokens of one answer; 0 where the server does not count them. `budget.Spent` counts the first three."""

    input_tokens: int
    output_tokens: int
    cached_input_tokens: int
    """Those of the input tokens that the server had in its cache."""
    written_input_tokens: int = 0
    """Those of the input tokens that the server wrote to its cache."""


def read_usage(response: Mapping[str, Any]) -> Usage:
    """Read the tokens that a response counts.

    Examples:
        >>> details = {"cached_tokens": 64}
        >>> read_usage({"usage": {"prompt_tokens": 90, "completion_tokens": 5, "prompt_tokens_details": details}})
        Usage(input_tokens=90, output_tokens=5, cached_input_tokens=64, written_input_tokens=0)
    """
    details = _object(response.get("usage")).get("prompt_tokens_details")
    return Usage(
        count_tokens(response, "prompt_tokens"),
        count_tokens(response, "completion_tokens"),
        count_tokens({"usage": details}, "cached_tokens"),
        count_tokens({"usage": details}, "cache_write_tokens"),
    )


def read_answer(response: Mapping[str, Any]) -> Answer:
    """Read the answer in a response of a chat. Raises Transient where there is none, or a broken one."""
    choices = response.get("choices")
    if not isinstance(choices, list) or not choices:
        # Some gateways answer 200 with an error inside.
        raise Transient("empty", detail="the response has no choices")
    choice = _object(choices[0])
    message = _object(choice.get("message"))
    text = message.get("content") or ""
    if not message or not isinstance(text, str):
        raise Transient("malformed", detail="the response has no message")
    if _SURROGATE.search(text):
        raise Transient("malformed", detail="the answer holds half a character (an unpaired surrogate)")
    return Answer(
        text,
        str(choice.get("finish_reason") or ""),
        count_tokens(response, "prompt_tokens"),
        count_tokens(response, "completion_tokens"),
        str(message.get("refusal") or ""),
        str(response.get("model") or ""),
        _first_tokens(choice),
    )


def read_error(body: str) -> Any:
    """Return what the body of an HTTP error says: the object under "error", or all of it."""
    try:
        response = json.loads(body)
    except (ValueError, RecursionError):
        return body
    return response.get("error", response) if isinstance(response, dict) else response


THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
"""What models that think aloud write before their answer."""
_FENCE = re.compile(r"```(?:json)?(.*?)```", re.DOTALL)


def read_object(text: str) -> dict[str, Any] | None:
    """Read the JSON object in an answer's text; None where there is none, or it is broken.

    Thoughts before it, a fence or words around it and raw line breaks in its strings do no harm.

    Examples:
        >>> read_object('Sure! ```json\\n{"label": 2}\\n```')
        {'label': 2}
    """
    text = THOUGHTS.sub("", text)
    for candidate in (text, *_FENCE.findall(text), text[text.find("{") : text.rfind("}") + 1]):
        try:
            value = json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else None
    return None


def read_vectors(response: Mapping[str, Any]) -> list[tuple[int, list[float]]]:
    """Read (index of the text, vector) of a response of embeddings, by index. Raises Transient where there are none."""
    data = response.get("data")
    try:
        rows = [(int(row["index"]), [float(number) for number in row["embedding"]]) for row in data or []]
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise Transient("malformed", detail=f"the response has no vectors ({error!r})") from None
    if not rows:
        raise Transient("empty", detail="the response has no vectors")
    return sorted(rows, key=lambda row: row[0])


def _first_tokens(choice: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    content = _object(choice.get("logprobs")).get("content")
    first = _object(content[0]) if isinstance(content, list) and content else {}
    top = first.get("top_logprobs")
    tokens = [_object(token) for token in top] if isinstance(top, list) else []
    return tuple(
        (str(token.get("token")), float(token["logprob"]))
        for token in tokens
        # A probability of 0 has no logarithm, and numbers of hundreds of digits are not floats.
        if isinstance(token.get("logprob"), (int, float)) and abs(token["logprob"]) <= sys.float_info.max
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def list_prices(model: str) -> dict[str, float]:
    """List those of ALL_PRICES that translation/backends.toml has for a model; {} for a model that it does not have.

    Examples:
        >>> list_prices("gpt-4o-mini-2024-07-18")
        {'input_price': 0.15, 'output_price': 0.6, 'cached_price': 0.075, 'batch_share': 0.5}
    """
    row = read_backends()["models"].get(_DATE.sub("", model), {})
    return {name: row[name] for name in ALL_PRICES if name in row}


def find_price(model: str, options: Mapping[str, Any]) -> Price:
    """Return the price of a model by the options that are given, then by those that are listed; a missing one is 0."""
    chosen = {name: value for name in ALL_PRICES if (value := options.get(name)) is not None}
    known = {**list_prices(model), **chosen}
    return Price(
        known.get("input_price", 0.0),
        known.get("output_price", 0.0),
        # A cache of a server with prices of its own has its own price, too.
        chosen.get("cached_price") if "input_price" in chosen else known.get("cached_price"),
        known.get("batch_share"),
    )


def list_missing_prices(known: Collection[str], model: str = "") -> tuple[str, ...]:
    """List the names in PRICES that are neither known nor listed for the model.

    Examples:
        >>> list_missing_prices({"input_price"})
        ('output_price',)
    """
    listed = list_prices(model)
    return tuple(name for name in PRICES if name not in known and name not in listed)


def name_options(names: Sequence[str], *, of_verb: bool = False) -> str:
    """Name options for a message: of a model (--option NAME=…) or of the verb itself (--NAME …).

    Examples:
        >>> name_options(PRICES)
        'input_price=… output_price=…'
    """
    if of_verb:
        return " ".join(option(name, "…") for name in names)
    return " ".join(option("option", f"{name.replace('_', '-')}=…", python=f"{name}=…") for name in names)


def ask_for_prices(missing: Sequence[str], *, of_verb: bool = False) -> str:
    """Return the options with the missing prices, and their unit; "" where none is missing."""
    return f"add {name_options(missing, of_verb=of_verb)} (USD per million tokens)" if missing else ""


def refuse_unpriced(budget_cost: float | None, model: str, remedy: str) -> None:
    """Raise BadInput for a budget of money where a price is missing, so that nothing would be bounded.

    remedy says what to do; it is "" where the price is known.
    """
    if budget_cost is not None and remedy:
        raise BadInput(
            f"{option('budget_cost', budget_cost)} bounds nothing without the price of {model}: {remedy}. "
            "Nothing was sent."
        )


def estimate_seconds(requests: int, output_tokens: int, limits: Limits) -> float:
    """The time at the requests a second that are allowed; without that limit, at TOKENS_PER_SECOND a request."""
    if limits.requests_per_second:
        return requests / limits.requests_per_second
    return output_tokens / (TOKENS_PER_SECOND * limits.concurrency)


def describe_time(limits: Limits, *, of_verb: bool = False) -> str:
    """Describe in a sentence what estimate_seconds assumes."""
    if limits.requests_per_second:
        return f"The time is that of {limits.requests_per_second:g} requests a second."
    return (
        f"The time assumes {TOKENS_PER_SECOND} tokens a second for each of {limits.concurrency} requests at a time; "
        f"{name_options(['concurrency'], of_verb=of_verb)} changes that, and a small sample shows what the server does."
    )
