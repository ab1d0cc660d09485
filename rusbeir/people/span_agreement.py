"""How far two annotations of errors agree: spans matched with partial overlap and partial credit, micro-averaged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from rusbeir.audit import Extent
from rusbeir.evaluation import Floats

_MAX_ROUNDS = 10


class SpanCredits(NamedTuple):
    """Sums over the spans of some texts, from which precision, recall and F are computed."""

    precise: float
    """The share of each span of the first annotation that its counterpart covers, added up."""
    n_first: int
    recalled: float
    """The share of each span of the second annotation that its counterpart covers, added up."""
    n_second: int


def credit_spans(first: Sequence[Extent], second: Sequence[Extent]) -> SpanCredits:
    """Match spans one to one so that F is highest; each earns the share of its characters that its counterpart covers.

    This is the measure MPP of Perrella et al. 2026 (arXiv 2603.19921), of one text and without regard to severity.

    >>> credit_spans([Extent("translation", 0, 4)], [Extent("translation", 2, 10)])
    SpanCredits(precise=0.5, n_first=1, recalled=0.25, n_second=1)
    """
    if not first or not second:
        return SpanCredits(0.0, len(first), 0.0, len(second))
    shared = np.array([[_count_shared(span, other) for other in second] for span in first], dtype=np.float64)
    precise = shared / np.array([[span.end - span.start] for span in first])
    recalled = shared / np.array([span.end - span.start for span in second])
    best = SpanCredits(0.0, len(first), 0.0, len(second))
    # F is a concave function of both sums: the matching that is best for its gradient is tried until F stays the same.
    weights = (1.0, 1.0)
    for _ in range(_MAX_ROUNDS):
        gains = weights[0] * precise / len(first) + weights[1] * recalled / len(second)
        rows, columns = linear_sum_assignment(gains, maximize=True)
        credits = SpanCredits(
            float(precise[rows, columns].sum()), len(first), float(recalled[rows, columns].sum()), len(second)
        )
        if compute_f(credits) <= compute_f(best):
            break
        best = credits
        weights = (best.recalled / best.n_second) ** 2, (best.precise / best.n_first) ** 2
    return best


def _count_shared(span: Extent, other: Extent) -> int:
    if span.side != other.side:
        return 0
    return max(0, min(span.end, other.end) - max(span.start, other.start))


def compute_f(credits: SpanCredits) -> float:
    """The harmonic mean of precision and recall; 1 where neither annotation has a span, 0 where only one has."""
    return float(compute_measures(np.array([credits], dtype=np.float64))[0, 2])


def compute_measures(sums: Floats) -> Floats:
    """Precision, recall and F, [n, 3], of sums of SpanCredits, [n, 4]. Without a span, precision or recall is 1."""
    precise, n_first, recalled, n_second = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(n_first > 0, precise / n_first, 1.0)
        recall = np.where(n_second > 0, recalled / n_second, 1.0)
        f = np.where(precision + recall > 0, 2 * precision * recall / (precision + recall), 0.0)
    return np.stack([precision, recall, f], axis=1)
