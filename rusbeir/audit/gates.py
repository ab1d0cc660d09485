"""Conditions that a report must meet, such as "chrf>=55,flagged<=2%"."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rusbeir.errors import BadInput, unknown

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


def parse_gates(text: str) -> list[Gate]:
    """The conditions of a comma-separated list. Raises BadInput for what is none.

    >>> parse_gates("chrf>=55,flagged<=2%")[1].bound
    0.02
    """
    gates = []
    for part in text.split(","):
        match = _GATE.fullmatch(part)
        if match is None:
            raise BadInput(f"--gate: {part.strip()!r} is no condition; write name>=number, as chrf>=55,flagged<=2%.")
        name, relation, number, percent = match.groups()
        gates.append(Gate(part.strip(), name.lower(), relation, float(number) / (100 if percent else 1)))
    return gates


def refuse_unknown(gates: Sequence[Gate], known: Iterable[str]) -> None:
    """Raise UnknownName for a gate by another figure than these."""
    names = list(known)
    for gate in gates:
        if gate.name not in names:
            raise unknown("figure to gate by", gate.name, names)


def failed_gates(gates: Sequence[Gate], measured: Mapping[str, float]) -> list[str]:
    """A line for each gate that does not hold; one by a figure that was not measured does not."""
    lines = []
    for gate in gates:
        value = measured.get(gate.name)
        if value is None:
            lines.append(f"{gate.text} does not hold: {gate.name} was not measured")
        elif not _HOLDS[gate.relation](value, gate.bound):
            shown = f"{value:.2%}" if gate.text.endswith("%") else f"{value:.4g}"
            lines.append(f"{gate.text} does not hold: {gate.name} is {shown}")
    return lines


def apply_gates(gates: Sequence[Gate], report: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked of the report, and a line for each gate that does not hold."""
    return {"asked": ", ".join(gate.text for gate in gates), "failed": failed_gates(gates, figures(report))}


def figure_names(flags: Iterable[str], *, translated_back: bool, compared: bool) -> list[str]:
    """The names that figures gives, before anything is measured."""
    names = ["flagged", *flags]
    if translated_back:
        names += ["chrf", "chrf++", "ndcg-kept"]
        names += [f"{name}.{level}" for name in ("chrf", "chrf++", "mean") for level in LEVELS]
    if compared:
        names += [f"reference.{name}{level}" for name in _COMPARED.values() for level in ("", ".documents", ".queries")]
    return names


def figures(report: Mapping[str, Any]) -> dict[str, float]:
    """What a report can be gated by: shares of flagged segments, and scores.

    "flagged", every check's name, "chrf" and "chrf++" (of the documents' corpus), "chrf.queries", "chrf.segments",
    "mean.documents" and so on, "ndcg-kept", the round trip's nDCG@10 as a part of the source's, and of the reference
    "reference.chrf" (of the documents), "reference.bleu.queries" and so on.
    """
    found = {"flagged": report["flagged"]["share"]}
    found |= {name: row["share"] for name, row in report["flags"].items()}
    for level, row in report["levels"].items():
        for name in ("chrF", "chrF++", "mean"):
            if name in row:
                found[f"{name.lower()}.{level}"] = row[name]
                if level == "documents" and name != "mean":
                    found[name.lower()] = row[name]
    for level, row in (report.get("reference") or {"levels": {}})["levels"].items():
        for key, name in _COMPARED.items():
            if row.get(key) is not None:
                found[f"reference.{name}.{level}"] = row[key]
                if level == "documents":
                    found[f"reference.{name}"] = row[key]
    if (trip := report.get("round_trip")) and trip.get("kept") is not None:
        found["ndcg-kept"] = trip["kept"]
    return found


def line_figures(row: Mapping[str, Any]) -> dict[str, float]:
    """What a row of score_lines can be gated by: "bleu", "chrf", "chrf++", "ter", "flagged", every check's name."""
    found = {name.lower(): value for name, value in row.get("scores", {}).items()}
    if "flagged" in row:
        found |= {"flagged": row["flagged"]["share"], **{name: flag["share"] for name, flag in row["flags"].items()}}
    return found
