"""The relevance of documents to queries, as a language model labels it from 0 to 3; no label is paid for twice."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeAlias

import orjson

from rusbeir.errors import BadInput, option
from rusbeir.jobs import (
    Journal,
    LlmJob,
    Question,
    Spent,
    ask_all,
    digest_prompts,
    find_prompt_language,
    read_prompts,
)
from rusbeir.languages import english_name
from rusbeir.text import shorten
from rusbeir.types import Doc

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
    """The answer of the model about a pair."""

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
    spent: Spent
    """What this run has spent."""
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, for JSON."""
        return {
            "labels": len(self.labels),
            "asked": self.asked,
            "invalid": self.invalid,
            "tokens": self.spent.tokens,
            "cost": self.spent.cost,
            "spent": asdict(self.spent),
        }


@dataclass(frozen=True, kw_only=True)
class Labeller:
    """A model that labels pairs of a query and a document; its answers are kept in a journal."""

    job: LlmJob
    journal: Journal
    language: str
    """BCP 47."""
    payload: Callable[[str, str], str]
    """(query id, document id) -> what make_payload gives."""

    def label(self, pairs: Sequence[Pair]) -> Labelling:
        """Return the labels of the pairs; only what was never answered is asked.

        Raises BackendError where the endpoint or the budget stopped the work or left pairs without an answer.
        """
        started = time.perf_counter()
        answers = ask_all(
            self.job,
            self.journal,
            make_question(self.language),
            pairs,
            lambda pair: self.payload(*pair),
            "queries with a document each",
        )
        labels = {pair: Label(**value) for pair, value in zip(pairs, answers.values, strict=True) if value is not None}
        return Labelling(
            labels=labels,
            asked=answers.n_questions,
            invalid=dict(sorted(Counter(filter(None, answers.reasons)).items())),
            spent=answers.spent,
            seconds=time.perf_counter() - started,
        )


def sign_labels(llm: str, seed: int) -> str:
    """Return the signature of a labeller."""
    return f"label|model:{llm}|prompts:{digest_prompts(RELEVANCE_PROMPTS)}|seed:{seed}"


def make_payload(query: str, document: Doc) -> str:
    """Make the payload of a task: the query, and the document as rerankers see it."""
    return orjson.dumps([query, document.full_text]).decode()


def read_label(answer: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read the label and the reason in an answer; None where the label is not an integer from 0 to 3.

    >>> read_label({"label": 2, "reason": "It names the year."})["label"], read_label({"label": 4, "reason": ""})
    (2, None)
    """
    label, reason = answer.get("label"), answer.get("reason")
    # True would count as an integer, and 2.0 is not one.
    if type(label) is not int or label not in SCALE:
        return None
    return {"label": label, "reason": shorten(reason, _MAX_REASON_CHARS) if isinstance(reason, str) else ""}


def make_question(language: str) -> Question:
    """Make the question how well a document answers a query, both in that language (BCP 47)."""
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
        read=lambda payload, answer: read_label(answer),
        schema=SCHEMA,
        max_tokens=_MAX_TOKENS,
    )


def check_scale(positive: int) -> None:
    """Raise BadInput for a least positive label that is outside the scale, or that every document would have."""
    if not SCALE[0] < positive <= SCALE[-1]:
        raise BadInput(f"{option('positive', positive)}: a label that counts as positive is 1, 2 or 3.")
