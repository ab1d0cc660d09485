"""`rusbeir airbench`: AIR-Bench's result files, its submissions and its leaderboards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rusbeir.cli import options, output

if TYPE_CHECKING:
    from rusbeir.airbench import Written

SHOWN_COLUMNS = 8
"""A leaderboard of more datasets is printed without a column for each."""

app = typer.Typer(
    no_args_is_help=True,
    help="Write AIR-Bench's result files and submissions, and compute its leaderboards.\n\n"
    "Example: rusbeir airbench run air-bench/24.05/qa/wiki/ru --system bm25",
)


@app.command()
def run(
    datasets: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET...",
            help="Datasets of AIR-Bench, or the beginning of their names: air-bench/24.05/qa/wiki.",
            autocompletion=options.complete_datasets,
        ),
    ],
    system: options.Systems = None,
    engine: options.Engine = "auto",
    es_url: options.EsUrl = None,
    k: options.Depth = 1000,
    out: Annotated[Path, typer.Option("--out", help="Folder for the result files.")] = Path("search_results"),
    retriever: Annotated[
        str | None, typer.Option("--retriever", help="Name of the retriever in the files; default: from --system.")
    ] = None,
    reranker: Annotated[
        str | None, typer.Option("--reranker", help="Name of the reranker in the files; default: from --system.")
    ] = None,
    budget_chars: options.EndpointChars = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the result files that are there.")] = False,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Run systems on AIR-Bench's queries, judged or not, and write its result files.

    A file of the same recipe is kept, so the same command resumes what was interrupted.

    Example: rusbeir airbench run air-bench/24.05/qa/wiki/ru --system bm25
    """
    from rusbeir.airbench import write_results

    with output.progress() as progress:
        written = list(
            write_results(
                datasets, system or ["bm25"], engine=options.engine_at(engine, es_url), k=k, out=out,
                retriever=retriever, reranker=reranker, force=force, budget_chars=budget_chars, progress=progress,
            )
        )  # fmt: skip
    if as_json:
        output.print_json({"files": [_describe(file) for file in written]})
        return
    for file in written:
        output.echo(file.path)
    n_reused = sum(file.reused for file in written)
    output.note(f"{len(written) - n_reused:,} result files written, {n_reused:,} kept.")


def _describe(file: Written) -> dict[str, Any]:
    members = file._asdict() | {"path": str(file.path)}
    members["kept"] = members.pop("reused")
    return members


@app.command()
def pack(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Result files of one system: search_results/bm25/NoReranker.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the zip; default: that of all result files.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Zip the result files of one retriever and one reranker for submission, without those of dev.

    Example: rusbeir airbench pack search_results/bm25/NoReranker
    """
    from rusbeir.airbench import pack_results

    with output.progress() as progress:
        packed = pack_results(folder, out, progress=progress)
    if as_json:
        output.print_json(packed._asdict() | {"path": str(packed.path)})
        return
    output.echo(packed.path)
    n_all = len(packed.datasets) + len(packed.missing)
    output.note(f"{len(packed.datasets)} of the {n_all} datasets with a test split in AIR-Bench {packed.version}.")
    if packed.missing:
        missing = ", ".join(packed.missing[:3]) + (", …" if len(packed.missing) > 3 else "")
        output.note(f"AIR-Bench gives no average to a system that lacks datasets. Missing: {missing}")


@app.command()
def leaderboard(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="Folders of result files or of `rusbeir bench --out`.")
    ],
    domain: Annotated[list[str] | None, typer.Option("--domain", help="Only this domain; repeatable.")] = None,
    lang: Annotated[list[str] | None, typer.Option("--lang", help="Only this language; repeatable.")] = None,
    as_json: options.Json = False,
) -> None:
    """Rank systems by the rules of AIR-Bench's three leaderboards, over its dev splits, which are judged.

    Example: rusbeir airbench leaderboard search_results results --lang ru
    """
    from rusbeir.airbench import list_tasks, rank_systems, read_scores
    from rusbeir.errors import BadInput

    with output.progress() as progress:
        scores, unjudged = read_scores(folders, progress=progress)
    languages = [options.read_language_tag(tag) or tag for tag in lang or ()]
    boards = rank_systems(scores, domains=domain or (), languages=languages)
    if as_json:
        output.print_json({"leaderboards": [board.to_dict() for board in boards], "unjudged": unjudged})
        return
    if not boards and not unjudged:
        raise BadInput(
            "The folders have no scores on these datasets of AIR-Bench. `rusbeir bench` measures systems on dev."
        )
    columns = {name: task.column for name, task in list_tasks().items()}
    for board in boards:
        n_datasets = len(board.datasets)
        shown = board.datasets if n_datasets <= SHOWN_COLUMNS else ()
        output.echo(
            f"\n{board.task_type}, {board.board}: {board.measure} ×100 on the dev split of {n_datasets} datasets"
        )
        rows = [
            [
                "–" if standing.rank is None else str(standing.rank), standing.retriever, standing.reranker,
                "–" if standing.average is None else f"{100 * standing.average:.2f}",
                f"{len(standing.scores)} of {n_datasets}",
                *(f"{100 * standing.scores[name]:.2f}" if name in standing.scores else "–" for name in shown),
            ]
            for standing in board.systems
        ]  # fmt: skip
        header = ["rank", "retriever", "reranker", "average", "datasets", *(columns[name] for name in shown)]
        output.print_table(
            header,
            rows,
            right=["rank", *header[3:]],
            shortened=["retriever", "reranker"],
            optional=header[:4:-1],
        )
    if any(standing.missing for board in boards for standing in board.systems):
        output.note("No average without all datasets; --lang and --domain choose which, --json names what is missing.")
    if unjudged:
        output.note(f"{len(unjudged):,} result files are of test, whose judgements only AIR-Bench has: submit them.")
