"""`rusbeir compare`: which system is better, whether the difference is real, and what it costs."""

from __future__ import annotations

import sys
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rusbeir.cli import options, output
from rusbeir.errors import BadInput, option
from rusbeir.evaluation import PERMUTATIONS
from rusbeir.text import write_command

if TYPE_CHECKING:
    from rusbeir.comparison import Comparison


class Cells(StrEnum):
    """What the cells of a LaTeX table hold."""

    mean = "mean"
    interval = "interval"
    letters = "letters"


class SplitByLanguage(StrEnum):
    """The parts into which results on a pool of several languages are split."""

    queries = "queries"
    pairs = "pairs"


Results = Annotated[
    list[Path],
    typer.Argument(metavar="RESULTS...", help="Folders that `rusbeir bench --out` wrote; with --qrels also run files."),
]
Judgements = Annotated[
    str | None,
    typer.Option("--qrels", help="Judgements of the run files: TREC, tsv or JSON, or a dataset's name or folder."),
]
Corpus = Annotated[
    str | None, typer.Option("--corpus", help="Dataset whose texts a file of judgements is about: a name or folder.")
]
Measure = Annotated[str, typer.Option("--measure", "-m", help="The measure to compare by.")]
Data = Annotated[list[Path] | None, typer.Option("--data", help="Folder of a dataset that has no registered name.")]
ByLanguage = Annotated[
    SplitByLanguage | None,
    typer.Option(help="Split results on a pool by the language of queries, or by pairs with that of documents."),
]
AgainstPaper = Annotated[str | None, typer.Option(help="Print a paper's values next to ours: rusbeir.")]


def compare(
    results: Results,
    qrels: Judgements = None,
    corpus: Corpus = None,
    lang: options.Lang = None,
    measure: Measure = "nDCG@10",
    baseline: Annotated[str | None, typer.Option(help="Test only the differences to this system.")] = None,
    where: Annotated[
        str | None, typer.Option(help="Only queries for which this holds: 'query.words<=4 and query.relevant>1'.")
    ] = None,
    by_language: ByLanguage = None,
    data: Data = None,
    against_paper: AgainstPaper = None,
    rankings: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="DATASET DATASET", help="Only whether these two order the same systems in the same way."),
    ] = None,
    pairs: Annotated[bool, typer.Option("--pairs", help="Also print every tested difference.")] = False,
    pareto: Annotated[
        bool, typer.Option("--pareto", help="Also mark the Pareto-efficient systems: none is as good and as cheap.")
    ] = False,
    permutations: Annotated[int, typer.Option(min=100, help="Sign flips drawn.")] = PERMUTATIONS,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV, numbers unrounded.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print a LaTeX table (booktabs, siunitx).")] = False,
    cells: Annotated[
        Cells, typer.Option(help="With --latex: means alone, with intervals, or with letters of the systems beaten.")
    ] = Cells.mean,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Write a picture of means and intervals: .svg, .png or .pdf.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Compare the systems of result rows: means with intervals, tests of the differences, cost.

    Example: rusbeir compare results --baseline bm25

    Example: rusbeir compare --qrels qrels.tsv ours.run theirs.run
    """
    if rankings is not None:
        others = {
            "qrels": qrels, "corpus": corpus, "lang": lang, "baseline": baseline, "where": where, "data": data,
            "by_language": by_language, "against_paper": against_paper, "pairs": pairs, "pareto": pareto, "csv": csv,
            "latex": latex, "markdown": markdown, "plot": plot,
        }  # fmt: skip
        if conflicting := [option(name) for name, value in others.items() if value]:
            raise BadInput(f"{option('rankings')} does not go with {', '.join(conflicting)}.")
        _compare_rankings(results, *rankings, measure, as_json)
        return
    if pareto and (csv or latex or markdown):
        written = option("csv") if csv else option("latex") if latex else option("markdown")
        raise BadInput(f"{option('pareto')} marks tables on a terminal, pictures and JSON: leave out {written}.")
    from rusbeir.comparison import compare as run
    from rusbeir.comparison import tables

    comparison = run(
        results, qrels=qrels, corpus=corpus, language=lang, measure=measure, baseline=baseline, where=where,
        by_language=by_language and by_language.value, data=data or (), against_paper=against_paper,
        permutations=permutations,
    )  # fmt: skip
    if plot is not None:
        from rusbeir.comparison import draw

        draw(comparison, plot, efficient=pareto)
    if as_json:
        output.print_json(_add_efficient(comparison) if pareto else comparison.to_dict())
        return
    for is_chosen, write in (
        (csv, tables.to_csv),
        (latex, partial(tables.to_latex, cells=cells.value)),
        (markdown, tables.to_markdown),
    ):
        if is_chosen:
            sys.stdout.write(write(comparison))
            return
    if by_language is SplitByLanguage.pairs:
        _print_matrices(comparison)
    else:
        _print_comparison(comparison, pairs, pareto)
    if qrels is None:
        output.note(f"Next, look at the queries: {write_command('report', *results, '--out', 'site')}")


def _add_efficient(comparison: Comparison) -> dict[str, Any]:
    """Add the efficient systems of each dataset to what is printed as JSON."""
    from rusbeir.comparison import list_efficient

    document = comparison.to_dict()
    for compared, entry in zip(comparison.datasets, document["datasets"], strict=True):
        entry["efficient"] = list_efficient(compared.systems)
    return document


def _print_comparison(comparison: Comparison, pairs: bool, pareto: bool) -> None:
    """Print the conclusions, a table for each dataset and average, and what the marks mean."""
    from rusbeir.comparison import ABOUT_EFFICIENT, list_efficient, tables
    from rusbeir.datasets import label_dataset

    for line in comparison.conclusion:
        output.echo(line)
    for dataset in comparison.datasets:
        output.echo(f"\n{dataset.dataset}, {dataset.sample}, {comparison.measure} ×100")
        _print(*tables.score_table(dataset.systems, list_efficient(dataset.systems) if pareto else ()))
        if pairs:
            _print(*tables.pair_table(dataset.pairs))
    for average in comparison.languages:
        if len(average.datasets) > 1:
            where = label_dataset(average.language, average.language, average.query_language)
            output.echo(f"\nmean over {len(average.datasets)} datasets in {where}: {', '.join(average.datasets)}")
            _print(*tables.score_table(average.systems))
    _print_matrices(comparison)
    marks = [tables.describe_marks(comparison), *([ABOUT_EFFICIENT] if pareto else [])]
    for note in [*tables.list_notes(comparison), *marks]:
        output.echo(note)


def _print_matrices(comparison: Comparison) -> None:
    """Print a system's means in every pair of languages, and their averages."""
    from rusbeir.comparison import describe_averages, matrix_table

    for matrix in comparison.matrices:
        output.echo(
            f"\n{matrix.family}, {matrix.system}, {comparison.measure} ×100, a column for each language of documents"
        )
        _print(*matrix_table(matrix))
        output.echo(describe_averages(matrix))


def _compare_rankings(results: list[Path], first: str, second: str, measure: str, as_json: bool) -> None:
    from rusbeir.comparison import compare_rankings

    agreement = compare_rankings(results, first, second, measure=measure)
    if as_json:
        output.print_json(agreement.to_dict())
        return
    for line in agreement.conclusion:
        output.echo(line)
    for name, correlation in agreement.correlations.items():
        output.echo(f"{name}: {correlation}")
    output.echo(f"\n{measure} ×100")
    rows = [
        [
            ranked.system,
            f"{100 * ranked.first:.2f}",
            str(ranked.rank_first),
            f"{100 * ranked.second:.2f}",
            str(ranked.rank_second),
        ]
        for ranked in agreement.systems
    ]
    header = ["system", first, "rank", second, "rank there"]
    output.print_table(header, rows, right=header[1:], shortened=["system"])


def _print(header: list[str], rows: list[list[str]]) -> None:
    shortened = [name for name in ("system", "first", "second") if name in header]
    optional = [name for name in ("peak MB", "tied", "effect", "p Holm", "no hit", "MB", "index s") if name in header]
    output.print_table(
        header,
        rows,
        right=[name for name in header[1:] if name not in shortened],
        shortened=shortened,
        optional=optional,
    )
