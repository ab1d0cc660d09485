"""`rusbeir languages`: the languages, their profiles and their Elasticsearch mappings."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from rusbeir.cli import options, output
from rusbeir.text import write_command

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
    from rusbeir.retrieval import for_people

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
    from rusbeir.analysis import write_skeleton

    written = write_skeleton(code, folder, corpus)
    if as_json:
        output.print_json({"language": code, "written": [str(path) for path in written]})
        return
    for path in written:
        typer.echo(path)
    output.note(f"Next: edit them; then {write_command('languages', 'check', code, '--analyzers', folder)}")


@app.command()
def check(
    code: Annotated[str, typer.Argument(metavar="CODE", autocompletion=options.complete_languages)],
    lines: Annotated[
        Path | None, typer.Option("--lines", help="Test lines; <code>.tsv next to the language file if not given.")
    ] = None,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Check a language's test lines, and the traps of its script and language; exits 1 on a failure.

    Traps are what careless analysis gets wrong: words split at vowel signs, İ and ı, queries of nothing but stop words.
    Without test lines the traps alone are checked.

    Example: rusbeir languages check eo --analyzers my-languages
    """
    from rusbeir.analysis import check_lines, check_traps, read_language, read_lines

    path = lines or read_language(code).path.with_suffix(".tsv")
    read = read_lines(path) if lines or path.exists() else []
    traps = check_traps(code, read)
    failures = check_lines(code, read) + [failure for failure in traps.values() if failure]
    if as_json:
        output.print_json({"language": code, "lines": len(read), "traps": list(traps), "failures": failures})
    else:
        for failure in failures:
            text, expected, found = (_show_invisible(failure[key]) for key in ("text", "expected", "found"))
            typer.echo(f"{failure['check']}: {text} -> {found}; expected {expected} ({failure['reason']})")
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
    found = list(terms.compare_terms(words, analyses))
    if as_json:
        signatures = {one.name: one.signature for one in analyses}
        output.print_json({"language": code, "signatures": signatures, "drift": [asdict(one) for one in found]})
        return
    for one in analyses:
        output.echo(f"{one.name}: {one.signature}")
    for pair in found:
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
    code: Annotated[str, typer.Argument(metavar="CODE", help="The language; of several, with commas: en,de.")],
    datasets: Annotated[list[str], typer.Argument(metavar="DATASET...", autocompletion=options.complete_datasets)],
    profile: Annotated[
        list[str] | None, typer.Option("--profile", help="A profile to compare with default; repeatable. All, if none.")
    ] = None,
    measure: Annotated[str, typer.Option("--measure", "-m", help="The measure to compare by.")] = "nDCG@10",
    engine: options.Engine = "auto",
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
    from rusbeir.language_trials import recipes

    codes = [options.read_language_tag(one) or one for one in code.split(",")]
    with output.progress() as progress:
        comparison = recipes.compare_recipes(
            codes, datasets, profile or (), measure=measure, engine=engine, out=out, split=split, progress=progress
        )
    if as_json:
        output.print_json(comparison.to_dict())
    elif markdown:
        typer.echo(recipes.to_markdown(comparison), nl=False)
    else:
        for one in comparison.datasets:
            output.echo(f"{one.dataset}: {one.n_queries:,} queries, {one.n_clusters:,} independent; {measure} ×100")
            header, rows = recipes.recipe_table(one, comparison.measure)
            output.print_table(header, rows, right=header[1:])
        output.note("Change: to the default profile. Intervals: 95 %, bootstrap; p: sign flips, MaxT over the changes.")
