"""`rusbeir systems`: what there is to search with, and what of it runs here."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from rusbeir import __version__
from rusbeir.cli import options, output
from rusbeir.errors import unknown

SYSTEMS, ENGINES, RUNTIMES, MODELS = "systems", "engines", "runtimes", "models"


def systems(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WHAT...]", help="systems, engines, runtimes or models; by default all of them."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """List systems with their options, engines, runtimes and models, and which of them run on this machine.

    Nothing is downloaded. A model of the hub that is not listed is named by its repository: dense(owner/name).

    Example: rusbeir systems models
    """
    from rusbeir.retrieval import read_catalogue

    kinds = (SYSTEMS, ENGINES, RUNTIMES, MODELS)
    for name in what or ():
        if name not in kinds:
            raise unknown("list", name, kinds, owner="rusbeir systems")
    catalogue = read_catalogue()
    if as_json:
        document = asdict(catalogue)
        output.print_json({"version": __version__, **{name: document[name] for name in what or kinds}})
        return
    tables = {
        SYSTEMS: (
            ["system", "what it does", "example", "options"],
            [[entry.name, entry.about, entry.example, " ".join(entry.options)] for entry in catalogue.systems],
        ),
        ENGINES: (
            ["engine", "what it does", "installed"],
            [[entry.name, entry.about, entry.install or "yes"] for entry in catalogue.engines],
        ),
        RUNTIMES: (
            ["runtime", "for", "installed"],
            [[entry.name, entry.kind, entry.install or "yes"] for entry in catalogue.runtimes],
        ),
        MODELS: (
            ["model", "for", "million parameters", "licence", "runs"],
            [
                [
                    entry.name,
                    entry.kind,
                    f"{entry.parameters / 1e6:,.0f}" if entry.parameters else "?",
                    entry.licence or "?",
                    entry.runs,
                ]
                for entry in catalogue.models
            ],
        ),
    }
    for number, name in enumerate(what or kinds):
        header, rows = tables[name]
        if number:
            output.echo("")
        output.print_table(header, rows, right=["million parameters"])
    output.note("download: its runtime is installed, its files are fetched when it is used first.")
