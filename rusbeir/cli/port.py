"""`rusbeir port`: translate datasets into another language, resumable at any point."""

from __future__ import annotations

import dataclasses
import inspect
import re
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from rusbeir import __version__
from rusbeir.cli import options, output
from rusbeir.text import write_command


def port(
    datasets: Annotated[list[str], typer.Argument(metavar="DATASET...", help="Registered names or paths.")],
    to: Annotated[str, typer.Option("--to", help="The language to translate into (BCP 47, such as ru), or ru,kk,es.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the port; of several ports, a folder each below it.")
    ] = None,
    translator: Annotated[
        str | None,
        typer.Option(
            "--translator", help="apertium, deepl, google, …, python:module.function, or a chain: memory,llm."
        ),
    ] = None,
    lang: options.Lang = None,
    name: options.Named = None,
    licence: options.Licence = None,
    source_url: options.SourceUrl = None,
    author: options.Author = None,
    citation: options.Citation = None,
    split: Annotated[
        str | None, typer.Option("--split", help="A split of a path, to port or to add; default: all of them.")
    ] = None,
    all_queries: Annotated[bool, typer.Option("--all-queries", help="Also port queries that no split judges.")] = False,
    fields: Annotated[str | None, typer.Option("--fields", help="What to translate: title,text,query.")] = None,
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="Only this many documents, judged ones first.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the sample.")] = 0,
    glossary: Annotated[
        Path | None, typer.Option("--glossary", help="A .tsv or .csv of terms and their translations; = keeps a term.")
    ] = None,
    memory: options.Memory = None,
    fuzzy: Annotated[
        float | None,
        typer.Option("--fuzzy", help="Also take entries of the memory at least this similar (0 to 1), flagged."),
    ] = None,
    llm: options.Llm = None,
    context: Annotated[
        int | None,
        typer.Option("--context", min=1, help="Show language models N segments before and after each, and the title."),
    ] = None,
    segments_per_request: Annotated[
        int | None,
        typer.Option(
            "--segments-per-request",
            min=1,
            help="Ask a language model for up to N segments at once; those that do not fit are asked for again alone.",
        ),
    ] = None,
    model: options.Model = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda or auto, for neural models.")] = None,
    option: options.TranslatorOptions = None,
    budget_chars: options.BudgetChars = None,
    budget_cost: options.BudgetCost = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only estimate the volume, the time and the cost.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Ask again for what failed; with --translator, ask another one.")
    ] = False,
    retry_segments: Annotated[
        Path | None,
        typer.Option(
            "--retry-segments",
            help="Translate again the segments that this file names, as rusbeir validity --attribute writes it.",
        ),
    ] = None,
    keep_untranslated: Annotated[
        bool,
        typer.Option("--keep-untranslated", help="Write the dataset even if texts came back unchanged."),
    ] = False,
    export: Annotated[
        Path | None, typer.Option("--export", help="Write the segment pairs to a .tmx, .tsv or .jsonl file.")
    ] = None,
    batch: options.Batch = False,
    batch_share: options.BatchShare = None,
    cancel: options.Cancel = False,
    batch_out: options.BatchOut = None,
    batch_in: options.BatchIn = None,
    on: options.On = None,
    analyzers: options.Analyzers = None,
    as_json: options.Json = False,
) -> None:
    """Translate datasets into another language, as datasets with the same ids and judgements.

    It can be killed at any moment: the same command resumes it, and what was translated is never lost. Of several
    languages each is a port, and all have one budget; {to} in the names of files stands for the language.

    Example: rusbeir port mini/en --to es --translator apertium --out mini-es
    """
    from rusbeir.datasets import FIELDS
    from rusbeir.errors import BadInput
    from rusbeir.translation import port as port_one

    files = {"glossary": glossary, "memory": memory, "export": export}
    single: dict[str, object] = {"--retry-segments": retry_segments, "--batch-out": batch_out, "--batch-in": batch_in}
    targets = _read_targets(to, files, single)
    if retry_segments is not None and len(datasets) > 1:
        raise BadInput("--retry-segments names segments of one dataset: port them one by one.")
    has_translator = bool(translator or retry_failed or retry_segments)
    if missing := _find_missing(datasets, lang, has_translator=has_translator, has_folder=dry_run or out is not None):
        raise BadInput(f"Name {', and '.join(missing)}.")
    if name is not None and len(datasets) > 1:
        raise BadInput("--name is that of one dataset: port them one by one.")
    if export is not None and len(datasets) > 1:
        raise BadInput("--export takes the pairs of one dataset: port them one by one.")
    if taken := options.translator_options(option).keys() & inspect.signature(port_one).parameters.keys():
        raise BadInput(f"--option {min(taken)}: this is not an option of a translator.")
    translator_options = options.translator_options(
        option,
        memory=memory,
        fuzzy=fuzzy,
        llm=llm,
        context=context,
        model=model,
        device=device,
        segments_per_request=segments_per_request,
    )
    order = {
        "translator": translator, "language": lang, "split": split, "all_queries": all_queries,
        "fields": tuple((fields or ",".join(FIELDS)).split(",")), "sample": sample, "seed": seed, "glossary": glossary,
        **translator_options,
    }  # fmt: skip
    if dry_run:
        if translator is None:
            raise BadInput("--dry-run needs a --translator.")
        priced = options.add_prices(order, llm, batch, batch_share) if llm else order
        _dry_run(datasets, targets, as_json=as_json, **priced)
        return
    assert out is not None
    _port(
        _list_jobs(datasets, targets, out),
        as_json=as_json,
        name=name,
        licence=licence,
        source_url=source_url,
        author=author,
        citation=citation,
        analyzers=analyzers,
        budget_chars=budget_chars,
        budget_cost=budget_cost,
        retry_failed=retry_failed,
        retry_segments=retry_segments,
        keep_untranslated=keep_untranslated,
        export=export,
        **options.batching(batch, batch_share, cancel, batch_out, batch_in),
        on=on,
        **order,
    )


def _find_missing(datasets: list[str], lang: str | None, *, has_translator: bool, has_folder: bool) -> list[str]:
    """Find what a call has to name besides; the language of a dataset only together with something else."""
    from rusbeir.translation import names

    missing = []
    if not has_translator:
        missing.append(f"a translator with --translator ({', '.join(names())}, or python:module.function)")
    if not has_folder:
        missing.append("a folder for the port with --out")
    if missing and not lang:
        missing += [f"the language of {dataset} with --lang" for dataset in datasets if _lacks_card(dataset)]
    return missing


def slug(name: str) -> str:
    """A folder name for a dataset's name or path."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.") or "dataset"


class _Job(NamedTuple):
    """One port of a call."""

    dataset: str
    to: str
    out: Path


def _list_jobs(datasets: list[str], targets: list[str], out: Path) -> list[_Job]:
    """List the ports of a call, each with its folder: out itself for one alone."""
    folders = {dataset: out if len(datasets) == 1 else out / slug(dataset) for dataset in datasets}
    return [
        _Job(dataset, target, folder if len(targets) == 1 else folder / target)
        for dataset, folder in folders.items()
        for target in targets
    ]


_OF_LANGUAGE = ("glossary", "memory", "export")
"""Parameters that are files of one language, in whose names {to} stands for it."""


def _read_targets(to: str, files: dict[str, Path | None], single: dict[str, object]) -> list[str]:
    """Read the languages of --to. Raises BadInput where several have one file, or what is of one port alone."""
    from rusbeir.errors import BadInput
    from rusbeir.languages import parse_language

    targets = list(dict.fromkeys(parse_language(part.strip()) for part in to.split(",")))
    for name, path in files.items() if len(targets) > 1 else ():
        if path is not None and "{to}" not in str(path):
            example = path.with_name(f"{path.stem}.{{to}}{path.suffix}") if path.name else path / "{to}"
            raise BadInput(f"--{name} {path} is of one language: write {{to}} for it, as in --{name} '{example}'.")
    for name, value in single.items() if len(targets) > 1 else ():
        if value is not None:
            raise BadInput(f"{name} is of one port: port into the languages of --to one by one.")
    return targets


def _fill(order: dict[str, Any], target: str) -> dict[str, Any]:
    """Return the arguments of a port into that language."""
    files = {name: str(order[name]).replace("{to}", target) for name in _OF_LANGUAGE if order.get(name) is not None}
    return {**order, "to": target, **{name: Path(path) for name, path in files.items()}}


def _port(jobs: list[_Job], *, as_json: bool, analyzers: list[str] | None, **order: Any) -> None:
    from rusbeir.errors import BadInput, RusbeirError, Suspended
    from rusbeir.translation import Incomplete
    from rusbeir.translation import port as port_one

    if len({job.out for job in jobs}) < len(jobs):
        raise BadInput("Two of the datasets would be written to the same folder: port them one by one.")
    reports: list[dict[str, Any]] = []
    problems: list[str] = []
    pauses: list[str] = []
    with output.progress() as progress:
        for dataset, target, out in jobs:
            # Datasets alone have a budget each; the languages of one call have one together.
            others = [job.out for job in jobs if job.out != out] if len({job.to for job in jobs}) > 1 else []
            filled = _fill(order, target)
            try:
                reports.append(
                    port_one(dataset, out=out, budget_with=others, progress=progress, tell=output.note, **filled)
                )
            except Incomplete as error:
                reports.append(error.report)
                problems.append(str(error))
            except RusbeirError as error:
                if len(jobs) == 1:
                    raise
                # The other ports are made all the same.
                lines = pauses if isinstance(error, Suspended) else problems
                lines.append(f"{dataset} to {target}: {error}")
    if as_json:
        output.print_json({"version": __version__, "ports": reports})
    elif written := [report for report in reports if not report["missing"]]:
        counts = ["n_docs", "n_queries", "segments", "flagged", "requests", "retries"]
        header = ["port", "documents", "queries", "segments", "flagged", "requests", "retries", "folder"]
        rows = [[row["name"], *(f"{row[count]:,}" for count in counts), row["out"]] for row in written]
        output.print_table(header, rows, right=header[1:-1])
        for row in written:
            if row["kept"]:
                output.note(
                    f"{row['name']}: {row['kept']:,} segments stay untranslated, see {row['out']}/qa/failures.jsonl. "
                    "--retry-failed --translator OTHER asks another for them."
                )
        for row in written:
            if retried := row.get("retried"):
                failed = f" {retried['failed']:,} failed and keep their old one." if retried["failed"] else ""
                output.note(
                    f"{row['name']}: {retried['changed']:,} segments have a new translation (see "
                    f"{row['out']}/qa/retried.jsonl), {retried['same']:,} came back the same.{failed}"
                )
        output.note(f"Check it: {write_command('audit', 'check', written[-1]['out'])}")
        output.note(f"Then measure it: {options.write_bench(written[-1]['out'], analyzers, written[-1]['to'])}")
        if len(written) > 1 and len({job.dataset for job in jobs}) == 1:
            folders = [row["out"] for row in written]
            pool = jobs[0].out.parent / "pool"
            output.note(f"Or join them: {write_command('datasets', 'pool', jobs[0].dataset, *folders, '--out', pool)}")
    for pause in pauses:
        output.note(pause)
    for problem in problems:
        output.note(f"rusbeir: {problem}")
    if problems or any(row.get("retried", {}).get("failed") for row in reports):
        raise typer.Exit(1)


def _lacks_card(dataset: str) -> bool:
    """Return whether a dataset is a folder without a file that may name its language."""
    from rusbeir.datasets import CARD

    return Path(dataset).is_dir() and not any((Path(dataset) / name).exists() for name in (CARD, "README.md"))


def _dry_run(datasets: list[str], targets: list[str], *, as_json: bool, **order: Any) -> None:
    from rusbeir.translation import estimate_port

    rows = []
    with output.progress() as progress:
        for name, target in product(datasets, targets):
            named = {"dataset": name, "to": target}
            rows += [
                {**named, **dataclasses.asdict(estimate), "volume": estimate.volume._asdict()}
                for estimate in estimate_port(name, progress=progress, **_fill(order, target))
            ]
    print_estimates(rows, as_json=as_json)


def print_estimates(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    """Print what datasets would ask of translators."""
    if as_json:
        output.print_json({"version": __version__, "estimates": rows})
        return
    tokens = ["input tokens", "output tokens"] if any(row["input_tokens"] is not None for row in rows) else []
    header = [
        "dataset", "translator", "sends to", "segments", "unique", "characters", *tokens, "requests", "time", "USD"
    ]  # fmt: skip
    if len({row.get("to") for row in rows}) > 1:
        rows = [{**row, "dataset": f"{row['dataset']} to {row['to']}"} for row in rows]
    output.print_table(header, [_estimate_row(row, tokens=bool(tokens)) for row in rows], right=header[3:])
    output.note_estimates(rows)


def _estimate_row(row: dict[str, Any], *, tokens: bool) -> list[str]:
    volume = row["volume"]
    counts = [row["input_tokens"], row["output_tokens"]] if tokens else []
    return [
        row["dataset"],
        row["translator"],
        row["sends"] or "nobody",
        *(f"{volume[name]:,}" for name in ("segments", "unique", "chars")),
        *("" if count is None else f"{count:,}" for count in counts),
        f"{row['requests']:,}",
        output.format_duration(row["seconds"]),
        f"{row['cost']:,.2f}" if row["cost"] or not row["sends"] else "no price known",
    ]
