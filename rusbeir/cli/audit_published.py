"""`rusbeir audit published`: a port that others made, of which nothing is known but the source and the result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rusbeir.cli import options, output
from rusbeir.cli.audit_report import exit_by_gates, print_integrity


def published(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The dataset that was translated: a name or a path.")],
    port: Annotated[str, typer.Argument(metavar="PORT", help="Its translation, with the same ids: a name or a path.")],
    source_lang: Annotated[
        str | None,
        typer.Option("--source-lang", callback=options.read_language_tag, help="Language of a source without a card."),
    ] = None,
    lang: options.Lang = None,
    split: Annotated[
        str | None, typer.Option("--split", help="The split to check; default: all that both datasets have.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the report; default: PORT-audit in the working directory.")
    ] = None,
    gate: Annotated[
        str | None,
        typer.Option("--gate", help="Exit with 1 unless these conditions hold: 'collapse<=0.1%,dropped<=0'."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check a port that others made: what it lost, what became one text, what is not a translation of its source.

    Example: rusbeir audit published xquad/en xquad/ru
    """
    from rusbeir.audit import check_published, parse_gates

    gates = parse_gates(gate) if gate else []
    with output.progress() as progress:
        report = check_published(
            source,
            port,
            source_language=source_lang,
            language=lang,
            split=split,
            out=out,
            gates=gates,
            progress=progress,
        )
    if as_json:
        output.print_json(report)
    else:
        print_integrity(report)
    exit_by_gates(report, gate, as_json=as_json)
