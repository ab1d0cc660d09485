"""AIR-Bench's three leaderboards, by its rules, over the datasets whose judgements are published.

Retrieval only: systems without a reranker. Reranking only: what is made of BM25's first 100 hits. Retrieval +
reranking: all. Each is computed for question answering (nDCG@10) and for long documents (Recall@10); an average is over
all datasets of the chosen domains and languages, and a system that lacks one of them has none (app.py and src/utils.py
of https://huggingface.co/spaces/AIR-Bench/leaderboard).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from rusbeir.airbench.air_bench import NO_RERANKER, AirTask, list_results, list_tasks, name_parts, read_result
from rusbeir.comparison import read_results
from rusbeir.datasets import load_qrels
from rusbeir.errors import BadInput, unknown
from rusbeir.evaluation import evaluate
from rusbeir.ledger import ROWS
from rusbeir.types import Progress, Qrels, silent

MEASURES = {"qa": "nDCG@10", "long-doc": "R@10"}
BOARDS: Mapping[str, Callable[[str, str], bool]] = {
    "retrieval only": lambda retriever, reranker: reranker == NO_RERANKER,
    "reranking only": lambda retriever, reranker: retriever.lower().partition("-")[0] == "bm25",
    "retrieval + reranking": lambda retriever, reranker: True,
}
"""Name -> whether a retriever with a reranker is on it."""

Scores: TypeAlias = dict[tuple[str, str], dict[str, float]]
"""(retriever, reranker) -> name of the dataset -> value of its measure."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One system on a leaderboard."""

    retriever: str
    reranker: str
    scores: dict[str, float]
    """Name of the dataset -> value, from 0 to 1."""
    missing: tuple[str, ...]
    average: float | None
    """None if a dataset is missing."""
    rank: int | None
    """The rank by the average; equal averages share the better rank."""


@dataclass(frozen=True, kw_only=True)
class Leaderboard:
    """The systems of one of BOARDS on one type of tasks; those with an average first, the best of them on top."""

    board: str
    task_type: str
    measure: str
    datasets: tuple[str, ...]
    systems: tuple[Standing, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def read_scores(paths: Iterable[str | Path], *, progress: Progress = silent) -> tuple[Scores, list[str]]:
    """The scores of systems in folders of result files or of `rusbeir bench --out`, and the files without judgements.

    Rows of other datasets are left out. Raises BadInput for a place that holds neither and for two values of one
    system, and as read_results does.
    """
    scores: Scores = {}
    unjudged: list[str] = []
    qrels: dict[str, Qrels] = {}
    for path in map(Path, paths):
        if (path / ROWS).is_file():
            _take_rows(path, scores)
            continue
        files = list_results(path)
        for n, file in enumerate(files):
            progress("evaluating result files", n, len(files))
            task, retriever, reranker, _, run = read_result(file)
            if not task.judged:
                unjudged.append(str(file))
                continue
            if task.name not in qrels:
                qrels[task.name] = load_qrels(task.name, progress=progress)
            measure = MEASURES[task.task_type]
            value = evaluate(qrels[task.name], run, [measure]).measures[measure]
            _add(scores, (retriever, reranker), task, value, file)
    return scores, unjudged


def _take_rows(folder: Path, scores: Scores) -> None:
    tasks = list_tasks()
    for one in read_results([folder], MEASURES["qa"]):
        if task := tasks.get(one.dataset):
            measure, measures = MEASURES[task.task_type], one.row["measures"]
            if measure not in measures:
                raise BadInput(
                    f"{folder}: the row of {one.label} on {task.name} has no {measure}. Run `rusbeir bench` again with "
                    f"-m {MEASURES['qa']} -m {measure}."
                )
            retriever, reranker = name_parts(str(one.row["system"]))
            if one.label != one.row["system"]:
                retriever = f"{retriever}-{one.row['engine']}"
            _add(scores, (retriever, reranker), task, float(measures[measure]), folder / ROWS)


def _add(scores: Scores, system: tuple[str, str], task: AirTask, value: float, place: Path) -> None:
    if not math.isclose(scores.setdefault(system, {}).setdefault(task.name, value), value, abs_tol=1e-9):
        raise BadInput(f"{place}: {' with '.join(system)} has two values on {task.name}. Keep one.")


def rank_systems(
    scores: Scores, *, domains: Collection[str] = (), languages: Collection[str] = ()
) -> list[Leaderboard]:
    """The leaderboards of each type of tasks, over all judged datasets or those of these domains and languages.

    Those without systems, and types of tasks without datasets, are left out. Raises UnknownName for a domain or a
    language that no judged dataset has.
    """
    tasks = [task for task in list_tasks().values() if task.judged]
    for kind, given, known in (
        ("domain", domains, {task.domain for task in tasks}),
        ("language", languages, {task.language for task in tasks}),
    ):
        for name in given:
            if name not in known:
                raise unknown(kind, name, known, of="AIR-Bench")
    boards = []
    for task_type, measure in MEASURES.items():
        wanted = tuple(
            task.name
            for task in tasks
            if task.task_type == task_type
            and (not domains or task.domain in domains)
            and (not languages or task.language in languages)
        )
        for board, admits in BOARDS.items():
            rows = [
                (system, {name: found[name] for name in wanted if name in found})
                for system, found in scores.items()
                if admits(*system)
            ]
            if systems := _rank([row for row in rows if row[1]], wanted):
                boards.append(
                    Leaderboard(board=board, task_type=task_type, measure=measure, datasets=wanted, systems=systems)
                )
    return boards


def _rank(rows: Sequence[tuple[tuple[str, str], dict[str, float]]], wanted: Collection[str]) -> tuple[Standing, ...]:
    means = {system: math.fsum(found.values()) / len(found) for system, found in rows if len(found) == len(wanted)}
    standings = [
        Standing(
            retriever=system[0],
            reranker=system[1],
            scores=found,
            missing=tuple(name for name in wanted if name not in found),
            average=means.get(system),
            rank=1 + sum(other > means[system] for other in means.values()) if system in means else None,
        )
        for system, found in rows
    ]
    return tuple(sorted(standings, key=lambda one: (one.rank or math.inf, one.retriever, one.reranker)))
