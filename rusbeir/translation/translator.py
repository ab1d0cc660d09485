"""The Translator protocol: what a translator is given, what it may answer, and its optional abilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from rusbeir.jobs import Exchange, Limits, Meter, Price

REASONS = (
    "empty",
    "lost-mask",
    "malformed",
    "no-entry",
    "rate-limited",
    "refused",
    "server",
    "timeout",
    "too-long",
    "unsupported",
    "untranslated",
    "wrong-language",
)
"""Why one text has no translation."""


class Segment(NamedTuple):
    """A text and its translation. Languages are BCP 47."""

    source: str
    answer: str
    source_language: str
    target_language: str


class Flag(NamedTuple):
    """A finding of a check."""

    name: str
    """A key of rusbeir.translation.checks.checks.SEGMENT_CHECKS."""
    detail: str
    """What was found, in one line."""


class Failure(NamedTuple):
    """One text without a translation."""

    reason: str
    """One of REASONS."""
    detail: str
    """One line for a reader: what was expected, what came."""
    retry: bool
    """Whether asking the same translator again may help."""


class Translation(NamedTuple):
    """A translation that a reader should look at."""

    text: str
    flags: str = ""
    """Why: names separated by commas, such as "fuzzy:0.93"."""


Outcome: TypeAlias = str | Translation | Failure
"""What became of one text. A plain string is a translation without flags."""


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """The amount that a translator takes in one request, and in which form."""

    max_chars: int | None = None
    """The characters of one text, masks included; None for no limit."""
    max_bytes: int | None = None
    """The bytes of one text in UTF-8, masks included; None for no limit."""
    max_items: int = 1
    """Texts in one request."""
    request_chars: int | None = None
    """A request takes no more texts once they have so many characters together; None for no limit."""
    mask: str = "none"
    """The form of protection that its answers keep: a name of rusbeir.translation.segments.spans.STYLES."""
    cost_per_million_chars: float = 0.0
    levels: tuple[str, ...] = ("segment",)
    """The units it is asked for, in order: names of rusbeir.translation.segments.segment.LEVELS."""

    def count_requests(self, texts: int, chars: int) -> int:
        """Return how many requests take so many texts of so many characters together, if all have one length.

        Examples:
            >>> Capacity(max_items=8).count_requests(80, 106_000)
            10
            >>> Capacity(max_items=8, request_chars=4_000).count_requests(80, 106_000)
            20
        """
        at_once = self.max_items
        if self.request_chars is not None and chars:
            at_once = min(at_once, math.ceil(self.request_chars * texts / chars))
        return math.ceil(texts / at_once)


class Translator(Protocol):
    """Translates texts."""

    @property
    def signature(self) -> str:
        """Name, model revision and every setting that changes the text."""
        ...

    @property
    def capacity(self) -> Capacity:
        """Return how much text one request takes."""
        ...

    @property
    def limits(self) -> Limits:
        """Return how often and how many requests at once the service may be asked."""
        ...

    async def translate(self, texts: Sequence[str], source: str, target: str) -> Sequence[Outcome]:
        """One outcome a text, in their order; source and target are BCP 47.

        Raises jobs.Transient where the whole request may be repeated.
        """
        ...


@runtime_checkable
class ChecksPair(Protocol):
    """A translator that can tell, before anything is sent, whether it works for a pair of languages."""

    def check(self, source: str, target: str) -> None:
        """Raise BadInput (credentials, model folder, language pair) or MissingExtra where it cannot work."""
        ...


@runtime_checkable
class Closes(Protocol):
    """A translator that holds connections or processes."""

    async def close(self) -> None:
        """Release them; the translator may be used again.

        Connections belong to the event loop in which they were opened: close them in the same.
        """
        ...


@runtime_checkable
class JudgesAnswers(Protocol):
    """A translator that fails its own bad answers, after it has asked again in its own way."""

    @property
    def judge(self) -> Callable[[Segment], Failure | None]:
        """The Failure of an answer by one of checks.FAILURES or a reason of its own; None for any other."""
        ...


@runtime_checkable
class Metered(Protocol):
    """A translator that may send several requests for the texts it is given, and counts each."""

    def with_meter(self, meter: Meter) -> Self:
        """The translator, which sends each request within a block of Meter.request."""
        ...


class Context(NamedTuple):
    """The surroundings of a text in its document, to be read and not to be translated."""

    title: str = ""
    """The title of the document; "" where it has none, or where it is the text, or next to it."""
    before: Sequence[str] = ()
    """The segments before the text, in their order."""
    after: Sequence[str] = ()


@runtime_checkable
class ReadsContext(Protocol):
    """A translator that can be shown what is around a text."""

    @property
    def context(self) -> int:
        """The segments before and after a text that it is shown; 0 for none."""
        ...

    async def translate_in_context(
        self, context: Context, texts: Sequence[str], source: str, target: str
    ) -> Sequence[Outcome]:
        """Translator.translate, for texts that are all in the same place of a document."""
        ...


@runtime_checkable
class TakesBatches(Protocol):
    """A translator whose requests can be answered in batches."""

    @property
    def price(self) -> Price:
        """Return its prices, a missing one as 0."""
        ...

    def with_exchange(self, exchange: Exchange) -> Self:
        """Return the translator, which takes its answers from batches.

        It raises jobs.Postponed for a text whose answer comes later.
        """
        ...


class Tokens(NamedTuple):
    """The number of tokens that a language model is sent, and answers."""

    input: int
    output: int
    prompt: int = 0
    """Those with which each request begins."""


@runtime_checkable
class PaidByToken(Protocol):
    """A translator whose prices only the user knows."""

    @property
    def missing_prices(self) -> tuple[str, ...]:
        """The names of the options with a price that are not given."""
        ...

    def estimate_tokens(self, texts: int, chars: int, source: str, target: str) -> Tokens:
        """The tokens of so many texts, of so many characters together, with what is sent with each."""
        ...

    def price_tokens(self, tokens: Tokens) -> float:
        """USD for so many tokens, by the prices that are given."""
        ...


@runtime_checkable
class CountsCost(Protocol):
    """A translator that counts its cost itself, in place of the estimate by Capacity.cost_per_million_chars."""

    @property
    def spent(self) -> float:
        """USD spent by this object so far."""
        ...


@runtime_checkable
class Discloses(Protocol):
    """A translator that says itself what translation/backends.toml says of rusbeir's own."""

    @property
    def about(self) -> str:
        """The translator, with the licence of its models, in one line; goes into the card of a port."""
        ...

    @property
    def sends(self) -> str:
        """The recipient of the texts, announced before they are sent; "" where they stay on this machine."""
        ...


@runtime_checkable
class Named(Protocol):
    """A translator that knows the name by which make() makes it."""

    @property
    def name(self) -> str:
        """Return the name, such as google."""
        ...
