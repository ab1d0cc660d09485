"""Send what is pending in a journal to one translator; check and record each answer at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rusbeir import __version__
from rusbeir.errors import BackendError, BadInput, RusbeirError, option
from rusbeir.jobs import (
    BATCHES,
    Attempt,
    BatchRun,
    Budget,
    BudgetReached,
    BudgetTooSmall,
    Exhausted,
    Journal,
    Meter,
    Postponed,
    Size,
    Spent,
    Task,
    Tell,
    Throttle,
    UselessAnswers,
    ask_for_prices,
    open_batches,
)
from rusbeir.processes import Crew
from rusbeir.text import batched
from rusbeir.translation.checks.checks import Answer, Asked, Finisher
from rusbeir.translation.porting.plan import CascadeStep, Plan, TranslatorEntry
from rusbeir.translation.segments.glossary import Glossary
from rusbeir.translation.segments.protect import Masked, mask, split
from rusbeir.translation.segments.spans import find_spans
from rusbeir.translation.translator import (
    Closes,
    Context,
    CountsCost,
    Failure,
    JudgesAnswers,
    Metered,
    Outcome,
    PaidByToken,
    ReadsContext,
    TakesBatches,
    Translator,
)
from rusbeir.types import Progress

if TYPE_CHECKING:
    from rusbeir.translation.porting.contexts import Documents

MAX_ATTEMPTS = 5
"""How often one text is asked in one run, while its failures say that asking again may help."""
_AT_ONCE: Mapping[str, Any] = MappingProxyType({})
_NO_ANSWER = frozenset({"no-entry", "rate-limited", "server", "timeout"})
"""Failures that are no answers of a model or a service."""


@dataclass(kw_only=True)
class Runner:
    """One translator for one pair of languages, for all steps of a run. For one event loop."""

    translator: Translator
    source: str
    target: str
    journal: Journal
    glossary: Glossary | None
    progress: Progress
    throttle: Throttle
    meter: Meter
    """The translator has the same one, where it is Metered."""
    find_context: Callable[[Task], Context | None] | None = None
    """The context of a task, for a translator that reads it; such a one is asked for one task at a time."""
    batches: BatchRun | None = None
    """Where requests are collected instead of being sent one by one."""
    keeps_together: bool = False
    """Whether texts that are asked together are recorded together. The next run asks for what is pending in groups that
    begin with the first text, and finds the answer to a group by its texts: after half a group it would find no more.
    """
    crew: Crew = field(default_factory=Crew, init=False)
    _stopped: RusbeirError | None = field(default=None, init=False)
    """Why nothing more is asked: the circuit breaker, the budget, or an error that would come back each time."""
    _spent: float = field(default=0.0, init=False)
    """USD so far, by the translator's own count."""
    _useless: UselessAnswers = field(default_factory=UselessAnswers, init=False)

    async def run(self, step: CascadeStep, size: Size) -> None:
        """Do what is pending of a step. Raises what stopped the translator; all answers are in the journal then."""
        settled = size.tasks - size.pending
        running: set[asyncio.Task[int]] = set()
        finished: set[asyncio.Task[int]] = set()
        capacity = self.translator.capacity
        at_once, most_chars = capacity.max_items if self.find_context is None else 1, capacity.request_chars
        measure: Callable[[Task], int] | None = None if most_chars is None else lambda task: len(task.payload)
        unfinished = step.queue(self.journal).unfinished()
        batches = batched(unfinished, at_once, chars=measure, max_chars=most_chars or 0)
        try:
            while True:
                most = 2 * self.translator.limits.concurrency + self.crew.ahead
                while len(running) < most and (batch := next(batches, None)):
                    running.add(asyncio.create_task(self._settle(step, batch)))
                if not running:
                    return
                finished, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                # Of several that failed at once, gather takes notice of all.
                settled += sum(await asyncio.gather(*finished))
                self.progress(f"{step.entry.name}: {step.level}s", settled, size.tasks)
        except asyncio.CancelledError:
            for task in running:
                task.cancel()
            raise
        finally:
            # What is under way has been paid for: wait for it and record it, also when another request failed. Those
            # that failed together with it are asked for their errors, or asyncio prints them.
            await asyncio.gather(*running, *finished, return_exceptions=True)

    async def _settle(self, step: CascadeStep, tasks: list[Task]) -> int:
        """Ask for the tasks until each is done or has failed; their number. Raises what stopped the translator."""
        worker, count = step.entry.signature, len(tasks)
        waiting: list[Attempt] = []
        context = None if self.find_context is None else self.find_context(tasks[0])
        for nth in range(1, MAX_ATTEMPTS + 1):
            started = time.perf_counter()
            answers = await self._translate([task.payload for task in tasks], context, trusted=step.entry.trusted)
            seconds = (time.perf_counter() - started) / len(tasks)
            final = nth == MAX_ATTEMPTS or step.entry.local
            rows: list[Attempt] = []
            again: list[Task] = []
            for task, answer in zip(tasks, answers, strict=True):
                if isinstance(answer, Failure):
                    error = f"{answer.reason}: {answer.detail}" if answer.detail else answer.reason
                    if answer.retry and not final:
                        again.append(task)
                        rows.append(Attempt(task.key, worker, "retry", error=error, seconds=seconds))
                    else:
                        rows.append(Attempt(task.key, worker, "failed", error=error, seconds=seconds))
                elif answer is not None:
                    text, flags = answer
                    rows.append(Attempt(task.key, worker, "done", result=text, flags=flags, seconds=seconds))
            if not self.keeps_together:
                self.journal.record(rows)
            elif None in answers:
                # Also where it is stopped: by the whole group, the next run finds the answers that are there.
                rows, again = [], []
            elif again:
                waiting += rows
            else:
                self.journal.record([*waiting, *rows])
            if step.entry.sends:
                self._note_useless(step.entry.name, rows)
            if self._stopped is not None:
                raise self._stopped
            if not self.keeps_together:
                for task, answer in zip(tasks, answers, strict=True):
                    if answer is None:
                        await self._settle(step, [task])
            if not again:
                break
            tasks = again
        return count

    def _note_useless(self, name: str, rows: Sequence[Attempt]) -> None:
        """Stop where too many texts in a row were answered and have no translation."""
        for row in rows:
            if row.state != "retry" and row.error.partition(":")[0] not in _NO_ANSWER:
                try:
                    self._useless.note(row.state == "done", name, row.error)
                except BackendError as error:
                    self._stopped = self._stopped or error

    async def _translate(self, texts: Sequence[str], context: Context | None, *, trusted: bool) -> list[Answer]:
        """The checked translations of units, with what is protected put back."""
        judges = isinstance(self.translator, JudgesAnswers)
        finish = Finisher(self.source, self.target, trusted, judges)
        if trusted:
            # No more than one request takes: run asks for as many at a time.
            outcomes = await self._request(texts, context)
            units: list[Asked] = [(text, None, [outcome]) for text, outcome in zip(texts, outcomes, strict=True)]
            return await self.crew.run(finish, units)
        style = self.translator.capacity.mask
        masked = [mask(text, style, find_spans(text, self.glossary)) for text in texts]
        defers = judges and not self.keeps_together and len(texts) > 1
        checked = await self.crew.run(finish, await self._ask_parts(masked, context, defers=defers))
        lost = [i for i, answer in enumerate(checked) if isinstance(answer, Failure) and answer.reason == "lost-mask"]
        if lost:
            again = replace(finish, judges=False, again=True)
            parts = await self._ask_parts([split(masked[i]) for i in lost], context, defers=defers)
            for i, answer in zip(lost, again(parts), strict=True):
                checked[i] = answer
        return checked

    async def _ask_parts(self, masked: Sequence[Masked], context: Context | None, *, defers: bool) -> list[Asked]:
        """Ask for the parts of units, and return each unit with the outcomes of its parts; defers as for _request."""
        all_parts = [unit.parts for unit in masked]
        capacity = self.translator.capacity
        most_chars = capacity.request_chars
        requests = batched(
            (part for parts in all_parts for part in parts),
            capacity.max_items,
            chars=None if most_chars is None else len,
            max_chars=most_chars or 0,
        )
        outcomes = iter(
            [outcome for texts in requests for outcome in await self._request(texts, context, defers=defers)]
        )
        units: list[Asked] = []
        for unit, parts in zip(masked, all_parts, strict=True):
            bare = not unit.spans and unit.style != "plain" and parts == [unit.source]
            units.append((unit.source, None if bare else unit, list(islice(outcomes, len(parts)))))
        return units

    async def _request(
        self, texts: Sequence[str], context: Context | None, *, defers: bool = False
    ) -> list[Outcome | None]:
        """The outcomes of one request; of a request for each text where it fails as a whole or exceeds the budget.

        None of a text that was not asked, since the translator is stopped. Where it defers, also None of one that is to
        be asked alone: the others are recorded before.
        """
        if self._stopped is not None:
            return [None] * len(texts)
        chars = sum(map(len, texts))
        cost = chars * self.translator.capacity.cost_per_million_chars / 1e6
        try:
            outcomes = await self.throttle.run(lambda: self._send(texts, context, chars, cost))
            if len(outcomes) != len(texts):
                raise BackendError(f"The translator returned {len(outcomes)} answers to {len(texts)} texts.")
            if len(texts) > 1 and isinstance(self.translator, JudgesAnswers):
                if defers:
                    return [None if isinstance(answer, Failure) and answer.retry else answer for answer in outcomes]
                return await self._ask_alone(texts, outcomes, context)
            return list(outcomes)
        except Postponed:
            # Its answer comes later; it stays pending.
            return [None] * len(texts)
        except Exhausted as error:
            if len(texts) == 1:
                return [Failure(error.reason, str(error), retry=False)]
        except RusbeirError as error:
            if len(texts) == 1 or not isinstance(error, BudgetReached | BudgetTooSmall):
                self._stopped = self._stopped or error
                return [None] * len(texts)
        if defers and len(texts) > 1:
            return [None] * len(texts)
        return [answer for text in texts for answer in await self._request([text], context)]

    async def _ask_alone(
        self, texts: Sequence[str], outcomes: Sequence[Outcome], context: Context | None
    ) -> list[Outcome | None]:
        """The outcomes of a request, in which those that failed and may be retried are of a request for each text."""
        answers: list[Outcome | None] = []
        for text, outcome in zip(texts, outcomes, strict=True):
            fails = isinstance(outcome, Failure) and outcome.retry
            answers += await self._request([text], context) if fails else [outcome]
        return answers

    async def _send(self, texts: Sequence[str], context: Context | None, chars: int, cost: float) -> Sequence[Outcome]:
        """The translator's outcomes, within the budget."""
        if self._stopped is not None:
            raise self._stopped
        translate = self.translator.translate
        if context is not None and isinstance(self.translator, ReadsContext):
            translate = partial(self.translator.translate_in_context, context)
        if isinstance(self.translator, Metered):
            return await translate(texts, self.source, self.target)
        async with self.meter.request(chars, cost) as charge:
            outcomes = await translate(texts, self.source, self.target)
            if isinstance(self.translator, CountsCost):
                charge.cost = self.translator.spent - self._spent
                self._spent = self.translator.spent
        return outcomes


async def translate_pending(
    plan: Plan,
    journal: Journal,
    *,
    source: str,
    target: str,
    budget: Budget,
    progress: Progress,
    tell: Tell,
    documents: Documents | None = None,
    batching: Mapping[str, Any] = _AT_ONCE,
) -> dict[str, Any]:
    """Translate what is pending, step by step; the requests, retries and tokens of this run, as reports name them.

    documents gives what the texts are of, for translators that read their context; batching has the jobs.BatchOptions
    that say something. Raises BadInput where a translator needs documents and there are none, or where none takes
    batches, and Suspended where answers come later.
    """
    if batching:
        _refuse_batches(plan)
    runners: dict[str, Runner] = {}
    try:
        for step in plan.steps:
            # What the previous step has left undone is cut to the size of this one, once by each version of rusbeir,
            # since another may cut otherwise and then looks for other units.
            if step.number and journal.get_meta(step.cut_mark) != __version__:
                left = plan.steps[step.number - 1].queue(journal).unfinished(with_failed=True)
                journal.add(plan.tasks((task.payload for task in left), step))
                journal.set_meta({step.cut_mark: __version__})
            translator, signature = step.entry.translator, step.entry.signature
            size = step.queue(journal).size()
            if translator is None or not size.pending:
                continue
            if signature not in runners:
                meter, run = Meter(budget=budget), None
                if isinstance(translator, Metered):
                    translator = translator.with_meter(meter)
                if (batching or journal.get_meta(BATCHES)) and isinstance(translator, TakesBatches):
                    run = open_batches(batching, journal, budget, translator.price, tell, translator.limits, progress)
                    translator = translator.with_exchange(run)
                runners[signature] = Runner(
                    translator=translator,
                    meter=meter,
                    batches=run,
                    keeps_together=run is not None and not run.is_live,
                    source=source,
                    target=target,
                    journal=journal,
                    glossary=plan.glossary,
                    progress=progress,
                    throttle=Throttle(translator.limits),
                )
            runner = runners[signature]
            if isinstance(translator, ReadsContext) and translator.context:
                _add_context(runner, plan, step, translator.context, documents)
            if step.entry.sends and not (runner.batches and runner.batches.is_offline):
                _announce(step.entry, size, source, target, tell)
            await (runner.run(step, size) if runner.batches is None else _run_in_batches(runner.batches, runner, step))
    finally:
        for runner in runners.values():
            if isinstance(runner.translator, Closes):
                await runner.translator.close()
    batched_runs = [runner.batches for runner in runners.values() if runner.batches]
    spent = Spent.sum([*(runner.meter.spent for runner in runners.values()), *(run.spent for run in batched_runs)])
    retries = sum(runner.throttle.retries + runner.meter.repeats for runner in runners.values())
    return spent.describe_run(retries + sum(run.repeats for run in batched_runs))


def _refuse_batches(plan: Plan) -> None:
    """Raise BadInput where no translator takes batches."""
    if not any(isinstance(step.entry.translator, TakesBatches) for step in plan.steps):
        names = ", ".join(step.entry.name for step in plan.steps)
        raise BadInput(
            f"Only language models are asked in batches, which {names} is not: leave the options of batches out."
        )


async def _run_in_batches(batches: BatchRun, runner: Runner, step: CascadeStep) -> None:
    await batches.run(lambda: runner.run(step, step.queue(runner.journal).size()))


def _add_context(runner: Runner, plan: Plan, step: CascadeStep, reach: int, documents: Documents | None) -> None:
    """Let a runner find the contexts of the tasks of a step."""
    from rusbeir.translation.porting.contexts import read_context, record_contexts

    if documents is None:
        raise BadInput(f"{option('context', reach)} is for the segments of a port, and these texts have none. Omit it.")
    record_contexts(plan, runner.journal, step, reach, documents)
    runner.find_context = partial(read_context, runner.journal)


def _announce(entry: TranslatorEntry, size: Size, source: str, target: str, tell: Tell) -> None:
    """Tell who receives how much at what price, before it is sent."""
    translator = entry.translator
    if isinstance(translator, PaidByToken):
        tokens = translator.estimate_tokens(size.pending, size.pending_chars, source, target)
        cost = translator.price_tokens(tokens)
    else:
        cost = (translator.capacity.cost_per_million_chars if translator else 0.0) * size.pending_chars / 1e6
    about = f"about {cost:,.2f} USD" if cost >= 0.01 else "less than 0.01 USD"
    if entry.price_remedy or not cost:
        about = "no price is known"
        if isinstance(translator, PaidByToken) and translator.missing_prices:
            about += f": {ask_for_prices(translator.missing_prices)}"
    tell(f"{entry.name}: {entry.sends} receives {size.pending:,} texts of {size.pending_chars:,} characters; {about}.")
