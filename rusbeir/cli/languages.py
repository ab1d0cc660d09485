"""`rusbeir languages`: the languages, their profiles and their mappings for servers."""

from __future__ import annotations

import re
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from rusbeir.cli import options, output
from rusbeir.text import shorten, write_command

if TYPE_CHECKING:
    from rusbeir.analysis import Description
    from rusbeir.comparison import DatasetComparison

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

    language = describe_language(code)
    if as_json:
        output.print_json(language)
        return
    output.echo(f"{language['name']} ({language['language']})")
    for line in textwrap.wrap(language["why"], WIDTH):
        output.echo(line)
    extended = f", which extends rusbeir's {language['extends']}" if language["extends"] else ""
    output.echo(f"File: {language['path']}{extended}\n")
    output.print_table(["step", "value", "text", "terms without the step", "terms"], _step_cells(language))
    output.echo(f"\nProfiles: {', '.join(language['profiles'])}")
    output.echo(f"Cost, measured now: {_write_cost(language)}")
    output.note(f"What it gains on a dataset: {write_command('languages', 'compare', code, 'DATASET')}")


def _step_cells(language: Description) -> list[list[str]]:
    cells = []
    for step in language["steps"]:
        name, value = step["step"], step["value"]
        texts = [_show_invisible(step["text"]), _show_invisible(step["without"]), step["terms"]]
        cells.append([name, "" if value in name else shorten(value, 26), *(shorten(text, 24) for text in texts)])
    return cells


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
def new(
    code: Annotated[str, typer.Argument(metavar="CODE", help="Its BCP 47 code, such as eo.")],
    folder: Annotated[Path, typer.Option("--folder", "--out", help="Where the files are written.")] = Path(
        "my-languages"
    ),
    corpus: Annotated[
        Path | None,
        typer.Option("--corpus", help="Text in the language: its commonest words may be stop words."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Start a language: write the best file of what is installed, test lines and, from --corpus, stop word candidates.

    If rusbeir has the language, its files are copied, stop list included. Where NTREX-128 has it, the file is measured.

    Example: rusbeir languages new eo
    """
    from rusbeir.analysis import write_skeleton
    from rusbeir.errors import MissingExtra
    from rusbeir.language_trials import proposal

    written = write_skeleton(code, folder, corpus)
    comparison = None
    try:
        with output.progress() as progress:
            comparison = proposal.measure_file(code, folder, progress)
    except MissingExtra as error:
        # The files are there all the same.
        output.note(f"Not measured: {error}")
    advice = proposal.advise(code, folder)
    if as_json:
        measured = comparison.to_dict() if comparison else None
        output.print_json(
            {"language": code, "written": [str(path) for path in written], "ntrex": measured, "would_help": advice}
        )
        return
    for path in written:
        typer.echo(path)
    if comparison:
        _print_proposal(comparison.datasets[0])
    for line in advice:
        output.echo(f"Would help: {line}.")
    output.note(f"Next: edit them; then {write_command('languages', 'check', code, '--analyzers', folder)}")


def _print_proposal(comparison: DatasetComparison) -> None:
    from rusbeir.language_trials import proposal

    means = {score.system: f"{100 * score.mean:.1f}" for score in comparison.systems}
    names = {"bm25(profile=raw)": "raw", proposal.WITHOUT_FILE: "without a file"}
    output.echo(f"{comparison.dataset}, {proposal.MEASURE} ×100: this file {means['bm25']}")
    for pair in comparison.pairs:
        gain, high, low = (round(-100 * value, 1) + 0.0 for value in (pair.difference, *pair.interval))
        change = f"{gain:+.1f}, 95 % interval {low:+.1f} … {high:+.1f}"
        output.echo(f"{names[pair.first]} {means[pair.first]}, so the file gains {change}")


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


@app.command()
def drift(
    code: Annotated[
        str,
        typer.Argument(metavar="CODE", callback=options.read_language_tag, autocompletion=options.complete_languages),
    ],
    texts: Annotated[list[Path], typer.Argument(metavar="TEXT...", help="Files of text in the language, in UTF-8.")],
    profile: Annotated[str, typer.Option("--profile", help="The profile that makes rusbeir's terms.")] = "default",
    save: Annotated[
        Path | None, typer.Option("--save", help="Write the terms to a file, to compare a later version with.")
    ] = None,
    against: Annotated[
        list[Path] | None, typer.Option("--against", help="A file that an older version wrote by --save; repeatable.")
    ] = None,
    es_url: options.EsUrl = None,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Print the share of tokens with other terms on the server, which is asked unless --save or --against is given.

    Each word is analysed alone. Terms that are spelled otherwise but join the same words find the same documents.

    Example: rusbeir languages drift ru news.txt --against terms-of-0.1.tsv
    """  # fmt: skip
    from rusbeir.language_trials import term_changes as terms

    words = terms.count_words(code, profile, texts)
    analyses = [terms.analyze_words(code, profile, words)]
    analyses += [terms.read_terms(path, code) for path in against or ()]
    if es_url or not (save or against):
        from rusbeir.retrieval import connect

        analyses.append(terms.ask_server(connect(es_url or ""), code, words))
    if save:
        terms.save_terms(save, analyses[0])
    changes = list(terms.compare_terms(words, analyses))
    if as_json:
        signatures = {analysis.name: analysis.signature for analysis in analyses}
        output.print_json({"language": code, "signatures": signatures, "drift": [asdict(pair) for pair in changes]})
        return
    for analysis in analyses:
        output.echo(f"{analysis.name}: {analysis.signature}")
    for pair in changes:
        more = f"; {pair.n_unknown:,} more tokens are not in one of them" if pair.n_unknown else ""
        output.echo(
            f"\n{pair.first} and {pair.second}, of {pair.n_tokens:,} tokens: {100 * pair.differ:.2f} % have other "
            f"terms, {100 * pair.join_others:.2f} % are joined with other words{more}"
        )
        if pair.examples:
            table = [[word, f"{count:,}", first, second] for word, count, first, second in pair.examples]
            output.print_table(["word", "tokens", pair.first, pair.second], table, right=["tokens"])
    if save:
        output.note(f"{len(words):,} words: {save}")


@app.command()
def compare(
    code: Annotated[
        str | None, typer.Argument(metavar="CODE", help="The language; of several, with commas: en,de.")
    ] = None,
    datasets: Annotated[
        list[str] | None, typer.Argument(metavar="DATASET...", autocompletion=options.complete_datasets)
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All languages on NTREX-128, in place of CODE and DATASET.")
    ] = False,
    profile: Annotated[
        list[str] | None, typer.Option("--profile", help="A profile to compare with default; repeatable. All, if none.")
    ] = None,
    measure: Annotated[str, typer.Option("--measure", "-m", help="The measure to compare by.")] = "nDCG@10",
    engine: options.Engine = "auto",
    es_url: options.EsUrl = None,
    split: options.Split = None,
    out: options.Out = Path("results"),
    analyzers: options.Analyzers = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a Markdown table, a row for each dataset.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Compare the recipes that can be had for a language: BM25 by each profile, and its difference to the default.

    Queries with the same relevant documents, such as those about one paragraph, count as one in intervals and tests.

    Example: rusbeir languages compare ru xquad/ru
    """
    from rusbeir.errors import BadInput

    if every:
        if code or profile or split:
            raise BadInput("--all compares all languages by the same profiles: leave out CODE, --profile and --split.")
        server = options.engine_at("elasticsearch", es_url) if es_url else ""
        _compare_all(measure, engine, server, out, markdown=markdown, as_json=as_json)
        return
    if not (code and datasets):
        raise BadInput("Name a language and datasets in it, such as ru xquad/ru, or give --all.")
    from rusbeir.language_trials import recipes

    codes = [options.read_language_tag(tag) or tag for tag in code.split(",")]
    with output.progress() as progress:
        comparison = recipes.compare_recipes(
            codes,
            datasets,
            profile or (),
            measure=measure,
            engine=options.engine_at(engine, es_url),
            out=out,
            split=split,
            progress=progress,
        )
    if as_json:
        output.print_json(comparison.to_dict())
    elif markdown:
        typer.echo(recipes.to_markdown(comparison), nl=False)
    else:
        for dataset in comparison.datasets:
            counts = f"{dataset.n_queries:,} queries, {dataset.n_clusters:,} independent"
            output.echo(f"{dataset.dataset}: {counts}; {measure} ×100")
            header, rows = recipes.recipe_table(dataset, comparison.measure)
            output.print_table(header, rows, right=header[1:])
        output.note("Change: to the default profile. Intervals: 95 %, bootstrap; p: sign flips, MaxT over the changes.")


def _compare_all(measure: str, engine: str, server: str, out: Path, *, markdown: bool, as_json: bool) -> None:
    from rusbeir.language_trials import every_language

    with output.progress() as progress:
        known, others = every_language.compare_languages(
            measure=measure, engine=engine, server=server, out=out, progress=progress
        )
    if as_json:
        output.print_json({"languages": known.to_dict(), "without_a_file": others.to_dict()})
        return
    for comparison, has_file in ((known, True), (others, False)):
        header, rows = every_language.tabulate_languages(comparison, has_file=has_file)
        if markdown:
            lines = [header, ["---"] * len(header), *rows]
            typer.echo("".join(f"| {' | '.join(line)} |\n" for line in lines))
        else:
            output.print_table(header, rows, right=header[2:])
    if not markdown:
        output.note(f"{measure} ×100 on NTREX-128; intervals: 95 %, bootstrap over its documents.")
        output.note("The second table: languages without a file, whose default blends words with runs of characters.")
