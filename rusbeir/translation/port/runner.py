"""One pass over a journal: what is pending is sent, what comes back is checked and noted at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rusbeir.errors import BackendError, RusbeirError
from rusbeir.jobs import Attempt, Budget, Exhausted, Journal, Task, Throttle
from rusbeir.processes import batched
from rusbeir.translation.backends.common import Flagged
from rusbeir.translation.checks.checks import Segment, check, failure
from rusbeir.translation.port.plan import CascadeStep
from rusbeir.translation.segments.glossary import Glossary
from rusbeir.translation.segments.protect import Masked, mask, restore, split
from rusbeir.translation.segments.spans import find_spans
from rusbeir.translation.translator import Failure, Outcome, Translator
from rusbeir.types import Progress

TRIES = 5
"""How often one text is asked for while its failures say that asking again may help."""


class Verdict(NamedTuple):
    """What one text's answer is worth."""

    outcome: Outcome
    flags: str = ""
    """Names, parted by commas, of what a reader should look at."""


@dataclass(frozen=True, kw_only=True)
class Runner:
    """One pass of a port, for one event loop."""

    journal: Journal
    step: CascadeStep
    service: Service
    glossary: Glossary | None
    progress: Progress

    async def run(self) -> None:
        """Do what is pending. Raises what stopped the service; whatever was answered is in the journal then."""
        size = self.step.queue(self.journal).size()
        settled = size.tasks - size.pending
        running: set[asyncio.Task[int]] = set()
        at_once = 2 * self.service.translator.limits.concurrency
        batches = batched(self.step.queue(self.journal).unfinished(), self.service.translator.capacity.max_items)
        try:
            while batch := next(batches, None):
                running.add(asyncio.create_task(self._settle(batch)))
                if len(running) == at_once:
                    running, finished = await _first_of(running)
                    settled += finished
                    self.progress(self._stage, settled, size.tasks)
            while running:
                running, finished = await _first_of(running)
                settled += finished
                self.progress(self._stage, settled, size.tasks)
        except asyncio.CancelledError:
            for task in running:
                task.cancel()
            raise
        finally:
            # What is under way has been paid for: it is waited for and noted also when another request failed.
            await asyncio.gather(*running, return_exceptions=True)

    @property
    def _stage(self) -> str:
        return f"{self.step.entry.name}: {self.step.level}s"

    async def _settle(self, tasks: list[Task]) -> int:
        """How many tasks were settled: all of them. Raises what stopped the service, when the answers are noted."""
        count = len(tasks)
        for nth in range(1, TRIES + 1):
            started = time.perf_counter()
            verdicts = await self._verdicts([task.payload for task in tasks])
            seconds = (time.perf_counter() - started) / len(tasks)
            rows: list[Attempt] = []
            again: list[Task] = []
            for task, verdict in zip(tasks, verdicts, strict=True):
                if verdict is None:
                    continue
                row = _done(task, self.step.worker, verdict, seconds, final=nth == TRIES or self.step.entry.local)
                rows.append(row)
                if row.state == "retry":
                    again.append(task)
            self.journal.record(rows)
            if self.service.stopped is not None:
                raise self.service.stopped
            if not again:
                break
            tasks = again
        return count

    async def _verdicts(self, texts: Sequence[str]) -> list[Verdict | None]:
        """What the texts' answers are worth; None for a text that was not asked."""
        if self.step.entry.trusted:
            return [self._verdict(*pair) for pair in zip(texts, await self.service.ask(texts), strict=True)]
        style = self.service.translator.capacity.mask
        masked = [mask(text, style, find_spans(text, self.glossary)) for text in texts]
        outcomes = await self._restored(masked)
        if lost := [i for i, one in enumerate(outcomes) if isinstance(one, Failure) and one.reason == "lost-mask"]:
            for i, outcome in zip(lost, await self._restored([split(masked[i]) for i in lost]), strict=True):
                outcomes[i] = Flagged(outcome, "split") if isinstance(outcome, str) else outcome
        return [self._verdict(text, outcome) for text, outcome in zip(texts, outcomes, strict=True)]

    async def _restored(self, masked: Sequence[Masked]) -> list[Outcome | None]:
        """The answers to the units, with what is protected put back."""
        parts = [one.parts for one in masked]
        answers = iter(await self.service.ask([text for texts in parts for text in texts]))
        return [_put_back(one, [next(answers) for _ in texts]) for one, texts in zip(masked, parts, strict=True)]

    def _verdict(self, text: str, outcome: Outcome | None) -> Verdict | None:
        if outcome is None:
            return None
        if isinstance(outcome, Failure):
            return Verdict(outcome)
        if not _writable(outcome):
            return Verdict(Failure("malformed", "the answer holds a lone surrogate", retry=True))
        found = check(Segment(text, outcome, self.service.source, self.service.target))
        if not self.step.entry.trusted and (wrong := failure(found)):
            return Verdict(wrong)
        names = [getattr(outcome, "flags", ""), *(flag.name for flag in found)]
        return Verdict(outcome, ",".join(filter(None, names)))


async def _first_of(running: set[asyncio.Task[int]]) -> tuple[set[asyncio.Task[int]], int]:
    """Those still under way when at least one has ended, and how many tasks that one settled."""
    finished, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    return running, sum(task.result() for task in finished)


def _put_back(masked: Masked, answers: Sequence[Outcome | None]) -> Outcome | None:
    texts: list[str] = []
    for answer in answers:
        if answer is None or isinstance(answer, Failure):
            return answer
        texts.append(answer)
    whole = restore(masked, texts)
    flags = ",".join(text.flags for text in texts if isinstance(text, Flagged))
    return Flagged(whole, flags) if flags and isinstance(whole, str) else whole


def _writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _done(task: Task, worker: str, verdict: Verdict, seconds: float, *, final: bool) -> Attempt:
    outcome = verdict.outcome
    if isinstance(outcome, Failure):
        error = f"{outcome.reason}: {outcome.detail}" if outcome.detail else outcome.reason
        again = outcome.retry and not final
        return Attempt(task.key, worker, "retry" if again else "failed", error=error, seconds=seconds)
    return Attempt(task.key, worker, "done", result=str(outcome), flags=verdict.flags, seconds=seconds)


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
