"""The decisions of quality control on each query and document, with evidence, and what becomes of the judgements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import orjson

from rusbeir.datasets import derive_shape, read_jsonl
from rusbeir.errors import BadInput, option, unknown
from rusbeir.synthesis.quality.relevance import SCALE
from rusbeir.text import digest
from rusbeir.types import Qrels

DECISIONS, REMOVED, UNDONE = "decisions.jsonl", "removed.jsonl", "undone.txt"
"""The files below qa/: the decisions, the texts of what they removed, and the ids of those that a person has undone."""

Step: TypeAlias = Literal["source", "span", "false-negative", "candidate"]
Kind: TypeAlias = Literal["positive", "hard-negative", "negative", "unjudged"]
"""What the document was to the query: judged relevant; made to mislead; judged 0 by the source; not judged."""
Action: TypeAlias = Literal[
    "keep", "drop-query", "drop-judgement", "add-judgement", "drop-document", "drop-query-and-document"
]
"""drop-query-and-document removes the document and the queries whose positive it is."""

KEEP: Action = "keep"
"""The action of a decision that changed nothing, and cannot be undone."""

REMOVED_SHAPES = ({"query_id": str, "text": str}, {"doc_id": str, "title": str, "text": str})
"""A line of REMOVED: of a query, or of a document."""
DECISIONS_REMEDY = "Run `rusbeir synth qc` again; no answer is paid for twice."
"""What to do about a damaged line of either."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One decision; the fields that its step does not use are None."""

    step: Step
    query_id: str
    doc_id: str
    kind: Kind
    label: int | None = None
    """From 0 to 3; None also where the model gave no valid one."""
    reason: str = ""
    ranks: Mapping[str, int | None] | None = None
    """System -> the document's rank among the candidates, from 1; None where the system did not find it."""
    threshold: int | None = None
    scores: Mapping[str, Mapping[str, float]] | None = None
    """Reranker -> its scores, "with" and "without" the span, or of the "document" and the "positive"."""
    action: Action = "keep"
    undone: bool = False

    @cached_property
    def id(self) -> str:
        return digest(self.step, self.query_id, self.doc_id, chars=12)

    def to_dict(self) -> dict[str, Any]:
        """Return a line of decisions.jsonl."""
        return {"id": self.id, **asdict(self)}


DECISION_SHAPE = {"id": str, **derive_shape(Decision), "label": ({*SCALE}, None)}
"""A line of DECISIONS."""


def read_decisions(out: str | Path) -> list[dict[str, Any]]:
    """The decisions in a folder of quality control. Raises BadInput where there are none, or for a damaged line."""
    path = Path(out) / "qa" / DECISIONS
    if not path.is_file():
        raise BadInput(f"{path} does not exist: quality control has not written it, or has not ended yet.")
    return list(read_jsonl(path, DECISION_SHAPE, DECISIONS_REMEDY))


def read_undone(out: Path, more: Sequence[str]) -> frozenset[str]:
    """Read the ids of the decisions that are undone, with more.

    Raises UnknownName for one of those that is not among the folder's decisions, and BadInput for one that changed
    nothing.
    """
    path = out / "qa" / UNDONE
    known = set(path.read_text(encoding="utf-8", errors="replace").split()) if path.is_file() else set[str]()
    if more:
        actions = {row["id"]: row["action"] for row in read_decisions(out)}
        for decision_id in more:
            if decision_id not in actions:
                raise unknown("decision", decision_id, actions, owner=str(out / "qa" / DECISIONS))
            if actions[decision_id] == KEEP:
                raise BadInput(
                    f"{option('undo', decision_id)}: this decision changed nothing, so there is nothing to undo."
                )
    return frozenset(known | set(more))


def mark_undone(decisions: Iterable[Decision], undone: frozenset[str]) -> list[Decision]:
    """Return the decisions, those with the ids as undone."""
    return [replace(decision, undone=True) if decision.id in undone else decision for decision in decisions]


class Outcome(NamedTuple):
    """The judgements that are left, and the documents that go."""

    qrels: Qrels
    documents: frozenset[str]
    """Those that are removed from the corpus."""


def apply_decisions(qrels: Qrels, decisions: Iterable[Decision], grade: int | None) -> Outcome:
    """Return the judgements after the decisions that are not undone; a query without a relevant document goes.

    grade is that of judgements that are added; None takes the label.
    """
    left = {query_id: dict(grades) for query_id, grades in qrels.items()}
    gone: set[str] = set()
    for decision in decisions:
        grades = left.get(decision.query_id, {})
        if decision.undone or decision.action == "keep":
            continue
        if decision.action in ("drop-document", "drop-query-and-document"):
            gone.add(decision.doc_id)
        if decision.action == "drop-query-and-document":
            for grades in left.values():
                if grades.get(decision.doc_id, 0) > 0:
                    grades.clear()
        elif decision.action == "add-judgement" and grades:
            grades[decision.doc_id] = grade if grade is not None else decision.label or 1
        elif decision.step == "span":
            grades.clear()
        else:
            grades.pop(decision.doc_id, None)
    remaining = {
        query_id: {doc_id: grade for doc_id, grade in grades.items() if doc_id not in gone}
        for query_id, grades in left.items()
    }
    return Outcome(
        {query_id: grades for query_id, grades in remaining.items() if any(grade > 0 for grade in grades.values())},
        frozenset(gone),
    )


def count_decisions(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Count the decisions that share a step and an action, and those that are undone; in a fixed order."""
    counts: Counter[tuple[str, str]] = Counter()
    undone: Counter[tuple[str, str]] = Counter()
    for row in rows:
        counts[row["step"], row["action"]] += 1
        undone[row["step"], row["action"]] += row["undone"]
    order = {step: number for number, step in enumerate(get_args(Step))}
    return [
        {"step": step, "action": action, "decisions": counts[step, action], "undone": undone[step, action]}
        for step, action in sorted(counts, key=lambda key: (order[key[0]], key[1]))
    ]


def decision_lines(decisions: Iterable[Decision]) -> Iterable[bytes]:
    """Return the lines of decisions.jsonl."""
    return (orjson.dumps(decision.to_dict()) + b"\n" for decision in decisions)
