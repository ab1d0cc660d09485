"""`rusbeir languages`: the languages, their profiles and their Elasticsearch mappings."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rusbeir.cli import options, output

app = typer.Typer(
    invoke_without_command=True,
    help="List the languages with their profiles, or print an Elasticsearch mapping.\n\nExample: rusbeir languages",
)


@app.callback()
def languages(context: typer.Context, analyzers: options.Analyzers = None, as_json: options.Json = False) -> None:
    """List the languages with their profiles, and what the default profile takes words to.

    Example: rusbeir languages
    """
    if context.invoked_subcommand is not None:
        return
    from rusbeir.analysis import language_files, read_language
    from rusbeir.errors import RusbeirError

    rows: list[dict[str, Any]] = []
    table: list[list[str]] = []
    for code, path in language_files().items():
        row: dict[str, Any] = {"language": code, "name": "", "profiles": {}, "path": str(path), "error": None}
        try:
            language = read_language(code)
            signatures = {name: recipe.signature for name, recipe in language.profiles.items()}
            row |= {"name": language.name, "profiles": signatures}
            recipe = language.profiles["default"]
            table.append([code, language.name, ", ".join(signatures), recipe.lemmas, recipe.stemmer, recipe.stop.name])
        except RusbeirError as error:
            row["error"] = str(error)
        rows.append(row)
    if as_json:
        output.print_json(rows)
        return
    output.print_table(["language", "name", "profiles", "lemmas", "stemmer", "stop words"], table)
    for row in rows:
        if row["error"]:
            output.note(f"{row['language']} cannot be used: {row['error']}")


@app.command()
def mapping(
    language: Annotated[
        str,
        typer.Argument(
            metavar="LANGUAGE", callback=options.read_language_tag, autocompletion=options.complete_languages
        ),
    ],
    client: Annotated[
        bool, typer.Option("--client", help="For terms that rusbeir made, instead of the server's own analyzer.")
    ] = False,
    profile: Annotated[str, typer.Option("--profile", help="A profile of BM25: its k1, b and fields.")] = "",
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Print the body with which to create an Elasticsearch index for a language; --json changes nothing.

    Example: rusbeir languages mapping ru
    """
    from rusbeir.retrieval.elasticsearch.mappings import for_people

    output.print_json(for_people(language, profile, client=client))
