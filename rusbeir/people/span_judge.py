"""A language model that marks errors in translations: what it is asked, and what of its answers is believed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import orjson

from rusbeir.audit import SOURCE
from rusbeir.jobs import Question, Unfit, read_prompts
from rusbeir.languages import english_name
from rusbeir.people.error_spans import (
    KINDS,
    SEVERITIES,
    SIDES,
    Located,
    MarkedError,
    dump_span,
    locate_errors,
)

ESA, MQM = "esa", "mqm"
PROMPTS = "spans"
MAX_ERRORS = 20
"""Errors that are asked for in one text."""
SCORE_SCALE = (0, 100)
_MAX_TOKENS = 2000
_MAX_WORDS_CHARS = 5000
_VOTE_TEMPERATURE = 0.7
"""The temperature of all votes but the first: at 0, they would be the same."""


def make_question(protocol: str, source: str, target: str, vote: int = 0) -> Question:
    """The question about a pair of a text and its translation, in these languages (BCP 47); votes count from 0."""
    return Question(
        kind=f"{protocol} judgement",
        write=lambda payload: make_prompt(protocol, source, target, *orjson.loads(payload)),
        read=lambda payload, answer: read_answer(protocol, answer, *orjson.loads(payload)),
        schema=make_schema(protocol),
        max_tokens=_MAX_TOKENS,
        temperature=_VOTE_TEMPERATURE if vote else 0.0,
    )


def make_schema(protocol: str) -> dict[str, Any]:
    """The JSON schema of an answer."""
    error = {
        "type": "object",
        "properties": {
            "in": {"type": "string", "enum": [*SIDES]},
            "span": {"type": "string"},
            "kind": {"type": "string", "enum": [*KINDS]},
            "severity": {"type": "string", "enum": [*SEVERITIES]},
        },
        "required": ["in", "span", "kind", "severity"],
        "additionalProperties": False,
    }
    properties: dict[str, Any] = {"errors": {"type": "array", "items": error}}
    if protocol == ESA:
        properties["score"] = {"type": "integer", "minimum": SCORE_SCALE[0], "maximum": SCORE_SCALE[1]}
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def make_prompt(protocol: str, source: str, target: str, text: str, translation: str) -> list[dict[str, str]]:
    """The messages that ask a model to mark the errors of a translation; source and target are BCP 47."""
    table = read_prompts(PROMPTS)
    names = {"source": english_name(source), "target": english_name(target)}
    lists = {
        name: "\n".join(f"  - {word}: {meaning}" for word, meaning in table[name].items())
        for name in ("kinds", "severities")
    }
    system = table["system"].format(
        most=MAX_ERRORS, then=table[protocol]["then"], shape=table[protocol]["shape"].strip(), **lists, **names
    )
    user = table["user"].format(text=text, translation=translation, **names)
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def read_answer(protocol: str, answer: Mapping[str, Any], source: str, translation: str) -> dict[str, Any]:
    """Read an answer: `errors` with their places, counts of the `spans`, and the `score` where ESA asks for it.

    Errors whose words are in neither text, or overlap another error, are counted and left out.

    Raises:
        Unfit: The answer has another shape, a score outside the scale, or only errors that are in neither text.
    """
    marked = answer.get("errors")
    if not isinstance(marked, list):
        raise Unfit("errors")
    errors = [_read_error(error) for error in marked]
    score = _read_score(answer.get("score")) if protocol == ESA else None
    located = locate_errors(errors, source, translation)
    if errors and not located.spans:
        # To take these for a translation without an error would be the opposite of what the judge said.
        raise Unfit("spans")
    return _dump(located, score, source, translation)


def _dump(located: Located, score: float | None, source: str, translation: str) -> dict[str, Any]:
    errors = [dump_span(span, source if span.side == SOURCE else translation) for span in located.spans]
    verdict: dict[str, Any] = {"errors": errors, "spans": dict(located.counts)}
    return verdict if score is None else {**verdict, "score": score}


def _read_error(error: Any) -> MarkedError:
    if not isinstance(error, dict):
        raise Unfit("errors")
    side, words, kind, severity = (error.get(name) for name in ("in", "span", "kind", "severity"))
    if not (side in SIDES and kind in KINDS and severity in SEVERITIES and isinstance(words, str)):
        raise Unfit("errors")
    return MarkedError(str(side), words[:_MAX_WORDS_CHARS], str(kind), str(severity))


def _read_score(score: Any) -> float:
    """The score. Raises Unfit for what is not a number from 0 to 100; True would count as one."""
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        raise Unfit("score")
    if not SCORE_SCALE[0] <= score <= SCORE_SCALE[1]:
        raise Unfit("score")
    return float(score)


def count_spans(verdicts: list[dict[str, Any]]) -> dict[str, int]:
    """The counts of `Located.counts` over all verdicts, zeros included."""
    counts = sum((Counter(verdict["spans"]) for verdict in verdicts), Counter[str]())
    return {name: counts[name] for name in ("marked", "verified", "moved", "not_in_text", "overlapping")}
