"""`rusbeir synth queries`: a test set whose queries a language model writes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from rusbeir import __version__
from rusbeir.cli import options, output
from rusbeir.text import write_command


def queries(
    corpus: Annotated[
        str,
        typer.Argument(
            metavar="CORPUS",
            help="A registered dataset, a path of one, a folder with a corpus.jsonl, or a .jsonl file.",
            autocompletion=options.complete_datasets,
        ),
    ],
    llm: Annotated[str, typer.Option("--llm", help="Model at OPENAI_BASE_URL.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the new dataset.")] = None,
    lang: options.Lang = None,
    kind: Annotated[str, typer.Option("--kind", help="qa, long-doc or position.")] = "qa",
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="Queries to begin; failed ones are not replaced.")] = 100,
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="Documents that are asked about; default: one a query.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the documents, the attributes and the answers.")] = 0,
    attributes: Annotated[
        Path | None, typer.Option("--attributes", help="TOML file of attributes and shares; default: AIR-Bench's.")
    ] = None,
    option: options.ModelLimits = None,
    budget_chars: options.BudgetChars = None,
    budget_cost: options.BudgetCost = None,
    batch: options.Batch = False,
    batch_share: options.BatchShare = None,
    cancel: options.Cancel = False,
    batch_out: options.BatchOut = None,
    batch_in: options.BatchIn = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only estimate requests, tokens and cost.")] = False,
    retry_failed: options.RetryFailed = False,
    as_json: options.Json = False,
) -> None:
    """Let a language model write queries about documents: a test set with judgements and hard negatives.

    It can be killed at any moment: the same command resumes it, and no answer is asked for again.

    Example: rusbeir synth queries news.jsonl --lang ru --llm qwen3-30b --out made
    """
    from rusbeir.errors import BadInput
    from rusbeir.jobs import read_llm_options
    from rusbeir.synthesis import estimate_queries, make_queries

    order: dict[str, Any] = {
        "kind": kind, "n": n, "sample": sample, "language": lang, "seed": seed, "attributes": attributes
    }  # fmt: skip
    model_options = options.translator_options(option)
    read_llm_options(model_options)  # Before they could be taken for arguments of Python.
    if dry_run:
        with output.progress() as progress:
            priced = options.add_prices(model_options, llm, batch, batch_share)
            estimate = estimate_queries(corpus, progress=progress, **order, **priced)
        _print_estimate(dataclasses.asdict(estimate), as_json=as_json)
        return
    if out is None:
        raise BadInput("Name a folder for the new dataset with --out.")
    with output.progress() as progress:
        report = make_queries(
            corpus, llm=llm, out=out, budget_chars=budget_chars, budget_cost=budget_cost, retry_failed=retry_failed,
            **options.batching(batch, batch_share, cancel, batch_out, batch_in),
            progress=progress, tell=output.note, **order, **model_options,
        )  # fmt: skip
    if as_json:
        output.print_json(report)
    else:
        _print_report(report)


def _print_estimate(row: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.print_json({"version": __version__, "estimates": [row]})
        return
    header = [
        "source", "kind", "documents", "queries", "requests", "input tokens", "output tokens", "time", "cost", "at most"
    ]  # fmt: skip
    counts = ("documents", "queries", "requests", "input_tokens", "output_tokens")
    unpriced = bool(row["missing_options"])
    costs = ["no price known" if unpriced else f"{row[name]:,.2f}" for name in ("cost", "cost_at_most")]
    time = output.format_duration(row["seconds"])
    cells = [row["source"], row["kind"], *(f"{row[name]:,}" for name in counts), time, *costs]
    output.print_table(header, [cells], right=header[2:])
    output.note_estimates([row])


def _print_report(report: dict[str, Any]) -> None:
    rows = [
        [row["step"], f"{row['made']:,}", f"{sum(row['dropped'].values()):,}",
         ", ".join(f"{n:,} {reason}" for reason, n in row["dropped"].items())]
        for row in report["steps"]
    ]  # fmt: skip
    output.print_table(["step", "queries", "dropped", "why"], rows, right=["queries", "dropped"])
    counts, documents = report["queries"], report["documents"]
    output.note(
        f"{counts['made']:,} of {counts['asked']:,} queries made about {documents['asked']:,} of "
        f"{documents['corpus']:,} documents ({documents['unsuitable']:,} too short or too long), with "
        f"{report['invalid_answers']:,} of {report['answers']:,} answers of no use. {report['generator']}"
    )
    output.note(f"Tokens: {report['tokens']['input']:,} sent, {report['tokens']['output']:,} received in this run.")
    output.note(f"Measure with it: {write_command('bench', report['out'], '--system', 'bm25')}")
    if report["kind"] == "position":
        output.note(f"Positions: {write_command('diagnose', 'position', report['out'], '--system', 'bm25')}")
