"""`rusbeir reproduce`: published figures, measured again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rusbeir.cli import options, output


def reproduce(
    about: Annotated[
        str | None, typer.Argument(help="Only figures whose source, dataset or system contains this: rusbeir, scifact.")
    ] = None,
    fetch: Annotated[bool, typer.Option("--fetch", help="Download the data that are not at hand.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the figures without measuring.")] = False,
    out: options.Out = Path("results"),
    as_json: options.Json = False,
) -> None:
    """Measure published figures again: published, ours, the difference, and what is known to cause it.

    Example: rusbeir reproduce xquad
    """
    from rusbeir.reproduction import published_figures
    from rusbeir.reproduction import reproduce as run

    figures = published_figures(about)
    if list_:
        output.print_table(
            ["source", "dataset", "system", "published"],
            [
                [
                    figure.source,
                    figure.dataset,
                    figure.system,
                    ", ".join(f"{m} {v:.2f}" for m, v in figure.values.items()),
                ]
                for figure in figures
            ],
        )
        return
    with output.progress() as progress:
        rows = list(run(figures, out=out, fetch=fetch, progress=progress))
    if as_json:
        output.print_json({"figures": [row.to_dict() for row in rows]})
    else:
        output.print_table(
            ["dataset", "system", "measure", "over", "published", "ours", "difference", "known cause"],
            [
                [
                    row.dataset,
                    row.system,
                    row.measure,
                    row.over,
                    f"{row.published:.2f}",
                    "–" if row.ours is None else f"{row.ours:.2f}",
                    "not at hand" if row.difference is None else f"{row.difference:+.2f}",
                    row.cause if row.holds is not None else "",
                ]
                for row in rows
            ],
            right=["published", "ours", "difference"],
            shortened=["system"],
            optional=["known cause", "over"],
        )
        for missing in dict.fromkeys(f"{row.dataset}: {row.missing}" for row in rows if row.missing):
            output.note(missing)
    measured = [row for row in rows if row.holds is not None]
    differing = [row for row in measured if not row.holds]
    output.note(
        f"{len(rows)} published values: {len(measured)} measured, {len(differing)} differ by more than is claimed, "
        f"{len(rows) - len(measured)} not at hand."
    )
    if differing:
        raise typer.Exit(1)
