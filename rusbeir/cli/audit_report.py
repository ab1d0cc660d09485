"""The reports of `rusbeir audit check` and `rusbeir audit published` as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from rusbeir.cli import output


def print_report(report: dict[str, Any]) -> None:
    """Print the verdict, then the scores, the flags that were found and the round trip as tables, then what is next."""
    from rusbeir.audit import say_verdict
    from rusbeir.datasets import write_audit_command

    output.echo(say_verdict(report))
    if report["levels"]:
        names = ["chrF", "chrF++", "mean", "p5", "p50"]
        output.print_table(
            ["back-translation of", "texts", "chrF", "chrF++", "mean chrF", "5 %", "median"],
            [
                [level, f"{row['n']:,}", *(f"{row[name]:.2f}" if name in row else "" for name in names)]
                for level, row in report["levels"].items()
            ],
            right=["texts", "chrF", "chrF++", "mean chrF", "5 %", "median"],
        )
    if compared := report["reference"]:
        scores = ["chrF", "chrF++", "BLEU", "TER"]
        output.print_table(
            [f"compared with {compared['name']}", "texts", "missing", *scores],
            [
                [
                    level,
                    f"{row['n']:,}",
                    f"{row['lacking']:,}",
                    *("" if row.get(name) is None else f"{row[name]:.2f}" for name in scores),
                ]
                for level, row in compared["levels"].items()
            ],
            right=["texts", "missing", *scores],
        )
    _print_quality(report["qe"])
    print_flags(report)
    if trip := report["round_trip"]:
        measure = trip["measure"]
        output.print_table(
            [f"{trip['system']} on", measure],
            [[name, f"{100 * row[measure]:.2f}"] for name, row in trip["rows"].items()],
            right=[measure],
        )
    folder = Path(report["folder"])
    output.note(f"Report: {folder / 'qa' / 'report.html'}")
    output.note(f"Next, let people read a sample: {write_audit_command('sheet', folder, '--protocol', 'esa')}")


def _print_quality(scores: dict[str, Any]) -> None:
    """Print the distribution of each quality estimation's scores, and how many segments have none."""
    columns = {"mean": "mean", "p5": "5 %", "p50": "median"}
    rows = [
        [name, level, f"{row['n']:,}", *(f"{row[key]:.4g}" for key in columns)]
        for name, quality in scores.items()
        for level, row in quality["levels"].items()
    ]
    if rows:
        right = ["texts", *columns.values()]
        output.print_table(["quality estimation", "of", *right], rows, right=right)
    for name, quality in scores.items():
        if quality["missing"]:
            output.note(f"{quality['missing']:,} segments have no score of {name}; they count in no mean.")


def print_flags(report: dict[str, Any]) -> None:
    """Print the flags that were found, how many segments have one, and what that says."""
    from rusbeir.audit import FLAGS_MEANING

    counts = ["segments", "documents", "queries"]
    raised = [(name, row) for name, row in report["flags"].items() if row["segments"]]
    if raised:
        output.print_table(
            ["flag", "segments", "share", "documents", "queries"],
            [
                [name, f"{row['segments']:,}", f"{row['share']:.2%}", f"{row['documents']:,}", f"{row['queries']:,}"]
                for name, row in raised
            ],
            right=["share", *counts],
        )
    output.note(
        f"{report['flagged']['segments']:,} of {report['n_segments']:,} segments ({report['flagged']['share']:.2%}) "
        "are flagged."
    )
    output.note(FLAGS_MEANING)


def exit_by_gates(report: dict[str, Any], gate: str | None, *, as_json: bool) -> None:
    """Print the gates that do not hold, and exit with 1 where there are some."""
    failed = report["gates"]["failed"] if report["gates"] else []
    for line in failed:
        output.note(f"rusbeir: gate: {line}.")
    if failed:
        raise typer.Exit(1)
    if gate and not as_json:
        output.note(f"The gate holds: {gate}")


def print_integrity(report: dict[str, Any]) -> None:
    """Print what a published port lost, what became one text, what drifted, and the flags."""
    integrity = report["integrity"]
    levels = ("documents", "queries")
    output.print_table(
        ["", "source", "port", "lost", "added", "collapsed", "drifted"],
        [
            [
                level,
                *(f"{integrity[level][name]:,}" for name in ("source", "port", "lost", "added")),
                f"{integrity['collapse'][level]['texts']:,}",
                f"{integrity['drift'][level]:,}",
            ]
            for level in levels
        ],
        right=["source", "port", "lost", "added", "collapsed", "drifted"],
    )
    if integrity["lengths"]:
        right = ["texts", "5 %", "median", "95 %", "outliers"]
        output.print_table(
            ["length of", *right],
            [
                [name, f"{row['n']:,}", *(f"{row[key]:.2f}" for key in ("p5", "median", "p95")), f"{row['outliers']:,}"]
                for name, row in integrity["lengths"].items()
            ],
            right=right,
        )
    print_flags(report)
    for line in integrity["sentences"]:
        output.echo(line)
    output.note(f"Report: {Path(report['folder']) / 'report.html'}")
