"""Names of measures, ir-measures' own and trec_eval's, as the measure objects of ir-measures."""

from __future__ import annotations

import ast
import re
from typing import Any

from rusbeir.errors import BadInput, unknown
from rusbeir.text import shorten
from rusbeir.types import MAX_GRADE

MAX_CUTOFF = 1_000_000
_MAX_NAME_CHARS = 400

_TREC_EVAL_NAMES = {
    "map": "AP",
    "map_cut": "AP",
    "ndcg": "nDCG",
    "ndcg_cut": "nDCG",
    "recip_rank": "RR",
    "recall": "R",
    "P": "P",
    "success": "Success",
    "bpref": "Bpref",
    "iprec_at_recall": "IPrec",
    "set_P": "SetP",
    "set_recall": "SetR",
    "set_F": "SetF",
    "set_map": "SetAP",
    "num_ret": "NumRet",
    "num_rel": "NumRel",
    "num_rel_ret": "NumRet(rel=1)",
    "num_q": "NumQ",
}
"""trec_eval's name, without a cut-off -> the name of ir-measures, without a cut-off."""
_TREC_EVAL_CUTOFF = re.compile(r"(?P<name>[A-Za-z_]+)[_.](?P<cutoff>\d+(?:\.\d+)?)")


def parse_name(name: str) -> Any:
    """The measure object of ir-measures for a name such as nDCG@10, AP(rel=2)@100 or trec_eval's ndcg_cut_10.

    Raises UnknownName for another name, and BadInput for parameters that trec_eval's code cannot take: it ends the
    whole process at a cut-off of 0, and keeps a count for every grade up to the highest.
    """
    import ir_measures

    try:
        measure = _build(_from_trec_eval(name))
        measure.validate_params()
    except (NameError, ValueError, KeyError, SyntaxError, TypeError, AssertionError, RecursionError, MemoryError):
        registered = ir_measures.measures.registry.items()
        known = [f"{one}@10" if "cutoff" in kind.SUPPORTED_PARAMS else one for one, kind in registered]
        raise unknown("measure", shorten(name), known, listing="https://ir-measur.es/en/latest/measures.html") from None
    _check_bounds(name, measure.params)
    return measure


def _build(name: str) -> Any:
    """The measure of a name in ir-measures' notation, whose own parser needs what Python 3.14 removed from ast."""
    from ir_measures.measures import registry

    if len(name) > _MAX_NAME_CHARS:
        raise ValueError("too long for a measure's name")
    node: ast.expr = ast.parse(name, mode="eval").body
    params: dict[str, Any] = {}
    cutoff: ast.expr | None = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        cutoff, node = node.right, node.left
    if isinstance(node, ast.Call):
        if node.args:
            raise ValueError("a parameter without a name")
        params = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
        node = node.func
    if not isinstance(node, ast.Name):
        raise ValueError("no measure's name")
    measure = registry[node.id]
    if cutoff is not None:
        params[measure.AT_PARAM] = ast.literal_eval(cutoff)
    return measure(**params)


def _from_trec_eval(name: str) -> str:
    """The name in ir-measures' notation, if it is one of trec_eval's; else the name as it is."""
    if matched := _TREC_EVAL_CUTOFF.fullmatch(name):
        cutoff = float(matched["cutoff"]) if matched["name"] == "iprec_at_recall" else matched["cutoff"]
        known = _TREC_EVAL_NAMES.get(matched["name"])
        return f"{known}@{cutoff}" if known else name
    return _TREC_EVAL_NAMES.get(name, name)


def _check_bounds(name: str, params: dict[str, Any]) -> None:
    gains = params.get("gains") or {}
    bounds = [
        ("the cut-off", [params[key] for key in ("cutoff",) if key in params], 1, MAX_CUTOFF),
        ("rel", [params[key] for key in ("rel",) if key in params], 0, MAX_GRADE),
        ("each grade of gains", list(gains), -MAX_GRADE, MAX_GRADE),
        ("each gain", list(gains.values()), 0, MAX_GRADE),
    ]
    for what, values, low, high in bounds:
        if any(type(value) is not int or not low <= value <= high for value in values):
            raise BadInput(f"The measure {shorten(name)!r}: {what} must be an integer from {low:,} to {high:,}.")
    if not 0 <= params.get("recall", 0) <= 1:
        raise BadInput(f"The measure {shorten(name)!r}: the recall must be from 0 to 1.")
