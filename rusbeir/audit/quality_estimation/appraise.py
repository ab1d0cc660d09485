"""Annotations as Appraise exports them: a CSV line for each segment that a rater scored, with marked errors."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any, NamedTuple

from rusbeir.datasets import Place, parse_json, read_tsv
from rusbeir.errors import BadInput

_COLUMNS = 12
"""Rater, system, item, type, two languages, score, document#system, a flag, errors, and two times."""
_SCORED = "TGT"
"""The type of items that count; others are attention checks."""
_UNDECIDED = "undecided"


class Annotation(NamedTuple):
    """One line: the system, the names of the segment and its document, the score from 0 to 100, and the errors."""

    system: str
    segment: str
    document: str
    score: str
    errors: list[dict[str, Any]]
    """WMT's keys: severity, start and end (after the last character), both None for what the translation lacks."""


def read_appraise(path: Path) -> tuple[list[tuple[Place, Annotation]], int]:
    """The annotations, and how many were left out since another one is of the same segment: the last one counts.

    Attention checks and tutorials do not count. A segment is named by its document, its system and its item, which are
    the same in another campaign of the same tasks; which segments of two systems have the same source is not known.
    Raises BadInput for a line that Appraise does not write.
    """
    n_lines = 0
    annotations: dict[tuple[str, str, str], tuple[Place, Annotation]] = {}
    for position, columns in read_tsv(path):
        cells = next(csv.reader(io.StringIO("\t".join(columns))), [])
        if len(cells) != _COLUMNS:
            raise BadInput(f"{position}: the line has {len(cells)} cells; an export of Appraise has {_COLUMNS}.")
        document, mark, system = cells[7].partition("#")
        if cells[3] != _SCORED or not mark:
            continue
        errors = parse_json((cells[9] or "[]").encode(), str(position))
        if not isinstance(errors, list) or not all(isinstance(error, dict) for error in errors):
            raise BadInput(f"{position}: the errors are not a list of objects.")
        n_lines += 1
        system, repeated, _ = system.partition("#")
        if repeated:
            # The same translation again, to see whether a rater agrees with themselves.
            continue
        segment = f"{cells[7]}/{cells[2]}"
        annotation = Annotation(system, segment, document, cells[6], [_convert(error) for error in errors])
        annotations[system, document, segment] = position, annotation
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
