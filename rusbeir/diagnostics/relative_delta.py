"""Relative Delta of two sources, with what depends on the order of equal scores and on the queries.

It is the difference of two sources' mean nDCG in percent of their mean, from -200 to 200; above 0 the first source is
preferred.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rusbeir.diagnostics.tie_orders import EXPECTED, HIGHEST, LOWEST, REVERSED, TREC_EVAL
from rusbeir.evaluation import ALPHA, Floats, Units, bca_interval, describe_queries

MIN_QUERIES = 20
"""The independent queries below which no sign is called safe, as their interval says little."""
Draws: TypeAlias = dict[tuple[int, str, str], Floats]
"""(k, source, against) -> Relative Delta in each bootstrap sample, float64 [published and expected, samples]."""


@dataclass(frozen=True, kw_only=True)
class RelativeDelta:
    """Relative Delta of two sources, in percent; above 0 where the first is preferred. None where both score 0."""

    k: int
    source: str
    against: str
    published: float | None
    """The value that papers print: in trec_eval's order of equal scores."""
    published_low: float | None
    """The ends of its 95 % bootstrap interval over queries."""
    published_high: float | None
    reversed: float | None
    """The value with equal scores in the reverse of trec_eval's order."""
    expected: float | None
    """The value from the means that nDCG has over all orders of equal scores."""
    low: float | None
    """The ends of its 95 % bootstrap interval over queries."""
    high: float | None
    lowest: float | None
    """The value in the order of equal scores that is worst for the first source."""
    highest: float | None
    n_queries: int
    """Judged queries; of a mean those of all sets."""
    n_clusters: int
    """The independent units among them, which intervals draw whole: queries, or clusters of them."""
    safe: bool
    """Whether the sign is the same in all of the interval, of enough queries, and in every order of equal scores."""
    sentence: str


def relative_delta(first: Floats, second: Floats) -> Floats:
    """Return the differences of mean scores in percent of their mean; NaN where both are 0.

    >>> relative_delta(np.array([0.3, 0.0]), np.array([0.1, 0.0]))
    array([100.,  nan])
    """
    total = first + second
    return np.divide(200 * (first - second), total, out=np.full_like(total, np.nan), where=total > 0)


def measure_delta(
    names: tuple[int, str, str], first: Floats, second: Floats, drawn: Floats, units: Units
) -> RelativeDelta:
    """Measure the Relative Delta of two sources by their nDCG, float64 [orders, queries] each.

    names are k and the two sources; drawn has the samples of the published and of the expected one, as Draws have.
    """
    points = relative_delta(first.mean(axis=1), second.mean(axis=1))
    bounds = relative_delta(first[[LOWEST, HIGHEST]].mean(axis=1), second[[HIGHEST, LOWEST]].mean(axis=1))
    intervals = [
        _interval(drawn[row], float(points[order]), *units.merge(np.array([first[order], second[order]])))
        for row, order in enumerate((TREC_EVAL, EXPECTED))
    ]
    return _conclude(
        names, [*points[[TREC_EVAL, REVERSED, EXPECTED]], *bounds], intervals, units.n_queries, units.n_clusters
    )


def average_deltas(sets: Sequence[tuple[Sequence[RelativeDelta], Draws]]) -> tuple[tuple[RelativeDelta, ...], Draws]:
    """Return the unweighted means over these sets of queries, of what all of them have; one set stays as it is.

    Queries are drawn from each set independently, so intervals speak of other queries for the same sets.
    """
    if len(sets) == 1:
        return tuple(sets[0][0]), sets[0][1]
    by_names = [{(delta.k, delta.source, delta.against): delta for delta in deltas} for deltas, _ in sets]
    shared = [names for names in by_names[0] if all(names in deltas for deltas in by_names)]
    means, draws = [], {}
    random = np.random.default_rng(0)
    for names in shared:
        # Sets of one size have drawn the same rows.
        draws[names] = np.mean([random.permutation(drawn[names], axis=1) for _, drawn in sets], axis=0)
        points = [
            float(np.mean([_number(getattr(deltas[names], key)) for deltas in by_names]))
            for key in ("published", "reversed", "expected", "lowest", "highest")
        ]
        intervals = [
            tuple(np.quantile(defined, [ALPHA / 2, 1 - ALPHA / 2]).tolist())
            if len(defined := row[~np.isnan(row)]) and not math.isnan(points[0]) else (math.nan, math.nan)
            for row in draws[names]
        ]  # fmt: skip
        n_queries, n_clusters = (
            sum(getattr(deltas[names], key) for deltas in by_names) for key in ("n_queries", "n_clusters")
        )
        means.append(_conclude(names, points, intervals, n_queries, n_clusters))
    return tuple(means), draws


def _interval(drawn: Floats, observed: float, first: Floats, second: Floats) -> tuple[float, float]:
    """Return the bootstrap interval of a Relative Delta, from samples of it and the scores of independent units."""
    defined = np.sort(drawn[~np.isnan(drawn)])
    if math.isnan(observed) or not len(defined):
        return math.nan, math.nan
    mean, other_mean = first.mean(), second.mean()
    influence = 400 * (other_mean * first - mean * second) / (mean + other_mean) ** 2
    return bca_interval(defined, observed, observed + influence)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _words(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:+.1f}"


def _conclude(
    names: tuple[int, str, str],
    points: Sequence[float],
    intervals: Sequence[tuple[float, float]],
    n_queries: int,
    n_clusters: int,
) -> RelativeDelta:
    """Return the numbers of one Relative Delta with a sentence that says whether its sign can be relied on.

    points: published, reversed, expected, lowest and highest; intervals: of the published and of the expected one.
    """
    k, source, against = names
    published, reverse, expected, lowest, highest = points
    (published_low, published_high), (low, high) = intervals
    name = f"Relative Δ@{k} of {source} and {against}"
    doubts = []
    if math.isnan(lowest + highest) or (lowest <= 0 <= highest and lowest < highest):
        doubts.append(
            f"it depends on the order of equal scores ({_words(lowest)} to {_words(highest)} over all orders)"
        )
    # Where no score depends on the order of equal ones, both intervals are the same.
    other = (low, high) != (published_low, published_high)
    if low <= 0 <= high:
        mean = f" of the mean over orders of equal scores includes 0 ({low:+.1f} to {high:+.1f})"
        doubts.append(f"the 95 % interval{mean if other else ' includes 0'}")
    queries = describe_queries(n_queries, n_clusters)
    if n_clusters < MIN_QUERIES:
        doubts.append(
            f"{queries}{',' * (n_clusters < n_queries)} {'is' if n_queries == 1 else 'are'} too few for an interval"
        )
    elif n_clusters < n_queries:
        name = f"{name} over {queries},"
    undefined = math.isnan(expected)
    preferred = source if expected > 0 else against
    if undefined:
        sentence = f"{name} is undefined: neither source has a relevant copy in the top {k} of any query."
    elif doubts:
        more = [f"{published_low:+.1f} to {published_high:+.1f}"] if published_low <= published_high else []
        if _words(reverse) != _words(published):
            more.append(f"reversed ties {_words(reverse)}")
        bounds = f" ({'; '.join(more)})" if more else ""
        sentence = f"{name} is {_words(published)}{bounds}; its sign is not safe: {', and '.join(doubts)}."
    else:
        sentence = (
            f"The sign of {name} is safe: {expected:+.1f} ({low:+.1f} to {high:+.1f}) prefers {preferred} in every "
            "order of equal scores."
        )
    numbers = {
        "published": published, "published_low": published_low, "published_high": published_high, "reversed": reverse,
        "expected": expected, "low": low, "high": high, "lowest": lowest, "highest": highest,
    }  # fmt: skip
    return RelativeDelta(
        k=k, source=source, against=against, n_queries=n_queries, n_clusters=n_clusters,
        safe=not undefined and not doubts, sentence=sentence,
        **{key: None if math.isnan(value) else float(value) for key, value in numbers.items()},
    )  # fmt: skip
