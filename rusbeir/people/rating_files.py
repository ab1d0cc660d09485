"""Ratings of translations by people: scores with marked errors, in the files of rusbeir, Pearmut, Appraise and WMT."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rusbeir.audit import (
    DAMAGED,
    MISSING,
    SEVERE,
    SOURCE,
    TRANSLATION,
    WEIGHTS,
    Extent,
    iterate_annotations,
    read_segment_scores,
)
from rusbeir.datasets import Place, open_file, parse_json, read_tsv
from rusbeir.errors import BadInput
from rusbeir.text import shorten

ENDINGS = (".jsonl", ".json", ".csv", ".tsv", ".score", ".rating", ".gz")
"""The endings of files of ratings; .csv is Appraise's export."""
HIGHEST = 100
"""The best score of ESA."""
_MQM_COLUMNS = ("system", "doc", "seg_id", "rater", "source", "target", "category", "severity")
_NO_ERROR = "no-error"
_NON_TRANSLATION = "non-translation"
_RESET = "__RESET__"
"""What Pearmut writes where a task is to be done again: what the rater did before does not count."""
_TAGS = re.compile("</?v>")


class MarkedSpan(NamedTuple):
    """An error that a rater marked."""

    extent: Extent
    severity: str
    words: str | None = None
    """What the rater marked; None where the file does not say it."""

    @property
    def cost(self) -> float:
        return WEIGHTS[self.severity]


class Rating(NamedTuple):
    """The rating of a text by a rater."""

    score: float | None
    """None where the rater has not given one yet."""
    spans: list[MarkedSpan] | None
    """None where the file does not say what errors there are."""
    mqm: float | None
    """Minus what the errors cost; None where they are not known."""
    major: bool | None
    """Whether there is a major or critical error; None where they are not known."""

    @classmethod
    def from_spans(cls, score: float | None, spans: list[MarkedSpan]) -> Rating:
        cost = sum(span.cost for span in spans)
        return cls(score, spans, -cost if cost else 0.0, any(span.severity in SEVERE for span in spans))


@dataclass
class Ratings:
    """The ratings of all files."""

    raters: dict[str, dict[str, Rating]] = field(default_factory=dict)
    """rater -> item -> rating."""
    checks: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Attention checks of Appraise: item -> the item that was damaged, "" if not known, as in the key of sheets."""
    repeats: dict[str, str] = field(default_factory=dict)
    """Repeated items of Appraise: item -> the item that is shown again, "" if not known."""
    n_doubles: int = 0
    """Ratings of a text by a rater that a later one of the same rater replaces."""
    documents: dict[tuple[str, str], Any] = field(default_factory=dict)
    """(rater, item) -> the number of Pearmut's document that it is in."""
    _times: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(self, rater: str, item: str, rating: Rating, time: float = 0.0) -> None:
        """Add a rating; of two by one rater of one text the later one counts, of equal times the one read last."""
        ratings = self.raters.setdefault(rater, {})
        self.n_doubles += item in ratings
        if item not in ratings or time >= self._times[rater, item]:
            ratings[item] = rating
            self._times[rater, item] = time

    def forget(self, rater: str, document: Any) -> None:
        """Remove what a rater said of a document of Pearmut, or of all where it is None."""
        ratings = self.raters.get(rater, {})
        for item in [item for item in ratings if document in (None, self.documents.get((rater, item)))]:
            del ratings[item]


def is_rating_file(path: Path) -> bool:
    """Return whether a file has ratings with errors, and is not a sheet with a column for each question."""
    name = path.name.lower().removesuffix(".gz")
    if not name.endswith((".csv", ".tsv")):
        return name.endswith(ENDINGS)
    with open_file(path) as file:
        head = file.readline(10_000).decode("utf-8-sig", errors="replace").strip().lower()
    if name.endswith(".tsv"):
        return {"severity", "category"} <= {*head.split("\t")} or {"score", "system"} <= {*head.split("\t")}
    return ",tgt," in head or ",bad," in head


def read_ratings(paths: Sequence[str | Path]) -> Ratings:
    """Read files of ratings: pages' downloads (.jsonl), Pearmut's logs and exports, Appraise's CSV, WMT's files.

    Files of one rater are merged text by text. Raises BadInput, with file and line, for what cannot be read, for scores
    outside the scale, and where no text has a rating.
    """
    ratings = Ratings()
    for path in map(Path, paths):
        name = path.name.lower().removesuffix(".gz")
        if name.endswith((".jsonl", ".json")):
            _read_json_lines(path, ratings)
        elif name.endswith(".csv"):
            _read_appraise(path, ratings)
        elif name.endswith(".tsv") and _is_mqm(path):
            _read_mqm(path, ratings)
        else:
            _read_scores(path, ratings)
    if not any(ratings.raters.values()):
        raise BadInput(f"{paths[0]} contains no ratings.")
    return ratings


def _read_json_lines(path: Path, ratings: Ratings) -> None:
    for position, row in _list_records(path):
        if isinstance(row, dict) and "user_id" in row:
            _add_pearmut(row, ratings, position)
        elif isinstance(row, dict) and {"rater", "item", "errors"} <= row.keys():
            _add_own(row, ratings, position)
        else:
            raise BadInput(
                f"{position}: this is not a rating. Give the file that a page of `rusbeir audit sheet --protocol esa` "
                "downloads, annotations of Pearmut, or sheets as .csv or .xlsx."
            )


def _list_records(path: Path) -> Iterator[tuple[Place, Any]]:
    """The records of a file of lines, or of an export of Pearmut: an object with a list for each campaign."""
    with open_file(path) as file:
        data = file.read()
    if path.name.lower().removesuffix(".gz").endswith(".json"):
        value = parse_json(data, str(path))
        lists = value.values() if isinstance(value, dict) else [value]
        for records in lists:
            for number, record in enumerate(records if isinstance(records, list) else [records], 1):
                yield Place(str(path), number), record
        return
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            yield Place(str(path), number), parse_json(line, f"{path}:{number}")


def _add_own(row: Mapping[str, Any], ratings: Ratings, position: Place) -> None:
    errors, time = row["errors"], row.get("time", 0)
    if not isinstance(errors, list) or not isinstance(time, int | float):
        raise BadInput(f"{position}: 'errors' is not a list, or 'time' is not a number.")
    spans = []
    for error in errors:
        if not isinstance(error, dict) or error.get("in") not in (SOURCE, TRANSLATION):
            raise BadInput(f"{position}: an error is not an object with 'in', which is {SOURCE} or {TRANSLATION}.")
        extent = _find_extent(error["in"], error.get("start"), error.get("end"), position)
        spans.append(MarkedSpan(extent, _read_severity(error.get("severity"), position), str(error.get("span", ""))))
    rating = Rating.from_spans(_read_score(row.get("score"), position), spans)
    ratings.add(str(row["rater"]), str(row["item"]), rating, float(time))


def _add_pearmut(row: Mapping[str, Any], ratings: Ratings, position: Place) -> None:
    """Add what a line of Pearmut says: an annotation for each segment of a document, by model."""
    annotations, items, rater = row.get("annotation"), row.get("item"), str(row["user_id"])
    if annotations == _RESET:
        ratings.forget(rater, row.get("item_i"))
        return
    annotations = [annotations] if isinstance(annotations, dict) else annotations
    items = items if isinstance(items, list) else [items or {}]
    if not isinstance(annotations, list) or len(items) not in (1, len(annotations)):
        raise BadInput(f"{position}: 'annotation' and 'item' of Pearmut are not lists of the same length.")
    for index, models in enumerate(annotations):
        item = items[index] if index < len(items) else {}
        if not isinstance(models, dict) or not isinstance(item, dict):
            raise BadInput(f"{position}: an annotation of Pearmut is not an object with a rating for each model.")
        segment = str(item.get("item_id", f"{row.get('item_i')}/{index}"))
        texts = item.get("tgt") if isinstance(item.get("tgt"), dict) else {}
        for model, answer in models.items():
            if not isinstance(answer, dict):
                raise BadInput(f"{position}: the rating of {model!r} is not an object.")
            score = _read_score(answer.get("score"), position)
            if score is None:
                continue
            name = segment if len(models) == 1 else f"{model}/{segment}"
            text = str(texts.get(model, "")) if texts else None
            ratings.add(rater, name, Rating.from_spans(score, _read_indices(answer, text, position)))
            ratings.documents[rater, name] = row.get("item_i")


def _read_indices(answer: Mapping[str, Any], text: str | None, position: Place) -> list[MarkedSpan]:
    """The errors of Pearmut, which have the index of the last character.

    What is marked behind the text is the mark for what is missing in the translation.
    """
    errors = answer.get("error_spans") or []
    if not isinstance(errors, list) or not all(isinstance(error, dict) for error in errors):
        raise BadInput(f"{position}: the errors are not a list of objects.")
    spans = []
    for error in errors:
        start, last = error.get("start_i"), error.get("end_i")
        severity = _read_severity(error.get("severity") or "minor", position)
        if not (type(start) is int and type(last) is int) or (text is not None and start >= len(text)):
            spans.append(MarkedSpan(Extent(MISSING, 0, 1), severity))
            continue
        end = last + 1 if text is None else min(last + 1, len(text))
        spans.append(MarkedSpan(_find_extent(TRANSLATION, start, end, position), severity))
    return spans


def _read_appraise(path: Path, ratings: Ratings) -> None:
    """Add the ratings of a file, and say which items are copies of which."""
    tasks: dict[tuple[str, str, str], dict[str, dict[str, str]]] = {}
    for position, annotation in iterate_annotations(path):
        spans = [
            MarkedSpan(
                Extent(MISSING, 0, 1)
                if error["start"] is None
                else _find_extent(TRANSLATION, error["start"], error["end"], position),
                _read_severity(error["severity"], position),
            )
            for error in annotation.errors
        ]
        rating = Rating.from_spans(_read_score(annotation.score, position), spans)
        ratings.add(annotation.rater, annotation.segment, rating)
        task = tasks.setdefault((annotation.rater, annotation.document, annotation.system), {})
        task.setdefault(annotation.copy, {})[annotation.number] = annotation.segment
    for task in tasks.values():
        items = {copy: [segments[n] for n in sorted(segments, key=_sort_numbers)] for copy, segments in task.items()}
        first = items.pop("", [])
        for copy, copies in items.items():
            # A copy of a part, or of a text that was not shown itself, is known to be one, and compared with nothing.
            pairs = dict(zip(copies, first, strict=True)) if len(copies) == len(first) else dict.fromkeys(copies, "")
            if copy.startswith(DAMAGED):
                ratings.checks |= {item: {"of": original, "start": 0, "end": 0} for item, original in pairs.items()}
            else:
                ratings.repeats |= pairs


def _sort_numbers(number: str) -> tuple[int, str]:
    return len(number), number


def _is_mqm(path: Path) -> bool:
    header = next((cells for _, cells in read_tsv(path)), [])
    return {"severity", "category"} <= {*header}


def _read_mqm(path: Path, ratings: Ratings) -> None:
    """WMT's table of MQM: a line for each error, which <v> and </v> mark in the source or the target."""
    lines = read_tsv(path)
    header = next(cells for _, cells in lines)
    if missing := [name for name in _MQM_COLUMNS if name not in header]:
        raise BadInput(f"{path} has no column {missing[0]!r}. WMT's MQM has the columns {', '.join(_MQM_COLUMNS)}.")
    spans: dict[tuple[str, str], list[MarkedSpan]] = {}
    costs: dict[tuple[str, str], float] = {}
    for position, cells in lines:
        if len(cells) != len(header):
            raise BadInput(f"{position}: the line has {len(cells)} cells, and the first one {len(header)}.")
        row = dict(zip(header, cells, strict=True))
        item = f"{row['doc']}/{row['seg_id']}/{row['system']}"
        marked = spans.setdefault((row["rater"], item), [])
        if row["severity"].lower() == _NO_ERROR or row["category"].lower() == _NO_ERROR:
            continue
        severity = _read_severity(row["severity"], position)
        if row["category"].lower().startswith(_NON_TRANSLATION):
            severity = "critical"
        if severity == "minor" and "punctuation" in row["category"].lower():
            costs[row["rater"], item] = costs.get((row["rater"], item), 0.0) - 0.9
        marked.append(MarkedSpan(_find_tagged(row), severity))
    for (rater, item), marked in spans.items():
        rating = Rating.from_spans(None, marked)
        mqm = -sum(span.cost for span in marked) - costs.get((rater, item), 0.0)
        ratings.add(rater, item, rating._replace(mqm=mqm or 0.0))


def _find_tagged(row: Mapping[str, str]) -> Extent:
    for side, column in ((TRANSLATION, "target"), (SOURCE, "source")):
        before, tag, rest = row[column].partition("<v>")
        if tag:
            words = rest.partition("</v>")[0]
            start = len(_TAGS.sub("", before))
            return Extent(side, start, max(start + len(words), start + 1))
    return Extent(MISSING, 0, 1)


def _read_scores(path: Path, ratings: Ratings) -> None:
    """A file of scores by one rater, or by a group of them: the name of the file is the rater."""
    scores = read_segment_scores(path)
    for system, by_segment in scores.scores.items():
        for segment, score in by_segment.items():
            item = f"{system}/{segment}" if system else segment
            extents = scores.spans.get((system, segment))
            spans = None if extents is None else [MarkedSpan(extent, "minor") for extent in extents]
            ratings.add(scores.name, item, Rating(score, spans, None, scores.severe.get((system, segment))))


def _find_extent(side: str, start: Any, end: Any, position: Place) -> Extent:
    if not (type(start) is int and type(end) is int and 0 <= start < end):
        raise BadInput(
            f"{position}: an error goes from {shorten(repr(start))} to {shorten(repr(end))}, which are not characters."
        )
    return Extent(side, start, end)


def _read_severity(value: Any, position: Place) -> str:
    severity = str(value).lower()
    if severity not in WEIGHTS:
        raise BadInput(
            f"{position}: the severity of an error is {shorten(repr(value))}. It must be one of {', '.join(WEIGHTS)}."
        )
    return severity


def _read_score(value: Any, position: Place) -> float | None:
    if value is None or value == "":
        return None
    try:
        score = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        score = float("nan")
    if not 0 <= score <= HIGHEST:
        raise BadInput(f"{position}: the score is {shorten(repr(value))}. It must be a number from 0 to {HIGHEST}.")
    return score
