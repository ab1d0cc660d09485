"""`rusbeir synth qc`: quality control of a test set by a language model and several rankers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rusbeir import __version__
from rusbeir.cli import options, output

if TYPE_CHECKING:
    from rusbeir.synthesis import QualityEstimate


def qc(
    dataset: options.DatasetName,
    llm: Annotated[str | None, typer.Option("--llm", help="Model at OPENAI_BASE_URL, which labels.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder of what is left of the dataset.")] = None,
    retriever: Annotated[
        str,
        typer.Option("--retriever", help="The system that finds documents.", autocompletion=options.complete_systems),
    ] = "bm25",
    ranker: Annotated[
        list[str] | None,
        typer.Option(
            "--ranker",
            help="A system, or 'rerank(MODEL)' of the retriever's hits; give three or more.",
            autocompletion=options.complete_systems,
        ),
    ] = None,
    positive: Annotated[int, typer.Option("--positive", help="The least label, of 0 to 3, that is positive.")] = 2,
    grade: Annotated[
        str, typer.Option("--grade", help="Grade of the judgements that are added; label: the model's label.")
    ] = "1",
    depth: Annotated[int, typer.Option("--depth", min=1, help="Hits per query that are ranked.")] = 1000,
    threshold: Annotated[int, typer.Option("--threshold", min=1, help="The worst rank of a candidate.")] = 10,
    negative_threshold: Annotated[
        int, typer.Option("--negative-threshold", min=1, help="The same of a query's hard negatives.")
    ] = 20,
    span_ranker: Annotated[
        list[str] | None,
        typer.Option(
            "--span-ranker", help="A reranker that must prefer a document with its span to it without; repeatable."
        ),
    ] = None,
    false_negatives: Annotated[
        list[str] | None,
        typer.Option("--false-negatives", help="A reranker; documents above a query's positive go; repeatable."),
    ] = None,
    engine: options.Engine = "auto",
    es_url: options.EsUrl = None,
    lang: options.Lang = None,
    split: Annotated[str | None, typer.Option("--split", help="A split of a path; default: all of them.")] = None,
    undo: Annotated[
        list[str] | None, typer.Option("--undo", help="Id of a decision to undo, now and later; repeatable.")
    ] = None,
    show: Annotated[
        str | None, typer.Option("--show", help="Print the decisions about this query; DATASET is the --out of a run.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the model.")] = 0,
    option: options.ModelLimits = None,
    budget_chars: options.BudgetChars = None,
    budget_cost: options.BudgetCost = None,
    batch: options.Batch = False,
    batch_share: options.BatchShare = None,
    cancel: options.Cancel = False,
    batch_out: options.BatchOut = None,
    batch_in: options.BatchIn = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only estimate the labels and their cost.")] = False,
    retry_failed: options.RetryFailed = False,
    as_json: options.Json = False,
) -> None:
    """Let a model label queries and candidates: wrong judgements go, missing ones are added, each with its evidence.

    It can be killed at any moment: the same command resumes it, and no answer is asked for again.

    Example: rusbeir synth qc made --ranker bm25 --ranker dense --dry-run
    """
    from rusbeir.errors import BadInput
    from rusbeir.jobs import read_llm_options
    from rusbeir.synthesis import Rules, control_quality, estimate_quality, read_decisions

    if show is not None:
        rows = [row for row in read_decisions(dataset) if row["query_id"] == show]
        if not rows:
            raise BadInput(f"--show {show}: there is no decision about this query in {dataset}.")
        _print_decisions(rows, as_json=as_json)
        return
    if grade != "label" and not grade.isdecimal():
        raise BadInput(f"--grade {grade}: give a whole number above 0, or label.")
    rules = Rules(
        retriever=retriever, rankers=tuple(ranker or ()), engine=options.engine_at(engine, es_url), depth=depth,
        threshold=threshold, negative_threshold=negative_threshold, positive=positive,
        grade=None if grade == "label" else int(grade), span_rankers=tuple(span_ranker or ()),
        false_negatives=tuple(false_negatives or ()),
    )  # fmt: skip
    model_options = options.translator_options(option)
    read_llm_options(model_options)  # Before they could be taken for arguments of Python.
    if dry_run:
        with output.progress() as progress:
            priced = options.add_prices(model_options, llm, batch, batch_share)
            estimate = estimate_quality(dataset, rules=rules, language=lang, split=split, progress=progress, **priced)
        _print_estimate(estimate, as_json=as_json)
        return
    if llm is None or out is None:
        raise BadInput("Name the model that labels with --llm, and a folder for the new dataset with --out.")
    with output.progress() as progress:
        report = control_quality(
            dataset, out=out, llm=llm, rules=rules, language=lang, split=split, undo=undo or (), seed=seed,
            budget_chars=budget_chars, budget_cost=budget_cost, retry_failed=retry_failed,
            **options.batching(batch, batch_share, cancel, batch_out, batch_in),
            progress=progress, tell=output.note, **model_options,
        )  # fmt: skip
    if as_json:
        output.print_json(report)
    else:
        _print_report(report)


def _print_report(report: dict[str, Any]) -> None:
    rows = [[row["step"], row["action"], f"{row['decisions']:,}", f"{row['undone']:,}"] for row in report["decisions"]]
    header = ["step", "action", "decisions", "undone"]
    output.print_table(header, rows, right=header[2:])
    for step, stage in report["stages"].items():
        if "labels" in stage:
            invalid = ", ".join(f"{n:,} {reason}" for reason, n in stage["invalid"].items())
            output.note(
                f"{step}: {stage['labels']:,} labels, {stage['asked']:,} asked in this run "
                f"({stage['tokens']['input']:,} and {stage['tokens']['output']:,} tokens, {stage['cost']:.4f} in "
                f"money); without a valid label, left as they were: {invalid or 'none'}; {stage['seconds']:.1f} s"
            )
        else:
            output.note(f"{step}: {stage['decisions']:,} decisions; {stage['seconds']:.1f} s")
    for shared in report["families"]:
        output.note(f"One family, {shared['family']}, so not independent: {'; '.join(shared['members'])}.")
    counts = ", ".join(
        f"{report[what]['before']:,} {what} before and {report[what]['after']:,} after"
        for what in ("documents", "queries", "judgements")
    )
    output.note(f"{report['name']}: {counts}.")
    output.note(f"Each decision with its evidence: {report['out']}/qa/decisions.jsonl; removed: qa/removed.jsonl")


def _print_decisions(decisions: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        output.print_json({"decisions": decisions})
        return
    rows = []
    for row in decisions:
        ranks = "; ".join(f"{name} {rank or '-'}" for name, rank in (row["ranks"] or {}).items())
        scores = "; ".join(
            f"{name} " + ", ".join(f"{what} {score:.4g}" for what, score in by_text.items())
            for name, by_text in (row["scores"] or {}).items()
        )
        label = "-" if row["label"] is None else str(row["label"])
        action = f"{row['action']}{' (undone)' if row['undone'] else ''}"
        rows.append([row["id"], row["step"], row["doc_id"], row["kind"], label, action, ranks or scores, row["reason"]])
    output.print_table(["id", "step", "document", "kind", "label", "action", "ranks or scores", "reason"], rows)


def _print_estimate(estimate: QualityEstimate, *, as_json: bool) -> None:
    stages = {"source": estimate.source._asdict(), "candidate": estimate.candidate._asdict()}
    assumed = {name: getattr(estimate, name) for name in ("seconds", "missing_options", "assumption")}
    assumed |= {"batch_cost": estimate.batch_cost, "cached_cost": estimate.cached_cost}
    if as_json:
        output.print_json({"version": __version__, "dataset": estimate.dataset, "stages": stages, **assumed})
        return
    counts = ("labels", "chars", "input_tokens", "output_tokens")
    rows = [
        [
            step,
            *(f"{row[name]:,}" for name in counts),
            "no price known" if estimate.missing_options else f"{row['cost']:,.2f}",
        ]
        for step, row in stages.items()
    ]
    header = ["step", "labels", "characters", "input tokens", "output tokens", "cost"]
    output.print_table(header, rows, right=header[1:])
    output.note("At most, but for the labels of the step source, which are exact.")
    output.note(f"Both take about {output.format_duration(estimate.seconds)}.")
    output.note_estimates([{**assumed, "cost": estimate.source.cost + estimate.candidate.cost}])
