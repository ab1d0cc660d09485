"""Requests to one translator: within its limits and the budget, and so that no text spoils another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rusbeir.errors import BackendError, RusbeirError
from rusbeir.jobs import Budget, Exhausted, Throttle
from rusbeir.translation.protocol import Failure, Outcome, Translator


@dataclass(kw_only=True)
class Service:
    """One translator for one pair of languages, for all passes of a run. For one event loop."""

    translator: Translator
    source: str
    target: str
    budget: Budget
    throttle: Throttle = field(init=False)
    stopped: RusbeirError | None = field(default=None, init=False)
    """Why nothing more is asked: the circuit breaker, the budget, or what can never work."""
    _spent: float = field(default=0.0, init=False)
    """The cost so far, as the translator counts it itself."""

    def __post_init__(self) -> None:
        self.throttle = Throttle(self.translator.limits)

    async def ask(self, texts: Sequence[str]) -> list[Outcome | None]:
        """One outcome a text, from requests of as many texts as the translator takes.

        None for a text that has not been asked, since the service is stopped; what was answered before is there.
        """
        size = self.translator.capacity.max_items
        outcomes: list[Outcome | None] = []
        for start in range(0, len(texts), size):
            outcomes += await self._request(texts[start : start + size])
        return outcomes

    async def _request(self, texts: Sequence[str]) -> list[Outcome | None]:
        """The outcomes of one request; of one a text where it fails as a whole or is more than the budget has left."""
        if self.stopped is not None:
            return [None] * len(texts)
        chars = sum(map(len, texts))
        cost = chars * self.translator.capacity.cost_per_million_chars / 1e6
        if len(texts) > 1 and not self.budget.fits(chars, cost):
            return await self._each(texts)
        try:
            self.budget.reserve(chars, cost)
            answers = await self.throttle.run(lambda: self.translator.translate(texts, self.source, self.target))
            if len(answers) != len(texts):
                raise BackendError(f"The translator gave {len(answers)} answers to {len(texts)} texts.")
        except Exhausted as error:
            if len(texts) > 1:
                return await self._each(texts)
            return [Failure(error.reason, str(error), retry=False)]
        except RusbeirError as error:
            self.stopped = self.stopped or error
            return [None] * len(texts)
        self._correct(cost)
        return list(answers)

    async def _each(self, texts: Sequence[str]) -> list[Outcome | None]:
        return [outcome for text in texts for outcome in await self._request([text])]

    def _correct(self, reserved: float) -> None:
        """Take what a translator that counts its cost has spent, in the place of what was reserved."""
        spent: float | None = getattr(self.translator, "spent", None)
        if spent is not None:
            self.budget.correct(cost=spent - self._spent - reserved)
            self._spent = spent
