"""Conditions that a report must meet, such as "chrf>=55,flagged<=2%"."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rusbeir.errors import BadInput, option, unknown

_GATE = re.compile(r"\s*([\w.+-]*[\w+])\s*(>=|<=|==|>|<)\s*(-?\d+(?:\.\d+)?)\s*(%?)\s*")
LEVELS = ("segments", "documents", "queries")
_COMPARED = {"chrF": "chrf", "chrF++": "chrf++", "BLEU": "bleu", "TER": "ter"}
_HOLDS = {">=": operator.ge, "<=": operator.le, "==": operator.eq, ">": operator.gt, "<": operator.lt}


class Gate(NamedTuple):
    """One condition; a percentage is kept as a fraction."""

    text: str
    name: str
    relation: str
    bound: float

    def holds(self, value: float) -> bool:
        """Return whether a figure meets the condition."""
        return bool(_HOLDS[self.relation](value, self.bound))


def parse_gates(text: str) -> list[Gate]:
    """Parse the conditions in a comma-separated list. Raises BadInput for a part that is not a condition.

    >>> parse_gates("chrf>=55,flagged<=2%")[1].bound
    0.02
    """
    gates = []
    for part in text.split(","):
        match = _GATE.fullmatch(part)
        if match is None:
            raise BadInput(
                f"{option('gates')}: {part.strip()!r} is not a condition. Write name>=number, as in "
                f"chrf>=55,flagged<=2%."
            )
        name, relation, number, percent = match.groups()
        gates.append(Gate(part.strip(), name.lower(), relation, float(number) / (100 if percent else 1)))
    return gates


def refuse_unknown(gates: Sequence[Gate], known: Iterable[str]) -> None:
    """Raise UnknownName for a gate whose figure is not one of these."""
    names = list(known)
    for gate in gates:
        if gate.name not in names:
            raise unknown("figure to gate by", gate.name, names)


def find_failed_gates(gates: Sequence[Gate], measured: Mapping[str, float]) -> list[str]:
    """Say for each gate that does not hold why. A gate whose figure was not measured does not hold."""
    lines = []
    for gate in gates:
        value = measured.get(gate.name)
        if value is None:
            lines.append(f"{gate.text} does not hold: {gate.name} was not measured")
        elif not gate.holds(value):
            figure = f"{value:.2%}" if gate.text.endswith("%") else f"{value:.4g}"
            lines.append(f"{gate.text} does not hold: {gate.name} is {figure}")
    return lines


def apply_gates(gates: Sequence[Gate], report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the gates as they were written, and a line for each that does not hold."""
    return {
        "asked": ", ".join(gate.text for gate in gates),
        "failed": find_failed_gates(gates, collect_figures(report)),
    }


def list_figures(
    flags: Iterable[str], *, translated_back: bool, compared: bool, qualities: Sequence[str] = ()
) -> list[str]:
    """List the names of the figures that a report will have, known before anything is measured."""
    names = ["flagged", *flags]
    if translated_back:
        names += ["chrf", "chrf++", "ndcg-kept"]
        names += [f"{name}.{level}" for name in ("chrf", "chrf++", "mean") for level in LEVELS]
    if compared:
        names += [f"reference.{name}{level}" for name in _COMPARED.values() for level in ("", ".documents", ".queries")]
    return [*names, *(f"qe.{name}{level}" for name in qualities for level in ("", *(f".{level}" for level in LEVELS)))]


def collect_figures(report: Mapping[str, Any]) -> dict[str, float]:
    """Collect the figures of a report by the names that gates use: shares of flagged segments, and scores.

    These are "flagged" and the name of every check; "chrf" and "chrf++" (corpus scores of the documents),
    "chrf.queries", "chrf.segments", "mean.documents" and so on; "ndcg-kept", nDCG@10 of the back-translation divided
    by that of the source; "reference.chrf" (of the documents), "reference.bleu.queries" and so on; "qe.cometkiwi" (the
    mean over segments), "qe.cometkiwi.documents" and so on; and for a published port the figures of its integrity.
    """
    figures = {"flagged": report["flagged"]["share"]}
    figures |= {name: row["share"] for name, row in report["flags"].items()}
    for level, row in report["levels"].items():
        for name in ("chrF", "chrF++", "mean"):
            if name in row:
                figures[f"{name.lower()}.{level}"] = row[name]
                if level == "documents" and name != "mean":
                    figures[name.lower()] = row[name]
    for level, row in (report.get("reference") or {"levels": {}})["levels"].items():
        for key, name in _COMPARED.items():
            if row.get(key) is not None:
                figures[f"reference.{name}.{level}"] = row[key]
                if level == "documents":
                    figures[f"reference.{name}"] = row[key]
    for name, quality in report.get("qe", {}).items():
        for level, row in quality["levels"].items():
            figures[f"qe.{name}.{level}"] = row["mean"]
            if level == "segments":
                figures[f"qe.{name}"] = row["mean"]
    figures |= report.get("integrity", {}).get("figures", {})
    if (trip := report.get("round_trip")) and trip.get("kept") is not None:
        figures["ndcg-kept"] = trip["kept"]
    return figures


def collect_line_figures(row: Mapping[str, Any]) -> dict[str, float]:
    """The figures of a row of score_lines: "bleu", "chrf", "chrf++", "ter", "flagged", the name of every check."""
    figures = {name.lower(): value for name, value in row.get("scores", {}).items()}
    if "flagged" in row:
        figures |= {"flagged": row["flagged"]["share"], **{name: flag["share"] for name, flag in row["flags"].items()}}
    return figures
