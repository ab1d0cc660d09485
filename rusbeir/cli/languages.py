"""`rusbeir languages`: the languages, their profiles and their mappings for servers."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from rusbeir.cli import options, output
from rusbeir.cli.language_trials import compare, drift, new
from rusbeir.text import shorten, write_command

if TYPE_CHECKING:
    from rusbeir.analysis import Description

WIDTH = 110
"""Columns of what a person reads about a language."""


class _Languages(TyperGroup):
    """The verb, for which `rusbeir languages kk` is `rusbeir languages show kk`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands and _is_language(args[0]):
            args = ["show", *args]
        return super().resolve_command(ctx, args)


def _is_language(text: str) -> bool:
    """Whether the text is written as a tag, such as kk or zh-Hans, or is a name of a language."""
    from rusbeir.languages import read_language_tag

    return re.fullmatch("[A-Za-z]{2,3}([-_][A-Za-z0-9]+)*", read_language_tag(text)) is not None


app = typer.Typer(
    cls=_Languages,
    invoke_without_command=True,
    help="List the languages, show one (rusbeir languages kk), start or check one.\n\nExample: rusbeir languages kk",
)


@app.callback()
def languages(context: typer.Context, analyzers: options.Analyzers = None, as_json: options.Json = False) -> None:
    """List the languages, and what the default profile takes words to; show one: rusbeir languages kk.

    Example: rusbeir languages
    """
    if context.invoked_subcommand is not None:
        return
    from rusbeir.analysis import language_files, read_language
    from rusbeir.errors import RusbeirError

    rows: list[dict[str, Any]] = []
    table: list[list[str]] = []
    profiles: dict[str, list[str]] = {}
    for code, path in language_files().items():
        row: dict[str, Any] = {
            "language": code, "name": "", "why": "", "profiles": {}, "path": str(path), "error": None
        }  # fmt: skip
        try:
            language = read_language(code)
            signatures = {name: recipe.signature for name, recipe in language.profiles.items()}
            row |= {"name": language.name, "why": language.why, "profiles": signatures}
            profiles[code] = list(signatures)
            recipe = language.profiles["default"]
            table.append([code, language.name, recipe.lemmas, recipe.stemmer, recipe.stop.name])
        except RusbeirError as error:
            row["error"] = str(error)
        rows.append(row)
    if as_json:
        output.print_json(rows)
        return
    common = [name for name in next(iter(profiles.values()), []) if all(name in names for names in profiles.values())]
    special = [", ".join(name for name in profiles[cells[0]] if name not in common) for cells in table]
    output.print_table(
        ["code", "name", "lemmas", "stemmer", "stop words", "more profiles"],
        [[*cells, names] for cells, names in zip(table, special, strict=True)],
    )
    output.note(f"Each has the profiles {', '.join(common)}. Show one: {write_command('languages', 'ru')}")
    for row in rows:
        if row["error"]:
            output.note(f"{row['language']} cannot be used: {row['error']}")


@app.command()
def show(
    code: Annotated[
        str,
        typer.Argument(metavar="CODE", callback=options.read_language_tag, autocompletion=options.complete_languages),
    ],
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Show a language: its steps with examples, why they are these, its profiles, and what it costs.

    Example: rusbeir languages kk
    """
    from rusbeir.analysis import describe_language
    from rusbeir.language_trials import every_language

    language = describe_language(code)
    if as_json:
        output.print_json({**language, "ntrex": every_language.find_trials(code)})
        return
    output.echo(f"{language['name']} ({language['language']})")
    for line in textwrap.wrap(language["why"], WIDTH):
        output.echo(line)
    extended = f", which extends rusbeir's {language['extends']}" if language["extends"] else ""
    output.echo(f"File: {language['path']}{extended}\n")
    output.print_table(["step", "value", "text", "terms without the step", "terms"], _step_cells(language))
    output.echo(f"\nProfiles: {', '.join(language['profiles'])}")
    for line in _write_gains(code):
        output.echo(line)
    output.echo(f"Cost, measured now: {_write_cost(language)}")
    output.note(f"What it gains on a dataset: {write_command('languages', 'compare', code, 'DATASET')}")


def _step_cells(language: Description) -> list[list[str]]:
    cells = []
    for step in language["steps"]:
        name, value = step["step"], step["value"]
        texts = [_show_invisible(step["text"]), _show_invisible(step["without"]), step["terms"]]
        cells.append([name, "" if value in name else shorten(value, 26), *(shorten(text, 24) for text in texts)])
    return cells


def _write_gains(code: str) -> Iterator[str]:
    """Write what the default profile gains over others on each text of the language in the table that rusbeir ships."""
    from rusbeir.language_trials import every_language

    for trial in every_language.find_trials(code):
        profiles = {"raw": "raw", "server": "the server's own analyzer", "snowball": "snowball"}
        gains = [
            f"over {name} ({100 * trial['means'][profile]:.1f}) {every_language.write_gain(trial['gains'][profile])}"
            for profile, name in profiles.items()
            if profile in trial["gains"]
        ]
        mean = f"{100 * trial['means'][trial['default']]:.1f}"
        measure = every_language.read_trials()["measure"]
        yield f"ntrex/{trial['tag']}, {measure} ×100: default ({trial['default']}) {mean}"
        yield f"Gain {'; '.join(gains)}"


def _write_cost(language: Description) -> str:
    cost = language["cost"]
    packages = [f"{row['name']} {row['version']} ({row['megabytes']} MB)" for row in cost["packages"]]
    return (
        f"{cost['load_seconds']} s to load, {cost['new_words_per_second']:,} new words/s; "
        f"packages: {', '.join(packages) or 'none'}"
    )


@app.command()
def mapping(
    language: Annotated[
        str,
        typer.Argument(
            metavar="LANGUAGE", callback=options.read_language_tag, autocompletion=options.complete_languages
        ),
    ],
    client: options.ClientTerms = False,
    plugin: options.Plugin = False,
    profile: options.Bm25Profile = "",
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Print the body with which to create an index on a server for a language; --json changes nothing.

    Example: rusbeir languages mapping ru
    """
    from rusbeir.retrieval import for_people

    output.print_json(for_people(language, profile, client=client, plugin=plugin))


@app.command()
def check(
    code: Annotated[str, typer.Argument(metavar="CODE", autocompletion=options.complete_languages)],
    lines: Annotated[
        Path | None,
        typer.Option("--lines", help="Test lines; by default <code>.tsv next to the language file, else rusbeir's."),
    ] = None,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Check a language's test lines, and the traps of its script and language; exits 1 on a failure.

    Traps are what careless analysis gets wrong: words split at vowel signs, İ and ı, queries of nothing but stop words.
    Without test lines the traps alone are checked.

    Example: rusbeir languages check eo --analyzers my-languages
    """
    from rusbeir.analysis import check_lines, check_traps, find_lines, read_lines

    path = lines or find_lines(code)
    read = read_lines(path) if path else []
    traps = check_traps(code, read)
    failures = check_lines(code, read) + [failure for failure in traps.values() if failure]
    if as_json:
        output.print_json({"language": code, "lines": len(read), "traps": list(traps), "failures": failures})
    else:
        for failure in failures:
            text, expected, actual = (_show_invisible(failure[key]) for key in ("text", "expected", "found"))
            typer.echo(f"{failure['check']}: {text} -> {actual}; expected {expected} ({failure['reason']})")
        known = f"{len(read)} lines of {path}" if read else "no test lines"
        typer.echo(f"{known}, {len(traps)} traps: {len(failures)} failures")
    if failures:
        raise typer.Exit(1)


def _show_invisible(text: str) -> str:
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


for verb in (new, drift, compare):
    app.command()(verb)
