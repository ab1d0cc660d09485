"""What is around each unit of a port in its document, for translators that read it.

It is kept in the journal, so that a port that is resumed shows the same. A unit that occurs several times is translated
once, as in every port: in the context of its first occurrence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from rusbeir import __version__
from rusbeir.errors import BadInput
from rusbeir.jobs import Journal, Task, task_key
from rusbeir.text import shorten
from rusbeir.translation.porting.plan import CascadeStep, Plan
from rusbeir.translation.translator import Context
from rusbeir.types import Doc

Documents: TypeAlias = Callable[[], Iterable[tuple[Doc, Mapping[str, Sequence[str]]]]]
"""Gives the documents of a port, each with the segments of its fields as its first step cuts them."""


def record_contexts(plan: Plan, journal: Journal, step: CascadeStep, reach: int, documents: Documents) -> None:
    """Put the contexts of the units of a step into the journal, once: so many units before and after, and the title."""
    # Another version may cut otherwise, as where units are handed from step to step.
    mark = f"{_name_contexts(step.kind)} cut"
    if journal.get_meta(mark) != __version__:
        journal.add(_make_rows(plan, step, reach, documents))
        journal.set_meta({mark: __version__})


def read_context(journal: Journal, task: Task) -> Context | None:
    """The context of a task; None where nothing is around it, as of a query. Raises BadInput for a damaged journal."""
    key = task_key(_name_contexts(task.kind), task.payload)
    rows = journal.read("SELECT payload FROM task WHERE key = ?", (key,))
    try:
        return Context(*json.loads(rows[0][0])) if rows else None
    except (TypeError, ValueError) as error:
        raise BadInput(
            f"The journal {journal.path} is damaged ({shorten(str(error))}). Move it away to start over, or restore a "
            "copy."
        ) from error


def _name_contexts(kind: str) -> str:
    return f"context of {kind}"


def _make_rows(plan: Plan, step: CascadeStep, reach: int, documents: Documents) -> Iterator[Task]:
    """A row of the journal's table of tasks for each unit, found by the unit; it is never asked for."""
    kind = _name_contexts(step.kind)
    # The first step of a round of retries cuts segments of the port; that of a port has made them.
    steps = plan.steps[0 if plan.round else 1 : step.number + 1]
    for doc, fields in documents():
        units = [(name, unit) for name, segments in fields.items() for unit in _cut(segments, steps)]
        for n, (name, unit) in enumerate(units):
            near = units[max(0, n - reach) : n], units[n + 1 : n + 1 + reach]
            is_shown = name == "title" or any(other == "title" for side in near for other, _ in side)
            context = Context("" if is_shown else doc.title, *([text for _, text in side] for side in near))
            if any(context):
                # Half characters are kept as escapes.
                yield Task(task_key(kind, unit), kind, json.dumps(context))


def _cut(segments: Sequence[str], steps: Sequence[CascadeStep]) -> Sequence[str]:
    for step in steps:
        segments = [text for pieces in step.cut(segments) for text, is_sent in pieces if is_sent]
    return segments
