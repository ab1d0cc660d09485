"""What can be said of one document or query: its flags, and how far its back-translation is from the source."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import orjson

from rusbeir.audit import scores
from rusbeir.audit.aligned import Field, Part, Record
from rusbeir.audit.ngrams import Ints
from rusbeir.translation.checks.checks import Flag, Segment, check


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
    scores: list[float]
    """chrF of the whole text; [] where there is no back-translation."""
    counts: Ints
    """Of the whole text."""
    segment_scores: list[float]
    segment_counts: Ints
    """Of all segments together."""
    back: tuple[tuple[str, str], ...]
    """The name of each field, and its back-translation."""


@dataclass(frozen=True, kw_only=True)
class Measurer:
    """Measures tasks; sent to worker processes."""

    languages: tuple[str, str]
    bounds: Bounds | None

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
        names = [field.name for field in record.fields for _ in field.segments]
        flags = [self.flags(part.source, part.translation) for part in parts]
        text = "\n".join(field.source for field in record.fields)
        row: dict[str, Any] = {
            "kind": record.kind,
            "id": record.record_id,
            "chars": len(text),
            "translation_chars": sum(len(field.translation) for field in record.fields),
            "flags": sorted({flag.name for flag in chain.from_iterable(flags)}),
        }
        rows = [_segment_row(record, *row) for row in zip(names, parts, flags, strict=True)]
        backs = tuple(back or ())
        rest = iter(backs)
        fields = () if back is None else tuple((field.name, _joined(field, rest)) for field in record.fields)
        whole = _Scores.of(["\n".join([answer for _, answer in fields])] * bool(fields), [text] * bool(fields))
        each = _Scores.of(backs, [part.source for part in parts] if back is not None else [])
        whole.add_to([row])
        each.add_to(rows)
        for segment_row, answer in zip(rows, backs, strict=False):
            segment_row["back"] = answer
        return Measured(
            kind=record.kind,
            record_id=record.record_id,
            row=_line(row),
            segment_rows=[*map(_line, rows)],
            flags=[tuple(flag.name for flag in found) for found in flags],
            scores=whole.chrf,
            counts=whole.counts,
            segment_scores=each.chrf,
            segment_counts=each.counts,
            back=fields,
        )


class _Scores(NamedTuple):
    """chrF and chrF++ of some texts, and the sum of their counts."""

    chrf: list[float]
    plus: list[float]
    counts: Ints

    @classmethod
    def of(cls, backs: Sequence[str], sources: Sequence[str]) -> _Scores:
        counts = scores.chrf_counts(backs, sources, words=True)
        plain, plus = scores.chrf(counts[:, : 3 * scores.CHARS]), scores.chrf(counts)
        return cls(plain.tolist(), plus.tolist(), counts.sum(axis=0))

    def add_to(self, rows: Sequence[dict[str, Any]]) -> None:
        """Note each text's scores in its row."""
        for row, plain, plus in zip(rows, self.chrf, self.plus, strict=False):
            row |= {"chrF": round(plain, 2), "chrF++": round(plus, 2)}


def _joined(field: Field, answers: Iterator[str]) -> str:
    return "".join([next(answers) if part.sent else part.source for part in field.parts])


def _segment_row(record: Record, field: str, part: Part, flags: Sequence[Flag]) -> dict[str, Any]:
    return {
        "kind": record.kind,
        "id": record.record_id,
        "field": field,
        "source": part.source,
        "translation": part.translation,
        "flags": {flag.name: flag.detail for flag in flags},
    }


def _line(row: dict[str, Any]) -> bytes:
    return orjson.dumps(row) + b"\n"


MIN_CHARS = 40
"""Of a source: the ratio of shorter ones says little."""
BELOW, ABOVE = 3.0, 1.5
"""Interquartile ranges kept under the first and above the third quartile: PosIR (2026), appendix B.5.3."""
TOLERATED = 1.6
"""So many times the median, or a part of it, is never an outlier: a rule-based translator's ratios hardly differ."""
SLACK_CHARS = 20
"""More than the ratio allows: in a short text an abbreviation that is spelled out makes as much."""
_MIN_SEGMENTS = 20


class Bounds(NamedTuple):
    """Ratios of length, translation to source in characters, between which a translation is like the others."""

    low: float
    high: float
    median: float
    n: int
    """Of how many segments."""

    def outlier(self, source: str, translation: str) -> Flag | None:
        """A Flag where the ratio lies outside; None for sources under MIN_CHARS, and for empty translations."""
        if len(source) < MIN_CHARS or not translation.strip():
            return None
        ratio = len(translation) / len(source)
        if self.low <= ratio and len(translation) <= self.high * len(source) + SLACK_CHARS:
            return None
        return Flag("length", f"{ratio:.2f} times as long as the source; {self.low:.2f} to {self.high:.2f} is usual")


def bounds(pairs: Iterable[tuple[str, str]]) -> Bounds | None:
    """The bounds of (source, translation) pairs by PosIR's rule; None of fewer than 20 that count."""
    ratios = array("f", (len(t) / len(s) for s, t in pairs if len(s) >= MIN_CHARS and t.strip()))
    if len(ratios) < _MIN_SEGMENTS:
        return None
    first, median, third = np.quantile(np.frombuffer(ratios, dtype=np.float32), [0.25, 0.5, 0.75]).tolist()
    spread = third - first
    low, high = min(first - BELOW * spread, median / TOLERATED), max(third + ABOVE * spread, median * TOLERATED)
    return Bounds(max(low, 0.0), high, median, len(ratios))
