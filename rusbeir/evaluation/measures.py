"""Measures by the names of ir-measures: by trec_eval's own code where it computes them, else by other providers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from rusbeir.errors import BadInput, MissingExtra, UnknownName, unknown
from rusbeir.evaluation.trec_measures import NAMES as COMMON_MEASURES
from rusbeir.evaluation.trec_measures import TrecMeasure, compute_measures, make_measure
from rusbeir.text import shorten
from rusbeir.types import MAX_GRADE, Qrels, Run

HAS_IR_MEASURES = find_spec("ir_measures") is not None
"""Whether ir-measures is installed; it depends on trec_eval, which has no wheel for Linux on ARM."""
DEFAULT_MEASURES = ("nDCG@1", "nDCG@10", "AP@10", "R@10", "R@100", "RR@10")
COUNTS = ("NumQ", "NumRel", "NumRet")
"""The first letters of the names of counts, whose sum over queries trec_eval prints."""
MAX_CUTOFF = 1_000_000
_MAX_NAME_CHARS = 400
_NOT_A_MEASURE = (NameError, ValueError, KeyError, SyntaxError, TypeError, RecursionError, MemoryError)
"""What a text that is not the name of a measure raises when it is parsed."""

_INSTALLED_BY = {"cwl_eval": "pip install 'rusbeir[measures]'"}
"""Providers that an extra of rusbeir installs."""
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
_NOT_OFFERED = re.compile(r"gm_(map|bpref)|11pt_avg|unj_|relative_P|utility|Rprec_mult|binG|G_|ndcg_rel|yaap")
"""How names begin of measures that trec_eval has and ir-measures has not."""
_TREC_EVAL_CUTOFF = re.compile(r"(?P<name>[A-Za-z_]+)[_.](?P<cutoff>\d+(?:\.\d+)?)")


def check_measures(measures: str | Sequence[str]) -> tuple[str, ...]:
    """Turn names of measures into their canonical names, in the same order and without repeats.

    Args:
        measures: One name or several, in the notation of ir-measures or trec_eval.

    Returns:
        The names as ir-measures prints them.

    Raises:
        UnknownName: ir-measures cannot compute a measure.
        BadInput: A parameter is out of bounds.
        MissingExtra: The provider of a measure is not installed.

    Examples:
        >>> check_measures(["nDCG@10", "MAP(rel=2)@10", "recip_rank"])
        ('nDCG@10', 'AP(rel=2)@10', 'RR')
    """
    names = [measures] if isinstance(measures, str) else measures
    return tuple(dict.fromkeys(str(_parse(name)) for name in names))


def per_query(qrels: Qrels, run: Run, names: Sequence[str]) -> Iterator[tuple[str, str, float]]:
    """Yield (query_id, measure name, value) for every query of the qrels and every canonical name.

    Ties are broken by falling document id, as trec_eval does, in the measures of other providers too.
    """
    if not HAS_IR_MEASURES:
        yield from compute_measures(qrels, run, [_parse(name) for name in names])
        return
    by_trec_eval: list[_TrecEvalMeasure] = []
    others = []
    for name in names:
        measure = _parse(name)
        if (form := _trec_eval_form(measure)) is None:
            others.append(measure)
        else:
            by_trec_eval.append(_TrecEvalMeasure(name, form, None if form == measure else measure.params["cutoff"]))
    for pooled in (False, True):
        if measures := [measure for measure in by_trec_eval if (measure.form.NAME == "infAP") is pooled]:
            yield from _compute_by_trec_eval(qrels, run, measures, pooled)
    if others:
        yield from _compute_others(qrels, run, others)


class _TrecEvalMeasure(NamedTuple):
    """A measure that trec_eval computes."""

    name: str
    form: Any
    """The measure object that trec_eval is asked for."""
    cutoff: int | None
    """The rank from which on RR counts as 0; None for other measures, whose form has their cut-off."""


def _compute_by_trec_eval(
    qrels: Qrels, run: Run, measures: Sequence[_TrecEvalMeasure], pooled: bool
) -> Iterator[tuple[str, str, float]]:
    """Compute measures by trec_eval's code.

    trec_eval takes a document with a negative grade for one that is in the pool and not judged. Only infAP (pooled)
    tells it from a document that is not in the pool; for all the others, such judgements are left out.
    """
    import ir_measures

    safe: Any = {
        query_id: grades if min(grades.values(), default=-1) >= 0 else _without_negative(grades, pooled)
        for query_id, grades in qrels.items()
    }
    by_form: dict[Any, list[_TrecEvalMeasure]] = {}
    for measure in measures:
        by_form.setdefault(measure.form, []).append(measure)
    try:
        evaluator: Any = ir_measures.pytrec_eval.evaluator(list(by_form), safe)
        # Its code divides by the number of hits: IPrec@0.0 of a query without hits would not be a number.
        for metric in evaluator.iter_calc({query_id: hits for query_id, hits in run.items() if hits}):
            value = float(metric.value)
            for measure in by_form[metric.measure]:
                # The reciprocal of a rank beyond the cut-off counts as 0.
                is_cut = measure.cutoff is not None and value * measure.cutoff < 1 - 1e-9
                yield metric.query_id, measure.name, 0.0 if is_cut else value
    except (TypeError, ValueError, OverflowError) as error:
        names = ", ".join(measure.name for measure in measures)
        raise BadInput(f"trec_eval cannot compute {names} from these judgements and this run: {error}.") from error


def deepest(names: Sequence[str]) -> int | None:
    """Find the rank after which no hit changes any of the measures; None if one of them looks at all hits.

    Examples:
        >>> deepest(["nDCG@10", "R@100"]), deepest(["nDCG@10", "AP"])
        (100, None)
    """
    measures = [_parse(name) for name in names]
    # If hits without a judgement are left out, those of deeper ranks move up.
    if any(measure.params.get("judged_only") or "cutoff" not in measure.params for measure in measures):
        return None
    return max((measure.params["cutoff"] for measure in measures), default=None)


def is_count(name: str) -> bool:
    """Return whether the measure is a number of queries or documents, whose sum over queries trec_eval prints.

    Examples:
        >>> [is_count(name) for name in ("NumRel", "R@10")]
        [True, False]
    """
    return name.startswith(COUNTS)


def format_measure(name: str, value: float) -> str:
    """Print a value: a count as it is, any other measure times 100.

    Examples:
        >>> format_measure("nDCG@10", 0.96144), format_measure("NumRel", 561.0)
        ('96.14', '561')
    """
    return f"{value:.0f}" if is_count(name) else f"{100 * value:.2f}"


def unanswered_value(name: str, grades: Mapping[str, int]) -> float:
    """Return the value of a query without hits: 0, except for counts of queries and of relevant documents."""
    return float(sum(grade > 0 for grade in grades.values()) if name == "NumRel" else name == "NumQ")


def _parse(name: str) -> Any:
    """Build the measure object of ir-measures from a name such as nDCG@10, AP(rel=2)@100 or ndcg_cut_10.

    Raises UnknownName for another name, BadInput for parameters that trec_eval's code cannot take (it ends the whole
    process at a cut-off of 0, and keeps a count for every grade up to the highest), and MissingExtra as check_measures.
    """
    if not HAS_IR_MEASURES:
        return _parse_common(name)
    import ir_measures

    try:
        base, params, cutoff = _split_name(name)
        measure = ir_measures.measures.registry[base]
        measure = measure(**params if cutoff is None else {**params, measure.AT_PARAM: cutoff})
    except _NOT_A_MEASURE:
        raise _make_unknown(name) from None
    required = [key for key, about in measure.SUPPORTED_PARAMS.items() if about.required]
    if missing := [key for key in required if key not in measure.params]:
        raise _lacks_parameters(name, measure.NAME, missing)
    try:
        measure.validate_params()
    except (AssertionError, TypeError, ValueError):
        raise _make_unknown(name) from None
    _check_bounds(name, measure.params)
    providers = ir_measures.DefaultPipeline.providers
    able = [provider for provider in providers if provider.supports(measure)]
    if _trec_eval_form(measure) is not None or any(provider.is_available() for provider in able):
        return measure
    if not able:
        supported = [form for provider in providers for form in provider.SUPPORTED_MEASURES]
        raise UnknownName(
            f"ir-measures cannot compute {name!r} with these parameters. It computes "
            + ", ".join(str(form).replace("@NOT_PROVIDED", "") for form in supported if form.NAME == measure.NAME)
            + "."
        )
    remedies = " or ".join(
        f"{provider.NAME} ({_INSTALLED_BY.get(provider.NAME) or provider.install_instructions()})" for provider in able
    )
    raise MissingExtra(f"The measure {name!r} needs {remedies}, which is not installed.")


def _parse_common(name: str) -> TrecMeasure:
    """Build one of the measures that are computed where ir-measures is not installed."""
    try:
        measure = make_measure(*_split_name(name))
    except _NOT_A_MEASURE:
        measure = None
    if measure is None:
        raise UnknownName(
            f"{unknown('measure', shorten(name), COMMON_MEASURES)} The package ir-measures knows more; pip builds "
            "trec_eval for it, which needs a compiler and a network."
        )
    _check_bounds(name, dict(measure.params))
    return measure


def _make_unknown(name: str) -> UnknownName:
    """Make the error for a text that is not the name of a measure."""
    import ir_measures

    if _NOT_OFFERED.match(name):
        return UnknownName(f"ir-measures, and so rusbeir, lacks trec_eval's measure {shorten(name)!r}.")
    registered = ir_measures.measures.registry.items()
    known = [f"{other}@10" if "cutoff" in kind.SUPPORTED_PARAMS else other for other, kind in registered]
    return unknown("measure", shorten(name), known, listing="https://ir-measur.es/en/latest/measures.html")


def _lacks_parameters(name: str, base: str, missing: Sequence[str]) -> BadInput:
    """Make the error for a measure without a parameter that it must have, such as the highest grade."""
    params = ", ".join(f"{key}=1" for key in missing if key != "cutoff")
    example = base + (f"({params})" if params else "") + "@10"
    return BadInput(f"The measure {shorten(name)!r} needs {' and '.join(missing)}, as in {example}.")


def _split_name(name: str) -> tuple[str, dict[str, Any], Any]:
    """Split a name in ir-measures' notation or trec_eval's, such as AP(rel=2)@100 or ndcg_cut_10.

    The parser of ir-measures fails on the ast module of Python 3.14.
    """
    if matched := _TREC_EVAL_CUTOFF.fullmatch(name):
        cutoff_text = float(matched["cutoff"]) if matched["name"] == "iprec_at_recall" else matched["cutoff"]
        known = _TREC_EVAL_NAMES.get(matched["name"])
        name = f"{known}@{cutoff_text}" if known else name
    else:
        name = _TREC_EVAL_NAMES.get(name, name)
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
        raise ValueError("not the name of a measure")
    return node.id, params, None if cutoff is None else ast.literal_eval(cutoff)


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


def _trec_eval_form(measure: Any) -> Any:
    """Return the measure that trec_eval computes for this one, or None; it has no cut-off for RR."""
    import ir_measures

    if measure.NAME == "RR":
        measure = type(measure)(**{name: value for name, value in measure.params.items() if name != "cutoff"})
    return measure if ir_measures.pytrec_eval.supports(measure) else None


def _without_negative(grades: Mapping[str, int], pooled: bool) -> Mapping[str, int]:
    """Leave out the grades below 0, or, if pooled, replace them by -1, as trec_eval's code can take them.

    Its table of grades reaches from 0 to the highest of a query, so some grade must be at least 0: a query without
    such a grade gets a document with the grade 0 that no run can hold.
    """
    safe = {doc_id: max(grade, -1) for doc_id, grade in grades.items() if pooled or grade >= 0}
    return safe if max(safe.values(), default=-1) >= 0 else safe | {"": 0}


def _compute_others(qrels: Qrels, run: Run, measures: Sequence[Any]) -> Iterator[tuple[str, str, float]]:
    """Compute measures by the providers of ir-measures that have them.

    These break ties in different ways, and some write ids to text files or divide by the number of hits. So they get
    numbers for ids, scores that fall with trec_eval's rank, 0 for a negative grade, and no query without hits.
    """
    import ir_measures

    query_ids = list(qrels)
    grades_of: dict[str, dict[str, int]] = {}
    ranked: dict[str, dict[str, float]] = {}
    for number, (query_id, grades) in enumerate(qrels.items()):
        # trec_eval keeps scores in single precision.
        with np.errstate(over="ignore"):
            scores = [(np.float32(score), doc_id) for doc_id, score in run.get(query_id, {}).items()]
        by_rank = sorted(scores, reverse=True)
        ranking = [doc_id for _, doc_id in by_rank]
        doc_numbers = {doc_id: str(index) for index, doc_id in enumerate(dict.fromkeys([*ranking, *grades]))}
        grades_of[str(number)] = {doc_numbers[doc_id]: max(grade, 0) for doc_id, grade in grades.items()}
        if ranking:
            ranked[str(number)] = {
                doc_numbers[doc_id]: float(len(ranking) - rank) for rank, doc_id in enumerate(ranking)
            }
    try:
        for metric in ir_measures.iter_calc(measures, grades_of, ranked):
            yield query_ids[int(metric.query_id)], str(metric.measure), float(metric.value)
    except Exception as error:  # A provider may raise anything if it does not expect the data.
        names = ", ".join(map(str, measures))
        raise BadInput(f"ir-measures cannot compute {names} from these judgements: {error!r}.") from error
