"""Questions to a language model with answers in JSON: journaled, within a budget, asked again until one is valid."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any

import orjson

from rusbeir.errors import BackendError
from rusbeir.jobs.batch_exchange import Postponed
from rusbeir.jobs.budget import Budget, Meter, Spent
from rusbeir.jobs.journal import Attempt, Journal, Task
from rusbeir.jobs.llm import Llm
from rusbeir.jobs.llm_answer import Answer, Price, Rejected, bound_chat, read_object
from rusbeir.jobs.throttle import Exhausted, Throttle, UselessAnswers
from rusbeir.text import replace_surrogates, shorten
from rusbeir.types import Progress, silent

if TYPE_CHECKING:
    from rusbeir.jobs.batches import BatchRun

ATTEMPTS = 3
"""How often one question is asked, each time with another seed, until an answer is valid."""
MAX_PROSE = 30
"""Answers in a row without a JSON object, after which the work is stopped: more would be paid for in vain."""
_RETRY_TEMPERATURE = 0.3
"""Where the first attempt is at 0, at which another seed would change nothing."""
_MAX_ERROR_CHARS = 200
INVALID, REFUSED, CUT = "invalid", "refused", "cut"
"""The first words of errors: the answer is not what the question asks for, a refusal, or cut at max_tokens."""
_ANSWERED = (INVALID, REFUSED, CUT)


class Unfit(Exception):
    """An answer is not valid; the message is a word that says why. Question.read may raise it in place of None."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A kind of question: how a task's payload is put to the model, and what of its answer is kept."""

    kind: str
    write: Callable[[str], Sequence[Mapping[str, str]]]
    """payload -> messages."""
    read: Callable[[str, dict[str, Any]], Any]
    """(payload, JSON object of the answer) -> what is kept, as JSON; None, or Unfit, where the answer is not valid."""
    schema: Mapping[str, Any]
    max_tokens: int
    temperature: float = 0.0


@dataclass(kw_only=True)
class Asker:
    """Asks one model, within a budget, and records its answers in one journal. For one event loop."""

    journal: Journal
    client: Llm
    signature: str
    """The worker in the journal: the model, its prompts and the seed."""
    seed: int
    throttle: Throttle
    budget: Budget
    progress: Progress = silent
    batches: BatchRun | None = None
    """Where requests are collected instead of being sent one by one."""
    _done: int = field(default=0, init=False)
    _prose: int = field(default=0, init=False)
    """Answers in a row without a JSON object."""
    _useless: UselessAnswers = field(default_factory=UselessAnswers, init=False)

    def __post_init__(self) -> None:
        self.client = replace(self.client, meter=Meter(budget=self.budget), exchange=self.batches)

    @property
    def retries(self) -> int:
        """The number of requests so far that repeated another."""
        return self.throttle.retries + self.client.meter.repeats + (self.batches.repeats if self.batches else 0)

    @property
    def is_offline(self) -> bool:
        """Whether nothing is sent by this process."""
        return self.batches is not None and self.batches.is_offline

    @property
    def spent(self) -> Spent:
        """What the requests of this run took."""
        return Spent.sum([self.client.meter.spent, *([self.batches.spent] if self.batches else [])])

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Await work, which asks about what is not answered yet: once or, in batches, until no answer is missing.

        The connections to the endpoint are closed afterwards. Raises what `ask` raises, and Suspended.
        """
        async with self.client:
            await (work() if self.batches is None else self.batches.run(work))

    async def ask(self, question: Question, tasks: Iterable[Task], total: int) -> None:
        """Ask about each of the tasks, total in number, which are taken as they are needed.

        Raises what stopped the work, BackendError or BadInput, and BackendError where a question got no answer; all
        that was answered before is kept.
        """
        self._done = unanswered = 0
        waiting = iter(tasks)
        stopped = False

        async def work() -> None:
            nonlocal stopped, unanswered
            while not stopped and (task := next(waiting, None)) is not None:
                try:
                    attempt = await self._settle(question, task)
                    if attempt is None:
                        continue
                    if attempt.state == "retry":
                        # The endpoint failed, not the question: the next run asks again.
                        unanswered += 1
                    else:
                        self._useless.note(attempt.state == "done", self.client.model, attempt.error)
                except BaseException:
                    stopped = True
                    raise
                self._done += 1
                self.progress(question.kind, self._done, total)

        workers = [asyncio.create_task(work()) for _ in range(self.throttle.limits.concurrency)]
        try:
            await asyncio.gather(*workers)
        except asyncio.CancelledError:
            for worker in workers:
                worker.cancel()
            raise
        finally:
            # What is under way has been paid for: wait for it and record it, also when another question failed.
            await asyncio.gather(*workers, return_exceptions=True)
        if unanswered:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.throttle.reasons.items()))
            raise BackendError(
                f"{self.client.endpoint} gave no answer to {unanswered:,} of {total:,} questions (failed requests: "
                f"{reasons}), so nothing was written. What was answered is kept; run the same command again."
            )

    async def _settle(self, question: Question, task: Task) -> Attempt | None:
        """Record the attempts at a task, and return the last one; None where an answer comes later."""
        attempts: list[Attempt] = []
        try:
            attempts.append(await self._answer(question, task, attempts))
        except Postponed:
            # Its earlier answers are kept, and are read again with the one that comes.
            attempts.clear()
            return None
        finally:
            if attempts:
                self.journal.record(attempts)
        return attempts[-1]

    async def _answer(self, question: Question, task: Task, earlier: list[Attempt]) -> Attempt:
        """Return the last attempt at a task; the others are appended to earlier."""
        failed = Attempt(task.key, self.signature, "failed")
        for attempt in range(ATTEMPTS):
            if attempt:
                earlier.append(failed._replace(state="retry"))
            try:
                answer = await self._send(question, question.write(task.payload), attempt)
            except Exhausted as error:
                return failed._replace(state="retry", error=str(error))
            except Rejected as error:
                return failed._replace(error=f"{error.reason}: {error.detail}")
            if (reason := _find_fault(answer)) is None:
                # Half a character in a string must not cost the rest of an answer that is paid for.
                content, value = replace_surrogates(read_object(answer.text)), None
                self._prose = 0 if content is not None else self._prose + 1
                try:
                    value = None if content is None else question.read(task.payload, content)
                except Unfit as unfit:
                    reason = f"{INVALID} {unfit}"
                if value is not None:
                    return failed._replace(state="done", result=orjson.dumps(value).decode(), error="")
            shown = (answer.refusal or answer.text)[:_MAX_ERROR_CHARS]
            failed = failed._replace(error=f"{reason or INVALID}: {shown}")
            if self._prose >= MAX_PROSE:
                earlier.append(failed)
                raise BackendError(
                    f"{self._prose} answers of {self.client.model} in a row hold no JSON object, as if "
                    f"{self.client.endpoint} ignored the schema that is sent with each question; the last: "
                    f"{shorten(repr(shown))}. Stopped; everything answered is kept. Use another server or model."
                )
        return failed

    async def _send(self, question: Question, messages: Sequence[Mapping[str, str]], attempt: int) -> Answer:
        return await self.throttle.run(
            lambda: self.client.chat(
                messages,
                schema=question.schema,
                temperature=question.temperature or (_RETRY_TEMPERATURE if attempt else 0.0),
                seed=self.seed + attempt,
                max_tokens=question.max_tokens,
                repeat=attempt > 0,
            )
        )


def bound_request(question: Question, messages: Sequence[Mapping[str, str]], price: Price) -> tuple[int, float]:
    """(characters of a request, what it costs at most): one token a byte of the prompt, max_tokens for the answer."""
    return bound_chat(messages, question.schema, question.max_tokens, price)


def count_shared_chars(question: Question, payloads: Iterable[str]) -> int:
    """Count the characters with which all requests about these payloads begin, by the first two of them."""
    prompts = ["".join(message["content"] for message in question.write(payload)) for payload in islice(payloads, 2)]
    same = takewhile(lambda chars: len(set(chars)) == 1, zip(*prompts, strict=False))
    return sum(1 for _ in same) if len(prompts) > 1 else 0


def count_answers(journal: Journal, signature: str) -> tuple[int, int]:
    """Count (attempts of a worker, those whose answers were of no use)."""
    useless = " OR ".join(f"error LIKE '{reason}%'" for reason in _ANSWERED)
    row = journal.read(
        f"SELECT count(*), sum({useless}) FROM attempt JOIN worker ON worker.number = attempt.worker "
        "WHERE signature = ?",
        (signature,),
    )[0]
    return row[0], row[1] or 0


def _find_fault(answer: Answer) -> str | None:
    """Why an answer cannot be read at all; None where it may be."""
    if answer.refusal or answer.finish_reason == "content_filter":
        return REFUSED
    return CUT if answer.finish_reason == "length" else None
