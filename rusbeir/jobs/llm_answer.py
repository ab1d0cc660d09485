"""What a language model's answer is, what it costs, and what it means to get none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rusbeir.errors import BackendError


class Answer(NamedTuple):
    """What the model answered. text is "" where it refused or had nothing to say.

    finish_reason is the server's: "stop", "length" (cut at max_tokens), "content_filter"; "" where it gives none.
    Tokens are 0 where the server does not count them. refusal is the model's own wording, where the server tells it
    apart; model what the server calls the model that answered. first_tokens are the likeliest beginnings of the answer
    with their log-probabilities, where they were asked for.
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
        """What so many tokens cost.

        >>> Price(0.5, 2.0).of(1_000_000, 100_000)
        0.7
        """
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


FREE = Price()


class Rejected(BackendError):
    """The endpoint will never answer this one request; others may fare better.

    reason is "too-long", "refused" (by a content filter) or "rejected", detail what the server said.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"The request is not taken ({reason}: {detail}).")
        self.reason = reason
        self.detail = detail


@dataclass(kw_only=True)
class Usage:
    """Answers and tokens so far, cut and empty answers included: they are billed as well."""

    answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
