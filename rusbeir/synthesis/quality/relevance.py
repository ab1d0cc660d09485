"""How well a document answers a query, as a language model labels it from 0 to 3; no label is paid for twice."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import orjson

from rusbeir.errors import BackendError, BadInput, option
from rusbeir.jobs import (
    Journal,
    Question,
    Task,
    TaskQueue,
    Tell,
    bound_request,
    digest_prompts,
    find_prompt_language,
    read_prompts,
    run_to_end,
    tell_prompt_language,
)
from rusbeir.languages import english_name
from rusbeir.synthesis.model import LlmOptions, make_asker
from rusbeir.text import shorten
from rusbeir.types import Doc, Progress, silent

RELEVANCE_PROMPTS = "relevance"
KIND = "label"
SCALE = (0, 1, 2, 3)
"""The labels, from a document that has nothing to do with the query to one that answers it."""
POSITIVE = 2
"""The least label that counts as positive, unless another is given."""
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "label": {"type": "integer", "minimum": SCALE[0], "maximum": SCALE[-1]},
    },
    "required": ["reason", "label"],
    "additionalProperties": False,
}
_MAX_TOKENS = 300
_MAX_REASON_CHARS = 500

Pair: TypeAlias = tuple[str, str]
"""(query id, document id)."""


class Label(NamedTuple):
    """What the model said of a pair."""

    label: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Labelling:
    """The labels of one stage, and what they took."""

    labels: dict[Pair, Label]
    """Pairs without a valid label are not among them."""
    asked: int
    """Pairs that were asked about in this run."""
    invalid: dict[str, int]
    """Why pairs have no label ("invalid", "refused", "cut", "too-long") -> how many."""
    tokens: dict[str, int]
    cost: float
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The counts, for JSON."""
        return {
            "labels": len(self.labels),
            "asked": self.asked,
            "invalid": self.invalid,
            "tokens": self.tokens,
            "cost": self.cost,
        }


@dataclass(frozen=True, kw_only=True)
class Labeller:
    """A model that labels pairs of a query and a document; its answers are kept in a journal."""

    journal: Journal
    llm: str
    language: str
    """BCP 47."""
    payload: Callable[[str, str], str]
    """(query id, document id) -> what make_payload gives."""
    seed: int = 0
    budget_chars: int | None = None
    budget_cost: float | None = None
    options: LlmOptions = field(default_factory=LlmOptions)
    retry_failed: bool = False
    progress: Progress = silent
    tell: Tell = lambda line: None

    @property
    def signature(self) -> str:
        return f"label|model:{self.llm}|prompts:{digest_prompts(RELEVANCE_PROMPTS)}|seed:{self.seed}"

    def label(self, pairs: Sequence[Pair]) -> Labelling:
        """The labels of the pairs; only what was never answered is asked.

        Raises BackendError where the endpoint or the budget stopped the work or left pairs without an answer.
        """
        started = time.perf_counter()
        queue = TaskQueue(self.journal, KIND, self.signature)
        keys: list[bytes] = []

        def tasks() -> Iterator[Task]:
            for pair in pairs:
                task = Task.of(KIND, self.payload(*pair))
                keys.append(task.key)
                yield task

        self.journal.add(tasks())
        if self.retry_failed:
            queue.reset(keys)
        settled = {result.task.key for result in queue.results("failed")} | queue.answers(keys).keys()
        left = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in settled}
        spent = self._ask(list(left.values())) if left else {"tokens": {"input": 0, "output": 0}, "cost": 0.0}
        wanted = set(keys)
        failed = {
            result.task.key: result.error.partition(":")[0]
            for result in queue.results("failed")
            if result.task.key in wanted
        }
        answers = {key: Label(**value) for key, value in queue.values(keys).items()}
        found = {pair: answers[key] for key, pair in zip(keys, pairs, strict=True) if key in answers}
        return Labelling(
            labels=found,
            asked=len(left),
            invalid=dict(sorted(Counter(failed[key] for key in keys if key in failed).items())),
            seconds=time.perf_counter() - started,
            **spent,
        )

    def _ask(self, pairs: Sequence[Pair]) -> dict[str, Any]:
        asker = make_asker(
            self.journal,
            self.llm,
            signature=self.signature,
            seed=self.seed,
            budget_chars=self.budget_chars,
            budget_cost=self.budget_cost,
            progress=self.progress,
            **self.options,
        )
        client = asker.client
        question = make_question(self.language)
        tell_prompt_language(RELEVANCE_PROMPTS, self.language, self.llm, self.tell)
        chars = sum(bound_request(question, question.write(self.payload(*pair)), client.price)[0] for pair in pairs)
        self.tell(
            f"{client.endpoint} receives {len(pairs):,} queries with a document each, {chars:,} characters in all."
        )
        run_to_end(asker.run(question, (Task.of(KIND, self.payload(*pair)) for pair in pairs), len(pairs)))
        if asker.unanswered:
            raise BackendError(
                f"{client.endpoint} gave no answer to {asker.unanswered:,} of {len(pairs):,} requests, so nothing was "
                "written. What was answered is kept; run the same command again."
            )
        usage = client.usage
        return {"tokens": {"input": usage.input_tokens, "output": usage.output_tokens}, "cost": client.spent}


def make_payload(query: str, document: Doc) -> str:
    """What a task of the journal holds: the query, and the document as rerankers see it."""
    return orjson.dumps([query, document.full_text]).decode()


def read_label(found: Mapping[str, Any]) -> dict[str, Any] | None:
    """The label and the reason in an answer; None where the label is not an integer from 0 to 3.

    >>> read_label({"label": 2, "reason": "It names the year."})["label"], read_label({"label": 4, "reason": ""})
    (2, None)
    """
    label, reason = found.get("label"), found.get("reason")
    # True would count as an integer, and 2.0 is not one.
    if type(label) is not int or label not in SCALE:
        return None
    return {"label": label, "reason": shorten(reason, _MAX_REASON_CHARS) if isinstance(reason, str) else ""}


def make_question(language: str) -> Question:
    """The question how well a document answers a query, both in that language (BCP 47)."""
    table = read_prompts(RELEVANCE_PROMPTS)[find_prompt_language(RELEVANCE_PROMPTS, language)]
    scale = "\n".join(f"{label}: {meaning}" for label, meaning in zip(SCALE, table["scale"], strict=True))
    system = table["system"].format(language=english_name(language), scale=scale)

    def write(payload: str) -> Sequence[Mapping[str, str]]:
        query, document = orjson.loads(payload)
        return [
            {"role": "system", "content": system},
            {"role": "user", "content": table["user"].format(query=query, document=document)},
        ]

    return Question(
        kind=KIND,
        write=write,
        read=lambda payload, found: read_label(found),
        schema=SCHEMA,
        max_tokens=_MAX_TOKENS,
    )


def check_scale(positive: int) -> None:
    """Raise BadInput for a least positive label that is outside the scale, or that every document would have."""
    if not SCALE[0] < positive <= SCALE[-1]:
        raise BadInput(f"{option('positive', positive)}: a label that counts as positive is 1, 2 or 3.")
