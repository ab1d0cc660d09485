"""`rusbeir datasets`: list, show, fetch, validate and pool datasets."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import orjson
import typer

from rusbeir.cli import options, output

_REGISTERED = (
    "name", "language", "split", "licence", "source", "revision", "path", "url", "sha256", "md5", "hub",
    "n_docs", "n_queries", "n_qrels",
)  # fmt: skip

app = typer.Typer(
    invoke_without_command=True,
    help="List the registered datasets, or inspect one.\n\nExample: rusbeir datasets --lang ru",
)


@app.callback()
def datasets(
    context: typer.Context,
    lang: Annotated[
        str | None, typer.Option("--lang", callback=options.read_language_tag, help="Only those in this language.")
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="Only those with this in their name, such as beir or 'miracl/*/dev'.")
    ] = "",
    as_json: options.Json = False,
) -> None:
    """List the registered datasets, on a terminal page by page.

    An unverified dataset has no published checksum: that of its first download is recorded and compared from then on.

    Example: rusbeir datasets --lang ru
    """
    if context.invoked_subcommand is not None:
        return
    import dataclasses

    from rusbeir.datasets import read_registry
    from rusbeir.errors import unknown

    known = read_registry()
    named = [entry for entry in known.values() if _has_name(name, (entry.name, *entry.aliases))]
    if not named:
        raise unknown("dataset", name, known, listing="rusbeir datasets")
    entries = [entry for entry in named if lang in (None, entry.language)]
    if as_json:
        output.print_json([dataclasses.asdict(entry) | {"verified": entry.verified} for entry in entries])
        return
    if not entries:
        languages = sorted({entry.language for entry in named})
        output.note(f"No registered dataset is in {lang!r}. Languages: {', '.join(languages)}.")
        return
    rows = [
        [
            entry.name,
            entry.language,
            entry.split if entry.judged else f"{entry.split}, not judged",
            f"{entry.n_docs:,}" if entry.n_docs else "?",
            f"{entry.n_queries:,}" if entry.n_queries else "?",
            "" if entry.verified else "unverified",
            entry.licence,
            ", ".join(entry.aliases),
        ]
        for entry in entries
    ]
    with output.page(len(rows)):
        output.print_table(
            ["dataset", "language", "split", "documents", "queries", "checksums", "licence", "also called"],
            rows,
            right=["documents", "queries"],
            optional=["also called", "licence", "checksums"],
        )
    more = "" if lang or name else " Fewer: --lang ru, --name beir."
    output.note(f"{len(rows):,} of {len(known):,} datasets.{more}")


def _has_name(pattern: str, names: tuple[str, ...]) -> bool:
    """Return whether one of the names has the pattern in it, in which * stands for anything."""
    return any(fnmatchcase(name.lower(), f"*{pattern.lower()}*") for name in names)


@app.command()
def info(
    dataset: options.DatasetName,
    lang: options.Lang = None,
    split: options.Split = None,
    as_json: options.Json = False,
) -> None:
    """Show what a dataset holds and where it comes from, and of one that is not on this machine what is registered.

    Nothing is fetched.

    Example: rusbeir datasets info xquad/ru
    """
    from rusbeir.datasets import IRDS, NotAtHand, card_bytes, find_entry, get_entry, load

    try:
        with output.progress() as progress:
            loaded = load(
                dataset, language=lang, split=split, judged=False, download=False, accept_difference=True,
                progress=progress,
            )  # fmt: skip
    except NotAtHand as missing:
        if dataset.startswith(IRDS):
            raise
        entry = get_entry(dataset)
        document = {key: value for key in _REGISTERED if (value := getattr(entry, key))}
        document |= {} if entry.judged else {"judged": False}
        output.note(str(missing))
    else:
        grades = Counter(grade for judged in loaded.qrels.values() for grade in judged.values())
        counts = {"n_docs": len(loaded.corpus), "n_queries": len(loaded.queries), "n_qrels": grades.total()}
        document = orjson.loads(card_bytes(loaded.card, loaded.fingerprint, **counts))
        document["grades"] = {str(grade): grades[grade] for grade in sorted(grades)}
    registered = find_entry(dataset)
    if registered:
        document["verified"] = registered.verified
    if as_json:
        output.print_json(document)
        return
    if registered:
        document["checksums"] = "" if document.pop("verified") else "unverified"
    shown = [
        [name, " ".join(value) if isinstance(value, list | tuple) else str(value)] for name, value in document.items()
    ]
    output.print_table(["", ""], [row for row in shown if row[1] not in ("", "{}")])


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="DATASET...", help="Registered names.")],
    as_json: options.Json = False,
) -> None:
    """Find the files of datasets, or download them, and verify their checksums.

    Example: rusbeir datasets fetch xquad/ru
    """
    from rusbeir.datasets import fetch as fetch_file

    with output.progress() as progress:
        paths = {name: str(fetch_file(name, progress)) for name in names}
    if as_json:
        output.print_json(paths)
        return
    for path in paths.values():
        output.echo(path)


@app.command()
def validate(
    dataset: options.DatasetName,
    lang: options.Lang = None,
    split: options.Split = None,
    as_json: options.Json = False,
) -> None:
    """Validate a dataset: ids, texts, judgements, counts. Exit code 1 if there are errors.

    Example: rusbeir datasets validate xquad/ru
    """
    from rusbeir.datasets import validate as find_problems

    findings = find_problems(dataset, language=lang, split=split)
    errors, warnings = (
        sum(finding.n for finding in findings if finding.level == level) for level in ("error", "warning")
    )
    if as_json:
        output.print_json(
            {"dataset": dataset, "errors": errors, "findings": [finding._asdict() for finding in findings]}
        )
    else:
        for finding in findings:
            output.echo(finding)
        output.note(f"{dataset}: {errors} errors, {warnings} warnings")
    if errors:
        raise typer.Exit(1)


@app.command()
def pool(
    datasets: Annotated[list[str], typer.Argument(metavar="DATASET...", help="Names or paths, one for each language.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the pool, which is new.")],
    relevant: Annotated[
        str,
        typer.Option(
            "--relevant", help="Judged documents that count: in any language, in the query's own, or in an other."
        ),
    ] = "any",
    lang: Annotated[
        str,
        typer.Option("--lang", metavar="TAG,...", help="Languages of paths without a card, in the order of the paths."),
    ] = "",
    queries: Annotated[
        Path | None, typer.Option("--queries", help="One table of queries for all the datasets, with a column lang.")
    ] = None,
    qrels: Annotated[Path | None, typer.Option("--qrels", help="The judgements of --queries.")] = None,
    split: options.Split = None,
    name: Annotated[str, typer.Option("--name", help="What result rows call the pool.")] = "",
    columns: options.Columns = None,
    as_json: options.Json = False,
) -> None:
    """Join datasets of several languages into one, for one index over all of them.

    Queries of the same id are translations of one another. The id of a document and of a query gets @ and its language.

    Example: rusbeir datasets pool xquad/ru xquad/en --out xquad-pool
    """
    from rusbeir.datasets import load, make_queries, read_columns, read_judgement_file
    from rusbeir.datasets import pool as write_pool
    from rusbeir.errors import BadInput

    tags = [options.read_language_tag(tag.strip()) for tag in lang.split(",")] if lang else []
    if len(tags) > len(datasets):
        raise BadInput(f"--lang names {len(tags)} languages for {len(datasets)} datasets: name one for each.")
    if qrels is not None and queries is None:
        raise BadInput("--qrels are the judgements of --queries: name the queries as well.")
    named = read_columns(columns)
    with output.progress() as progress:
        loaded = [
            load(dataset, language=tag, split=split, judged=False, columns=columns, progress=progress)
            for dataset, tag in zip_longest(datasets, tags)
        ]
        report = write_pool(
            loaded,
            out,
            relevant=relevant,
            queries=None if queries is None else make_queries(queries, named),
            qrels=None if qrels is None else read_judgement_file(qrels, named),
            name=name,
        )
    if as_json:
        output.print_json(report)
        return
    rows = [
        [language, f"{n:,}", f"{report['queries'].get(language, 0):,}"] for language, n in report["documents"].items()
    ]
    output.print_table(["language", "documents", "queries"], rows, right=["documents", "queries"])
    output.note(
        f"{report['dataset']}: {report['n_docs']:,} documents, {report['n_queries']:,} queries, "
        f"{report['n_qrels']:,} judgements."
    )
    output.note(f"Measure it: {options.write_bench(out, None)}")
