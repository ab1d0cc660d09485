"""Several translators in a row: what one fails goes to the next."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rusbeir.jobs import Limits, Transient
from rusbeir.translation.segments.placeholders import STYLES
from rusbeir.translation.translator import Capacity, Failure, Outcome

_UNMASKED = "split"


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Translators in the order in which they are tried.

    The pipeline asks each of the members with units, masks and limits of its own. The chain as a whole takes what
    all of them take.
    """

    members: tuple[Any, ...]
    """Translators that also meet Checks."""

    @property
    def signature(self) -> str:
        """The members' signatures, joined."""
        return ",".join(member.signature for member in self.members)

    @property
    def capacity(self) -> Capacity:
        """What every member takes; costs as if each failed and the next were paid as well."""
        each = [member.capacity for member in self.members]
        masks = {one.mask for one in each if one.mask in STYLES and STYLES[one.mask].form}
        return Capacity(
            max_chars=_least([one.max_chars for one in each]),
            max_bytes=_least([one.max_bytes for one in each]),
            max_items=min(one.max_items for one in each),
            # Without one mask that all keep, only what lies between protected strings can be sent to all.
            mask=masks.pop() if len(masks) == 1 else _UNMASKED,
            cost_per_million_chars=sum(one.cost_per_million_chars for one in each),
            levels=("sentence",) if any("sentence" in one.levels for one in each) else each[0].levels,
        )

    @property
    def limits(self) -> Limits:
        """The narrowest of the members' limits; the longest of their patience."""
        each = [member.limits for member in self.members]
        rates = [one.requests_per_second for one in each if one.requests_per_second is not None]
        return Limits(
            requests_per_second=min(rates, default=None),
            concurrency=min(one.concurrency for one in each),
            retries=max(one.retries for one in each),
            timeout_seconds=sum(one.timeout_seconds for one in each),
            first_wait_seconds=max(one.first_wait_seconds for one in each),
            max_wait_seconds=max(one.max_wait_seconds for one in each),
            breaker=max(one.breaker for one in each),
        )

    def check(self, source: str, target: str) -> None:
        """What the members' checks raise."""
        for member in self.members:
            member.check(source, target)

    async def translate(self, texts: Sequence[str], source: str, target: str) -> list[Outcome]:
        """One outcome a text: of the first member that has an answer, else the last one's failure.

        A member's Transient counts as a failure of all that it was asked, unless it is the last member's.
        """
        outcomes: list[Outcome] = [Failure("no-entry", "no translator was asked", False)] * len(texts)
        open_places = list(range(len(texts)))
        for member in self.members:
            answers = await self._ask(member, [texts[i] for i in open_places], source, target)
            for i, answer in zip(open_places, answers, strict=True):
                outcomes[i] = answer
            open_places = [i for i in open_places if isinstance(outcomes[i], Failure)]
            if not open_places:
                break
        return outcomes

    async def _ask(self, member: Any, texts: list[str], source: str, target: str) -> Sequence[Outcome]:
        try:
            answers: Sequence[Outcome] = await member.translate(texts, source, target)
        except Transient as error:
            if member is self.members[-1]:
                raise
            return [Failure(error.reason, error.detail or error.reason, True)] * len(texts)
        return answers

    async def close(self) -> None:
        """Close what the members hold."""
        for member in self.members:
            close: Callable[[], Awaitable[None]] | None = getattr(member, "close", None)
            if close is not None:
                await close()


def _least(numbers: Sequence[int | None]) -> int | None:
    """The smallest; None where nothing limits."""
    return min((number for number in numbers if number is not None), default=None)
