"""`rusbeir es`: rusbeir's indexes on a server of Elasticsearch or OpenSearch, whether it is fit, and its mappings."""

from __future__ import annotations

from typing import Annotated

import typer

from rusbeir.cli import options, output

app = typer.Typer(
    no_args_is_help=True, help="List and remove indexes on a server of Elasticsearch or OpenSearch; diagnose it."
)


@app.command("list")
def list_(es_url: options.EsUrl = None, as_json: options.Json = False) -> None:
    """List the indexes that rusbeir made there; others are not shown and never touched.

    Example: rusbeir es list
    """
    from rusbeir.retrieval import connect, list_indexes

    server = connect(es_url or "")
    rows = list_indexes(server)
    if as_json:
        output.print_json(rows)
        return
    output.print_table(
        ["name", "documents", "bytes", "state", "signature"],
        [
            [
                row["name"],
                _number(row["documents"]),
                _number(row["bytes"]),
                "closed" if row["closed"] else "published" if row["published"] else "loading",
                row["signature"],
            ]
            for row in rows
        ],
        right=["documents", "bytes"],
    )
    output.note(f"{len(rows)} at {server.address}")


@app.command()
def drop(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names as `rusbeir es list` shows them.")],
    es_url: options.EsUrl = None,
    as_json: options.Json = False,
) -> None:
    """Remove indexes that rusbeir made; if one of the names is wrong, none is removed.

    Example: rusbeir es drop rusbeir-bm25-0123456789ab
    """
    from rusbeir.retrieval import connect, drop

    server = connect(es_url or "")
    drop(server, *names)
    for name in names:
        output.note(f"{name}: removed from {server.address}")
    if as_json:
        output.print_json({"removed": names})


@app.command()
def doctor(es_url: options.EsUrl = None, as_json: options.Json = False) -> None:
    """Check everything that could be wrong with a server, and say what to do. Exit code 1 if anything is bad.

    Example: rusbeir es doctor --es-url https://search.example:9200
    """
    from rusbeir.retrieval import connect, examine

    diagnoses = list(examine(connect(es_url or "")))
    if as_json:
        output.print_json([diagnosis._asdict() for diagnosis in diagnoses])
    else:
        output.print_table(["what", "status", "found", "what to do"], [list(diagnosis) for diagnosis in diagnoses])
    if any(diagnosis.status == "bad" for diagnosis in diagnoses):
        raise typer.Exit(1)


@app.command()
def mapping(
    lang: Annotated[
        str, typer.Option("--lang", callback=options.read_language_tag, help="Language of the index (BCP 47).")
    ],
    client: options.ClientTerms = False,
    plugin: options.Plugin = False,
    profile: options.Bm25Profile = "",
    as_json: options.Json = False,
) -> None:
    """Print the body with which to create an index for a language, as `rusbeir languages mapping` does.

    Example: rusbeir es mapping --lang ru
    """
    from rusbeir.retrieval import for_people

    output.print_json(for_people(lang, profile, client=client, plugin=plugin))


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
