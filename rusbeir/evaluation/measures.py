"""Measures by the names of ir-measures, computed by trec_eval's own code (pytrec-eval-terrier)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rusbeir.errors import UnknownName, unknown
from rusbeir.types import Qrels, Run

DEFAULT_MEASURES = ("nDCG@1", "nDCG@10", "AP@10", "R@10", "R@100", "RR@10")

FAMILIES = ("nDCG", "nDCG@10", "AP", "AP@10", "R@10", "P@10", "RR", "RR@10", "Rprec", "Success@10", "Bpref")


def check_measures(names: Sequence[str]) -> tuple[str, ...]:
    """The canonical names, in the given order and without repeats.

    Raises UnknownName for one that ir-measures does not know or trec_eval does not compute.

    >>> check_measures(["nDCG@10", "AP(rel=2)@10"])
    ('nDCG@10', 'AP(rel=2)@10')
    """
    return tuple(dict.fromkeys(str(_parse(name)) for name in names))


def per_query(qrels: Qrels, run: Run, names: Sequence[str]) -> Iterator[tuple[str, str, float]]:
    """(query_id, measure name, value) for every query of the qrels, those without an answer included."""
    import ir_measures

    # trec_eval has no cut-off for the reciprocal rank: RR@k is RR where the first relevant hit is among k.
    plain: dict[Any, list[tuple[str, int | None]]] = {}
    for name in names:
        measure = _parse(name)
        cutoff = _rr_cutoff(measure)
        key = _without_cutoff(measure) if cutoff else measure
        plain.setdefault(key, []).append((name, cutoff))
    for metric in ir_measures.pytrec_eval.evaluator(list(plain), qrels).iter_calc(run):
        for name, cutoff in plain[metric.measure]:
            beyond = cutoff is not None and metric.value * cutoff < 1 - 1e-9
            yield metric.query_id, name, 0.0 if beyond else float(metric.value)


def deepest(names: Sequence[str]) -> int | None:
    """The rank behind which no hit changes any of the measures; None where one of them looks at all hits.

    >>> deepest(["nDCG@10", "R@100"]), deepest(["nDCG@10", "AP"])
    (100, None)
    """
    cutoffs = [_parse(name).params.get("cutoff") for name in names]
    return None if None in cutoffs else max(cutoffs, default=None)


def _parse(name: str) -> Any:
    import ir_measures

    try:
        measure = ir_measures.parse_measure(name)
        measure.validate_params()
        known = ir_measures.pytrec_eval.supports(_without_cutoff(measure) if _rr_cutoff(measure) else measure)
    except (NameError, ValueError, KeyError, SyntaxError, TypeError, AssertionError):
        raise unknown("measure", name, FAMILIES) from None
    if not known:
        raise UnknownName(f"The measure {name!r} is not one that trec_eval computes. Available: {', '.join(FAMILIES)}.")
    return measure


def _rr_cutoff(measure: Any) -> int | None:
    return int(measure["cutoff"]) if measure.NAME == "RR" and "cutoff" in measure.params else None


def _without_cutoff(measure: Any) -> Any:
    import ir_measures

    return ir_measures.parse_measure(re.sub(r"@\d+$", "", str(measure)))
