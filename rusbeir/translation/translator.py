"""What a translator is given, what it may answer, and how it says what it can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from rusbeir.jobs.throttle import Limits

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


class Failure(NamedTuple):
    """One text without a translation."""

    reason: str
    """One of REASONS."""
    detail: str
    """One line for a reader: what was expected, what came."""
    retry: bool
    """Whether asking the same translator again may help."""


Outcome: TypeAlias = str | Failure


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """What a translator takes in one request, and in which form."""

    max_chars: int | None = None
    """Of one text, masks included; None for no limit."""
    max_bytes: int | None = None
    """Of one text in UTF-8, masks included; None for no limit."""
    max_items: int = 1
    """Texts in one request."""
    mask: str = "none"
    """The form of protection that its answers keep: a name of rusbeir.translation.segments.protect.STYLES."""
    cost_per_million_chars: float = 0.0
    levels: tuple[str, ...] = ("segment",)
    """The units it is asked for, in order: names of rusbeir.translation.segments.segment.LEVELS."""


class Translator(Protocol):
    """Translates texts."""

    @property
    def signature(self) -> str:
        """Name, model revision and every setting that changes the text."""
        ...

    @property
    def capacity(self) -> Capacity: ...

    @property
    def limits(self) -> Limits: ...

    async def translate(self, texts: Sequence[str], source: str, target: str) -> Sequence[Outcome]:
        """One outcome a text, in their order; source and target are BCP 47.

        Raises jobs.Transient where the whole request may be repeated.
        """
        ...


class ChecksPair(Protocol):
    """Says before anything is sent whether a translator can work at all."""

    def check(self, source: str, target: str) -> None:
        """Nothing where it can; else BadInput (credentials, model folder, language pair) or MissingExtra."""
        ...
