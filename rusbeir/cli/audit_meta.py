"""`rusbeir audit meta`: how well metrics and judges of translations agree with people."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import Annotated, Any

import typer

from rusbeir.cli import options, output

_HEADINGS = {
    "auc": "AUC, major error",
    "pearson": "Pearson",
    "acc_eq": "acc_eq",
    "pairs": "system pairs",
    "soft_pairs": "soft pairs",
}
_SPAN_HEADINGS = {"f": "F of spans", "precision": "precision", "recall": "recall"}


def meta(
    ratings: Annotated[
        Path,
        typer.Argument(
            help="People's ratings: WMT's .seg.score or .seg.rating, .tsv, .jsonl, Appraise's .csv; .gz too."
        ),
    ],
    scores: Annotated[
        list[Path], typer.Option("--scores", help="Scores of a metric or a judge, in the same forms; repeatable.")
    ],
    docs: Annotated[
        Path | None, typer.Option("--docs", help="The document of each segment, in order, as WMT's .docs has them.")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option("--without", help="Leave this system out, as a reference by people; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the resamples.")] = 0,
    as_json: options.Json = False,
) -> None:
    """Hold metrics, quality estimation or judges against people's ratings of the same translations.

    Example: rusbeir audit meta mqm.seg.rating --scores CometKiwi.seg.score
    """
    from rusbeir.people import compare_metrics

    report = compare_metrics(ratings, scores, documents=docs, without=without or (), seed=seed)
    if as_json:
        output.print_json(report)
        return
    _print_figures(report, "figures", _HEADINGS)
    _print_figures(report, "spans", _SPAN_HEADINGS)
    _print_estimates(report)
    major = "" if report["n_major"] is None else f"; people marked a major error in {report['n_major']:,}"
    systems = len(report["systems"])
    output.note(
        f"{report['n_rated']:,} rated translations of {report['n_segments']:,} segments by {systems:,} "
        f"{'system' if systems == 1 else 'systems'}{major}. Intervals resample {report['resampled']} "
        f"({report['n_documents']:,})."
    )
    repeated = {report["ratings"]: report["n_repeated"]}
    repeated |= {metric["name"]: metric["n_repeated"] for metric in report["metrics"]}
    for name, n in repeated.items():
        if n:
            output.note(f"{name} has several ratings of one segment: {n:,} are left out; the last one counts.")
    for metric in report["metrics"]:
        for system, families in metric["shared_families"].items():
            output.note(
                f"{metric['name']} and {system} are of one family ({', '.join(families)}): such a judge tends to "
                "favour what its relatives write."
            )
        if isnan(metric["figures"]["pearson"]["value"]):
            output.note(
                f"{metric['name']} gives all rated translations the same score, such as a judge who never sees an "
                "error, or people do: nothing is known of how far they agree."
            )
        if metric["figures"]["pearson"]["value"] < 0:
            output.note(
                f"{metric['name']} is lower where people's scores are higher. If lower is better, give its scores with "
                "a minus; else it may be of other texts, or in another order."
            )


def _print_estimates(report: dict[str, Any]) -> None:
    """Print what people would say of all translations, for metrics that have scored more than people have rated."""
    metrics = [metric for metric in report["metrics"] if metric["of_all"]]
    if not metrics:
        return
    header = ["people of all translations, by", "rated", "of", "mean of rated", "of all", "95 %", "worth", "to halve"]
    rows = []
    for metric in metrics:
        mean = metric["of_all"]
        low, high = mean["interval"]
        rows.append([
            *(metric["name"], f"{mean['n_labelled']:,}", f"{mean['n_pairs']:,}", f"{mean['rated']:.3f}"),
            *(f"{mean['mean']:.3f}", f"{low:.3f} to {high:.3f}"),
            *(f"{mean['worth']:.2f}", f"{mean['labels_to_halve']:,}"),
        ])  # fmt: skip
    output.print_table(header, rows, right=header[1:])


def _print_figures(report: dict[str, Any], key: str, headings: dict[str, str]) -> None:
    """Print those of the figures under the key that a metric has; nothing where none has one."""
    names = [name for name in headings if any((metric[key] or {}).get(name) for metric in report["metrics"])]
    if not names:
        return
    header = ["metric", *(text for name in names for text in (headings[name], "95 %"))]
    rows = [
        [
            metric["name"],
            *(
                text
                for name in names
                for text in _format(metric, (metric[key] or {}).get(name), name, report["n_pairs"])
            ),
        ]
        for metric in report["metrics"]
    ]
    output.print_table(header, rows, right=header[1:])


def _format(metric: dict[str, Any], figure: dict[str, Any] | None, name: str, n_pairs: int) -> tuple[str, str]:
    if figure is None:
        return "", ""
    if isnan(figure["value"]):
        return "undefined", ""
    low, high = figure["interval"]
    value = f"{metric['alike']:,} of {n_pairs:,}" if name == "pairs" else f"{figure['value']:.3f}"
    return value, f"{low:.3f} to {high:.3f}"
