"""What `rusbeir audit judge` prints: means, what the marked errors are, and how far several answers agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rusbeir.cli import output

_DIGITS = {"major": 3}
_LABELS = {"score": "score, 0 to 100", "mqm": "MQM score", "major": "with a major error"}


def print_judgements(report: Mapping[str, Any]) -> None:
    """Print the means of a judge, and what they do not say."""
    header = ["dimension", "mean of the sample", "weighted to the port", "95 %"]
    rows = []
    for name, row in report["means"].items():
        digits = _DIGITS.get(name, 2)
        cells = format_mean(row["port"], row["interval"], digits)
        rows.append([_LABELS.get(name, name), f"{row['sample']:.{digits}f}", *cells])
    output.print_table(header, rows, right=header[1:])
    if "errors" in report:
        _print_errors(report)
    output.note(
        f"{report['judged']:,} of {report['n']:,} texts judged, {report['invalid']:,} without a valid answer; "
        f"{report['invalid_answers']:,} of {report['answers']:,} answers were invalid. {report['judge']}"
    )
    if families := report["shared_families"]:
        output.note(
            f"The judge and the translator are of one family ({', '.join(families)}): such a judge tends to favour "
            "what its relatives write. Ask a model of another family, too."
        )
    if "page" in report:
        output.note(f"Page: {report['page']}")


def _print_errors(report: Mapping[str, Any]) -> None:
    if report["errors"]:
        severities = ["minor", "major", "critical"]
        output.print_table(
            ["errors", *severities],
            [[kind, *(f"{row[name]:,}" for name in severities)] for kind, row in report["errors"].items()],
            right=severities,
        )
    elif report["judged"]:
        output.note(
            f"The judge marked no error in any of the {report['judged']:,} texts. Unless they are perfect, it does not "
            "see errors: try it on texts that you have damaged yourself, or ask another model."
        )
    spans = report["spans"]
    if n_left_out := spans["not_in_text"] + spans["overlapping"]:
        output.note(
            f"{n_left_out:,} of {spans['marked']:,} marked spans are left out: {spans['not_in_text']:,} are in neither "
            f"text, {spans['overlapping']:,} overlap another one."
        )
    if agreement := report["agreement"]:
        header = ["agreement of the answers", "value", "95 %"]
        labels = {
            "score": "mean difference of scores", "major": "same verdict on major errors", "spans": "F of the spans",
        }  # fmt: skip
        rows = [
            [label, *format_mean(agreement[name]["value"], agreement[name]["interval"], 3)]
            for name, label in labels.items()
            if name in agreement
        ]
        output.print_table(header, rows, right=header[1:])


def format_mean(mean: float, interval: tuple[float, float] | None, digits: int = 2) -> tuple[str, str]:
    """The cells of a mean and of its interval, "" where there is none."""
    cell = "" if interval is None else f"{interval[0]:.{digits}f} to {interval[1]:.{digits}f}"
    return f"{mean:.{digits}f}", cell
