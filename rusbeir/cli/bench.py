"""`rusbeir bench`: systems on datasets, a row each."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rusbeir import __version__
from rusbeir.cli import options, output
from rusbeir.errors import BadInput, option
from rusbeir.text import write_command


def bench(
    datasets: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET...", help="Registered names or paths.", autocompletion=options.complete_datasets
        ),
    ],
    system: options.Systems = None,
    engine: options.Engine = "auto",
    es_url: options.EsUrl = None,
    lang: options.Lang = None,
    split: options.Split = None,
    query_language: Annotated[
        list[str] | None,
        typer.Option(
            "--query-language",
            metavar="LANG",
            help="Ask queries in this language, those of the parallel dataset (of xquad/en for xquad/ru), or of the "
            "dataset of that name or path; all: in the languages of all DATASETs; repeatable.",
        ),
    ] = None,
    k: options.Depth = 100,
    measure: options.Measures = None,
    out: options.Out = Path("results"),
    budget_chars: options.EndpointChars = None,
    force: options.Force = False,
    accept_difference: Annotated[
        bool,
        typer.Option(
            "--accept-difference",
            help="Measure a registered dataset whose counts differ from the registered ones, as 'NAME (differs)'.",
        ),
    ] = False,
    check_precision: Annotated[
        bool,
        typer.Option(
            "--check-precision",
            help="Also measure each system with a precision= in float32, and print what the precision costs.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only estimate time, disk and memory, from the first texts.")
    ] = False,
    batch: options.Batch = False,
    batch_share: options.BatchShare = None,
    cancel: options.Cancel = False,
    batch_out: options.BatchOut = None,
    batch_in: options.BatchIn = None,
    on: options.On = None,
    analyzers: options.Analyzers = None,
    signatures: Annotated[
        bool, typer.Option("--signatures", help="Also print each row's signature: everything that decides its scores.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Measure systems on datasets, and keep each row with its run in --out.

    A star marks the best of several systems. A system that fails costs its own row only; the exit code is then 1.

    Example: rusbeir bench xquad/ru --system 'bm25(profile=rusbeir-paper)'
    """
    from rusbeir.datasets import expand_group, label_dataset
    from rusbeir.evaluation import DEFAULT_MEASURES, check_measures
    from rusbeir.experiment import Request, bench_all
    from rusbeir.ledger import ROWS

    datasets = [name for dataset in datasets for name in expand_group(dataset)]
    names = check_measures(measure or DEFAULT_MEASURES)
    if dry_run and on is not None:
        raise BadInput(f"--dry-run times systems on this machine: leave out {option('on')}.")
    if dry_run:
        _dry_run(
            datasets, system or ["bm25"], as_json=as_json, engine=options.engine_at(engine, es_url), language=lang,
            split=split, k=k,
        )  # fmt: skip
        return
    systems = system or ["bm25"]
    in_full: Mapping[str, str] = {}
    if check_precision:
        from rusbeir.cli.precision import describe_losses, pair_precisions

        in_full = pair_precisions(systems)
        systems = [*systems, *in_full.values()]
    with output.progress() as progress:
        request = Request(
            engine=options.engine_at(engine, es_url), language=lang, split=split, k=k, measures=names, out=out,
            force=force, accept_difference=accept_difference, budget_chars=budget_chars,
            query_languages=query_language or (), on=on, progress=progress,
            batching=options.batching(batch, batch_share, cancel, batch_out, batch_in),
        )  # fmt: skip
        rows, failed = bench_all(datasets, systems, request)
    if failed and len(rows) + len(failed) == 1 and not as_json:
        raise failed[0].error
    if as_json:
        document: dict[str, Any] = {"version": __version__, "rows": rows}
        if failed:
            document["failed"] = [{**failure._asdict(), "error": str(failure.error)} for failure in failed]
        output.print_json(document)
    elif rows:
        shown = [
            row
            | {"dataset": label_dataset(row["dataset"], row["language"], row.get("query_language") or row["language"])}
            for row in rows
        ]
        _print_rows(shown, names)
        for line in find_better_parts(shown, names[0]):
            output.note(line)
        if in_full and not failed:
            for line in describe_losses(in_full, out, "nDCG@10" if "nDCG@10" in names else names[0]):
                output.note(line)
        if signatures:
            for row in shown:
                output.note(f"{row['system']} on {row['dataset']}: {row['signature']}")
        output.note(f"Rows: {out / ROWS}; run of the last: {rows[-1]['run']}")
        if len(systems) > 1:
            output.note(f"Next, see which differences are real: {write_command('compare', out)}")
    for failure in failed:
        output.note(f"rusbeir: {failure.system} on {failure.dataset} failed: {' '.join(str(failure.error).split())}")
    if failed:
        raise typer.Exit(1)


def _dry_run(datasets: Sequence[str], systems: Sequence[str], *, as_json: bool, **order: Any) -> None:
    from rusbeir.forecast import forecast, refuse_full_disk

    with output.progress() as progress:
        forecasts = [entry for name in datasets for entry in forecast(name, systems, progress=progress, **order)]
    if as_json:
        output.print_json({"version": __version__, "forecasts": [dataclasses.asdict(entry) for entry in forecasts]})
    else:
        header = ["dataset", "system", "documents", "timed", "prepare", "queries", "search", "disk MB", "memory MB"]
        rows = [
            [
                entry.dataset,
                entry.system,
                f"{entry.n_docs:,}",
                f"{entry.sampled:,}",
                output.format_duration(entry.prepare_seconds),
                f"{entry.n_queries:,}",
                output.format_duration(entry.search_seconds),
                *(
                    "not known" if size is None else f"{size / 1e6:,.1f}"
                    for size in (entry.disk_bytes, entry.memory_bytes)
                ),
            ]
            for entry in forecasts
        ]
        output.print_table(
            header, rows, right=header[2:], shortened=["system", "dataset"], optional=["queries", "timed"]
        )
        output.note("From the first texts, with nothing in the cache. Endpoints were not asked.")
    refuse_full_disk(forecasts)


def _print_rows(rows: list[dict[str, Any]], names: Sequence[str]) -> None:
    """Print a table in which a star marks the best of several systems on a dataset."""
    from rusbeir.evaluation import format_measure

    scores = [{name: format_measure(name, row["measures"][name]) for name in names} for row in rows]

    def mark(number: int, name: str) -> str:
        rivals = [other for other, row in enumerate(rows) if row["dataset"] == rows[number]["dataset"]]
        best = len(rivals) > 1 and float(scores[number][name]) == max(float(scores[rival][name]) for rival in rivals)
        return scores[number][name] + ("*" if best else " " if len(rivals) > 1 else "")

    counts = {"queries": "n_queries", "no results": "n_zero_hit", "tied": "n_tied"}
    output.print_table(
        ["dataset", "system", "engine", *names, *counts],
        [
            [
                row["dataset"],
                row.get("label") or row["system"],
                row["engine"],
                *(mark(number, name) for name in names),
                *(f"{row[key]:,}" for key in counts.values()),
            ]
            for number, row in enumerate(rows)
        ],
        right=[*names, *counts],
        shortened=["system", "dataset"],
        optional=["engine", "tied", "queries", "no results"],
    )


def find_better_parts(rows: Sequence[dict[str, Any]], measure: str) -> Iterator[str]:
    """Write a line about each fusion that is worse than one of the systems in it on the same dataset."""
    from rusbeir.retrieval import parse

    scores = {(row["dataset"], row["system"]): 100 * row["measures"][measure] for row in rows}
    for (dataset, system), score in scores.items():
        stage, *later = parse(system).stages
        best, part = max(((scores.get((dataset, str(arg)), 0.0), str(arg)) for arg in stage.args), default=(0.0, ""))
        if best > score and not later:
            yield (
                f"{system} on {dataset} is worse than {part} alone: {measure} {score:.2f}, not {best:.2f}. "
                "`rusbeir tune` finds weights on a development split."
            )
