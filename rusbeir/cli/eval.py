"""`rusbeir eval`: run files of any tool against the qrels of a file or of a dataset."""

from __future__ import annotations

import csv as csv_module
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rusbeir.cli import options, output

if TYPE_CHECKING:
    from rusbeir.evaluation import Evaluation


def evaluate(
    qrels: Annotated[
        str, typer.Argument(help="TREC qrels, BEIR tsv, JSON, CSV or Parquet, or a dataset's name, folder or zip.")
    ],
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="TREC runs, BEIR JSON or CSV; .gz too.")],
    measure: options.Measures = None,
    lang: options.Lang = None,
    split: options.Split = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="Also the values of each query.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print the values of each query as CSV, unrounded.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Also write rows to this folder, next to those of `rusbeir bench`.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Evaluate runs. Every judged query counts; one without hits scores 0.

    Example: rusbeir eval qrels/test.tsv my.run -m nDCG@10 -m RR@10
    """
    from rusbeir.comparison import open_judged, score_runs
    from rusbeir.evaluation import DEFAULT_MEASURES, check_measures
    from rusbeir.experiment import Ledger

    names = check_measures(measure or DEFAULT_MEASURES)
    with output.progress() as progress:
        judged = open_judged(qrels, language=lang, split=split, texts=out is not None, progress=progress)
    scored = score_runs(runs, judged, names)
    results = [run.evaluation for run in scored]
    if out is not None:
        ledger = Ledger(out, reuse=False)
        for run in scored:
            run.write(out, ledger)
        output.note(f"{len(runs)} {'row' if len(runs) == 1 else 'rows'} written to {out}: rusbeir compare {out}")
    if csv:
        sys.stdout.write(_to_csv(runs, results, names))
        return
    if as_json:
        documents = [_describe(path, result, per_query) for path, result in zip(runs, results, strict=True)]
        output.print_json({"qrels": qrels} | (documents[0] if len(documents) == 1 else {"runs": documents}))
        return
    _print_results(runs, results, names, per_query)


def _print_results(runs: Sequence[Path], results: Sequence[Evaluation], names: Sequence[str], per_query: bool) -> None:
    """Print the measures of all runs, those of each query if they were asked for, and how many scores hang on ties."""
    from rusbeir.evaluation import format_measure

    if len(runs) == 1:
        _print_measures(results[0])
    else:
        output.print_table(
            ["run", *names, "without hits", "tied"],
            [
                [
                    str(path),
                    *(format_measure(name, result.measures[name]) for name in names),
                    f"{result.n_zero_hit:,}",
                    f"{result.n_tied:,}",
                ]
                for path, result in zip(runs, results, strict=True)
            ],
            right=[*names, "without hits", "tied"],
        )
    for path, result in zip(runs, results, strict=True):
        if per_query:
            output.print_table(
                ["query" if len(runs) == 1 else f"query of {path}", *names],
                [[query_id, *(_format_value(n, v[n]) for n in names)] for query_id, v in result.per_query.items()],
                right=names,
            )
        output.note(
            ("" if len(runs) == 1 else f"{path}: ")
            + f"{result.n_queries:,} judged queries, {result.n_zero_hit:,} without hits; "
            f"the score of {result.n_tied:,} ({result.n_tied / result.n_queries:.1%}) depends on how ties are broken."
        )


def _to_csv(runs: Sequence[Path], results: Sequence[Evaluation], names: Sequence[str]) -> str:
    """A line for each run and query, numbers unrounded."""
    text = io.StringIO()
    writer = csv_module.writer(text, lineterminator="\n")
    writer.writerow(["run", "query", *names])
    for path, result in zip(runs, results, strict=True):
        writer.writerows([path, query_id, *(v[name] for name in names)] for query_id, v in result.per_query.items())
    return text.getvalue()


def _format_value(name: str, value: float) -> str:
    from rusbeir.evaluation import format_measure, is_count

    return format_measure(name, value) if is_count(name) else f"{value:.4f}"


def _describe(path: Path, result: Evaluation, per_query: bool) -> dict[str, Any]:
    document = {
        "run": str(path),
        "measures": result.measures,
        "measures_answered": result.measures_answered,
        "n_queries": result.n_queries,
        "n_zero_hit": result.n_zero_hit,
        "n_tied": result.n_tied,
    }
    return document | ({"per_query": result.per_query} if per_query else {})


def _print_measures(result: Evaluation) -> None:
    from rusbeir.evaluation import format_measure

    output.print_table(
        ["measure", "all judged queries", "answered only"],
        [
            [name, format_measure(name, value), format_measure(name, result.measures_answered.get(name, 0.0))]
            for name, value in result.measures.items()
        ],
        right=["all judged queries", "answered only"],
    )
