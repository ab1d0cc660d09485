"""Filled sheets compared: people with each other, with themselves, and with a judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import orjson

from rusbeir import __version__
from rusbeir.audit.agreement import agreement, alpha
from rusbeir.audit.check import QA
from rusbeir.audit.filled import Sheet, read_sheet
from rusbeir.audit.judge import VERDICTS
from rusbeir.audit.rubric import DIMENSIONS
from rusbeir.audit.sheets import FOLDER, KEY
from rusbeir.errors import BadInput

JUDGE = "judge"
DISAGREEMENTS = 50
_FAR = 2
"""Points between two scores from which on they disagree."""

Scores = Mapping[str, Mapping[str, int]]


def agree(sheets: Sequence[str | Path], *, port: str | Path | None = None, seed: int = 0) -> dict[str, Any]:
    """How the raters agree, dimension by dimension; with the port of the sheets, also with its judge.

    The key of the sheets is looked for in the port, else beside the first sheet; without it, texts that came twice
    are not told apart. The seed draws the bootstraps. Raises BadInput for what read_sheet refuses, and where two
    sheets share no scored text.
    """
    key = _key(Path(port) / QA / FOLDER / KEY if port is not None else Path(sheets[0]).with_name(KEY), port is not None)
    twice: dict[str, str] = key.get("duplicates", {})
    known = [*key["items"], *twice] if key else None
    read = [read_sheet(path, known) for path in sheets]
    people = _named(read)
    for (one, first), (other, second) in combinations(people.items(), 2):
        if not any(first[item].keys() & second[item].keys() for item in first.keys() & second.keys()):
            raise BadInput(f"{one} and {other} share no scored text: are they sheets of the same sample?")
    again = {name: _taken(scores, twice) for name, scores in people.items()}
    people = {name: {item: row for item, row in scores.items() if item not in twice} for name, scores in people.items()}
    judge = _verdicts(Path(port) / QA / VERDICTS) if port is not None else {}
    raters = {**people, JUDGE: judge} if judge else people
    return {
        "version": __version__,
        "raters": {name: len(scores) for name, scores in raters.items()},
        "dimensions": {
            name: {
                "pairs": [
                    {"raters": [one, other], **found}
                    for one, other in combinations(raters, 2)
                    if (found := _pair(raters[one], raters[other], name))
                ],
                "alpha": _alpha(list(people.values()), name, seed),
                "alpha_with_judge": _alpha(list(raters.values()), name, seed) if judge else None,
                "means": {rater: mean for rater, scores in raters.items() if (mean := _mean(scores, name)) is not None},
                "self": {
                    rater: found for rater, (first, second) in again.items() if (found := _pair(first, second, name))
                },
            }
            for name in DIMENSIONS
        },
        "disagreements": _disagreements(raters, key),
    }


def _key(path: Path, needed: bool) -> dict[str, Any]:
    if not path.exists():
        if needed:
            raise BadInput(f"{path} is missing: `rusbeir audit sheet` writes it with the sheets.")
        return {}
    key: dict[str, Any] = orjson.loads(path.read_bytes())
    return key


def _named(sheets: Sequence[Sheet]) -> dict[str, Scores]:
    """The sheets' scores by the names of their files, by their paths where two have one name."""
    names = [sheet.name for sheet in sheets]
    found: dict[str, Scores] = {}
    for sheet in sheets:
        name = sheet.name if names.count(sheet.name) == 1 and sheet.name != JUDGE else str(sheet.path)
        if name in found:
            raise BadInput(f"{sheet.path} is given twice.")
        found[name] = sheet.scores
    return found


def _taken(scores: Scores, twice: Mapping[str, str]) -> tuple[Scores, Scores]:
    """The scores of texts that came twice: the first time, and the second."""
    pairs = [(first, again) for again, first in twice.items() if first in scores and again in scores]
    return {first: scores[first] for first, _ in pairs}, {first: scores[again] for first, again in pairs}


def _verdicts(path: Path) -> Scores:
    if not path.exists():
        return {}
    rows = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    return {row["item"]: {name: row["scores"][name] for name in DIMENSIONS} for row in rows if row["scores"]}


def _pair(first: Scores, second: Scores, name: str) -> dict[str, Any]:
    """The agreement of two on a dimension; {} where they share nothing there."""
    items = [item for item in first if item in second and name in first[item] and name in second[item]]
    found = agreement([first[item][name] for item in items], [second[item][name] for item in items])
    return found._asdict() if found else {}


def _alpha(raters: Sequence[Scores], name: str, seed: int) -> dict[str, Any] | None:
    if len(raters) < 2:
        return None
    items = sorted({item for scores in raters for item in scores})
    return alpha([[scores.get(item, {}).get(name) for item in items] for scores in raters], seed=seed)._asdict()


def _mean(scores: Scores, name: str) -> float | None:
    found = [row[name] for row in scores.values() if name in row]
    return sum(found) / len(found) if found else None


def _disagreements(raters: Mapping[str, Scores], key: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Where scores lie two points apart or more, the farthest first."""
    rows = []
    for item in sorted({item for scores in raters.values() for item in scores}):
        for name in DIMENSIONS:
            given = {rater: row[name] for rater, scores in raters.items() if name in (row := scores.get(item, {}))}
            if given and (apart := max(given.values()) - min(given.values())) >= _FAR:
                about = key.get("items", {}).get(item, {})
                text = {field: about[field] for field in ("kind", "id") if field in about}
                rows.append({"item": item, **text, "dimension": name, "apart": apart, "scores": given})
    return sorted(rows, key=lambda row: -row["apart"])[:DISAGREEMENTS]
