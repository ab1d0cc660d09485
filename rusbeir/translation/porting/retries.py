"""Segments of a finished port that are translated again, since a file names them; all others stay as they are.

Each time is a round, whose tasks in the journal are its own, so that no earlier answer is found instead of a new one.
A segment keeps its old translation until the new one is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from rusbeir.datasets import Material, Place, read_jsonl
from rusbeir.errors import BadInput, option
from rusbeir.jobs import Attempt, Budget, Journal, Task, Tell, run_to_end, task_key
from rusbeir.storage import atomic_file
from rusbeir.text import digest, shorten
from rusbeir.translation.checks.checks import check
from rusbeir.translation.porting.folder import QUERY_LAYOUT, apply_cuts, cut_documents, read_cuts
from rusbeir.translation.porting.plan import (
    RETRIED,
    ROUNDS,
    Plan,
    TranslatorEntry,
    dump_entries,
    name_round,
    name_translators,
)
from rusbeir.translation.porting.runner import translate_pending
from rusbeir.translation.segments.segment import Piece
from rusbeir.translation.translator import Segment
from rusbeir.types import Progress

CHANGES = "retried.jsonl"
"""The file in qa/ with the segments that were translated again and both of their translations, the last at the end."""
SHAPE = {
    "kind": {"document", "query"}, "id": str, "field?": {"title", "text", "query"}, "segment?": int, "source?": str,
}  # fmt: skip


class NamedSegment(NamedTuple):
    """A line of a file of segments."""

    location: Place
    field: str | None
    """None for all fields."""
    number: int | None
    """The segment's number in its field, from 1; None for all segments."""
    source: str | None
    """Its text, if the line has it."""


@dataclass(frozen=True, kw_only=True)
class Retry:
    """Segments to translate again, and who is asked."""

    path: Path
    """JSON lines with kind and id, perhaps field and segment; see docs/validity.md."""
    entries: tuple[TranslatorEntry, ...]

    def run(
        self,
        material: Material,
        plan: Plan,
        journal: Journal,
        work: Path,
        target: str,
        budget: Budget,
        progress: Progress,
        tell: Tell,
        batching: Mapping[str, Any],
    ) -> dict[str, int]:
        """Translate them, and count segments by what became of them: changed, same, failed.

        Those that an earlier run of the same round has translated are not asked for again. One that fails keeps its old
        translation. Raises BadInput for a line that names no segment.
        """
        texts = find_segments(self.path, material, work)
        again = self._open_round(plan, journal, texts)
        queue = again.retried(journal)
        journal.add(Task.of(queue.kind, text) for text in texts)
        pending = [task.payload for task in queue.unfinished()]
        journal.add(again.tasks(pending, again.steps[0]))
        again.reset_missing(journal)
        run_to_end(
            translate_pending(
                again,
                journal,
                source=plan.language,
                target=target,
                budget=budget,
                progress=progress,
                tell=tell,
                documents=partial(cut_documents, material, work),
                batching=batching,
            )
        )
        old = plan.joined(journal, [[Piece(text, True)] for text in pending], keep=True)
        new = again.translated(journal, pending)
        changes = [
            (text, before, after) for text, before, after in zip(pending, old, new, strict=True) if after is not None
        ]
        if changes:
            _write_changes(work.parent / "qa" / CHANGES, changes)
        journal.record(
            [
                Attempt(
                    task_key(queue.kind, text), RETRIED, "done", after,
                    flags=",".join(flag.name for flag in check(Segment(text, after, plan.language, target))),
                )
                for text, _, after in changes
            ]
        )  # fmt: skip
        changed = sum(before != after for _, before, after in changes)
        return {"changed": changed, "same": len(changes) - changed, "failed": len(pending) - len(changes)}

    def _open_round(self, plan: Plan, journal: Journal, texts: Sequence[str]) -> Plan:
        """The last round if it asks for the same and is not finished, else a new one."""
        number = len(plan.rounds(journal))
        recipe = task_key(*texts, *(entry.signature for entry in self.entries)).hex()
        if not number or journal.get_meta(name_round(number)) != recipe:
            number += 1
            names = dump_entries(self.entries)
            journal.set_meta({ROUNDS: str(number), name_round(number): recipe, name_translators(number): names})
        return replace(plan, entries=self.entries, round=number)


def finish_round(journal: Journal, last: Plan) -> None:
    """Note that the dataset was written with the last round: the same segments can be asked for in a new one.

    A round that lacks answers stays open.
    """
    if not last.retried(journal).size().pending:
        journal.set_meta({name_round(last.round): ""})


def find_segments(path: Path, material: Material, work: Path) -> list[str]:
    """The texts of the segments that a file names, each once.

    Raises BadInput for an unreadable line, and for one that names no segment of the material.
    """
    named = _read_named(path)
    texts: dict[str, None] = {}
    # Who asks for a record that does not exist is told by what is left.
    left = dict(named)
    for key, fields in _cut_records(material, work, named):
        for segment in left.pop(key):
            texts |= dict.fromkeys(_choose(segment, key, fields))
    for (kind, record_id), lines in left.items():
        raise BadInput(
            f"{lines[0].location}: {material.dataset.card.name} has no {kind} {shorten(repr(record_id))} with text "
            f"that is translated. Remove the line, or name the dataset for which {path.name} was written."
        )
    return list(texts)


def _read_named(path: Path) -> dict[tuple[str, str], list[NamedSegment]]:
    named: dict[tuple[str, str], list[NamedSegment]] = {}
    remedy = 'Each line is an object such as {"kind": "query", "id": "q1"}; correct it, or have the file written again.'
    for number, row in enumerate(read_jsonl(path, SHAPE, remedy), 1):
        segment = NamedSegment(Place(str(path), number), row.get("field"), row.get("segment"), row.get("source"))
        named.setdefault((row["kind"], row["id"]), []).append(segment)
    if not named:
        raise BadInput(f"{path} names no segment. Leave {option('retry_segments')} out, or give another file.")
    return named


def _cut_records(
    material: Material, work: Path, keys: Mapping[tuple[str, str], object]
) -> Iterator[tuple[tuple[str, str], dict[str, list[str]]]]:
    """The segments of these records by field, as they were cut for the port; records without text are left out."""
    for doc, fields in cut_documents(material, work):
        if fields and ("document", doc.doc_id) in keys:
            yield ("document", doc.doc_id), fields
    if "query" not in material.fields:
        return
    known = dict(read_cuts(work / QUERY_LAYOUT)) if (work / QUERY_LAYOUT).exists() else {}
    for query_id, text in material.dataset.queries.items():
        if text and ("query", query_id) in keys:
            (pieces,) = apply_cuts([known.get(digest(text), [])], [text], work / QUERY_LAYOUT)
            yield ("query", query_id), {"query": [piece.text for piece in pieces if piece.sent]}


def _choose(segment: NamedSegment, key: tuple[str, str], fields: Mapping[str, list[str]]) -> list[str]:
    """The segments of a record that a line names. Raises BadInput where there are none."""
    kind, record_id = key
    record = f"{kind} {shorten(repr(record_id))}"
    if segment.field is not None and segment.field not in fields:
        raise BadInput(
            f"{segment.location}: {record} has no field {segment.field!r} that is translated; it has "
            f"{', '.join(fields)}."
        )
    if segment.number is None:
        return [text for name, texts in fields.items() if segment.field in (None, name) for text in texts]
    if segment.field is None and len(fields) > 1:
        raise BadInput(
            f'{segment.location}: {record} has several fields; add "field": {" or ".join(map(repr, fields))}.'
        )
    texts = fields[segment.field or next(iter(fields))]
    if not 1 <= segment.number <= len(texts):
        raise BadInput(
            f"{segment.location}: {record} has {len(texts)} segments there, so none has the number {segment.number}."
        )
    text = texts[segment.number - 1]
    if segment.source is not None and segment.source != text:
        raise BadInput(
            f"{segment.location}: segment {segment.number} of {record} is {shorten(repr(text))} in this port, not "
            f"{shorten(repr(segment.source))}. The file is of another port or another source; have it written again."
        )
    return [text]


def _write_changes(path: Path, changes: Sequence[tuple[str, str | None, str]]) -> None:
    """Append them, unless a run that was killed before the journal had them did so already."""
    rows = ({"source": text, "before": before, "after": after} for text, before, after in changes)
    lines = b"".join(orjson.dumps(row) + b"\n" for row in rows)
    earlier = path.read_bytes() if path.exists() else b""
    if not earlier.endswith(lines):
        with atomic_file(path) as file:
            file.write(earlier + lines)
