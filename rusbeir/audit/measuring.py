"""What can be said of one document or query: its flags, and how far its back-translation is from the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import orjson

from rusbeir.audit import scores
from rusbeir.audit.lengths import Bounds
from rusbeir.audit.ported import Part, Record
from rusbeir.translation.checks import Flag, Segment, check


class Task(NamedTuple):
    """A record, and the back-translations of its segments in order; None where there is no back-translator."""

    record: Record
    back: tuple[str, ...] | None


class Measured(NamedTuple):
    """What came of a task."""

    kind: str
    record_id: str
    row: bytes
    """A line of qa/texts.jsonl."""
    segment_rows: list[bytes]
    """Lines of qa/segments.jsonl."""
    flags: list[tuple[str, ...]]
    """The names of each segment's flags."""
    chrf: float | None
    """Of the whole text."""
    segment_chrf: list[float]
    counts: scores.Counts | None
    segment_counts: list[scores.Counts]
    back: tuple[tuple[str, str], ...]
    """The name of each field, and its back-translation."""


@dataclass(frozen=True, kw_only=True)
class Measurer:
    """Measures tasks; sent to worker processes."""

    languages: tuple[str, str]
    bounds: Bounds | None
    plus: bool
    """Whether chrF++ and the corpus scores are wanted, which take sacrebleu's time."""

    def __call__(self, tasks: Sequence[Task]) -> list[Measured]:
        """Each of the tasks, measured."""
        return [self._measured(task) for task in tasks]

    def flags(self, source: str, translation: str) -> list[Flag]:
        """All that is to be seen of one segment."""
        if not translation.strip():
            return [Flag("empty", "there is no translation")]
        found = check(Segment(source, translation, *self.languages))
        if self.bounds is not None and (flag := self.bounds.outlier(source, translation)):
            found.append(flag)
        return found

    def _measured(self, task: Task) -> Measured:
        record, back = task
        parts = [part for field in record.fields for part in field.segments]
        flags = [self.flags(part.source, part.translation) for part in parts]
        text = "\n".join(field.source for field in record.fields)
        row: dict[str, Any] = {
            "kind": record.kind,
            "id": record.record_id,
            "chars": len(text),
            "translation_chars": sum(len(field.translation) for field in record.fields),
            "flags": sorted({flag.name for flag in chain.from_iterable(flags)}),
        }
        rows = [_segment_row(record, n, part, found) for n, (part, found) in enumerate(zip(parts, flags, strict=True))]
        names = [tuple(flag.name for flag in found) for found in flags]
        if back is None:
            return Measured(
                record.kind, record.record_id, _line(row), [*map(_line, rows)], names, None, [], None, [], ()
            )
        rest = iter(back)
        fields = tuple(
            (field.name, "".join([next(rest) if part.sent else part.source for part in field.parts]))
            for field in record.fields
        )
        score, counts = self._scores(["\n".join([answer for _, answer in fields])], [text]) if fields else ([], [])
        segment_scores, segment_counts = self._scores(back, [part.source for part in parts])
        if score:
            _add_scores(row, score[0], counts[0] if counts else None)
        for n, segment_row in enumerate(rows):
            segment_row["back"] = back[n]
            _add_scores(segment_row, segment_scores[n], segment_counts[n] if segment_counts else None)
        return Measured(
            record.kind,
            record.record_id,
            _line(row),
            [*map(_line, rows)],
            names,
            score[0] if score else None,
            segment_scores,
            counts[0] if counts else None,
            segment_counts,
            fields,
        )

    def _scores(self, backs: Sequence[str], sources: Sequence[str]) -> tuple[list[float], list[scores.Counts]]:
        if not backs:
            return [], []
        return scores.segment_chrf(backs, sources), scores.counts("chrF++", backs, sources) if self.plus else []


def _segment_row(record: Record, n: int, part: Part, flags: Sequence[Flag]) -> dict[str, Any]:
    return {
        "kind": record.kind,
        "id": record.record_id,
        "n": n,
        "source": part.source,
        "translation": part.translation,
        "flags": {flag.name: flag.detail for flag in flags},
    }


def _add_scores(row: dict[str, Any], score: float, counts: scores.Counts | None) -> None:
    row["chrF"] = round(score, 2)
    if counts is not None:
        row["chrF++"] = round(scores.score_of("chrF++", counts), 2)


def _line(row: dict[str, Any]) -> bytes:
    return orjson.dumps(row) + b"\n"
