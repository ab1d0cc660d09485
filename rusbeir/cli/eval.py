"""`rusbeir eval`: run files of any tool against the qrels of a file or of a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rusbeir.cli import options, output

if TYPE_CHECKING:
    from rusbeir.datasets import Judgements
    from rusbeir.evaluation import Evaluation
    from rusbeir.types import Qrels, Run


def evaluate(
    qrels: Annotated[
        str, typer.Argument(help="TREC qrels, BEIR tsv or JSON (.gz too), or a dataset's name, folder or zip.")
    ],
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="TREC runs or BEIR JSON; .gz too.")],
    measure: options.Measures = None,
    lang: options.Lang = None,
    split: options.Split = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="Also the values of each query.")] = False,
    as_json: options.Json = False,
) -> None:
    """Evaluate runs. Every judged query counts; one without hits scores 0.

    Example: rusbeir eval qrels/test.tsv my.run -m nDCG@10 -m RR@10
    """
    from rusbeir.datasets import read_run
    from rusbeir.evaluation import DEFAULT_MEASURES, check_measures, format_measure
    from rusbeir.evaluation import evaluate as score
    from rusbeir.retrieval import drop_self_hits

    names = check_measures(measure or DEFAULT_MEASURES)
    judged, suffixes = _read_judgements(qrels, lang, split)
    results = []
    for path in runs:
        # Hits that are the query itself, as `bench` drops them on this dataset.
        run = drop_self_hits(read_run(path), suffixes)
        _compare_ids(qrels, judged, path, run)
        results.append(score(judged, run, names))
    if as_json:
        documents = [_describe(path, result, per_query) for path, result in zip(runs, results, strict=True)]
        only = len(documents) == 1
        output.print_json({"qrels": qrels} | (documents[0] if only else {"runs": documents}))
        return
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


def _read_judgements(qrels: str, lang: str | None, split: str | None) -> Judgements:
    """The judgements of a registered dataset, of a folder or zip that holds one, or of a file."""
    from rusbeir.datasets import Judgements, find_entry, load_judgements, read_qrels

    path = Path(qrels)
    if (not path.is_file() and (path.is_dir() or find_entry(qrels))) or path.suffix == ".zip":
        with output.progress() as progress:
            return load_judgements(qrels, language=lang, split=split, progress=progress)
    return Judgements(read_qrels(path))


def _compare_ids(qrels: str, judged: Qrels, path: Path, run: Run) -> None:
    """Refuse a run that shares no query with the qrels, and warn of one that shares no document."""
    from rusbeir.errors import BadInput

    if not judged.keys() & run.keys():
        raise BadInput(f"{path} and {qrels} have no query in common. Are they of the same split?")
    documents = {doc_id for grades in judged.values() for doc_id in grades}
    if all(documents.isdisjoint(hits) for hits in run.values()):
        output.note(f"rusbeir: warning: {path} and {qrels} have no document in common. Are they of the same corpus?")


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
