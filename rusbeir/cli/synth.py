"""`rusbeir synth`: datasets that a language model makes of others."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from rusbeir.cli import options, output
from rusbeir.cli.port import print_estimates
from rusbeir.cli.synth_qc import qc
from rusbeir.cli.synth_queries import queries
from rusbeir.text import write_command

app = typer.Typer(no_args_is_help=True, help="Let a language model make datasets of others.")
app.command()(queries)
app.command()(qc)


@app.command()
def rewrite(
    dataset: options.DatasetName,
    llm: Annotated[str, typer.Option("--llm", help="Model at OPENAI_BASE_URL.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the new dataset.")] = None,
    lang: options.Lang = None,
    split: Annotated[str | None, typer.Option("--split", help="A split of a path; default: all of them.")] = None,
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="Only this many documents, judged ones first.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the sample and of the pairs that are encoded.")] = 0,
    temperature: Annotated[float, typer.Option("--temperature", help="Temperature of the model.")] = 0.2,
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="A dense system on this machine, which compares meanings.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="An option of the translator llm, such as input-price=0.4; repeatable."),
    ] = None,
    budget_chars: options.BudgetChars = None,
    budget_cost: options.BudgetCost = None,
    batch: options.Batch = False,
    batch_share: options.BatchShare = None,
    cancel: options.Cancel = False,
    batch_out: options.BatchOut = None,
    batch_in: options.BatchIn = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only estimate the volume, the time and the cost.")
    ] = False,
    retry_failed: options.RetryFailed = False,
    as_json: options.Json = False,
) -> None:
    """Rewrite documents by a language model: a dataset with a corpus of people and one of the model.

    It can be killed at any moment: the same command resumes it, and no answer is asked for again.

    Example: rusbeir synth rewrite xquad/en --llm qwen3-30b --out xquad-rewritten
    """
    from rusbeir.errors import BadInput
    from rusbeir.jobs import BatchOptions, Spending
    from rusbeir.synthesis import estimate_rewrite
    from rusbeir.synthesis import rewrite as rewrite_one

    model_options = options.translator_options(option, llm=llm)
    parameters = inspect.signature(rewrite_one).parameters.keys() | Spending.__annotations__.keys()
    parameters |= BatchOptions.__annotations__.keys()
    if taken := model_options.keys() & parameters:
        raise BadInput(f"--option {min(taken)}: this is not an option of the translator llm.")
    order = {
        "language": lang, "split": split, "sample": sample, "seed": seed, "temperature": temperature, **model_options
    }  # fmt: skip
    if dry_run:
        with output.progress() as progress:
            priced = options.add_prices(order, llm, batch, batch_share)
            estimate = estimate_rewrite(dataset, progress=progress, **priced)
        row = {"dataset": dataset, **dataclasses.asdict(estimate), "volume": estimate.volume._asdict()}
        print_estimates([row], as_json=as_json)
        return
    if out is None:
        raise BadInput("Name a folder for the new dataset with --out.")
    with output.progress() as progress:
        report = rewrite_one(
            dataset, out=out, encoder=encoder, budget_chars=budget_chars, budget_cost=budget_cost,
            retry_failed=retry_failed, **options.batching(batch, batch_share, cancel, batch_out, batch_in),
            progress=progress, tell=output.note, **order,
        )  # fmt: skip
    if as_json:
        output.print_json(report)
    else:
        _print_report(report)


def _print_report(report: dict[str, Any]) -> None:
    likeness = report["likeness"]
    similarity = likeness["similarity"] or {}
    figures = [
        ("words of people's documents", likeness["words"]["human"], ".1f"),
        ("words of rewritten documents", likeness["words"]["rewritten"], ".1f"),
        ("words, rewritten by human", likeness["words"]["ratio"], ".2f"),
        ("terms in common (Jaccard)", likeness["jaccard"], ".3f"),
        ("human terms that are kept", likeness["overlap"], ".3f"),
        ("cosine of matched pairs", similarity.get("matched"), ".3f"),
        ("cosine of random pairs", similarity.get("random"), ".3f"),
    ]
    shown = ["mean", "p5", "p50", "p95"]
    output.print_table(
        ["figure", *shown],
        [[name, *(format(row[column], form) for column in shown)] for name, row, form in figures if row],
        right=shown,
    )
    counts = report["documents"]
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in report["reasons"].items())
    output.note(
        f"{counts['rewritten']:,} documents rewritten; {counts['kept_human']:,} kept as people wrote them"
        f"{f' ({reasons})' if reasons else ''}; left out: {counts['short']:,} too short, {counts['long']:,} too long, "
        f"{counts['not_drawn']:,} not drawn."
    )
    flags = ", ".join(f"{n:,} {flag}" for flag, n in report["flags"].items())
    output.note(f"Flagged, see {report['out']}/qa/flagged.jsonl: {flags or 'none'}")
    output.note("For people: " + "; ".join(write_command("audit", verb, report["out"]) for verb in ("check", "sheet")))
    output.note(f"Measure the bias: {write_command('diagnose', 'source-bias', report['out'], '--system', 'bm25')}")
