"""`rusbeir publish`: one folder of a dataset that every tool loads."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from rusbeir.cli import options, output
from rusbeir.errors import BadInput


def publish(
    dataset: options.DatasetName,
    to: Annotated[Path, typer.Option("--to", help="The new folder.")],
    target: Annotated[
        str | None,
        typer.Option(
            "--for", help="Write judgements for an engine's evaluator: rank-eval, search-relevance or quepid."
        ),
    ] = None,
    index: Annotated[str, typer.Option("--index", help="With --for: the index that is searched.")] = "",
    body: Annotated[
        Path | None,
        typer.Option("--body", help="With --for: a file with the body of a search that has {{query}} in it."),
    ] = None,
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

    Nothing is uploaded. With --for, judgements are written as the evaluators of search engines take them, for your own
    server; nothing but ids, grades and queries is in them.

    Example: rusbeir publish scifact-kk --to scifact-kk-published
    """
    from rusbeir.publishing import publish as publish_one

    if target is not None:
        _publish_for(target, dataset, to, index, body, lang, split, as_json)
        return
    if index or body:
        raise BadInput("The index and the body of a search are for an evaluator: name it with --for.")
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


def _publish_for(
    target: str,
    dataset: str,
    to: Path,
    index: str,
    body: Path | None,
    lang: str | None,
    split: str | None,
    as_json: bool,
) -> None:
    from rusbeir.publishing import publish_for

    with output.progress() as progress:
        report = publish_for(
            target, dataset, to=to, index=index, body=body, language=lang, split=split, progress=progress
        )
    if as_json:
        output.print_json(report)
        return
    output.print_table(["file", "sent to"], [[row["file"], row["sent_to"]] for row in report["files"]])
    notes = [f"{report['dataset']}: {report['n_queries']:,} queries, {report['n_qrels']:,} judgements"]
    if report["n_merged"]:
        notes.append(f"{report['n_merged']:,} have the text of another, and are one with it")
    if report["n_changed"]:
        notes.append(f"{report['n_changed']:,} lost characters that the workbench refuses")
    if report.get("measure"):
        notes.append(f"its number is the mean over all files, and rusbeir's {report['measure']}")
    output.note("; ".join(notes) + ".")
