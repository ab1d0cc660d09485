"""How far people agree with each other, with themselves and with a model: on translations, on labels of relevance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from rusbeir import __version__
from rusbeir.people.judge import JUDGE, Scores, read_verdicts
from rusbeir.people.labels import estimate_shares, list_contradicted
from rusbeir.people.raters import (
    WeightedSample,
    compare_raters,
    compute_alpha,
    estimate_port_mean,
    has_weights,
    read_sample,
)
from rusbeir.people.sheet_files import Form
from rusbeir.people.sheets import read_people

PEOPLE = "people"
"""All raters but the judge, in means that are weighted to the port."""
MAX_DISAGREEMENTS = 50
_DISAGREEMENT_POINTS = 2
"""The smallest difference between two scores that is listed as a disagreement."""


def agree(sheets: Sequence[str | Path], *, port: str | Path | None = None, seed: int = 0) -> dict[str, Any]:
    """Measure how far raters agree on each question, also with a judge, and their means for the port.

    Args:
        sheets: Filled sheets of one sample.
        port: The folder that the sheets were made of. The key of the sheets is read from it, else from the folder of
            the first sheet, and texts that have changed since are left out. Without a key, repeated texts cannot be
            recognised and count as further texts, and no mean is weighted.
        seed: Seed of the resamples.

    Returns:
        The report (docs/json.md). The judge is that of the port; for labels it is the model whose labels the key
        has, and `shares` and `contradicted` are added (rusbeir.people.labels).

    Raises:
        BadInput: A sheet cannot be read, or the sheets are of different samples.
    """
    form, key, answers, unanswered, n_changed = read_people(sheets, port)
    twice: Mapping[str, str] = key.get("duplicates", {})
    again = {name: _repeated(scores, twice) for name, scores in answers.items()}
    people = {
        name: {item: row for item, row in scores.items() if row and item not in twice}
        for name, scores in answers.items()
    }
    items: Mapping[str, Any] = key.get("items", {})
    judge: Scores = {}
    n_judge_changed = 0
    if "strata" in key:
        judge = {item: {form.questions[0]: about["label"]} for item, about in items.items()}
    elif port is not None:
        judge, n_judge_changed = read_verdicts(Path(port))
    raters = {**people, JUDGE: judge} if judge else people
    topics = {item: about.get("query_id", item) for item, about in items.items()}
    measurement = _Measurement(form, topics, seed)
    sample = read_sample(items) if has_weights(items) else None
    report = {
        "version": __version__,
        "raters": {name: len(scores) for name, scores in raters.items()},
        "texts": len({item for scores in people.values() for item in scores}),
        "changed": {PEOPLE: n_changed, JUDGE: n_judge_changed},
        "unanswered": unanswered,
        "dimensions": {
            name: {
                "pairs": [
                    {"raters": [first, second], **agreement}
                    for first, second in combinations(raters, 2)
                    if (agreement := measurement.compare(raters[first], raters[second], name))
                ],
                "alpha": measurement.compute_alpha(list(people.values()), name),
                "alpha_with_judge": measurement.compute_alpha(list(raters.values()), name) if judge else None,
                "means": {rater: mean for rater, scores in raters.items() if (mean := _mean(scores, name)) is not None},
                "port": {} if sample is None else _weight(people, judge, name, sample, form),
                "self": {
                    rater: agreement
                    for rater, (first, second) in again.items()
                    if (agreement := measurement.compare(first, second, name))
                },
            }
            for name in form.questions
        },
        "disagreements": _disagreements(raters, form.questions, key),
    }
    if "strata" not in key:
        return report
    labels = {rater: {item: row[form.questions[0]] for item, row in scores.items()} for rater, scores in people.items()}
    return {**report, "shares": estimate_shares(labels, key), "contradicted": list_contradicted(labels, key)}


@dataclass(frozen=True)
class _Measurement:
    form: Form
    topics: Mapping[str, str]
    """item -> the topic that it shares with items that depend on it; an item that is not listed is its own topic."""
    seed: int

    def compare(self, first: Scores, second: Scores, name: str) -> dict[str, Any]:
        """The agreement of two raters on a question; {} where they have no answer in common."""
        items = [item for item in first if item in second and name in first[item] and name in second[item]]
        agreement = compare_raters(
            [first[item][name] for item in items],
            [second[item][name] for item in items],
            self.form.scale,
            self._topics_of(items),
            seed=self.seed,
        )
        return agreement._asdict() if agreement else {}

    def compute_alpha(self, raters: Sequence[Scores], name: str) -> dict[str, Any] | None:
        if len(raters) < 2:
            return None
        items = sorted({item for scores in raters for item in scores})
        table = [[scores.get(item, {}).get(name) for item in items] for scores in raters]
        return compute_alpha(table, self.form.scale, self._topics_of(items), seed=self.seed)._asdict()

    def _topics_of(self, items: Sequence[str]) -> list[str]:
        return [self.topics.get(item, item) for item in items]


def _repeated(scores: Scores, twice: Mapping[str, str]) -> tuple[Scores, Scores]:
    """A rater's scores of the repeated texts: the first time, and the second time."""
    pairs = [(first, again) for again, first in twice.items() if first in scores and again in scores]
    return {first: scores[first] for first, _ in pairs}, {first: scores[again] for first, again in pairs}


def _weight(
    people: Mapping[str, Scores], judge: Scores, name: str, sample: WeightedSample, form: Form
) -> dict[str, dict[str, Any]]:
    """The means of all people and of the judge, weighted to the port; a text counts by its mean over people."""
    by_item: dict[str, list[int]] = {}
    for scores in people.values():
        for item, row in scores.items():
            if name in row:
                by_item.setdefault(item, []).append(row[name])
    of_people = {item: sum(scores) / len(scores) for item, scores in by_item.items()}
    of_judge = {item: float(row[name]) for item, row in judge.items() if name in row}
    means = {
        who: estimate_port_mean(scores, sample, form.scale) for who, scores in ((PEOPLE, of_people), (JUDGE, of_judge))
    }
    return {who: mean._asdict() for who, mean in means.items() if mean is not None}


def _mean(scores: Scores, name: str) -> float | None:
    answers = [row[name] for row in scores.values() if name in row]
    return sum(answers) / len(answers) if answers else None


def _disagreements(
    raters: Mapping[str, Scores], questions: Sequence[str], key: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The texts whose scores differ by two or more points, largest differences first."""
    rows = []
    for item in sorted({item for scores in raters.values() for item in scores}):
        for name in questions:
            by_rater = {rater: row[name] for rater, scores in raters.items() if name in (row := scores.get(item, {}))}
            if by_rater and (apart := max(by_rater.values()) - min(by_rater.values())) >= _DISAGREEMENT_POINTS:
                about = key.get("items", {}).get(item, {})
                text = {field: about[field] for field in ("kind", "id") if field in about}
                rows.append({"item": item, **text, "dimension": name, "apart": apart, "scores": by_rater})
    return sorted(rows, key=lambda row: -row["apart"])[:MAX_DISAGREEMENTS]
