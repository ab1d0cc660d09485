"""AIR-Bench's three leaderboards, by its rules, over the datasets whose judgements are published.

"Retrieval only" has systems without a reranker, "reranking only" those that rerank BM25's first 100 hits, and
"retrieval + reranking" all. Each is computed for question answering (nDCG@10) and for long documents (Recall@10). An
average is over all datasets of the chosen domains and languages, and a system that lacks one of them has none (app.py
and src/utils.py of https://huggingface.co/spaces/AIR-Bench/leaderboard).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from rusbeir.airbench.result_files import NO_RERANKER, AirTask, list_results, list_tasks, name_parts, read_result
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
    """Read the scores of systems in folders of result files or of `rusbeir bench --out`, and list unjudged files.

    Rows of other datasets are left out. Raises BadInput for a folder that holds neither and for two values of one
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
    for result in read_results([folder], MEASURES["qa"]):
        if task := tasks.get(result.dataset):
            measure, measures = MEASURES[task.task_type], result.row["measures"]
            if measure not in measures:
                raise BadInput(
                    f"{folder}: the row of {result.label} on {task.name} has no {measure}. Run `rusbeir bench` again "
                    f"with -m {MEASURES['qa']} -m {measure}."
                )
            retriever, reranker = name_parts(str(result.row["system"]))
            if result.label.endswith(f"[{result.row['engine']}]"):
                retriever = f"{retriever}-{result.row['engine']}"
            _add(scores, (retriever, reranker), task, float(measures[measure]), folder / ROWS)


def _add(scores: Scores, system: tuple[str, str], task: AirTask, value: float, source: Path) -> None:
    if not math.isclose(scores.setdefault(system, {}).setdefault(task.name, value), value, abs_tol=1e-9):
        raise BadInput(f"{source}: {' with '.join(system)} has two values on {task.name}. Keep one.")


def rank_systems(
    scores: Scores, *, domains: Collection[str] = (), languages: Collection[str] = ()
) -> list[Leaderboard]:
    """Rank the systems on the leaderboards of each type of tasks.

    Args:
        scores: The scores of systems, as `read_scores` returns them.
        domains: Only datasets of these domains; all of them if there are none.
        languages: Only datasets in these languages; all of them if there are none.

    Returns:
        The leaderboards that have systems.

    Raises:
        UnknownName: No judged dataset has a domain or a language.

    Examples:
        >>> [board.board for board in rank_systems(scores, languages=["ru"])]  # doctest: +SKIP
    """
    tasks = [task for task in list_tasks().values() if task.judged]
    for kind, names, known in (
        ("domain", domains, {task.domain for task in tasks}),
        ("language", languages, {task.language for task in tasks}),
    ):
        for name in names:
            if name not in known:
                raise unknown(kind, name, known, owner="AIR-Bench")
    boards = []
    for task_type, measure in MEASURES.items():
        datasets = tuple(
            task.name
            for task in tasks
            if task.task_type == task_type
            and (not domains or task.domain in domains)
            and (not languages or task.language in languages)
        )
        for board, admits in BOARDS.items():
            rows = [
                (system, {name: values[name] for name in datasets if name in values})
                for system, values in scores.items()
                if admits(*system)
            ]
            if systems := _rank([row for row in rows if row[1]], datasets):
                boards.append(
                    Leaderboard(board=board, task_type=task_type, measure=measure, datasets=datasets, systems=systems)
                )
    return boards


def _rank(rows: Sequence[tuple[tuple[str, str], dict[str, float]]], datasets: Collection[str]) -> tuple[Standing, ...]:
    """The systems with their averages, which only those have that were measured on all datasets."""
    means = {
        system: math.fsum(values.values()) / len(values) for system, values in rows if len(values) == len(datasets)
    }
    standings = [
        Standing(
            retriever=system[0],
            reranker=system[1],
            scores=values,
            missing=tuple(name for name in datasets if name not in values),
            average=means.get(system),
            rank=1 + sum(other > means[system] for other in means.values()) if system in means else None,
        )
        for system, values in rows
    ]
    return tuple(
        sorted(standings, key=lambda standing: (standing.rank or math.inf, standing.retriever, standing.reranker))
    )
