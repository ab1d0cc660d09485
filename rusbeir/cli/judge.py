"""`rusbeir judge`: how far a model's relevance labels can stand for those of people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rusbeir.cli import options, output


def judge(
    qrels: Annotated[Path, typer.Argument(help="People's labels: TREC qrels, BEIR tsv or JSON; .gz too.")],
    judged: Annotated[Path, typer.Argument(help="The judge's labels, in the same forms.")],
    run: Annotated[
        list[Path] | None, typer.Option("--run", help="A run that both label sets score; its name is the system's.")
    ] = None,
    model: Annotated[
        str, typer.Option("--judge", help="The judge's model: systems of its family are left out of the order.")
    ] = "",
    generator: Annotated[
        str, typer.Option("--generator", help="The model that wrote the queries: its family is left out as well.")
    ] = "",
    labels: Annotated[
        int | None, typer.Option(min=2, help="Draw that many of people's labels, to see what so many say.")
    ] = None,
    measure: Annotated[str, typer.Option("--measure", "-m", help="The measure that orders systems.")] = "nDCG@10",
    seed: Annotated[int, typer.Option(help="Draws the resamples, and the labels of --labels.")] = 0,
    as_json: options.Json = False,
) -> None:
    """Compare a judge's labels with people's: agreement on pairs, the order of systems, and what few labels say.

    Example: rusbeir judge people.qrels judge.qrels --judge gpt-4o --run bm25.run
    """
    from rusbeir.comparison import judge_labels
    from rusbeir.datasets import read_qrels, read_run

    agreement = judge_labels(
        read_qrels(qrels),
        read_qrels(judged),
        runs={path.name.removesuffix(".gz").removesuffix(".run"): read_run(path) for path in run or ()},
        judge=model,
        generator=generator,
        measure=measure,
        labels=labels,
        seed=seed,
    )
    if as_json:
        output.print_json(agreement.to_dict())
        return
    for line in agreement.conclusion:
        output.echo(line)
    rows = [
        [name, f"{figure.value:.3f}", f"{figure.interval[0]:.3f} to {figure.interval[1]:.3f}"]
        for name, figure in agreement.figures.items()
    ]
    output.print_table(["agreement", "value", "95 %"], rows, right=["value"])
    header = ["people \\ judge", *map(str, agreement.labels)]
    rows = [
        [str(label), *(f"{n:,}" for n in row)] for label, row in zip(agreement.labels, agreement.confusion, strict=True)
    ]
    output.print_table(header, rows, right=header[1:])
    if agreement.systems:
        rows = [
            [system.system, f"{100 * system.people:.2f}", f"{100 * system.judge:.2f}"] for system in agreement.systems
        ]
        header = [f"{measure} ×100", "people", "judge"]
        output.print_table(header, rows, right=header[1:], shortened=header[:1])
