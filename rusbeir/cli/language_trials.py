"""`rusbeir languages new`, `drift` and `compare`: what recipes of a language are worth, measured on texts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rusbeir.cli import options, output
from rusbeir.text import write_command

if TYPE_CHECKING:
    from rusbeir.comparison import DatasetComparison
    from rusbeir.language_trials import Trials


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
        if code or profile or split or engine != "auto":
            raise BadInput(
                "--all compares all languages by the same profiles in memory: leave out CODE, --profile, --split and "
                "--engine."
            )
        server = options.engine_at("elasticsearch", es_url) if es_url else ""
        _compare_all(measure, server, out, markdown=markdown, as_json=as_json)
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


def _compare_all(measure: str, server: str, out: Path, *, markdown: bool, as_json: bool) -> None:
    from rusbeir.language_trials import every_language

    with output.progress() as progress:
        trials = every_language.compare_languages(measure=measure, server=server, out=out, progress=progress)
    if as_json:
        output.print_json(trials)
        return
    for header, rows in every_language.tabulate_trials(trials["languages"]):
        if markdown:
            lines = [header, ["---"] * len(header), *rows]
            typer.echo("".join(f"| {' | '.join(line)} |\n" for line in lines))
        else:
            output.print_table(header, rows, right=header[2:])
    if not markdown:
        _note_trials(trials)


def _note_trials(trials: Trials) -> None:
    output.note(f"{trials['measure']} ×100 on NTREX-128; intervals: 95 %, bootstrap over its documents.")
    output.note(
        f"{trials['n_with_file']} texts are in languages with a file; their default profile is significantly below raw "
        f"in {', '.join(trials['below_raw']) or 'none'}."
    )
    output.note("The second table: languages without a file, whose default blends words with runs of characters.")
