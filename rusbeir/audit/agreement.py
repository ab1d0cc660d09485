"""How far human raters and a judge agree on scores from 1 to 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rusbeir import __version__
from rusbeir.audit.aligned import QA
from rusbeir.audit.judge import DIMENSIONS, SCALE, VERDICTS
from rusbeir.audit.sheets import FOLDER, KEY, Sheet, read_sheet
from rusbeir.datasets.formats.records import read_json, read_jsonl
from rusbeir.errors import BadInput, require

BOOTSTRAPS = 1000
_INTERVAL = (2.5, 97.5)
"""Percentiles of the bootstrapped values that bound the interval."""


class Agreement(NamedTuple):
    """The agreement of two raters on the texts that both have scored."""

    n: int
    within_one: float
    """The share of scores that differ by 1 or not at all."""
    mean_absolute_error: float
    kappa: float | None
    """Cohen's κ with quadratic weights; None where both have given the same single score to every text."""


class Alpha(NamedTuple):
    """Krippendorff's α for ordinal scores of any number of raters."""

    value: float | None
    """None where no text has two scores, or where all scores are the same, so that α is undefined."""
    low: float | None
    high: float | None
    """The bounds of the 95 % interval, bootstrapped over texts; None where value is None."""
    n: int
    """The number of texts with two or more scores."""


def compare_raters(first: Sequence[int], second: Sequence[int]) -> Agreement | None:
    """The agreement of two raters' scores of the same texts; None where there are no scores.

    >>> compare_raters([1, 2, 5], [1, 3, 2]).within_one
    0.6666666666666666
    """
    if not first:
        return None
    differences = np.abs(np.array(first) - np.array(second))
    return Agreement(
        len(first), float((differences <= 1).mean()), float(differences.mean()), quadratic_kappa(first, second)
    )


def quadratic_kappa(first: Sequence[int], second: Sequence[int]) -> float | None:
    """Cohen's κ weighted by the squared difference (Cohen 1968); None where chance predicts no disagreement."""
    observed = np.zeros((len(SCALE), len(SCALE)))
    np.add.at(observed, (np.array(first) - SCALE[0], np.array(second) - SCALE[0]), 1)
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / observed.sum()
    places = np.arange(len(SCALE))
    weights = (places[:, None] - places[None, :]) ** 2
    below = float((weights * expected).sum())
    return None if below == 0 else 1 - float((weights * observed).sum()) / below


def compute_alpha(scores: Sequence[Sequence[int | None]], *, bootstraps: int = BOOTSTRAPS, seed: int = 0) -> Alpha:
    """Krippendorff's α of scores[rater][text], where None stands for no score. The seed draws the bootstraps."""
    counts = np.zeros((len(scores[0]) if scores else 0, len(SCALE)), dtype=np.int64)
    for row in scores:
        for text, score in enumerate(row):
            if score is not None:
                counts[text, score - SCALE[0]] += 1
    # A text with a single score says nothing about agreement.
    counts = counts[counts.sum(axis=1) >= 2]
    value = _krippendorff_alpha(counts)
    if value is None:
        return Alpha(None, None, None, len(counts))
    draw = np.random.default_rng(seed)
    drawn = [_krippendorff_alpha(counts[draw.integers(len(counts), size=len(counts))]) for _ in range(bootstraps)]
    found = [one for one in drawn if one is not None]
    low, high = np.percentile(found, _INTERVAL).tolist() if found else (None, None)
    return Alpha(value, low, high, len(counts))


def _krippendorff_alpha(counts: NDArray[np.int64]) -> float | None:
    if np.count_nonzero(counts.sum(axis=0)) < 2:
        return None
    package = require("krippendorff", "Agreement", "audit")
    value: Any = package.alpha(value_counts=counts, value_domain=list(SCALE), level_of_measurement="ordinal")
    return float(value)


JUDGE = "judge"
MAX_DISAGREEMENTS = 50
_DISAGREEMENT_POINTS = 2
"""The smallest difference between two scores that is listed as a disagreement."""

Scores = Mapping[str, Mapping[str, int]]


def agree(sheets: Sequence[str | Path], *, port: str | Path | None = None, seed: int = 0) -> dict[str, Any]:
    """The agreement of the raters by dimension; where the port of the sheets is given, also with its judge.

    The key of the sheets is read from the port, else from the folder of the first sheet; without a key, repeated
    texts cannot be recognised and count as further texts. The seed draws the bootstraps. Raises BadInput for sheets
    that read_sheet refuses, and where two sheets have no scored text in common.
    """
    key = _read_key(
        Path(port) / QA / FOLDER / KEY if port is not None else Path(sheets[0]).with_name(KEY), port is not None
    )
    twice: dict[str, str] = key.get("duplicates", {})
    known = [*key["items"], *twice] if key else None
    read = [read_sheet(path, known) for path in sheets]
    people = _scores_by_rater(read)
    for (one, first), (other, second) in combinations(people.items(), 2):
        if not any(first[item].keys() & second[item].keys() for item in first.keys() & second.keys()):
            raise BadInput(f"{one} and {other} have no scored text in common. Give sheets of the same sample.")
    again = {name: _repeated(scores, twice) for name, scores in people.items()}
    people = {name: {item: row for item, row in scores.items() if item not in twice} for name, scores in people.items()}
    judge = _read_verdicts(Path(port) / QA / VERDICTS) if port is not None else {}
    raters = {**people, JUDGE: judge} if judge else people
    return {
        "version": __version__,
        "raters": {name: len(scores) for name, scores in raters.items()},
        "dimensions": {
            name: {
                "pairs": [
                    {"raters": [one, other], **found}
                    for one, other in combinations(raters, 2)
                    if (found := _compare(raters[one], raters[other], name))
                ],
                "alpha": _compute_alpha(list(people.values()), name, seed),
                "alpha_with_judge": _compute_alpha(list(raters.values()), name, seed) if judge else None,
                "means": {rater: mean for rater, scores in raters.items() if (mean := _mean(scores, name)) is not None},
                "self": {
                    rater: found for rater, (first, second) in again.items() if (found := _compare(first, second, name))
                },
            }
            for name in DIMENSIONS
        },
        "disagreements": _disagreements(raters, key),
    }


def _read_key(path: Path, needed: bool) -> dict[str, Any]:
    if not path.exists():
        if needed:
            raise BadInput(
                f"{path} does not exist. `rusbeir audit sheet` writes it together with the sheets; give their port."
            )
        return {}
    shape = {"items": {str: {"kind?": str, "id?": str}}, "duplicates?": {str: str}}
    key: dict[str, Any] = read_json(path, shape, "Restore the file that `rusbeir audit sheet` wrote with the sheets.")
    return key


def _scores_by_rater(sheets: Sequence[Sheet]) -> dict[str, Scores]:
    """The scores of each sheet by the name of its file; by its path where two files have the same name."""
    names = [sheet.name for sheet in sheets]
    found: dict[str, Scores] = {}
    for sheet in sheets:
        name = sheet.name if names.count(sheet.name) == 1 and sheet.name != JUDGE else str(sheet.path)
        if name in found:
            raise BadInput(f"{sheet.path} was given twice. Give each sheet once.")
        found[name] = sheet.scores
    return found


def _repeated(scores: Scores, twice: Mapping[str, str]) -> tuple[Scores, Scores]:
    """A rater's scores of the repeated texts: the first time, and the second time."""
    pairs = [(first, again) for again, first in twice.items() if first in scores and again in scores]
    return {first: scores[first] for first, _ in pairs}, {first: scores[again] for first, again in pairs}


def _read_verdicts(path: Path) -> Scores:
    if not path.exists():
        return {}
    shape = {"item": str, "scores": ({name: {*SCALE} for name in DIMENSIONS}, None)}
    rows = read_jsonl(path, shape, "Run `rusbeir audit judge` again; answers that it has are not paid for twice.")
    return {row["item"]: {name: row["scores"][name] for name in DIMENSIONS} for row in rows if row["scores"]}


def _compare(first: Scores, second: Scores, name: str) -> dict[str, Any]:
    """The agreement of two raters on a dimension; {} where they have no score in common."""
    items = [item for item in first if item in second and name in first[item] and name in second[item]]
    found = compare_raters([first[item][name] for item in items], [second[item][name] for item in items])
    return found._asdict() if found else {}


def _compute_alpha(raters: Sequence[Scores], name: str, seed: int) -> dict[str, Any] | None:
    if len(raters) < 2:
        return None
    items = sorted({item for scores in raters for item in scores})
    return compute_alpha([[scores.get(item, {}).get(name) for item in items] for scores in raters], seed=seed)._asdict()


def _mean(scores: Scores, name: str) -> float | None:
    found = [row[name] for row in scores.values() if name in row]
    return sum(found) / len(found) if found else None


def _disagreements(raters: Mapping[str, Scores], key: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The texts whose scores differ by two or more points, largest differences first."""
    rows = []
    for item in sorted({item for scores in raters.values() for item in scores}):
        for name in DIMENSIONS:
            given = {rater: row[name] for rater, scores in raters.items() if name in (row := scores.get(item, {}))}
            if given and (apart := max(given.values()) - min(given.values())) >= _DISAGREEMENT_POINTS:
                about = key.get("items", {}).get(item, {})
                text = {field: about[field] for field in ("kind", "id") if field in about}
                rows.append({"item": item, **text, "dimension": name, "apart": apart, "scores": given})
    return sorted(rows, key=lambda row: -row["apart"])[:MAX_DISAGREEMENTS]
