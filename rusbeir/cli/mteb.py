"""`rusbeir mteb`: tasks and benchmarks of MTEB, and result files for its public results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rusbeir.cli import options, output
from rusbeir.errors import BackendError, BadInput

if TYPE_CHECKING:
    from rusbeir.mteb import TaskScore


def mteb(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="BENCHMARK|TASK...",
            help="Benchmarks and tasks of MTEB, or python:module.function, which returns tasks of your own.",
        ),
    ],
    system: options.System = "bm25",
    engine: options.Engine = "auto",
    es_url: options.EsUrl = None,
    lang: Annotated[
        str | None, typer.Option("--lang", help="Language in which BM25 analyses texts; default: that of each task.")
    ] = None,
    subset: Annotated[
        list[str] | None,
        typer.Option("--subset", help="Only subsets in this language, as MTEB writes it: rus or rus-Cyrl; repeatable."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder for results/MODEL/REVISION/TASK.json, as in MTEB's repository.")
    ] = Path("results-mteb"),
    results: Annotated[
        Path | None, typer.Option("--results", help="Copy of MTEB's repository of results, to compare with.")
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option("--against", help="Model in those results; default: MTEB's BM25 and the system's encoder."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace results that are there.")] = False,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Run retrieval tasks of MTEB, write results as its repository has them, and compare with published ones.

    A result that is there serves again. The exit code is 1 where a task could not run.

    Example: rusbeir mteb SciFact NFCorpus --system bm25 --results ../results
    """
    from rusbeir.mteb import find_tasks, run_tasks

    if against and results is None:
        raise BadInput("--against needs --results, the folder that has its results.")
    with output.progress() as progress:
        progress("Find tasks", 0, 1)
        tasks, others = find_tasks(names, languages=subset or ())
        scores = list(
            run_tasks(
                tasks, system, engine=options.engine_at(engine, es_url), language=lang, out=out, results=results,
                against=against or (), force=force, progress=progress,
            )
        )  # fmt: skip
    if as_json:
        output.print_json({"tasks": [score.to_dict() for score in scores], "left_out": others})
    else:
        _print_scores(scores)
        if others:
            output.note(f"Left out, as they are not retrieval in texts: {', '.join(others)}.")
    failed = [score for score in scores if score.score is None]
    if failed:
        raise BackendError(
            f"{len(failed)} of {len(scores)} tasks could not run: "
            + "; ".join(f"{score.task}: {score.failure.rstrip('.')}" for score in failed[:3])
            + "."
        )


def _print_scores(scores: list[TaskScore]) -> None:
    models = list(dict.fromkeys(name for score in scores for name in score.published))
    rows = []
    for score in scores:
        row = [score.task, score.measure, str(score.subsets), "" if score.score is None else f"{100 * score.score:.2f}"]
        for name in models:
            value = score.published.get(name)
            row.append("" if value is None else f"{100 * value:.2f}")
            row.append("" if value is None or score.score is None else f"{100 * (score.score - value):+.2f}")
        rows.append(row)
    columns = [column for name in models for column in (name, "difference")]
    output.print_table(["task", "measure", "subsets", "ours", *columns], rows)
    for score in scores:
        if score.path:
            output.note(str(score.path))
