"""`rusbeir bench`: systems on datasets, a row each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rusbeir import __version__
from rusbeir.cli import options, output


def bench(
    datasets: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET...", help="Registered names or paths.", autocompletion=options.complete_datasets
        ),
    ],
    system: Annotated[
        list[str] | None,
        typer.Option("--system", help="A system, such as bm25; repeatable.", autocompletion=options.complete_systems),
    ] = None,
    engine: options.Engine = "auto",
    es_url: options.EsUrl = None,
    lang: options.Lang = None,
    split: options.Split = None,
    k: options.Depth = 100,
    measure: options.Measures = None,
    out: options.Out = Path("results"),
    budget_chars: options.EndpointChars = None,
    force: Annotated[bool, typer.Option("--force", help="Measure again what is already there.")] = False,
    accept_difference: Annotated[
        bool,
        typer.Option(
            "--accept-difference",
            help="Measure a registered dataset whose counts differ from the registered ones, as 'NAME (differs)'.",
        ),
    ] = False,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Measure systems on datasets, and keep each row with its run in --out.

    Example: rusbeir bench xquad/ru --system 'bm25(profile=rusbeir-paper)' --json
    """
    from rusbeir.datasets import load
    from rusbeir.evaluation import DEFAULT_MEASURES, check_measures
    from rusbeir.experiment import bench as measure_one
    from rusbeir.retrieval import check_names, resolve

    names = check_measures(measure or DEFAULT_MEASURES)
    # Before a dataset is fetched.
    systems = [check_names(text) for text in system or ["bm25"]]
    rows = []
    engine = options.engine_at(engine, es_url)
    with output.progress() as progress:
        for name in datasets:
            dataset = load(name, language=lang, split=split, accept_difference=accept_difference, progress=progress)
            # A wrong system is refused before the first of several is measured.
            card = dataset.card
            resolved = [
                resolve(spec, language=card.language, engine=engine, self_suffixes=card.self_suffixes)
                for spec in systems
            ]
            rows += [
                measure_one(
                    dataset,
                    one,
                    k=k,
                    measures=names,
                    out=out,
                    force=force,
                    budget_chars=budget_chars,
                    progress=progress,
                )
                for one in resolved
            ]
    if as_json:
        output.print_json({"version": __version__, "rows": rows})
        return
    output.print_table(
        ["dataset", "system", "engine", *names, "queries", "no results", "tied"],
        [
            [
                row["dataset"],
                row["system"],
                row["engine"],
                *(f"{100 * row['measures'][name]:.2f}" for name in names),
                f"{row['n_queries']:,}",
                f"{row['n_zero_hit']:,}",
                f"{row['n_tied']:,}",
            ]
            for row in rows
        ],
        right=[*names, "queries", "no results", "tied"],
    )
    for row in rows:
        output.note(f"{row['system']} on {row['dataset']}: {row['signature']}")
    output.note(f"Rows: {out / 'rows.jsonl'}; run of the last: {rows[-1]['run']}")
