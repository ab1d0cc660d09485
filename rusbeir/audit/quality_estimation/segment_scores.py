"""Scores and ratings of translated segments, in the forms in which the field publishes them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rusbeir.audit.quality_estimation.appraise import read_appraise
from rusbeir.datasets import Place, parse_json, read_tsv
from rusbeir.errors import BadInput
from rusbeir.text import shorten

WEIGHTS: Mapping[str, float] = {"neutral": 0, "minor": 1, "major": 5, "critical": 25}
"""What an error of each severity costs where its own `score` is not stated: MQM's weights at WMT."""
SEVERE = frozenset({"major", "critical"})
_FORMS = (
    "Give WMT's lines of a system, a tab, and a score or a JSON object of MQM errors; a .tsv whose first line names "
    "the columns system, segment, score and perhaps document; or .jsonl with these keys, or errors instead of score. "
    "Segments of a port may also be named by kind, id, field and segment, a number."
)
_ENDINGS = (".gz", ".jsonl", ".tsv", ".seg.score", ".seg.rating", ".scores.csv", ".csv", ".score", ".rating")

SOURCE, TRANSLATION, MISSING = "source", "translation", "missing"
"""The sides of marked errors; MISSING is something that is not in the translation, wherever it is in the source."""


class Extent(NamedTuple):
    """The position of a marked error: the characters of one side from start to before end."""

    side: str
    start: int
    end: int

    def overlaps(self, other: Extent) -> bool:
        """Return whether the two have a character in common."""
        return self.side == other.side and self.start < other.end and other.start < self.end


class _Row(NamedTuple):
    system: str
    segment: str | None
    """None where the file does not name segments: they are then counted in each system, from 1."""
    score: float | None
    severe: bool | None
    document: str | None
    spans: list[Extent] | None = None
    """Where the errors are; None where the file does not say it."""
    judge: str = ""
    """The signature of the judge, as in qa/spans.jsonl; "" where the file does not say it."""


@dataclass(kw_only=True)
class SegmentScores:
    """The scores of one metric, judge or group of people; a higher score is a better translation."""

    name: str
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    """system -> segment -> score, in the order of the file; segments without a score are left out."""
    severe: dict[tuple[str, str], bool] = field(default_factory=dict)
    """(system, segment) -> whether a rater marked a major or critical error; {} where the file has no errors."""
    spans: dict[tuple[str, str], list[Extent]] = field(default_factory=dict)
    """(system, segment) -> where its errors are; {} where the file does not say it."""
    documents: dict[str, str] = field(default_factory=dict)
    """segment -> its document, where the file says it."""
    n_repeated: int = 0
    """Ratings that were left out since another one is of the same segment."""
    n_rows: Counter[str] = field(default_factory=Counter)
    """system -> its segments in the file, with and without a score."""
    judge: str = ""
    """The signature of the judge, if the file says it."""
    named: bool = False
    """Whether the file names its segments; else they are known by their order."""


def name_scores(path: Path) -> str:
    """Name the scores of a file after it, without the endings that say what form it has."""
    name = path.name
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name


def read_segment_scores(path: str | Path) -> SegmentScores:
    """Read scores or ratings of segments.

    Args:
        path: WMT's `.seg.score` (a system, a tab, a score or None on each line; the n-th line of a system is its
            n-th segment) or `.seg.rating` (an object with `errors` instead of the score); a table that ends in .tsv,
            whose first line names its columns; or .jsonl. The columns or keys are `system`, `segment`, `score` and
            `document`, of which only the score is needed, or instead of it `errors`: a list of objects with a
            `severity` (neutral, minor, major, critical) and perhaps a `score`. Segments of a port may be named by
            `kind`, `id`, `field` and `segment` (a number), as in qa/segments.jsonl. Errors may have a `start` and an
            `end`, in characters, and `is_source_error`. A .csv is an export of Appraise. Any of them may end in .gz.

    Returns:
        The scores. Ratings by errors count as minus the sum of the errors' scores, or of MQM's weights.

    Raises:
        BadInput: A line cannot be read, a segment occurs twice, or no segment has a score.
    """
    path = Path(path)
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    read = SegmentScores(name=name_scores(path))
    if kind == ".csv":
        annotations, read.n_repeated = read_appraise(path)
        rows: Iterable[tuple[Place, _Row]] = [
            (position, _make_row(annotation._asdict(), position, "")) for position, annotation in annotations
        ]
    else:
        rows = _read_jsonl(path) if kind == ".jsonl" else _read_table(path) if kind == ".tsv" else _read_wmt(path)
    for position, row in rows:
        read.n_rows[row.system] += 1
        read.named |= row.segment is not None
        read.judge = read.judge or row.judge
        segment = row.segment if row.segment is not None else str(read.n_rows[row.system])
        scores = read.scores.setdefault(row.system, {})
        if segment in scores:
            raise BadInput(f"{position}: the segment {segment!r} of {row.system or 'the file'} occurs a second time.")
        if row.document is not None:
            read.documents[segment] = row.document
        if row.score is None:
            continue
        if not math.isfinite(row.score):
            raise BadInput(f"{position}: the score is {row.score}, which is not a number. Write None for no score.")
        scores[segment] = row.score
        if row.severe is not None:
            read.severe[row.system, segment] = row.severe
        if row.spans is not None:
            read.spans[row.system, segment] = row.spans
    if not any(read.scores.values()):
        raise BadInput(f"{path} has no score. {_FORMS}")
    return read


def read_documents(path: str | Path) -> list[str]:
    """Read the document of each segment, in order, as WMT's `.docs` has them: the last column of each line."""
    return [cells[-1] for _, cells in read_tsv(Path(path))]


def _read_wmt(path: Path) -> Iterator[tuple[Place, _Row]]:
    for position, cells in read_tsv(path):
        system, _, value = "\t".join(cells).partition("\t")
        if not value:
            raise BadInput(f"{position}: there is no score after a tab. {_FORMS}")
        if value.startswith("{"):
            yield position, _make_row(parse_json(value.encode(), str(position)), position, system)
        else:
            yield position, _Row(system, None, _parse_score(value, position), None, None)


def _read_table(path: Path) -> Iterator[tuple[Place, _Row]]:
    lines = read_tsv(path)
    header = next((cells for _, cells in lines), [])
    if "score" not in header:
        raise BadInput(f"{path} has no column 'score'. {_FORMS}")
    for position, cells in lines:
        if len(cells) != len(header):
            raise BadInput(
                f"{position}: the line has {len(cells)} cells, and the first line names {len(header)} columns."
            )
        row = dict(zip(header, cells, strict=True))
        score = _parse_score(row["score"], position)
        yield position, _Row(row.get("system", ""), _name_segment(row), score, None, row.get("document"))


def _read_jsonl(path: Path) -> Iterator[tuple[Place, _Row]]:
    for position, cells in read_tsv(path):
        yield position, _make_row(parse_json("\t".join(cells).encode(), str(position)), position, "")


def _make_row(record: Any, position: Place, system: str) -> _Row:
    if not isinstance(record, dict) or not record.keys() & {"score", "errors"}:
        raise BadInput(f"{position}: there is no 'score' and no 'errors'. {_FORMS}")
    document = record.get("document")
    errors, severe, spans = record.get("errors"), None, None
    score = _parse_score(record.get("score"), position)
    if errors is not None:
        if not isinstance(errors, list) or not all(isinstance(error, dict) for error in errors):
            raise BadInput(f"{position}: 'errors' is not a list of objects.")
        costs = [_weigh_error(error, position) for error in errors]
        score = -math.fsum(costs) if score is None else score
        severe = any(str(error.get("severity")).lower() in SEVERE for error in errors)
        # What costs nothing, such as an error of the source itself, is not an error of the translation.
        costly = [error for error, cost in zip(errors, costs, strict=True) if cost]
        spans = _find_extents(costly, position) if all("start" in error for error in errors) else None
    return _Row(
        str(record.get("system", system)), _name_segment(record), score, severe,
        None if document is None else str(document), spans, str(record.get("judge", "")),
    )  # fmt: skip


def _find_extents(errors: Sequence[Mapping[str, Any]], position: Place) -> list[Extent]:
    """Find where errors are; those without characters are left out."""
    extents = []
    for error in errors:
        start, end = error["start"], error.get("end")
        if start is None and end is None:
            extents.append(Extent(MISSING, 0, 1))
        elif not (type(start) is int and type(end) is int and start >= 0):
            raise BadInput(
                f"{position}: an error goes from {shorten(repr(start))} to {shorten(repr(end))}, not characters."
            )
        elif end > start:
            side = SOURCE if error.get("is_source_error") or error.get("in") == SOURCE else TRANSLATION
            extents.append(Extent(side, start, end))
    return extents


def _name_segment(record: Mapping[str, Any]) -> str | None:
    """The name of a segment; where the line has the id of a text, kind/id/field/segment, as far as it has these."""
    if record.get("segment") is None and record.get("id") is None:
        return None
    names = ("kind", "id", "field", "segment") if record.get("id") is not None else ("segment",)
    return "/".join(str(record[name]) for name in names if record.get(name) not in (None, ""))


def _weigh_error(error: Mapping[str, Any], position: Place) -> float:
    severity = str(error.get("severity")).lower()
    if severity not in WEIGHTS:
        raise BadInput(
            f"{position}: the severity of an error is {shorten(repr(error.get('severity')))}. It must be one of "
            f"{', '.join(WEIGHTS)}."
        )
    stated = error.get("score")
    return WEIGHTS[severity] if stated is None else abs(_parse_score(stated, position) or 0.0)


def _parse_score(value: Any, position: Place) -> float | None:
    if value is None or value in ("None", "", "null"):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"{position}: {shorten(repr(value))} is not a score. {_FORMS}") from None
