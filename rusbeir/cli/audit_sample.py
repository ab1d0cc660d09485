"""`rusbeir audit judge`, `sheet` and `agree`: a sample of translations or labels, by a model and by people."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from pathlib import Path
from typing import Annotated, Any

import typer

from rusbeir import __version__
from rusbeir.cli import options, output
from rusbeir.cli.audit_expected import print_expected
from rusbeir.cli.audit_judgements import format_mean, print_judgements
from rusbeir.cli.audit_ratings import print_ratings
from rusbeir.errors import BadInput, unknown
from rusbeir.text import write_command

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a port.")]
Source = Annotated[
    str | None,
    typer.Option("--source", help="The dataset that was translated, where the port does not name it."),
]
Number = Annotated[int, typer.Option("-n", min=1, help="Number of texts in the sample.")]
Seed = Annotated[
    int,
    typer.Option("--seed", help="Seed of the sample; with the same seed, the judge and people score the same texts."),
]


def judge(
    folder: Folder,
    llm: Annotated[str, typer.Option("--llm", help="Model at OPENAI_BASE_URL.")],
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol", help="esa (error spans, and 0 to 100), mqm (error spans), likert (four scores, 1 to 5)."
        ),
    ] = "esa",
    votes: Annotated[
        int, typer.Option("--votes", min=1, help="Answers about each text; medians count. Not of likert.")
    ] = 1,
    n: Number = 100,
    seed: Seed = 0,
    source: Source = None,
    budget_chars: options.BudgetChars = None,
    budget_cost: options.BudgetCost = None,
    input_price: Annotated[float | None, typer.Option("--input-price", help="USD per million tokens sent.")] = None,
    output_price: Annotated[
        float | None, typer.Option("--output-price", help="USD per million tokens received.")
    ] = None,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Requests at the same time.")] = 4,
    retry_failed: options.RetryFailed = False,
    batch: options.Batch = False,
    batch_share: options.BatchShare = None,
    cancel: options.Cancel = False,
    batch_out: options.BatchOut = None,
    batch_in: options.BatchIn = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only estimate requests, tokens, time and cost.")] = False,
    as_json: options.Json = False,
) -> None:
    """Let a language model mark the errors in a sample of a checked port, and score it.

    Example: rusbeir audit judge scifact-es --llm qwen3-30b -n 200
    """
    from rusbeir.people import estimate_judgements, expect_errors, judge_port, publish_opinions

    order: dict[str, Any] = {
        "protocol": protocol, "votes": votes, "n": n, "seed": seed, "source": source, "concurrency": concurrency
    }  # fmt: skip
    prices = {"input_price": input_price, "output_price": output_price}
    order |= {name: price for name, price in prices.items() if price is not None}
    if dry_run:
        with output.progress() as progress:
            priced = options.add_prices(order, llm, batch, batch_share)
            estimate = estimate_judgements(folder, progress=progress, **priced)
        _print_estimate(estimate, as_json=as_json)
        return
    with output.progress() as progress:
        report = judge_port(
            folder, llm=llm, budget_chars=budget_chars, budget_cost=budget_cost, retry_failed=retry_failed,
            **options.batching(batch, batch_share, cancel, batch_out, batch_in),
            progress=progress, tell=output.note, **order,
        )  # fmt: skip
    publish_opinions(report, folder)
    expected = expect_errors(folder) if "spans" in report else None
    if as_json:
        output.print_json({**report, "expected": expected})
        return
    print_judgements(report)
    print_expected(expected)


_PROTOCOLS = ("esa", "likert")


def _print_estimate(row: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.print_json({"version": __version__, "estimates": [row]})
        return
    header = ["port", "requests", "input tokens", "output tokens", "time", "cost", "at most"]
    counts = (f"{row[name]:,}" for name in ("requests", "input_tokens", "output_tokens"))
    unpriced = bool(row["missing_options"])
    costs = ("no price known" if unpriced else f"{row[name]:,.2f}" for name in ("cost", "cost_at_most"))
    cells = [row["port"], *counts, output.format_duration(row["seconds"]), *costs]
    output.print_table(header, [cells], right=header[1:])
    output.note_estimates([row], of_verb=True)


def sheet(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A checked port, or the folder that `rusbeir synth qc` wrote.")
    ],
    n: Number = 100,
    seed: Seed = 0,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol", help="likert (four scores, 1 to 5; the default) or esa (error spans, and 0 to 100)."
        ),
    ] = None,
    raters: Annotated[int, typer.Option("--raters", min=1, help="Number of sheets, each in a different order.")] = 2,
    overlap: Annotated[
        int | None, typer.Option("--overlap", min=1, help="Of esa, how many raters see each text; default: all.")
    ] = None,
    attention: Annotated[
        str | None,
        typer.Option("--attention", help="Of esa, the share of texts of which a damaged copy is shown, such as 5%."),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="Of esa, html (the default) or pearmut, a campaign for Pearmut.")
    ] = None,
    duplicates: Annotated[
        int | None, typer.Option("--duplicates", help="Number of texts that are repeated; default: a tenth.")
    ] = None,
    source: Source = None,
    step: Annotated[
        str | None, typer.Option("--step", help="Of synth qc, only decisions of that step, such as candidate.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help="Of synth qc, only documents of that kind, such as hard-negative.")
    ] = None,
    action: Annotated[
        str | None, typer.Option("--action", help="Of synth qc, only what had that outcome, such as add-judgement.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Write sheets on which people blindly score translations, or label relevance: CSV, XLSX and an HTML page each.

    Example: rusbeir audit sheet scifact-es -n 120 --raters 2
    """
    from rusbeir.people import Slice, make_sheets

    of_esa = {"--overlap": overlap, "--attention": attention, "--format": form}
    others = {"--duplicates": duplicates, "--step": step, "--kind": kind, "--action": action}
    _refuse_options(protocol, others if protocol == "esa" else of_esa)
    with output.progress() as progress:
        if protocol == "esa":
            paths = _make_esa(
                folder, n=n, seed=seed, source=source, progress=progress, raters=raters, overlap=overlap,
                attention=attention, form=form,
            )  # fmt: skip
        else:
            only = Slice(step, kind, action)
            paths = make_sheets(
                folder, n=n, seed=seed, raters=raters, duplicates=duplicates, source=source, only=only,
                progress=progress,
            )  # fmt: skip
    if as_json:
        output.print_json({"sheets": [str(path) for path in paths]})
        return
    for path in paths:
        output.echo(str(path))
    give = "Load it with `pearmut add`; when annotated" if form == "pearmut" else "Give each rater one; when filled in"
    output.note(f"{len(paths)} files written. {give}: " + write_command("audit", "agree", "SHEETS", "--port", folder))


def _refuse_options(protocol: str | None, options: Mapping[str, Any]) -> None:
    """Raise UnknownName for another protocol, and BadInput for options that it does not have."""
    if protocol not in (None, *_PROTOCOLS):
        raise unknown("protocol", str(protocol), _PROTOCOLS)
    if name := next((name for name, value in options.items() if value is not None), None):
        raise BadInput(f"{name} is not an option of the protocol {protocol or 'likert'}. Leave it out.")


def _make_esa(
    folder: Path, *, raters: int, overlap: int | None, attention: str | None, form: str | None, **order: Any
) -> list[Path]:
    from rusbeir.people import Campaign, make_esa_sheets

    campaign = Campaign(raters, overlap, attention=_parse_share(attention or "0"))
    return make_esa_sheets(folder, campaign=campaign, format=form or "html", **order)


def _parse_share(text: str) -> float:
    """A share as 5% or 0.05."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise BadInput(f"--attention {text!r} is not a share. Write 5% or 0.05.") from None


def agree(
    sheets: Annotated[
        list[Path],
        typer.Argument(
            metavar="SHEETS...",
            help="Filled sheets: .csv or .xlsx; or ratings with errors: .jsonl, Pearmut's, Appraise's, WMT's.",
        ),
    ],
    port: Annotated[
        Path | None,
        typer.Option("--port", help="The folder that the sheets were made of: checks their ids and adds its judge."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the resamples.")] = 0,
    as_json: options.Json = False,
) -> None:
    """Measure how far people agree, also with the judge, and their means for the port.

    Example: rusbeir audit agree anna.csv boris.xlsx --port scifact-es
    """
    from rusbeir.people import agree as measure_agreement
    from rusbeir.people import agree_on_errors, is_rating_file, publish_opinions

    with_errors = [path for path in sheets if is_rating_file(path)]
    if with_errors and len(with_errors) < len(sheets):
        other = next(path for path in sheets if path not in with_errors)
        raise BadInput(f"{with_errors[0]} has ratings with errors, and {other} is a sheet. Compare files of one kind.")
    report = (agree_on_errors if with_errors else measure_agreement)(sheets, port=port, seed=seed)
    if port is not None:
        publish_opinions(report, port)
    if with_errors:
        (output.print_json if as_json else print_ratings)(report)
        return
    if as_json:
        output.print_json(report)
        return
    _print_means(report["dimensions"])
    _print_agreement(report["dimensions"])
    if "shares" in report:
        _print_labels(report)
    for row in report["disagreements"][:10]:
        answers = ", ".join(f"{rater} {score}" for rater, score in row["scores"].items())
        output.note(f"{row['item']} {row.get('kind', '')} {row.get('id', '')}: {row['dimension']}: {answers}")
    output.note(f"{len(report['disagreements'])} disagreements of two points or more; --json lists them.")
    for rater, row in report["unanswered"].items():
        output.note(f"{rater} left {row['answers']:,} answers open; texts with an open answer: {row['texts']:,}.")
    for who, n in report["changed"].items():
        if n:
            output.note(f"The scores of the {who} for texts that have changed since ({n:,}) are left out.")
    if port and any(path.resolve().parent != (port / "qa" / "sheets").resolve() for path in sheets):
        output.note(f"The card of `rusbeir publish` counts the sheets in {port / 'qa' / 'sheets'}: put these there.")


def _print_means(dimensions: Mapping[str, Any]) -> None:
    """The means that are weighted to the port; nothing where the sheets do not tell what they were drawn from."""
    whos = list(dict.fromkeys(who for dimension in dimensions.values() for who in dimension["port"]))
    if not whos:
        return
    header = ["weighted to the port", "texts", *(name for who in whos for name in (who, "95 %"))]
    rows = []
    for name, dimension in dimensions.items():
        means = [dimension["port"].get(who) for who in whos]
        n_scored = next((f"{mean['n_scored']:,} of {mean['n_texts']:,}" for mean in means if mean), "")
        cells = [("", "") if mean is None else format_mean(mean["mean"], mean["interval"]) for mean in means]
        rows.append([name, n_scored, *(text for cell in cells for text in cell)])
    output.print_table(header, rows, right=header[1:])


def _print_agreement(dimensions: Mapping[str, Any]) -> None:
    pairs = [
        (name, who, row)
        for name, dimension in dimensions.items()
        for who, row in [
            *((" and ".join(row["raters"]), row) for row in dimension["pairs"]),
            *((f"{rater}, twice", row) for rater, row in dimension["self"].items()),
        ]
    ]
    header = ["dimension", "raters", "texts", "within 1", "MAE", "strictness"]
    rows = [
        [
            *(name, who, f"{row['n']:,}", f"{row['within_one']:.1%}", f"{row['mean_absolute_error']:.2f}"),
            f"{row['figures']['strictness'].value:+.2f}",
        ]
        for name, who, row in pairs
    ]
    output.print_table(header, rows, right=header[2:])
    thresholds = [name for name in pairs[0][2]["figures"] if ">=" in name] if pairs else []
    header = ["dimension", "raters", "κ", "κ quadratic", *(name.replace("kappa ", "κ") for name in thresholds)]
    rows = [
        [
            *(name, who),
            *(
                _format_interval(kappa.value, kappa.interval)
                for kappa in map(row["figures"].get, ("kappa", "quadratic_kappa"))
            ),
            *(_format_value(row["figures"][threshold].value) for threshold in thresholds),
        ]
        for name, who, row in pairs
    ]
    output.print_table(header, rows, right=header[2:])
    header = ["dimension", "α of people", "α with the judge"]
    rows = [
        [
            name,
            *(
                "" if alpha is None else _format_interval(alpha["value"], alpha["interval"])
                for alpha in (dimension["alpha"], dimension["alpha_with_judge"])
            ),
        ]
        for name, dimension in dimensions.items()
    ]
    output.print_table(header, rows, right=header[1:])


def _print_labels(report: Mapping[str, Any]) -> None:
    for row in report["dimensions"]["label"]["pairs"]:
        labels = [str(label) for label in range(len(row["confusion"]))]
        header = [" \\ ".join(row["raters"]), *labels]
        rows = [[label, *(f"{n:,}" for n in counts)] for label, counts in zip(labels, row["confusion"], strict=True)]
        output.print_table(header, rows, right=header[1:])
    header = ["label", "judge", "people", "95 %", "pairs", "labelled", "worth", "to halve"]
    rows = [
        [
            *(name, f"{share['judge']:.1%}", f"{share['mean']:.1%}"),
            f"{max(share['interval'][0], 0):.1%} to {min(share['interval'][1], 1):.1%}",
            *(
                f"{share['n_pairs']:,}",
                f"{share['n_labelled']:,}",
                f"{share['worth']:.2f}",
                f"{share['labels_to_halve']:,}",
            ),
        ]
        for name, share in report["shares"].items()
    ]
    output.print_table(header, rows, right=header[1:])
    header = ["contradicted", "step", "action", "judge", "people", "query", "document"]
    rows = [
        [
            *(
                row["decision"],
                row["step"],
                row["action"],
                str(row["judge"]),
                ", ".join(map(str, row["people"].values())),
            ),
            *(row["query_id"], row["doc_id"]),
        ]
        for row in report["contradicted"]
    ]
    output.print_table(header, rows, right=header[3:4], shortened=header[5:])


def _format_value(value: float) -> str:
    return "undefined" if isnan(value) else f"{value:.3f}"


def _format_interval(value: float, interval: tuple[float, float]) -> str:
    return _format_value(value) + ("" if isnan(value) else f" ({interval[0]:.2f} to {interval[1]:.2f})")
