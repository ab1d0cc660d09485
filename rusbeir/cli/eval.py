"""`rusbeir eval`: a run file of any tool against a qrels file of any tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rusbeir.cli import options, output


def evaluate(
    qrels: Annotated[Path, typer.Argument(help="TREC qrels, BEIR tsv or JSON; .gz too.")],
    run: Annotated[Path, typer.Argument(help="TREC run or BEIR JSON; .gz too.")],
    measure: options.Measures = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="Also the values of each query.")] = False,
    as_json: options.Json = False,
) -> None:
    """Evaluate a run. Every judged query counts; one without hits scores 0.

    Example: rusbeir eval qrels/test.tsv my.run -m nDCG@10 -m RR@10
    """
    from rusbeir.datasets import read_qrels, read_run
    from rusbeir.errors import BadInput
    from rusbeir.evaluation import DEFAULT_MEASURES
    from rusbeir.evaluation import evaluate as score

    judged, answered = read_qrels(qrels), read_run(run)
    if not judged.keys() & answered.keys():
        raise BadInput(f"{run} and {qrels} have no query in common. Are they of the same split?")
    result = score(judged, answered, measure or DEFAULT_MEASURES)
    if as_json:
        document = {
            "qrels": str(qrels),
            "run": str(run),
            "measures": result.measures,
            "measures_answered": result.measures_answered,
            "n_queries": result.n_queries,
            "n_zero_hit": result.n_zero_hit,
            "n_tied": result.n_tied,
        }
        output.print_json(document | ({"per_query": result.per_query} if per_query else {}))
        return
    output.print_table(
        ["measure", "all judged queries", "answered only"],
        [
            [name, f"{100 * value:.2f}", f"{100 * result.measures_answered.get(name, 0.0):.2f}"]
            for name, value in result.measures.items()
        ],
        right=["all judged queries", "answered only"],
    )
    if per_query:
        names = list(result.measures)
        output.print_table(
            ["query", *names],
            [[query_id, *(f"{v[n]:.4f}" for n in names)] for query_id, v in result.per_query.items()],
            right=names,
        )
    output.note(
        f"{result.n_queries:,} judged queries, {result.n_zero_hit:,} without hits; "
        f"the score of {result.n_tied:,} ({result.n_tied / result.n_queries:.1%}) depends on how ties are broken."
    )
