"""`rusbeir tune`: weights of a fusion, or k1, b and field weights of BM25, from development queries."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rusbeir.cli import options, output


def tune(
    dataset: options.DatasetName,
    system: Annotated[str, typer.Option("--system", help="A fusion, such as 'minmax(bm25,dense(bge-m3))', or bm25.")],
    engine: options.Engine = "auto",
    es_url: options.EsUrl = None,
    lang: options.Lang = None,
    split: options.Split = None,
    measure: Annotated[
        str, typer.Option("--measure", "-m", help="What to raise, by its ir-measures name.")
    ] = "nDCG@10",
    folds: Annotated[int, typer.Option("--folds", min=2, help="Parts for cross-validation.")] = 5,
    out: options.CountedIn = Path("results"),
    budget_chars: options.EndpointChars = None,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Choose a fusion's weights, or BM25's k1, b and field weights, by cross-validation on a development split.

    Test splits are refused.

    Example: rusbeir tune miracl/ru/dev --system 'minmax(bm25,dense(bge-m3))'
    """
    from rusbeir.evaluation import describe_queries
    from rusbeir.tuning import tune as find

    with output.progress() as progress:
        tuned = find(
            dataset,
            system,
            engine=options.engine_at(engine, es_url),
            language=lang,
            split=split,
            measure=measure,
            folds=folds,
            out=out,
            budget_chars=budget_chars,
            progress=progress,
        )
    if as_json:
        output.print_json(asdict(tuned))
        return
    is_fusion = all(tuned.folds) and set(tuned.options) == {"weights"}
    output.echo(shlex.join(["--system", tuned.system]))
    output.note(
        f"{describe_queries(tuned.n_queries, tuned.n_clusters)}: {tuned.measure} on held-out ones "
        f"{100 * tuned.held_out:.2f}, {'with equal weights' if is_fusion else 'as it was'} {100 * tuned.equal:.2f}; "
        f"{'weights' if is_fusion else 'options'} by fold: {', '.join(map(_format_options, tuned.fold_options))}"
    )


def _format_options(options: Mapping[str, object]) -> str:
    if set(options) == {"weights"}:
        return str(options["weights"])
    return ",".join(f"{name}={value}" for name, value in options.items()) or "none"
