"""`rusbeir nano`: a small version of a dataset, with its agreement to the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rusbeir.cli import options, output


def nano(
    dataset: options.DatasetName,
    to: Annotated[Path, typer.Option("--to", help="The new folder.")],
    system: Annotated[
        list[str] | None,
        typer.Option(
            "--system",
            help="A system that chooses queries and documents; repeatable. Default: bm25, bm25(profile=raw) and "
            "dense(multilingual-e5-small).",
            autocompletion=options.complete_systems,
        ),
    ] = None,
    held_out: Annotated[
        list[str] | None,
        typer.Option(
            "--held-out",
            help="A system that measures the agreement and does not choose; repeatable. At least 4 must find other "
            "documents than the systems that choose. Default: six BM25.",
            autocompletion=options.complete_systems,
        ),
    ] = None,
    queries: Annotated[int, typer.Option("--queries", help="Queries that are kept.")] = 200,
    depth: Annotated[int, typer.Option("--depth", help="Hits of each system for each query that are kept.")] = 20,
    others: Annotated[int, typer.Option("--others", help="Documents at random that are kept as well.")] = 500,
    measure: Annotated[str, typer.Option("--measure", "-m", help="The measure that is compared.")] = "nDCG@10",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the choice and of the resamples.")] = 0,
    engine: options.Engine = "auto",
    es_url: options.EsUrl = None,
    lang: options.Lang = None,
    split: options.Split = None,
    out: options.CountedIn = Path("results"),
    budget_chars: options.EndpointChars = None,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Make a small version of a dataset: queries, hard negatives, all grades; and say how it agrees with the whole.

    Example: rusbeir nano xquad/ru/sentences --to nano-xquad --queries 300
    """
    from rusbeir.nano import HELD_OUT, POOL, make_nano

    with output.progress() as progress:
        report = make_nano(
            dataset, to=to, systems=system or POOL, held_out=held_out or HELD_OUT, queries=queries, depth=depth,
            others=others, measure=measure, seed=seed, engine=options.engine_at(engine, es_url), language=lang,
            split=split, out=out, budget_chars=budget_chars, progress=progress,
        )  # fmt: skip
    if as_json:
        output.print_json(report)
        return
    agreement = report["agreement"]
    rows = [
        [row["system"], row["kind"], f"{100 * row['full']:.2f}", f"{100 * row['nano']:.2f}"]
        for row in sorted(agreement["systems"], key=lambda row: -row["full"])
    ]
    output.print_table(["held-out system", "kind", "whole", "nano"], rows, right=["whole", "nano"])
    for line in agreement["conclusion"]:
        output.echo(line)
    for twin, chose in agreement["twins"].items():
        output.note(f"{twin} finds the same documents as {chose}, which chose; it was left out.")
    counts = ", ".join(
        f"{report[what]['nano']:,} of {report[what]['full']:,} {what}"
        for what in ("queries", "documents", "judgements")
    )
    output.note(f"{report['dataset']}: {counts}. Measure systems on it: {options.write_bench(to, analyzers)}")
