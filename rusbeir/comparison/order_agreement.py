"""The agreement of two test sets on the order of systems, such as of one made by a model and one made by people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from rusbeir.comparison.results import Result, read_results
from rusbeir.errors import BadInput, unknown
from rusbeir.evaluation import (
    CORRELATIONS,
    MIN_SYSTEMS,
    Figure,
    Floats,
    Sides,
    Units,
    compare_orders,
    count_queries_needed,
    describe_queries,
    rank,
)

STABLE = 0.9
"""Kendall's tau from which on two orders are called the same."""


@dataclass(frozen=True, kw_only=True)
class RankedSystem:
    """A system's mean and rank on both test sets; equal means share the better rank."""

    system: str
    first: float
    second: float
    rank_first: int
    rank_second: int


@dataclass(frozen=True, kw_only=True)
class Reversal:
    """Two systems that the test sets put in opposite order."""

    ahead: str
    """The system that is ahead on the first test set."""
    behind: str
    first: float
    """How far it is ahead there: a difference of means, above 0."""
    second: float
    """The difference on the second test set, below 0."""


@dataclass(frozen=True, kw_only=True)
class RankingComparison:
    """The agreement of two test sets on the order of the same systems."""

    first: str
    second: str
    measure: str
    systems: tuple[RankedSystem, ...]
    """The best on the first test set first."""
    n_queries: tuple[int, int]
    n_clusters: tuple[int, int]
    """The independent units among them, which resamples draw whole: queries, or clusters of them."""
    same_queries: bool
    """Whether both have the same query ids, which are then resampled together."""
    correlations: dict[str, Figure]
    """kendall, tau_ap (of the second order, with the first as the true one) and spearman."""
    reversals: tuple[Reversal, ...]
    """The widest first."""
    queries_needed: tuple[int | None, int | None]
    """How many queries like those of each test set give an order that as many others repeat with a tau of 0.9."""

    @property
    def conclusion(self) -> tuple[str, ...]:
        """The conclusions, in sentences."""
        tau = self.correlations["kendall"]
        n = len(self.systems)
        sides = zip((self.first, self.second), self.n_queries, self.n_clusters, self.queries_needed, strict=True)
        return (
            f"{self.first} and {self.second} order {n} systems with Kendall's tau {tau}; "
            f"{len(self.reversals)} of {n * (n - 1) // 2} pairs are reversed.",
            *(
                f"A stable order (tau of {STABLE} between two test sets of its size) needs "
                f"{f'about {needed:,}' if needed else 'over a million'} queries like those of {name}, which has "
                f"{describe_queries(n_queries, n_clusters)}."
                for name, n_queries, n_clusters, needed in sides
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "conclusion": list(self.conclusion)}


def compare_rankings(
    results: Sequence[str | Path], first: str, second: str, *, measure: str = "nDCG@10", seed: int = 0
) -> RankingComparison:
    """Compare the orders in which two datasets put the systems that were run on both.

    Args:
        results: Folders that `bench` wrote into.
        first: The name of the dataset whose order is taken as the true one.
        second: The name of the other dataset.
        measure: The measure that orders the systems.
        seed: Seeds the resamples.

    Returns:
        The rank correlations with their intervals over queries, the reversed pairs, and the queries that a stable
        order needs.

    Raises:
        BadInput: Fewer than four systems were run on both, or rows cannot be compared.
        UnknownName: A dataset has no rows.

    Examples:
        >>> compare_rankings(["results"], "xquad/en", "xquad/ru").conclusion  # doctest: +SKIP
    """
    rows = read_results(results, measure)
    here, there = ({result.label: result for result in _pick_dataset(name, rows)} for name in (first, second))
    names = [label for label in here if label in there]
    if len(names) < MIN_SYSTEMS:
        raise BadInput(
            f"{first} and {second} have {len(names)} systems in common; an order needs {MIN_SYSTEMS}. "
            "Run more systems on both with `rusbeir bench`."
        )
    sides = Sides.align(
        names,
        ({name: here[name].scores for name in names}, {name: there[name].scores for name in names}),
        (here[names[0]].clusters, there[names[0]].clusters),
    )
    means, units = sides.means, sides.units
    return RankingComparison(
        first=first,
        second=second,
        measure=measure,
        systems=_rank(names, *means),
        n_queries=(units[0].n_queries, units[1].n_queries),
        n_clusters=(units[0].n_clusters, units[1].n_clusters),
        same_queries=sides.same_queries,
        correlations=compare_orders(means, queries=sides.resample(seed=seed), correlations=list(CORRELATIONS)),
        reversals=find_reversals(names, *means),
        queries_needed=(
            _count_needed(sides.scores[0], units[0], seed),
            _count_needed(sides.scores[1], units[1], seed),
        ),
    )


def _count_needed(scores: Floats, units: Units, seed: int) -> int | None:
    """The queries that an order needs, with as many to a cluster as here; None for over a million clusters.

    It is None for a single cluster, too, which has no spread.
    """
    if units.n_clusters < 2:
        return None
    n_clusters = count_queries_needed(units.merge(scores), seed=seed)
    return n_clusters and math.ceil(n_clusters * units.n_queries / units.n_clusters)


def _pick_dataset(name: str, rows: Sequence[Result]) -> list[Result]:
    group = [result for result in rows if result.dataset == name]
    if not group:
        raise unknown("dataset", name, {result.dataset for result in rows}, owner="these results")
    return group


def _rank(names: Sequence[str], first: Floats, second: Floats) -> tuple[RankedSystem, ...]:
    rows = zip(names, first.tolist(), second.tolist(), rank(first), rank(second), strict=True)
    ranked = [
        RankedSystem(system=name, first=mean, second=mean_there, rank_first=rank_here, rank_second=rank_there)
        for name, mean, mean_there, rank_here, rank_there in rows
    ]
    return tuple(sorted(ranked, key=lambda system: system.rank_first))


def find_reversals(names: Sequence[str], first: Floats, second: Floats) -> tuple[Reversal, ...]:
    """The pairs of systems in opposite order on both test sets, given their means there; the widest first."""
    reversals = []
    for i, j in combinations(range(len(names)), 2):
        if (first[i] - first[j]) * (second[i] - second[j]) < 0:
            ahead, behind = (i, j) if first[i] > first[j] else (j, i)
            gaps = float(first[ahead] - first[behind]), float(second[ahead] - second[behind])
            reversals.append(Reversal(ahead=names[ahead], behind=names[behind], first=gaps[0], second=gaps[1]))
    return tuple(sorted(reversals, key=lambda reversal: -min(reversal.first, -reversal.second)))
