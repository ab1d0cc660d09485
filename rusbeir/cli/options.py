"""Options that several verbs share, spelled once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from rusbeir.cli import complete

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
Lang: TypeAlias = Annotated[
    str | None, typer.Option("--lang", help="Language of a path that has no card (BCP 47, such as ru).")
]
Split: TypeAlias = Annotated[str | None, typer.Option("--split", help="Split of a path, such as test.")]
System: TypeAlias = Annotated[
    str,
    typer.Option(
        "--system",
        help="A system, such as bm25 or 'bm25(profile=rusbeir-paper)'.",
        autocompletion=complete.systems,
    ),
]
Engine: TypeAlias = Annotated[
    str, typer.Option("--engine", help="auto, tantivy or bm25s.", autocompletion=complete.engines)
]
Depth: TypeAlias = Annotated[int, typer.Option("-k", min=1, help="Hits kept per query.")]
DatasetName: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="DATASET",
        help="A registered name (see `rusbeir datasets`) or a path.",
        autocompletion=complete.datasets,
    ),
]
Out: TypeAlias = Annotated[Path, typer.Option("--out", help="Folder for rows and runs.")]
Measures: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--measure", "-m", help="A measure by its ir-measures name, such as nDCG@10; repeatable."),
]
