"""How far people agree with each other, with themselves and with a model: on translations, on labels of relevance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from rusbeir import __version__
from rusbeir.audit.aligned import QA
from rusbeir.audit.judge import DIMENSIONS, SCALE, VERDICTS
from rusbeir.audit.label_agreement import LABELS_KEY, estimate_shares, list_contradicted
from rusbeir.audit.raters import compare_raters, compute_alpha
from rusbeir.audit.sheet_files import Form, Sheet, read_sheet
from rusbeir.audit.sheets import FOLDER, FORMS, KEY
from rusbeir.datasets.formats.records import read_json, read_jsonl
from rusbeir.errors import BadInput

JUDGE = "judge"
MAX_DISAGREEMENTS = 50
_DISAGREEMENT_POINTS = 2
"""The smallest difference between two scores that is listed as a disagreement."""

Scores = Mapping[str, Mapping[str, int]]
"""item id -> question -> answer."""


def agree(sheets: Sequence[str | Path], *, port: str | Path | None = None, seed: int = 0) -> dict[str, Any]:
    """The agreement of the raters by question, also with a judge where there is one.

    port is the folder that the sheets were made of: the key of the sheets is read from it, else from the folder of the
    first sheet. Without a key, repeated texts cannot be recognised and count as further texts. The judge is that of
    the port, where it is given; of labels it is the model that the key names the labels of, and `shares` and
    `contradicted` are added (rusbeir.audit.label_agreement). The seed draws the resamples. Raises BadInput for sheets
    that read_sheet refuses, and where two sheets have no scored text in common.
    """
    key = _read_key(
        Path(port) / QA / FOLDER / KEY if port is not None else Path(sheets[0]).with_name(KEY), port is not None
    )
    twice: dict[str, str] = key.get("duplicates", {})
    known = [*key["items"], *twice] if key else None
    read = [read_sheet(path, FORMS, known) for path in sheets]
    form = read[0].form
    if differ := [sheet.path for sheet in read if sheet.form != form]:
        raise BadInput(f"{read[0].path} and {differ[0]} ask different questions. Give sheets of the same sample.")
    people = _scores_by_rater(read)
    for (one, first), (other, second) in combinations(people.items(), 2):
        if not any(first[item].keys() & second[item].keys() for item in first.keys() & second.keys()):
            raise BadInput(f"{one} and {other} have no scored text in common. Give sheets of the same sample.")
    again = {name: _repeated(scores, twice) for name, scores in people.items()}
    people = {name: {item: row for item, row in scores.items() if item not in twice} for name, scores in people.items()}
    judge: Scores = {}
    if "strata" in key:
        judge = {item: {form.questions[0]: about["label"]} for item, about in key["items"].items()}
    elif port is not None:
        judge = read_verdicts(Path(port) / QA / VERDICTS)
    raters = {**people, JUDGE: judge} if judge else people
    topics = {item: about.get("query_id", item) for item, about in key.get("items", {}).items()}
    measurement = _Measurement(form, topics, seed)
    report = {
        "version": __version__,
        "raters": {name: len(scores) for name, scores in raters.items()},
        "dimensions": {
            name: {
                "pairs": [
                    {"raters": [one, other], **found}
                    for one, other in combinations(raters, 2)
                    if (found := measurement.compare(raters[one], raters[other], name))
                ],
                "alpha": measurement.compute_alpha(list(people.values()), name),
                "alpha_with_judge": measurement.compute_alpha(list(raters.values()), name) if judge else None,
                "means": {rater: mean for rater, scores in raters.items() if (mean := _mean(scores, name)) is not None},
                "self": {
                    rater: found
                    for rater, (first, second) in again.items()
                    if (found := measurement.compare(first, second, name))
                },
            }
            for name in form.questions
        },
        "disagreements": _disagreements(raters, form.questions, key),
    }
    if "strata" not in key:
        return report
    labels = {
        rater: {item: row[form.questions[0]] for item, row in scores.items() if row} for rater, scores in people.items()
    }
    return {**report, "shares": estimate_shares(labels, key), "contradicted": list_contradicted(labels, key)}


@dataclass(frozen=True)
class _Measurement:
    form: Form
    topics: Mapping[str, str]
    """item -> what it shares with items that are not independent of it; an item that is not there has its own."""
    seed: int

    def compare(self, first: Scores, second: Scores, name: str) -> dict[str, Any]:
        """The agreement of two raters on a question; {} where they have no answer in common."""
        items = [item for item in first if item in second and name in first[item] and name in second[item]]
        found = compare_raters(
            [first[item][name] for item in items],
            [second[item][name] for item in items],
            self.form.scale,
            self._topics_of(items),
            seed=self.seed,
        )
        return found._asdict() if found else {}

    def compute_alpha(self, raters: Sequence[Scores], name: str) -> dict[str, Any] | None:
        if len(raters) < 2:
            return None
        items = sorted({item for scores in raters for item in scores})
        given = [[scores.get(item, {}).get(name) for item in items] for scores in raters]
        return compute_alpha(given, self.form.scale, self._topics_of(items), seed=self.seed)._asdict()

    def _topics_of(self, items: Sequence[str]) -> list[str]:
        return [self.topics.get(item, item) for item in items]


def _read_key(path: Path, needed: bool) -> dict[str, Any]:
    if not path.exists():
        if needed:
            raise BadInput(
                f"{path} does not exist. `rusbeir audit sheet` writes it together with the sheets; give their folder."
            )
        return {}
    remedy = "Restore the file that `rusbeir audit sheet` wrote with the sheets."
    of_labels = "strata" in read_json(path, {}, remedy)
    items = LABELS_KEY if of_labels else {"items": {str: {"kind?": str, "id?": str}}}
    key: dict[str, Any] = read_json(path, {**items, "duplicates?": {str: str}}, remedy)
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


def read_verdicts(path: Path) -> Scores:
    """The scores of `rusbeir audit judge` by item; {} where it has not judged, without texts that have no verdict."""
    if not path.exists():
        return {}
    shape = {"item": str, "scores": ({name: {*SCALE} for name in DIMENSIONS}, None)}
    rows = read_jsonl(path, shape, "Run `rusbeir audit judge` again; answers that it has are not paid for twice.")
    return {row["item"]: {name: row["scores"][name] for name in DIMENSIONS} for row in rows if row["scores"]}


def _mean(scores: Scores, name: str) -> float | None:
    found = [row[name] for row in scores.values() if name in row]
    return sum(found) / len(found) if found else None


def _disagreements(
    raters: Mapping[str, Scores], questions: Sequence[str], key: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The texts whose scores differ by two or more points, largest differences first."""
    rows = []
    for item in sorted({item for scores in raters.values() for item in scores}):
        for name in questions:
            given = {rater: row[name] for rater, scores in raters.items() if name in (row := scores.get(item, {}))}
            if given and (apart := max(given.values()) - min(given.values())) >= _DISAGREEMENT_POINTS:
                about = key.get("items", {}).get(item, {})
                text = {field: about[field] for field in ("kind", "id") if field in about}
                rows.append({"item": item, **text, "dimension": name, "apart": apart, "scores": given})
    return sorted(rows, key=lambda row: -row["apart"])[:MAX_DISAGREEMENTS]
