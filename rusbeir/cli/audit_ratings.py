"""What `rusbeir audit agree` prints of ratings with marked errors: means, agreement, and what raters overlooked."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import Any

from rusbeir.cli import output
from rusbeir.cli.audit_judgements import format_mean

_DIGITS = {"score": 2, "mqm": 2, "major": 3}
_LABELS = {"score": "score, 0 to 100", "mqm": "MQM score", "major": "with a major error"}
_MANY_MISSED = 0.5


def print_ratings(report: Mapping[str, Any]) -> None:
    """Print the report of agree_on_errors."""
    if report["port"]:
        _print_port(report["port"])
    names = list(_LABELS)
    rows = [
        [rater, f"{report['raters'][rater]:,}", *(_format(means.get(name), _DIGITS[name]) for name in names)]
        for rater, means in report["means"].items()
    ]
    header = ["rater", "texts", *_LABELS.values()]
    output.print_table(header, rows, right=header[1:])
    _print_pairs(report)
    _print_notes(report)


def _print_port(port: Mapping[str, Any]) -> None:
    header = ["weighted to the port", *(text for who in port for text in (who, "95 %"))]
    rows = []
    for name, label in _LABELS.items():
        means = [means.get(name) for means in port.values()]
        cells = [
            ("", "") if mean is None else format_mean(mean["port"], mean["interval"], _DIGITS[name]) for mean in means
        ]
        rows.append([label, *(text for cell in cells for text in cell)])
    output.print_table(header, rows, right=header[1:])


def _print_pairs(report: Mapping[str, Any]) -> None:
    header = ["raters", "texts", "Pearson", "95 %", "difference", "strictness", "same major", "F of spans", "95 %"]
    rows = []
    pairs = [(" and ".join(row["raters"]), row) for row in report["pairs"]]
    for who, row in [*pairs, *((f"{rater}, twice", row) for rater, row in report["self"].items())]:
        apart, strictness = row["mean_absolute_difference"], row["strictness"]
        rows.append([
            *(who, f"{row['n']:,}", *_format_figure(row["pearson"])),
            *(_format(apart and apart["value"], 1), "" if strictness is None else f"{strictness['value']:+.1f}"),
            *(_format(row["same_major"] and row["same_major"]["value"], 3), *_format_figure(row["spans"])),
        ])  # fmt: skip
    if rows:
        output.print_table(header, rows, right=header[1:])


def _print_notes(report: Mapping[str, Any]) -> None:
    for rater, row in report["checks"].items():
        many = "; do not rely on these ratings" if row["missed"] > _MANY_MISSED * row["planted"] else ""
        output.note(f"{rater} missed {row['missed']:,} of {row['planted']:,} attention checks{many}.")
    for rater, n in report["raters"].items():
        if n == 1:
            output.note(f"{rater} rated one text, which says nothing about agreement.")
    for rater, n in report["unscored"].items():
        output.note(f"{rater} has not scored {n:,} texts of the sheet.")
    spans = report["spans"]
    if spans["not_in_text"] or spans["overlapping"]:
        output.note(
            f"Of {spans['marked']:,} marked errors, {spans['not_in_text']:,} are not in the texts and "
            f"{spans['overlapping']:,} overlap another one; they are left out."
        )
    if families := report["shared_families"]:
        output.note(
            f"The judge and the translator are of one family ({', '.join(families)}): such a judge tends to favour "
            "what its relatives write."
        )
    if not report["pairs"] and len(report["raters"]) > 1:
        output.note("No two raters have rated the same text, so nothing is known of how far they agree.")
    if report["doubles"]:
        output.note(f"Ratings of a text that the same rater rated again ({report['doubles']:,}): the latest counts.")
    if report["changed"]:
        output.note(f"Ratings of texts that have changed since ({report['changed']:,} texts) are left out.")


def _format(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _format_figure(figure: Mapping[str, Any] | None) -> tuple[str, str]:
    if figure is None:
        return "", ""
    if isnan(figure["value"]):
        return "undefined", ""
    return f"{figure['value']:.3f}", f"{figure['interval'][0]:.2f} to {figure['interval'][1]:.2f}"
