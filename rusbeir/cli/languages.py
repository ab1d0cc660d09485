"""`rusbeir languages`: the languages, their profiles and their Elasticsearch mappings."""

from __future__ import annotations

from pathlib import Path
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


@app.command()
def new(
    code: Annotated[str, typer.Argument(metavar="CODE", help="Its BCP 47 code, such as eo.")],
    folder: Annotated[Path, typer.Option("--folder", help="Where the two files are written.")] = Path("my-languages"),
    corpus: Annotated[
        Path | None,
        typer.Option("--corpus", help="Text in the language: its commonest words may be stop words."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Start a language: write its language file, test lines and, from --corpus, candidates for a stop list.

    Example: rusbeir languages new eo
    """
    from rusbeir.analysis.skeleton import write_skeleton

    written = write_skeleton(code, folder, corpus)
    if as_json:
        output.print_json({"language": code, "written": [str(path) for path in written]})
        return
    for path in written:
        typer.echo(path)
    output.note(f"Next: edit them; then rusbeir languages check {code} --analyzers {folder}")


@app.command()
def check(
    code: Annotated[str, typer.Argument(metavar="CODE", autocompletion=options.complete_languages)],
    lines: Annotated[
        Path | None, typer.Option("--lines", help="Test lines; <code>.tsv next to the language file if not given.")
    ] = None,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Check a language's test lines, and that their spelling by other characters changes no term; exits 1 on a failure.

    Example: rusbeir languages check eo --analyzers my-languages
    """
    from rusbeir.analysis import read_language
    from rusbeir.analysis.lines import check_lines, read_lines

    path = lines or read_language(code).path.with_suffix(".tsv")
    read = read_lines(path)
    failures = check_lines(code, read)
    if as_json:
        output.print_json({"language": code, "lines": len(read), "failures": failures})
    else:
        for failure in failures:
            typer.echo(f"{failure['check']}: {failure['text']} -> {failure['found']}; expected {failure['expected']}")
        typer.echo(f"{len(read)} lines of {path}: {len(failures)} failures")
    if failures:
        raise typer.Exit(1)
