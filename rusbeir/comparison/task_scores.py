"""Scores of systems on tasks: from result rows, from a table, or from the result files of MTEB."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rusbeir.comparison.results import read_results
from rusbeir.datasets import Place, open_file, parse_json, read_tsv
from rusbeir.errors import BadInput, unknown
from rusbeir.ledger import ROWS

COLUMNS = ("task", "split", "subset", "model", "value")
_NO_REVISION = {"external", "no_revision_available"}
"""Folders of results whose revision is not known."""
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
    clusters: Mapping[str, int] | None = None
    """query_id -> number of its cluster, of result rows; None where all queries are independent."""

    @property
    def names(self) -> tuple[str, str, str]:
        """The names that it may be called by: its task alone will do where that has one split and one subset."""
        return self.task, f"{self.task}/{self.split}", f"{self.task}/{self.split}/{self.subset}"


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The scores on the tasks that were named."""

    measure: str
    tasks: list[TaskScores]
    others: set[str]
    """Tasks that have result files but were not named; these files were not read."""
    without: dict[str, int]
    """task -> how many of its result files do not have the measure; they were left out."""


def read_task_scores(paths: Iterable[str | Path], measure: str, names: Collection[str] | None = None) -> Scores:
    """Read scores from folders of `rusbeir bench --out`, .tsv tables (task, split, subset, model, value; a line of
    column names first), or folders of MTEB's results (<model>/<revision>/<task>.json).

    MTEB's folders hold files of any task: with names, only those of tasks that find_task would find by them are read.
    Raises BadInput, with file and line, for a path of another kind, a value that is not a finite number, and two
    values of one model.
    """
    tasks: dict[tuple[str, str, str], TaskScores] = {}
    others: set[str] = set()
    without: dict[str, int] = {}
    for path in map(Path, paths):
        if (path / ROWS).is_file():
            for result in read_results([path], measure):
                task = _task(tasks, result.dataset, str(result.row["split"]), "default", result.clusters)
                _add(task, result.label, float(result.row["measures"][measure]), str(path / ROWS))
                task.per_query[result.label] = result.scores
        elif path.is_dir():
            files = _list_mteb(path)
            if names is not None:
                is_named = {file: any(f"{name}/".startswith(f"{file.stem}/") for name in names) for file in files}
                others.update(file.stem for file in files if not is_named[file])
                files = [file for file in files if is_named[file]]
            _read_mteb(files, measure, tasks, without)
        elif path.suffix == ".tsv":
            _read_table(path, tasks)
        else:
            raise BadInput(
                f"{path} holds no scores. Give a folder of `rusbeir bench --out`, a .tsv with the columns "
                f"{', '.join(COLUMNS)}, or a folder of MTEB's results."
            )
    return Scores(measure=measure, tasks=list(tasks.values()), others=others, without=without)


def find_task(name: str, scores: Scores) -> TaskScores:
    """The task of that name: task, task/split or task/split/subset.

    Raises UnknownName, and BadInput for several and for one whose result files all lack the measure.
    """
    tasks = [task for task in scores.tasks if name in task.names]
    if len(tasks) > 1:
        raise BadInput(
            f"{name} has several splits or subsets: name one of {', '.join(task.names[2] for task in tasks)}."
        )
    if tasks:
        return tasks[0]
    if name in scores.without:
        raise BadInput(f"{name}: none of its {scores.without[name]:,} result files has {scores.measure}.")
    raise unknown("task", name, {task.task for task in scores.tasks} | scores.others, owner="these scores")


def _task(
    tasks: dict[tuple[str, str, str], TaskScores],
    task: str,
    split: str,
    subset: str,
    clusters: Mapping[str, int] | None = None,
) -> TaskScores:
    new = TaskScores(task=task, split=split, subset=subset, clusters=clusters)
    return tasks.setdefault((task, split, subset), new)


def _add(task: TaskScores, system: str, value: float, source: str) -> None:
    if task.means.setdefault(system, value) != value:
        raise BadInput(f"{source}: {system} has two values on {task.names[2]}. Keep one.")


def _read_table(path: Path, tasks: dict[tuple[str, str, str], TaskScores]) -> None:
    for where, cells in read_tsv(path):
        if where.line == 1:
            if tuple(cells[:4]) != COLUMNS[:4] or len(cells) != len(COLUMNS):
                raise BadInput(f"{where}: the first line must name the columns {', '.join(COLUMNS)}.")
            continue
        if len(cells) != len(COLUMNS):
            raise BadInput(f"{where}: it has {len(cells)} columns; {len(COLUMNS)} are {', '.join(COLUMNS)}.")
        name, split, subset, system, value = cells
        _add(_task(tasks, name, split, subset), system, _number(value, where), str(where))


def _list_mteb(folder: Path) -> list[Path]:
    """The result files of a folder of MTEB's, in the order of their names."""
    files = [path for path in sorted(folder.rglob("*.json")) if path.stem != "model_meta"]
    if not files:
        raise BadInput(f"{folder} holds no scores: no {ROWS} and no <model>/<revision>/<task>.json of MTEB.")
    return files


def _read_mteb(
    files: Iterable[Path], measure: str, tasks: dict[tuple[str, str, str], TaskScores], without: dict[str, int]
) -> None:
    """Add the values of <model>/<revision>/<task>.json.

    A model may have several revisions. As on MTEB's leaderboard, a known revision counts before an unknown one, and
    then the one that was measured with the newest version of mteb.
    """
    name, _, cutoff = measure.partition("@")
    if name not in _MTEB or not cutoff:
        raise BadInput(f"MTEB's result files hold no {measure}. Choose nDCG@10 or another with a cut-off.")
    documents = []
    for path in files:
        with open_file(path) as file:
            document = parse_json(file.read(), str(path))
        if isinstance(document, dict) and "task_name" in document:
            version = tuple(map(int, re.findall(r"\d+", str(document.get("mteb_version")))))
            documents.append(((path.parent.name not in _NO_REVISION, version), path, document))
    values: dict[tuple[str, str, str], dict[str, tuple[float, Path]]] = {}
    for _, path, document in sorted(documents, key=lambda entry: entry[0]):
        rows = list(_list_values(document, _MTEB[name] + cutoff, path))
        if not rows:
            without[str(document["task_name"])] = without.get(str(document["task_name"]), 0) + 1
        for key, value in rows:
            values.setdefault(key, {})[path.parent.parent.name] = value, path
    for key, by_model in values.items():
        for model, (value, path) in by_model.items():
            _add(_task(tasks, *key), model, value, str(path))


def _list_values(document: Mapping[str, Any], key: str, path: Path) -> Iterator[tuple[tuple[str, str, str], float]]:
    """(task, split and subset; value) of the rows of a result file that have the measure."""
    for split, rows in _items(document.get("scores"), path):
        for row in rows if isinstance(rows, list) else [rows]:
            if not isinstance(row, dict):
                raise BadInput(f"{path}: a row of the split {split} is not an object.")
            # The reader makes NaN, which MTEB writes for what it could not compute, None.
            if row.get(key) is not None:
                subset = str(row.get("hf_subset", "default"))
                yield (str(document["task_name"]), str(split), subset), _number(row[key], Place(str(path)))


def _items(scores: Any, path: Path) -> Iterable[tuple[str, Any]]:
    if not isinstance(scores, dict):
        raise BadInput(f'{path}: "scores" is not an object of splits.')
    return scores.items()


def _number(value: Any, where: Place) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise BadInput(f"{where}: {str(value)[:40]!r} is not a finite number.")
    return number
