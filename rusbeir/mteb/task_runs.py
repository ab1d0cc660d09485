"""Tasks and benchmarks of MTEB run with a system, and their results in the layout of its public results."""

from __future__ import annotations

import contextlib
import logging
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from rusbeir.datasets import open_file, parse_json
from rusbeir.errors import BackendError, BadInput, RusbeirError, Suspended, require, unknown
from rusbeir.mteb.model import MtebModel, model
from rusbeir.mteb.task_languages import PROGRAMS
from rusbeir.retrieval import parse, read_catalogue
from rusbeir.text import make_line
from rusbeir.types import Progress, silent
from rusbeir.user_sources import PYTHON, import_function, report_failure

logger = logging.getLogger(__name__)

BASELINE = "mteb/baseline-bm25s"
"""MTEB's own BM25, with whose published scores others are compared."""
_NO_REVISION = {"external", "no_revision_available"}
"""Folders of results whose revision is not known."""


@dataclass(frozen=True, kw_only=True)
class TaskScore:
    """A task's main score, and those that are published for it; score is None where the task could not run."""

    task: str
    measure: str
    score: float | None
    """The mean over the subsets and splits, between 0 and 1."""
    subsets: int
    path: Path | None
    """The result file."""
    published: dict[str, float] = field(default_factory=dict)
    """Model -> its score, for models whose results are in the folder."""
    failure: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return all members, and the difference to each published score."""
        differences = {} if self.score is None else {name: self.score - value for name, value in self.published.items()}
        return asdict(self) | {"path": str(self.path) if self.path else None, "differences": differences}


def find_tasks(names: Sequence[str], *, languages: Sequence[str] = ()) -> tuple[list[Any], list[str]]:
    """Find the tasks of retrieval in texts that names stand for.

    Args:
        names: Benchmarks and tasks of MTEB, or `python:module.function`, which returns a task or several.
        languages: Only subsets in these languages, as MTEB writes them (rus, rus-Cyrl); all if empty.

    Returns:
        The tasks, and the names of those that are of another kind, such as classification.

    Raises:
        MissingExtra: The package mteb is not installed.
        UnknownName: There is no such benchmark or task.
        BadInput: A function returns something else than tasks, or mteb does not know a language.
        BackendError: A function fails.
    """
    mteb = require("mteb", "rusbeir.mteb", "mteb")
    listed: list[Any] = []
    for name in names:
        listed += _list_tasks(mteb, name)
    kind = require("mteb.abstasks", "rusbeir.mteb", "mteb").AbsTaskRetrieval
    tasks = {
        task.metadata.name: task
        for task in listed
        if isinstance(task, kind) and list(task.metadata.modalities) == ["text"]
    }
    others = [task.metadata.name for task in listed if task.metadata.name not in tasks]
    if languages:
        try:
            tasks = {name: task.filter_languages(list(languages)) for name, task in tasks.items()}
        except ValueError as error:
            raise BadInput(f"mteb does not know a language of {', '.join(languages)}: {error}") from error
    return [task for task in tasks.values() if task.hf_subsets], others


def _list_tasks(mteb: Any, name: str) -> list[Any]:
    if name.startswith(PYTHON):
        return _call(name)
    with contextlib.suppress(KeyError):
        return list(mteb.get_benchmark(name).tasks)
    with contextlib.suppress(KeyError):
        return [mteb.get_task(name)]
    with warnings.catch_warnings():
        # mteb warns of each task that is in beta.
        warnings.simplefilter("ignore", UserWarning)
        named = [*mteb.get_benchmarks(), *(task.metadata for task in mteb.get_tasks(exclude_superseded=False))]
    raise unknown("benchmark or task of MTEB", name, [each.name for each in named], listing="mteb available-tasks")


def _call(name: str) -> list[Any]:
    """The tasks that a function of the user's returns."""
    function, _ = import_function(name)
    try:
        made = function()
    except RusbeirError:
        raise
    except Exception as error:
        raise report_failure(name, "is called", error) from error
    tasks = list(made) if isinstance(made, (list, tuple)) else [made]
    kind = require("mteb.abstasks", "rusbeir.mteb", "mteb").AbsTask
    if wrong := [task for task in tasks if not isinstance(task, kind)]:
        raise BadInput(f"{name} returns {type(wrong[0]).__name__}, not a task of mteb or a list of them.")
    return tasks


def run_tasks(
    tasks: Sequence[Any],
    system: str = "bm25",
    *,
    engine: str = "auto",
    language: str | None = None,
    out: str | Path = "results-mteb",
    results: str | Path | None = None,
    against: Sequence[str] = (),
    force: bool = False,
    progress: Progress = silent,
) -> Iterator[TaskScore]:
    """Run tasks with a system, and write result files and metadata as the repository of MTEB's results has them.

    Args:
        tasks: Tasks of retrieval in texts, from find_tasks.
        system: The system that searches.
        engine: As in `rusbeir.bench`.
        language: The language in which BM25 analyses texts, as BCP 47 has it; None takes that of each task.
        out: The folder in which results/MODEL/REVISION/TASK.json and model_meta.json are written. A result that is
            there serves again.
        results: A copy of MTEB's repository of results, whose scores are compared; nothing is compared if None.
        against: Models whose scores are compared. If empty, MTEB's BM25 and the encoder or reranker of the system.
        force: Whether results that are there are replaced.
        progress: Is told what is being done.

    Yields:
        A score for each task, in their order, after mteb has read the result file back. A task that fails, as its data
        are not at hand or mteb does not read its file, has no score.

    Raises:
        MissingExtra: The package mteb is not installed.
        UnknownName: A name in the system is not registered.
        BadInput: The folder of results has no results.
        Suspended: The system waits for answers that come later.

    Examples:
        >>> [score.task for score in run_tasks(find_tasks(["SciFact"])[0], "bm25")]  # doctest: +SKIP
        ['SciFact']
    """
    mteb = require("mteb", "rusbeir.mteb", "mteb")
    folder = _find_results(results) if results is not None else None
    made = model(system, engine=engine, language=language)
    made.submission = tuple(sorted({str(code) for task in tasks for code in _list_languages(task)}))
    names = [*against] or [BASELINE, *_list_encoders(system)]
    cache = mteb.ResultCache(cache_path=Path(out))
    for number, task in enumerate(tasks):
        progress(f"Run {task.metadata.name}", number, len(tasks))
        published = {name: score for name in names if (score := _read_published(folder, name, task)) is not None}
        try:
            yield _run_task(mteb, made, task, cache, published, force=force)
        except Suspended:
            raise
        except Exception as error:  # whatever the code of a task raises when it reads its data
            measure = str(task.metadata.main_score)
            failure = make_line(str(error) if isinstance(error, RusbeirError) else f"{type(error).__name__}: {error}")
            yield TaskScore(
                task=task.metadata.name, measure=measure, score=None, subsets=0, path=None, published=published,
                failure=failure,
            )  # fmt: skip


def _run_task(
    mteb: Any, made: MtebModel, task: Any, cache: Any, published: dict[str, float], *, force: bool
) -> TaskScore:
    """Run one task. Raises BackendError where mteb does not read the same scores back."""
    meta = made.mteb_model_meta
    computed = mteb.evaluate(
        made,
        [task],
        cache=cache,
        co2_tracker=False,
        show_progress_bar=False,
        overwrite_strategy="always" if force else "only-missing",
        encode_kwargs={"batch_size": 32, "signature": made.signature},
    )
    path = Path(cache.get_task_result_path(task.metadata.name, meta))
    loaded = cache.load_results(models=[meta], tasks=[task], include_remote=False, validate_and_filter=True)
    read = [result for of_model in loaded.model_results for result in of_model.task_results]
    scores = _list_scores(computed.task_results[0])
    if len(read) != 1 or _list_scores(read[0]) != scores:
        raise BackendError(f"mteb does not read {path} as it was written.")
    return TaskScore(
        task=task.metadata.name,
        measure=str(task.metadata.main_score),
        score=mean(scores.values()),
        subsets=len({subset for _, subset in scores}),
        path=path,
        published=published,
    )


def _list_languages(task: Any) -> list[str]:
    """The languages of the task's subsets, as MTEB writes them; those of programs are left out."""
    named = task.metadata.eval_langs
    listed = [code for subset in task.hf_subsets for code in named[subset]] if isinstance(named, dict) else named
    return [code for code in listed if not code.endswith(PROGRAMS)]


def _list_scores(result: Any) -> dict[tuple[str, str], float]:
    """(split, subset) -> the main score."""
    return {
        (split, entry["hf_subset"]): float(entry["main_score"])
        for split, entries in result.scores.items()
        for entry in entries
    }


def _find_results(path: str | Path) -> Path:
    """The folder `results` of a copy of MTEB's repository. Raises BadInput where there is none."""
    for folder in (Path(path) / "results", Path(path)):
        if any(folder.glob("*__*/*/*.json")):
            return folder
    raise BadInput(
        f"{path} has no results of MTEB (results/MODEL/REVISION/TASK.json). Clone "
        "https://github.com/embeddings-benchmark/results"
    )


def _read_published(folder: Path | None, name: str, task: Any) -> float | None:
    """The main score of a model on the task's splits and subsets; None where one is missing.

    Of several revisions one counts, as on MTEB's leaderboard: a known one before one that is not, and then the one that
    was measured with the newest version of mteb. A file that cannot be read is left out with a warning.
    """
    if folder is None:
        return None
    results = []
    for path in sorted((folder / name.replace("/", "__")).glob(f"*/{task.metadata.name}.json")):
        try:
            version, scores = _read_result(path)
        except BadInput as error:
            logger.warning("Left out of what is published: %s", error)
            continue
        results.append(((path.parent.name not in _NO_REVISION, version), scores))
    if not results:
        return None
    _, scores = max(results, key=lambda result: result[0])
    keys = [(split, subset) for split in task.eval_splits for subset in task.hf_subsets]
    return mean(scores[key] for key in keys) if keys and all(key in scores for key in keys) else None


def _read_result(path: Path) -> tuple[tuple[int, ...], dict[tuple[str, str], float]]:
    """The version of mteb that wrote a result file, and (split, subset) -> the main score.

    Scores that mteb could not compute, which are null or NaN there, are left out.
    """
    with open_file(path) as file:
        document = parse_json(file.read(), str(path))
    try:
        version = tuple(map(int, re.findall(r"\d+", str(document.get("mteb_version")))))
        scores = {
            (split, entry["hf_subset"]): float(entry["main_score"])
            for split, entries in document["scores"].items()
            for entry in entries
            if entry["main_score"] is not None
        }
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadInput(
            f"{path} is no result of MTEB, with main_score and hf_subset in its scores: {type(error).__name__}: {error}"
        ) from error
    return version, {key: score for key, score in scores.items() if math.isfinite(score)}


def _list_encoders(system: str) -> list[str]:
    """The models that a system names by their repositories on the hub."""
    models = {entry.name: entry.hub for entry in read_catalogue().models}
    arguments = [str(argument) for stage in parse(system).stages for argument in stage.args]
    return [models.get(argument, argument) for argument in arguments if "/" in models.get(argument, argument)]
