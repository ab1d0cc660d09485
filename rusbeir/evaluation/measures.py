"""Measures by the names of ir-measures: by trec_eval's own code where it computes them, else by other providers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rusbeir.errors import BadInput, MissingExtra, UnknownName, unknown
from rusbeir.text import shorten
from rusbeir.types import MAX_GRADE, Qrels, Run

DEFAULT_MEASURES = ("nDCG@1", "nDCG@10", "AP@10", "R@10", "R@100", "RR@10")
COUNTS = ("NumQ", "NumRel", "NumRet")
"""How the names of counts begin, whose sum over queries trec_eval prints."""
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


def check_measures(measures: str | Sequence[str]) -> tuple[str, ...]:
    """The canonical names, in the given order and without repeats; a string is one measure.

    trec_eval's names are known too. Raises UnknownName for a measure that ir-measures cannot compute, BadInput for a
    parameter out of bounds, and MissingExtra for a measure whose provider is not installed.

    >>> check_measures(["nDCG@10", "MAP(rel=2)@10", "recip_rank"])
    ('nDCG@10', 'AP(rel=2)@10', 'RR')
    """
    names = [measures] if isinstance(measures, str) else measures
    return tuple(dict.fromkeys(str(_parse(name)) for name in names))


def per_query(qrels: Qrels, run: Run, names: Sequence[str]) -> Iterator[tuple[str, str, float]]:
    """(query_id, measure name, value) for every query of the qrels and every canonical name.

    Ties are broken by falling document id, as trec_eval does, in the measures of other providers too.
    trec_eval takes a document with a negative grade for one that is in the pool and not judged. Only infAP tells it
    from a document that is not in the pool; for all the others, such judgements are left out.
    """
    import ir_measures

    forms: dict[Any, list[tuple[str, int | None]]] = {}
    """trec_eval's form of a measure -> the names that it gives, each with a cut-off for RR."""
    others = []
    for name in names:
        measure = _parse(name)
        if (form := _trec_eval_form(measure)) is None:
            others.append(measure)
        else:
            forms.setdefault(form, []).append((name, None if form == measure else measure.params["cutoff"]))
    for pooled in (False, True):
        chosen = [form for form in forms if (form.NAME == "infAP") is pooled]
        if not chosen:
            continue
        safe: Any = {
            query_id: grades if min(grades.values(), default=-1) >= 0 else _without_negative(grades, pooled)
            for query_id, grades in qrels.items()
        }
        try:
            evaluator: Any = ir_measures.pytrec_eval.evaluator(chosen, safe)
            # Its code divides by the number of hits: IPrec@0.0 of a query without hits would not be a number.
            for metric in evaluator.iter_calc({query_id: hits for query_id, hits in run.items() if hits}):
                for name, cutoff in forms[metric.measure]:
                    beyond = cutoff is not None and metric.value * cutoff < 1 - 1e-9
                    yield metric.query_id, name, 0.0 if beyond else float(metric.value)
        except (TypeError, ValueError, OverflowError) as error:
            given = ", ".join(name for form in chosen for name, _ in forms[form])
            raise BadInput(f"trec_eval cannot compute {given} from these judgements and this run: {error}.") from error
    if others:
        yield from _compute_others(qrels, run, others)


def deepest(names: Sequence[str]) -> int | None:
    """The rank behind which no hit changes any of the measures; None where one of them looks at all hits.

    >>> deepest(["nDCG@10", "R@100"]), deepest(["nDCG@10", "AP"])
    (100, None)
    """
    measures = [_parse(name) for name in names]
    # Without the hits that nobody judged, those of deeper ranks move up.
    if any(one.params.get("judged_only") or "cutoff" not in one.params for one in measures):
        return None
    return max((one.params["cutoff"] for one in measures), default=None)


def is_count(name: str) -> bool:
    """Whether the measure is a number of queries or documents, whose sum over queries trec_eval prints.

    >>> [is_count(name) for name in ("NumRel", "R@10")]
    [True, False]
    """
    return name.startswith(COUNTS)


def format_measure(name: str, value: float) -> str:
    """Print a value: a count as it is, any other measure times 100.

    >>> format_measure("nDCG@10", 0.96144), format_measure("NumRel", 561.0)
    ('96.14', '561')
    """
    return f"{value:.0f}" if is_count(name) else f"{100 * value:.2f}"


def unanswered_value(name: str, grades: Mapping[str, int]) -> float:
    """The value of a query without hits: 0, but that it is one query, and has relevant documents, all the same."""
    return float(sum(grade > 0 for grade in grades.values()) if name == "NumRel" else name == "NumQ")


def _parse(name: str) -> Any:
    """The measure object of ir-measures for a name such as nDCG@10, AP(rel=2)@100 or trec_eval's ndcg_cut_10.

    Raises UnknownName for another name, BadInput for parameters that trec_eval's code cannot take (it ends the whole
    process at a cut-off of 0, and keeps a count for every grade up to the highest), and MissingExtra as check_measures.
    """
    import ir_measures

    try:
        measure = _build(name)
        measure.validate_params()
    except (NameError, ValueError, KeyError, SyntaxError, TypeError, AssertionError, RecursionError, MemoryError):
        registered = ir_measures.measures.registry.items()
        known = [f"{one}@10" if "cutoff" in kind.SUPPORTED_PARAMS else one for one, kind in registered]
        raise unknown("measure", shorten(name), known, listing="https://ir-measur.es/en/latest/measures.html") from None
    _check_bounds(name, measure.params)
    providers = ir_measures.DefaultPipeline.providers
    able = [provider for provider in providers if provider.supports(measure)]
    if _trec_eval_form(measure) is not None or any(provider.is_available() for provider in able):
        return measure
    if not able:
        forms = [one for provider in providers for one in provider.SUPPORTED_MEASURES if one.NAME == measure.NAME]
        raise UnknownName(
            f"ir-measures cannot compute {name!r} with these parameters. It computes "
            + ", ".join(str(form).replace("@NOT_PROVIDED", "") for form in forms)
            + "."
        )
    remedies = " or ".join(f"{provider.NAME} ({provider.install_instructions()})" for provider in able)
    raise MissingExtra(f"The measure {name!r} needs {remedies}, which is not installed.")


def _build(name: str) -> Any:
    """The measure of a name in trec_eval's or ir-measures' notation, whose own parser fails on Python 3.14's ast."""
    from ir_measures.measures import registry

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
        raise ValueError("no measure's name")
    measure = registry[node.id]
    if cutoff is not None:
        params[measure.AT_PARAM] = ast.literal_eval(cutoff)
    return measure(**params)


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
    """The measure that trec_eval computes for this one, or None. It has no cut-off for RR: RR@k is RR down to 1/k."""
    import ir_measures

    if measure.NAME == "RR":
        measure = type(measure)(**{name: value for name, value in measure.params.items() if name != "cutoff"})
    return measure if ir_measures.pytrec_eval.supports(measure) else None


def _without_negative(grades: Mapping[str, int], pooled: bool) -> Mapping[str, int]:
    """The grades as trec_eval's code can take them: without those below 0, or, pooled, with -1 for them.

    Its table of grades reaches from 0 to the highest of a query, so some grade must be at least 0: a query that has
    none is given a document that no run can hold, whose grade is 0.
    """
    kept = {doc_id: max(grade, -1) for doc_id, grade in grades.items() if pooled or grade >= 0}
    return kept if max(kept.values(), default=-1) >= 0 else kept | {"": 0}


def _compute_others(qrels: Qrels, run: Run, measures: Sequence[Any]) -> Iterator[tuple[str, str, float]]:
    """Compute what per_query does, by whichever provider of ir-measures has the measure.

    They break ties in different ways, and some write ids to text files or divide by the number of hits. So they are
    given numbers for ids, scores that fall with trec_eval's rank, 0 for a negative grade, and no query without hits.
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
        doc_numbers = {doc_id: str(place) for place, doc_id in enumerate(dict.fromkeys([*ranking, *grades]))}
        grades_of[str(number)] = {doc_numbers[doc_id]: max(grade, 0) for doc_id, grade in grades.items()}
        if ranking:
            ranked[str(number)] = {
                doc_numbers[doc_id]: float(len(ranking) - rank) for rank, doc_id in enumerate(ranking)
            }
    try:
        for metric in ir_measures.iter_calc(measures, grades_of, ranked):
            yield query_ids[int(metric.query_id)], str(metric.measure), float(metric.value)
    except Exception as error:  # whatever a provider meets in data that it does not expect
        names = ", ".join(map(str, measures))
        raise BadInput(f"ir-measures cannot compute {names} from these judgements: {error!r}.") from error
