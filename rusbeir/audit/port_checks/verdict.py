"""What an audit's page says first: whether the port is good enough, and where to look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def say_verdict(report: Mapping[str, Any]) -> str:
    """Say in one sentence whether the gates hold, or what was found where no gate was set.

    >>> say_verdict({"gates": {"asked": "flagged<=2%", "failed": []}})
    'Good enough: the gate flagged<=2% holds.'
    """
    gates = report["gates"]
    if not gates:
        sentence = f"{report['flagged']['share']:.2%} of the segments are flagged"
        if (score := report["levels"].get("documents", {}).get("chrF")) is not None:
            sentence += f", and chrF of the documents' back-translation is {score:.1f}"
        return f"No gate was set: {sentence}.".replace("%", " %")
    conditions = gates["asked"].split(", ")
    several = len(conditions) > 1
    if gates["failed"]:
        return f"Not good enough: {len(gates['failed'])} of {len(conditions)} gate{'s' if several else ''} failed."
    return f"Good enough: the gate{'s' if several else ''} {gates['asked']} hold{'' if several else 's'}."


def list_parts(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The parts of the page worth a look, as (anchor, name): the worst segments first, then flags by their number."""
    parts = [("worst", "lowest chrF")] if report["worst"] else []
    parts += [(f"qe-{n}", f"lowest {name}") for n, name in enumerate(report["qe"], 1)]
    if report["round_trip"] and report["round_trip"]["lost"]:
        parts.append(("round-trip", "queries that lost most"))
    flags = sorted(report["examples"], key=lambda name: (-report["flags"][name]["segments"], name))
    return parts + [(f"flag-{name}", f"{name}: {report['flags'][name]['segments']:,}") for name in flags]
