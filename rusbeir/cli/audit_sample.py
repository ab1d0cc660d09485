"""`rusbeir audit judge`, `sheet` and `agree`: a sample of a port scored by a model and by people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rusbeir.cli import options, output

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a port.")]
Source = Annotated[
    str | None,
    typer.Option("--source", help="The dataset that was translated, where the port does not name it."),
]
Number = Annotated[int, typer.Option("-n", min=1, help="Number of texts in the sample.")]
Seed = Annotated[
    int,
    typer.Option("--seed", help="Seed of the sample; with the same seed, the judge and people score the same texts."),
]


def judge(
    folder: Folder,
    llm: Annotated[str, typer.Option("--llm", help="Model at OPENAI_BASE_URL.")],
    n: Number = 100,
    seed: Seed = 0,
    source: Source = None,
    budget_cost: options.BudgetCost = None,
    input_price: Annotated[float, typer.Option("--input-price", help="Price per million tokens sent.")] = 0.0,
    output_price: Annotated[float, typer.Option("--output-price", help="Price per million tokens received.")] = 0.0,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Requests at the same time.")] = 4,
    as_json: options.Json = False,
) -> None:
    """Let a language model score a sample of a checked port: accuracy, fluency, completeness, style, 1 to 5.

    Example: rusbeir audit judge scifact-es --llm qwen3-30b -n 200
    """
    from rusbeir.audit.judge import judge_port

    with output.progress() as progress:
        report = judge_port(
            folder,
            llm=llm,
            n=n,
            seed=seed,
            source=source,
            budget_cost=budget_cost,
            input_price=input_price,
            output_price=output_price,
            concurrency=concurrency,
            progress=progress,
            tell=output.note,
        )
    if as_json:
        output.print_json(report)
        return
    output.print_table(
        ["dimension", "mean of the sample", "weighted to the port"],
        [[name, f"{row['sample']:.2f}", f"{row['port']:.2f}"] for name, row in report["means"].items()],
        right=["mean of the sample", "weighted to the port"],
    )
    output.note(
        f"{report['judged']:,} of {report['n']:,} texts judged, {report['invalid']:,} without a valid answer; "
        f"{report['invalid_answers']:,} of {report['answers']:,} answers were invalid. {report['judge']}"
    )


def sheet(
    folder: Folder,
    n: Number = 100,
    seed: Seed = 0,
    raters: Annotated[int, typer.Option("--raters", min=1, help="Number of sheets, each in a different order.")] = 2,
    duplicates: Annotated[
        int | None, typer.Option("--duplicates", help="Number of texts that are repeated; default: a tenth.")
    ] = None,
    source: Source = None,
    as_json: options.Json = False,
) -> None:
    """Write sheets for blind human scoring of a sample of a checked port: CSV, XLSX and an HTML page each.

    Example: rusbeir audit sheet scifact-es -n 120 --raters 2
    """
    from rusbeir.audit.sheets import make_sheets

    with output.progress() as progress:
        paths = make_sheets(
            folder, n=n, seed=seed, raters=raters, duplicates=duplicates, source=source, progress=progress
        )
    if as_json:
        output.print_json({"sheets": [str(path) for path in paths]})
        return
    for path in paths:
        output.echo(str(path))
    output.note(
        f"{len(paths)} files written. Give each rater one; when filled in: rusbeir audit agree SHEETS --port {folder}"
    )


def agree(
    sheets: Annotated[list[Path], typer.Argument(metavar="SHEETS...", help="Filled sheets: .csv or .xlsx.")],
    port: Annotated[
        Path | None, typer.Option("--port", help="The port of the sheets: checks their ids and adds its judge.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the bootstraps.")] = 0,
    as_json: options.Json = False,
) -> None:
    """Measure how far people agree with each other, with themselves and with the judge.

    Example: rusbeir audit agree anna.csv boris.xlsx --port scifact-es
    """
    from rusbeir.audit.agreement import agree as measure_agreement

    report = measure_agreement(sheets, port=port, seed=seed)
    if as_json:
        output.print_json(report)
        return
    header = ["dimension", "raters", "texts", "within 1", "MAE", "κ quadratic"]
    rows = []
    for name, found in report["dimensions"].items():
        pairs = [(" and ".join(row["raters"]), row) for row in found["pairs"]]
        pairs += [(f"{rater}, twice", row) for rater, row in found["self"].items()]
        rows += [
            [
                name,
                who,
                f"{row['n']:,}",
                f"{row['within_one']:.1%}",
                f"{row['mean_absolute_error']:.2f}",
                _format_value(row["kappa"]),
            ]
            for who, row in pairs
        ]
    output.print_table(header, rows, right=header[2:])
    output.print_table(
        ["dimension", "α of people", "95 %", "α with the judge"],
        [
            [name, *_format_alpha(found["alpha"]), _format_alpha(found["alpha_with_judge"])[0]]
            for name, found in report["dimensions"].items()
        ],
        right=["α of people", "95 %", "α with the judge"],
    )
    for row in report["disagreements"][:10]:
        given = ", ".join(f"{rater} {score}" for rater, score in row["scores"].items())
        output.note(f"{row['item']} {row.get('kind', '')} {row.get('id', '')}: {row['dimension']}: {given}")
    output.note(f"{len(report['disagreements'])} disagreements of two points or more; --json lists them.")


def _format_value(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _format_alpha(found: dict[str, Any] | None) -> tuple[str, str]:
    if found is None:
        return "", ""
    interval = "" if found["low"] is None else f"{found['low']:.3f} to {found['high']:.3f}"
    return _format_value(found["value"]), interval
