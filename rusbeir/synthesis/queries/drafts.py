"""Queries in the making: what each is to be, which step comes next, and where it was dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from rusbeir.synthesis.queries.attributes import draw_one

STEPS: Mapping[str, tuple[str, ...]] = {
    "qa": ("characters", "scenarios", "query", "rewrites", "negatives"),
    "long-doc": ("characters", "scenarios", "query", "rewrites"),
    "position": ("question", "span"),
}
"""kind of test set -> the steps from a document to a query."""
INSUFFICIENT = "insufficient"
"""Why a draft is dropped of whose document the model says that it does not suffice for a question."""


@dataclass(kw_only=True)
class Draft:
    """One query in the making."""

    doc_id: str
    number: int
    """The number of the query among those of its document, from 0."""
    attributes: Mapping[str, str]
    seed: int
    made: dict[str, Any] = field(default_factory=dict)
    """step -> what is kept of its answer."""
    dropped: tuple[str, str, str] | None = None
    """The step, the reason and what the model said, of a draft that was dropped."""
    waiting: bool = False
    """Whether the answer of a step is still missing."""

    @property
    def query_id(self) -> str:
        return f"{self.doc_id}-q{self.number}"

    @property
    def character(self) -> str | None:
        return self._choose("characters")

    @property
    def scenario(self) -> str | None:
        return self._choose("scenarios")

    @property
    def first(self) -> str:
        """The query before it was rewritten."""
        query: str = self.made["query"] if "query" in self.made else self.made["question"]["question"]
        return query

    @property
    def text(self) -> str:
        """The query."""
        return self._choose("rewrites") or self.first

    def _choose(self, step: str) -> str | None:
        values = self.made.get(step)
        return draw_one(values, None, self.seed, self.doc_id, self.number, step) if values else None

    def payload(self, step: str) -> str:
        """Return what is asked at a step, as JSON; the steps before it are made."""
        values = {"doc": self.doc_id, **_PAYLOADS[step](self)}
        return orjson.dumps(values).decode()


_PAYLOADS: Mapping[str, Any] = {
    "characters": lambda draft: {},
    "scenarios": lambda draft: {"character": draft.character},
    "query": lambda draft: {
        "number": draft.number,
        "character": draft.character,
        "scenario": draft.scenario,
        **{name: draft.attributes[name] for name in ("length", "type", "information")},
    },
    "rewrites": lambda draft: {"query": draft.first, "style": draft.attributes["style"]},
    "negatives": lambda draft: {"query": draft.text, "count": int(draft.attributes["negatives"])},
    "question": lambda draft: {"number": draft.number, **draft.attributes},
    "span": lambda draft: {"third": draft.attributes["third"], **draft.made["question"]},
}
