"""`rusbeir publish`: one folder of a dataset that every tool loads."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from rusbeir.cli import options, output


def publish(
    dataset: options.DatasetName,
    to: Annotated[Path, typer.Option("--to", help="The new folder.")],
    lang: options.Lang = None,
    split: Annotated[str | None, typer.Option("--split", help="A split of a path; default: all of them.")] = None,
    validity: Annotated[
        Path | None, typer.Option("--validity", help="What rusbeir validity --json printed of it; the card repeats it.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="The name under which it is published.")] = None,
    licence: options.Licence = None,
    source_url: options.SourceUrl = None,
    author: options.Author = None,
    citation: options.Citation = None,
    i_have_permission: Annotated[
        bool,
        typer.Option("--i-have-permission", help="The owners permit what the licence does not; the card repeats this."),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Write a dataset for others: Parquet and a card for the hub, BEIR's zip, TREC's tables, Croissant, a citation.

    Nothing is uploaded.

    Example: rusbeir publish scifact-kk --to scifact-kk-published
    """
    from rusbeir.publishing import publish as publish_one

    with output.progress() as progress:
        report = publish_one(
            dataset, to=to, language=lang, split=split, validity=validity, name=name, licence=licence,
            source_url=source_url, author=author, citation=citation, i_have_permission=i_have_permission,
            progress=progress,
        )  # fmt: skip
    if as_json:
        output.print_json(report)
        return
    output.print_table(["file"], [[name] for name in report["files"]])
    output.note(
        f"{report['dataset']}: {report['n_docs']:,} documents, {report['n_queries']:,} queries, licence "
        f"{report['licence']}; {report['sample_creation'] or 'how the texts were made is not stated'}. Read the card: "
        f"{to / 'README.md'}"
    )
    # An audit of this folder would be written there, with texts of the source.
    output.note(f"Upload it: hf upload OWNER/NAME {quote(str(to))} --repo-type dataset --exclude 'qa/*'")
