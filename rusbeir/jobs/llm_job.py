"""A language model that is asked about many things: its options, and the one way that judges and labellers ask it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict, TypeVar, cast

from rusbeir.errors import BadInput, option
from rusbeir.jobs.asking import Asker, Question, bound_request
from rusbeir.jobs.budget import Budget, Spent
from rusbeir.jobs.journal import BATCHES, Journal, Task
from rusbeir.jobs.llm import Llm
from rusbeir.jobs.llm_answer import (
    ALL_PRICES,
    Price,
    ask_for_prices,
    find_price,
    list_missing_prices,
    refuse_unpriced,
)
from rusbeir.jobs.task_queue import TaskQueue
from rusbeir.jobs.throttle import Limits, Throttle, read_backends
from rusbeir.jobs.workspace import Tell, run_to_end
from rusbeir.types import Progress, silent

T = TypeVar("T")


class LlmOptions(TypedDict, total=False):
    """Prices per million tokens, and the fields of jobs.Limits, whose defaults are those of the translator llm."""

    input_price: float
    output_price: float
    cached_price: float
    """That of input tokens that the provider has in its cache; without it, they cost as others."""
    batch_share: float
    """What a batch costs of these prices."""
    requests_per_second: float
    concurrency: int
    retries: int
    timeout_seconds: float
    first_wait_seconds: float
    max_wait_seconds: float
    breaker: int


class Spending(TypedDict, total=False):
    """The limits on what a job costs in all of its runs, and whether what failed is asked for again."""

    budget_chars: int | None
    budget_cost: float | None
    retry_failed: bool


class BatchOptions(TypedDict, total=False):
    """The ways in which requests are answered in batches (docs/port.md); without these, they are sent one by one."""

    batch: bool | float
    """Whether requests are sent by the Batch API of the endpoint; a number, such as 0.5, is what a batch costs of the
    usual price."""
    cancel: bool
    """Whether batches that are under way are cancelled."""
    batch_out: str | Path | None
    """The file to which requests without an answer are written, instead of sending them."""
    batch_in: Sequence[str | Path]
    """Files of answers."""


def select_batching(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the options that are of BatchOptions, and say something."""
    return {name: options[name] for name in BatchOptions.__annotations__ if options.get(name)}


class LlmRequest(LlmOptions, Spending, BatchOptions, total=False):
    """A request of a model about many things: an LlmJob without its model and signature."""

    seed: int
    progress: Progress
    tell: Tell


def read_llm_options(options: Mapping[str, Any], model: str = "") -> tuple[Price, Limits]:
    """Read the prices, those that are listed for the model included, and the limits of these options.

    Raises BadInput for one that is not known or not a number.
    """
    for name, value in options.items():
        if name not in LlmOptions.__annotations__:
            known = ", ".join(sorted(LlmOptions.__annotations__))
            raise BadInput(f"A model that is asked does not take the option {name!r}. Its options are: {known}.")
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise BadInput(f"The option {name!r} is {value!r}: it must be a number from 0.")
        if isinstance(value, float) and name in ("concurrency", "retries", "breaker"):
            raise BadInput(f"The option {name!r} is {value!r}: it must be a whole number.")
    limits = {name: value for name, value in options.items() if name not in ALL_PRICES}
    return find_price(model, options), replace(Limits(**read_backends()["llm"]["limits"]), **limits)


_JOB_FIELDS = (
    LlmRequest.__annotations__.keys() - LlmOptions.__annotations__.keys() - BatchOptions.__annotations__.keys()
)


@dataclass(frozen=True, kw_only=True)
class LlmJob:
    """A model that is asked, within limits and budgets. Making it sends nothing."""

    llm: str
    """The model's name at OPENAI_BASE_URL."""
    signature: str
    """The worker in the journal: the model, its prompts and the seed."""
    seed: int = 0
    budget_chars: int | None = None
    budget_cost: float | None = None
    options: LlmOptions = field(default_factory=LlmOptions)
    retry_failed: bool = False
    """Whether questions without a valid answer are asked again."""
    batching: Mapping[str, Any] = field(default_factory=dict)
    """The BatchOptions that say something."""
    progress: Progress = silent
    tell: Tell = lambda line: None

    @classmethod
    def of(cls, llm: str, signature: str, request: LlmRequest) -> LlmJob:
        """The job of asking that model under the signature; all but the fields of a job are options of the model."""
        fields: dict[str, Any] = {name: value for name, value in request.items() if name in _JOB_FIELDS}
        other = _JOB_FIELDS | BatchOptions.__annotations__.keys()
        options = {name: value for name, value in request.items() if name not in other}
        fields["batching"] = select_batching(request)
        return cls(llm=llm, signature=signature, options=cast(LlmOptions, options), **fields)

    @property
    def is_offline(self) -> bool:
        """Whether nothing is sent by this process."""
        return bool(self.batching) and not (self.batching.get("batch") or self.batching.get("cancel"))

    def refuse_unpriced(self, *, of_verb: bool = False) -> None:
        """Raise BadInput for a budget of money without the model's prices."""
        refuse_unpriced(self.budget_cost, self.llm, self._ask_for_prices(of_verb=of_verb))

    def _ask_for_prices(self, *, of_verb: bool) -> str:
        return ask_for_prices(list_missing_prices(self.options, self.llm), of_verb=of_verb)

    def open(self, journal: Journal) -> Asker:
        """Open what asks the model. Raises BadInput without a model, an endpoint or a key."""
        if not self.llm.strip():
            raise BadInput(f"Name the model with {option('llm', 'MODEL')}, as the endpoint names it.")
        price, limits = read_llm_options(self.options, self.llm)
        budget = Budget(journal, chars=self.budget_chars, cost=self.budget_cost)
        if self.is_offline:
            client = Llm(model=self.llm, endpoint="", key="", price=price)
        else:
            client = Llm.from_environment(self.llm, timeout_seconds=limits.timeout_seconds, price=price)
        batches = None
        if self.batching or journal.get_meta(BATCHES):
            from rusbeir.jobs.batches import open_batches

            batches = open_batches(self.batching, journal, budget, price, self.tell, limits, self.progress)
            # What is read from the journal needs no pace.
            limits = replace(limits, requests_per_second=None) if self.batching else limits
        return Asker(
            journal=journal,
            client=client,
            signature=self.signature,
            seed=self.seed,
            throttle=Throttle(limits),
            budget=budget,
            batches=batches,
            progress=self.progress,
        )


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The outcomes of asking about many things, in their order."""

    values: list[Any]
    """What the question reads in each answer; None where no answer is valid."""
    reasons: list[str]
    """Why there is no valid answer, in a word such as invalid, refused, cut or too-long; "" where there is one."""
    n_questions: int
    """Questions that this run has asked, each counted once."""
    spent: Spent
    """What this run has spent."""
    retries: int
    """Requests of this run that repeated another one."""


def ask_all(
    job: LlmJob, journal: Journal, question: Question, things: Sequence[T], payload: Callable[[T], str], what: str
) -> Answers:
    """Ask about all things, those excepted that the journal has an answer to, and give the answers to all of them.

    Args:
        job: Who is asked, within which limits.
        journal: Keeps each answer as soon as it is there; equal payloads are asked once.
        question: What is asked about each payload.
        things: What to ask about.
        payload: Makes the payload of a thing. It is called more than once, so that few payloads are in memory.
        what: Names the things in the line that says what is sent, such as "texts with their translations".

    Raises:
        BackendError: The endpoint or the budget stopped the work, or questions are left without any answer.
    """
    queue = TaskQueue(journal, question.kind, job.signature)
    keys: list[bytes] = []

    def tasks() -> Iterator[Task]:
        for thing in things:
            task = Task.of(question.kind, payload(thing))
            keys.append(task.key)
            yield task

    journal.add(tasks())
    if job.retry_failed:
        queue.reset(keys)
    settled = queue.outcomes(keys).keys()
    pending = {key: thing for key, thing in zip(keys, things, strict=True) if key not in settled}
    spent, retries = Spent(), 0
    if pending:
        asker = job.open(journal)
        if not job.is_offline:
            prompts = (question.write(payload(thing)) for thing in pending.values())
            chars = sum(bound_request(question, messages, asker.client.price)[0] for messages in prompts)
            job.tell(f"{asker.client.endpoint} receives {len(pending):,} {what}, {chars:,} characters in all.")

        async def ask() -> None:
            done = queue.outcomes(list(pending)).keys()
            left = [thing for key, thing in pending.items() if key not in done]
            await asker.ask(question, (Task.of(question.kind, payload(thing)) for thing in left), len(left))

        run_to_end(asker.run(ask))
        spent, retries = asker.spent, asker.retries
    outcomes = queue.outcomes(keys)
    return Answers(
        values=[queue.parse(outcomes[key].result) if outcomes[key].state == "done" else None for key in keys],
        reasons=[outcomes[key].error.partition(":")[0] for key in keys],
        n_questions=len(pending),
        spent=spent,
        retries=retries,
    )
