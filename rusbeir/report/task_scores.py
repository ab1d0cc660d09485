"""Scores of systems on tasks: from result rows, from a table, or from the result files of MTEB."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rusbeir.datasets.formats.files import open_file
from rusbeir.datasets.formats.records import Place, parse_json, read_tsv
from rusbeir.errors import BadInput, unknown
from rusbeir.experiment import ROWS
from rusbeir.report.results import read_results

COLUMNS = ("task", "split", "subset", "model", "value")
_MTEB = {"nDCG": "ndcg_at_", "AP": "map_at_", "R": "recall_at_", "P": "precision_at_", "RR": "mrr_at_"}


@dataclass(frozen=True, kw_only=True)
class TaskScores:
    """The means of systems on one task, by their names."""

    task: str
    split: str
    subset: str
    means: dict[str, float] = field(default_factory=dict)
    per_query: dict[str, Mapping[str, float]] = field(default_factory=dict)
    """system -> query_id -> score, of result rows; {} for published means."""

    @property
    def names(self) -> tuple[str, str, str]:
        """How it may be called: by its task alone where that has one split and one subset."""
        return self.task, f"{self.task}/{self.split}", f"{self.task}/{self.split}/{self.subset}"


def read_task_scores(paths: Iterable[str | Path], measure: str) -> list[TaskScores]:
    """The scores in these places: folders of `rusbeir bench --out`, .tsv tables (task, split, subset, model, value; a
    line of column names first), or folders of MTEB's results (<model>/<revision>/<task>.json).

    Raises BadInput, with file and line, for a place of another kind, a value that is not a finite number, and two
    values of one model.
    """
    tasks: dict[tuple[str, str, str], TaskScores] = {}
    for path in map(Path, paths):
        if (path / ROWS).is_file():
            for one in read_results([path], measure):
                task = _task(tasks, one.dataset, str(one.row["split"]), "default")
                _add(task, one.label, float(one.row["measures"][measure]), str(path / ROWS))
                task.per_query[one.label] = one.scores
        elif path.is_dir():
            _read_mteb(path, measure, tasks)
        elif path.suffix == ".tsv":
            _read_table(path, tasks)
        else:
            raise BadInput(
                f"{path} holds no scores. Give a folder of `rusbeir bench --out`, a .tsv with the columns "
                f"{', '.join(COLUMNS)}, or a folder of MTEB's results."
            )
    return list(tasks.values())


def find_task(name: str, tasks: Iterable[TaskScores]) -> TaskScores:
    """The task of that name: task, task/split or task/split/subset. Raises UnknownName, and BadInput for several."""
    tasks = list(tasks)
    found = [one for one in tasks if name in one.names]
    if not found:
        raise unknown("task", name, {one.task for one in tasks}, of="these scores")
    if len(found) > 1:
        raise BadInput(f"{name} has several splits or subsets: name one of {', '.join(one.names[2] for one in found)}.")
    return found[0]


def _task(tasks: dict[tuple[str, str, str], TaskScores], task: str, split: str, subset: str) -> TaskScores:
    return tasks.setdefault((task, split, subset), TaskScores(task=task, split=split, subset=subset))


def _add(task: TaskScores, system: str, value: float, place: str) -> None:
    if task.means.setdefault(system, value) != value:
        raise BadInput(f"{place}: {system} has two values on {task.names[2]}. Keep one.")


def _read_table(path: Path, tasks: dict[tuple[str, str, str], TaskScores]) -> None:
    for place, cells in read_tsv(path):
        if place.line == 1:
            if tuple(cells[:4]) != COLUMNS[:4] or len(cells) != len(COLUMNS):
                raise BadInput(f"{place}: the first line must name the columns {', '.join(COLUMNS)}.")
            continue
        if len(cells) != len(COLUMNS):
            raise BadInput(f"{place}: it has {len(cells)} columns; {len(COLUMNS)} are {', '.join(COLUMNS)}.")
        *of, system, value = cells
        _add(_task(tasks, *of), system, _number(value, place), str(place))


def _read_mteb(folder: Path, measure: str, tasks: dict[tuple[str, str, str], TaskScores]) -> None:
    name, _, cutoff = measure.partition("@")
    if name not in _MTEB or not cutoff:
        raise BadInput(f"MTEB's result files hold no {measure}. Choose nDCG@10 or another with a cut-off.")
    key = _MTEB[name] + cutoff
    found = 0
    for path in sorted(folder.rglob("*.json")):
        with open_file(path) as file:
            document = parse_json(file.read(), str(path))
        if not isinstance(document, dict) or "task_name" not in document:
            continue  # the model's own description
        found += 1
        # <model>/<revision>/<task>.json
        model = path.parent.parent.name
        for split, rows in _items(document.get("scores"), path):
            for row in rows if isinstance(rows, list) else [rows]:
                if not isinstance(row, dict) or key not in row:
                    raise BadInput(f"{path}: a row of the split {split} has no {key}.")
                task = _task(tasks, str(document["task_name"]), str(split), str(row.get("hf_subset", "default")))
                _add(task, model, _number(row[key], Place(str(path))), str(path))
    if not found:
        raise BadInput(f"{folder} holds no scores: no {ROWS} and no <model>/<revision>/<task>.json of MTEB.")


def _items(scores: Any, path: Path) -> Iterable[tuple[str, Any]]:
    if not isinstance(scores, dict):
        raise BadInput(f'{path}: "scores" is not an object of splits.')
    return scores.items()


def _number(value: Any, place: Place) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise BadInput(f"{place}: {str(value)[:40]!r} is not a finite number.")
    return number
