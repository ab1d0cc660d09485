"""The responses of an OpenAI-compatible endpoint: read, checked and priced."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rusbeir.errors import BackendError
from rusbeir.jobs.throttle import Transient

_MAX_TOKENS = 1 << 40
"""A server that counts more counts wrongly."""
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

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """The cost of so many tokens.

        >>> Price(0.5, 2.0).of(1_000_000, 100_000)
        0.7
        """
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


FREE = Price()


class Rejected(BackendError):
    """The endpoint will never answer this request, though it may answer others.

    reason is "too-long", "refused" (by a content filter) or "rejected", detail what the server said.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"The endpoint rejects the request ({reason}: {detail}).")
        self.reason = reason
        self.detail = detail


@dataclass(kw_only=True)
class Usage:
    """Answers and tokens so far, truncated and empty answers included, as they are billed, too."""

    answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


def parse_response(body: str) -> dict[str, Any]:
    """The JSON object in the body of a response. Raises Transient where there is none."""
    try:
        response = json.loads(body)
    except (ValueError, RecursionError):
        raise Transient("malformed", detail="the response is not JSON") from None
    if not isinstance(response, dict):
        raise Transient("malformed", detail="the response is not a JSON object")
    return response


def count_tokens(response: Mapping[str, Any], kind: str) -> int:
    """The tokens that a response counts as prompt_tokens or completion_tokens; 0 where it does not."""
    value = _object(response.get("usage")).get(kind)
    return value if isinstance(value, int) and 0 < value <= _MAX_TOKENS else 0


def read_answer(response: Mapping[str, Any]) -> Answer:
    """The answer in a response of a chat. Raises Transient where there is none, or a broken one."""
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


THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
"""What models that think aloud write before their answer."""
_FENCE = re.compile(r"```(?:json)?(.*?)```", re.DOTALL)


def read_object(text: str) -> dict[str, Any] | None:
    """The JSON object in an answer's text; None where there is none, or it is broken.

    Thoughts before it, a fence or words around it and raw line breaks in its strings do no harm.

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
    """(index of the text, vector) of a response of embeddings, by index. Raises Transient where there are none."""
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
    found = [_object(token) for token in top] if isinstance(top, list) else []
    return tuple(
        (str(token.get("token")), float(token["logprob"]))
        for token in found
        # A probability of 0 has no logarithm, and numbers of hundreds of digits are not floats.
        if isinstance(token.get("logprob"), (int, float)) and abs(token["logprob"]) <= sys.float_info.max
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
