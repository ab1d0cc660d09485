"""Annotations as Appraise exports them: a CSV line for each segment that a rater scored, with marked errors."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rusbeir.datasets import Place, parse_json, read_tsv
from rusbeir.errors import BadInput

_COLUMNS = 12
"""Rater, system, item, type, two languages, score, document#system, a flag, errors, and two times."""
_SCORED, _DAMAGED = "TGT", "BAD"
"""The types of items that raters have scored: translations, and damaged copies of them, as attention checks."""
DAMAGED = "bad"
"""What the copy of an attention check begins with."""
_UNDECIDED = "undecided"


class Annotation(NamedTuple):
    """One line: what a rater said of a segment."""

    rater: str
    system: str
    segment: str
    """Its name: document, system, copy and number."""
    document: str
    score: str
    """From 0 to 100."""
    errors: list[dict[str, Any]]
    """WMT's keys: severity, start and end (after the last character), both None for what the translation lacks."""
    copy: str
    """Which copy of the document it is in: "" for the document itself, "bad1" for a damaged one, "duplicate1"."""
    number: str
    """Its number in the rater's task."""


def iterate_annotations(path: Path) -> Iterator[tuple[Place, Annotation]]:
    """Yield the annotations of a file, those of copies included, in their order; tutorials are left out.

    Raises BadInput for a line that Appraise does not write.
    """
    for position, columns in read_tsv(path):
        try:
            cells = next(csv.reader(io.StringIO("\t".join(columns))), [])
        except csv.Error as error:
            raise BadInput(f"{position}: this is not a line of CSV ({error}).") from error
        if len(cells) != _COLUMNS:
            raise BadInput(f"{position}: the line has {len(cells)} cells; an export of Appraise has {_COLUMNS}.")
        rater, _, number, kind, _, _, score, name, _, marked, *_ = cells
        document, mark, system = name.partition("#")
        if kind not in (_SCORED, _DAMAGED) or not mark:
            continue
        errors = parse_json((marked or "[]").encode(), str(position))
        if not isinstance(errors, list) or not all(isinstance(error, dict) for error in errors):
            raise BadInput(f"{position}: the errors are not a list of objects.")
        system, _, copy = system.partition("#")
        if kind == _DAMAGED and not copy.startswith(DAMAGED):
            copy = DAMAGED
        converted = [_convert(error) for error in errors]
        yield position, Annotation(rater, system, f"{name}/{number}", document, score, converted, copy, number)


def read_appraise(path: Path) -> tuple[list[tuple[Place, Annotation]], int]:
    """The annotations, and how many were left out since another one is of the same segment: the last one counts.

    Attention checks do not count. A segment is named by its document, its system and its number, which are the same in
    another campaign of the same tasks; which segments of two systems have the same source is not known. Raises BadInput
    for a line that Appraise does not write.
    """
    n_lines = 0
    annotations: dict[str, tuple[Place, Annotation]] = {}
    for position, annotation in iterate_annotations(path):
        n_lines += not annotation.copy.startswith(DAMAGED)
        if not annotation.copy:
            annotations[annotation.segment] = position, annotation
    return list(annotations.values()), n_lines - len(annotations)


def _convert(error: dict[str, Any]) -> dict[str, Any]:
    """The error with the end before which it ends, where Appraise has its last character.

    A rater who marked an error and chose no severity has left it undecided: it counts as minor.
    """
    start, last = error.get("start_i"), error.get("end_i")
    if not (isinstance(start, int) and isinstance(last, int)):
        # The mark for what is missing in the translation.
        start, last = None, None
    return {
        "severity": "minor" if error.get("severity") == _UNDECIDED else error.get("severity"),
        "category": error.get("error_type"),
        "start": start,
        "end": None if last is None else last + 1,
    }
