"""The agreement of two test sets on the order of systems: rank correlations, and the queries that an order needs.

Each correlation works on the last axis, the systems, so that it takes one set of means or many resampled ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rusbeir.evaluation import SAMPLES
from rusbeir.evaluation.significance import Figure, Floats
from rusbeir.evaluation.units import Units

MIN_SYSTEMS = 4
"""The least number of systems of which an order says anything."""
DRAWS = 1_000
"""How often count_queries_needed draws two orders."""
MAX_QUERIES = 1_000_000

Scores: TypeAlias = Mapping[str, Mapping[str, float]]
"""system -> {query id: score}."""
Clusters: TypeAlias = Mapping[str, int] | None
"""query id -> the number of its cluster, as cluster_queries has them; None where every query is independent."""


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The scores of the same systems on two test sets."""

    scores: tuple[Floats, Floats]
    """float64 [systems, queries] of each."""
    units: tuple[Units, Units]
    same_queries: bool
    """Whether both have the same queries, in one order, which are then drawn for both at once."""

    @classmethod
    def align(cls, systems: Sequence[str], scores: tuple[Scores, Scores], clusters: tuple[Clusters, Clusters]) -> Sides:
        """Align the scores of these systems on two test sets, whose queries are in these clusters."""
        first, second = (list(side[systems[0]]) for side in scores)
        if same := set(first) == set(second):
            second = first
        units = (Units.from_clusters(first, clusters[0]), Units.from_clusters(second, clusters[1]))
        if same:
            joined = units[0].join(units[1])
            units = joined, joined
        values = [
            np.array([[side[name][query_id] for query_id in query_ids] for name in systems])
            for side, query_ids in zip(scores, (first, second), strict=True)
        ]
        return cls(scores=(values[0], values[1]), units=units, same_queries=same)

    @property
    def means(self) -> tuple[Floats, Floats]:
        """float64 [systems] of each."""
        return self.scores[0].mean(axis=1), self.scores[1].mean(axis=1)

    def resample(self, *, samples: int = SAMPLES, seed: int = 0) -> tuple[Floats, Floats]:
        """Resample the queries: the means of the systems, float64 [samples, systems], on each side."""
        (first, second), (units, others) = self.scores, self.units
        return (
            units.resample(first, samples=samples, seed=seed),
            others.resample(second, samples=samples, seed=seed if self.same_queries else seed + 1),
        )


def compare_orders(
    means: Sequence[Floats],
    *,
    queries: Sequence[Floats] | None = None,
    systems: NDArray[np.int64] | None = None,
    correlations: Sequence[str] = ("kendall", "tau_ap"),
) -> dict[str, Figure]:
    """Correlate the orders of the same systems on two test sets; the first is the true one, where that matters.

    Args:
        means: The means of the systems on each side, float64 [systems].
        queries: Their means over resampled queries on each side, float64 [samples, systems]; None where only the means
            are known. The interval is then one over queries: the same systems with other queries of this kind.
        systems: Indexes of resampled systems, [samples, systems], from `draw_systems`. The interval is then one over
            systems, too: other systems of this kind.
        correlations: Names of CORRELATIONS.

    Returns:
        name -> the correlation; the interval says over what it goes.
    """
    drawn = list(means if queries is None else queries)
    if systems is not None:
        if queries is None:
            drawn = [side[systems] for side in means]
        else:
            n = min(len(systems), len(queries[0]))
            drawn = [np.take_along_axis(side[:n], systems[:n], axis=1) for side in queries]
    over = " and ".join(
        name for name, resampled in (("systems", systems), ("queries", queries)) if resampled is not None
    )
    return {
        name: Figure.from_resamples(CORRELATIONS[name](*means), CORRELATIONS[name](*drawn), over)
        for name in correlations
    }


def kendall(first: Floats, second: Floats) -> Floats:
    """Compute Kendall's tau-b, [...]: 1 for the same order, -1 for the reverse; 0 if either side ties all systems.

    >>> float(kendall(np.array([0.3, 0.2, 0.1]), np.array([0.3, 0.1, 0.2])).round(3))
    0.333
    """
    signs, others = _signs(first), _signs(second)
    untied = np.sqrt(np.abs(signs).sum(axis=(-2, -1)) * np.abs(others).sum(axis=(-2, -1)))
    return _divide((signs * others).sum(axis=(-2, -1)), untied)


def tau_ap(reference: Floats, other: Floats) -> Floats:
    """Compute the AP correlation (Yilmaz, Aslam and Robertson, SIGIR 2008), [...]: errors among the best weigh more.

    Each system in the order of other has a share: how many of those above it the reference puts above it, too. The
    correlation is the mean of the shares, scaled to [-1, 1]. A pair that one side ties counts half. A pair that both
    tie is left out, and so is a system with none above it. It is 0 if no pair is left.

    >>> float(tau_ap(np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.3, 0.4, 0.2, 0.1])).round(3))
    0.333
    """
    order = np.argsort(-other, axis=-1, kind="stable")
    signs, others = (_signs(np.take_along_axis(values, order, -1)) for values in (reference, other))
    above = np.tril((signs != 0) | (others != 0), -1)
    n_above = above.sum(axis=-1).astype(np.float64)
    shares = _divide((above * (1 + signs * others) / 2).sum(axis=-1), n_above)
    n_shares = (n_above > 0).sum(axis=-1).astype(np.float64)
    return _divide(2 * shares.sum(axis=-1) - n_shares, n_shares)


def spearman(first: Floats, second: Floats) -> Floats:
    """Compute Spearman's rho, [...]: the correlation of ranks, which tied systems share; 0 if either side ties all."""
    # A rank less the mean rank: half of how many values are lower less how many are higher.
    ranks, others = (_signs(values).sum(axis=-1) / 2 for values in (first, second))
    return _divide((ranks * others).sum(axis=-1), np.sqrt((ranks**2).sum(axis=-1) * (others**2).sum(axis=-1)))


CORRELATIONS: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    "kendall": kendall, "tau_ap": tau_ap, "spearman": spearman,
}  # fmt: skip


def rank(means: Floats) -> list[int]:
    """Rank the systems, 1 for the highest mean; tied systems share the best of their ranks."""
    return [1 + int(n_better) for n_better in np.searchsorted(np.sort(-means), -means)]


def draw_systems(n_systems: int, samples: int, seed: int) -> NDArray[np.int64]:
    """Resample the indexes of systems, [samples or fewer, systems]; a draw of one system alone has no order."""
    drawn: NDArray[np.int64] = np.random.default_rng(seed).integers(n_systems, size=(samples, n_systems))
    return drawn[np.flatnonzero(np.ptp(drawn, axis=1))]


def count_queries_needed(scores: Floats, *, agreement: float = 0.9, seed: int = 0) -> int | None:
    """Count the queries of this kind that two test sets need for such a mean Kendall's tau between their orders.

    scores: float64 [systems, queries]. The means over n queries are drawn from the normal distribution that they
    have for large n, with the observed means as the true ones: close systems may need more. None where a million are
    not enough, as for equal systems.
    """
    mean = scores.mean(axis=1)
    values, vectors = np.linalg.eigh(np.cov(scores))
    # Of systems that answer alike some are 0 but for the last digit, and their roots would not be.
    values[values < len(mean) * np.finfo(float).eps * max(values.max(), 0)] = 0
    noise = np.random.default_rng(seed).standard_normal((2, DRAWS, len(mean)))
    # The symmetric root: another one hangs on the signs of the eigenvectors, and so on the last digit of the scores.
    noise = noise @ (vectors * np.sqrt(values)) @ vectors.T

    def agrees(n: int) -> bool:
        # What differs in the last digit alone is no order.
        first, second = np.round(mean + noise / np.sqrt(n), 12)
        return bool(kendall(first, second).mean() >= agreement)

    low, high = 1, MAX_QUERIES
    if not agrees(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if agrees(middle) else (middle, high)
    return high


def _signs(values: Floats) -> Floats:
    """1 where the system of the row has the higher value than that of the column, -1 where the lower, [..., n, n]."""
    signs: Floats = np.sign(values[..., :, None] - values[..., None, :])
    return signs


def _divide(sums: Floats, by: Floats) -> Floats:
    return np.divide(sums, by, out=np.zeros_like(sums), where=by > 0)
