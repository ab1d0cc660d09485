"""Tests, intervals and ranks of differences between systems that are measured on the same queries.

Everything works on a matrix of scores, float64 [systems, queries]. Differences of means are tested by flipping the
signs of per-query differences, which keeps its level on retrieval measures (Urbano, Lima and Hanjalic, SIGIR 2019).
The family of all pairs is corrected by the step-down MaxT procedure of Westfall and Young (1993) with the same flips
for every pair, as Boytsov, Belova and Westfall (SIGIR 2013) recommend; Holm's correction is given next to it.
Seeds are fixed: the same scores give the same numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rusbeir.evaluation import PERMUTATIONS, SAMPLES

Floats: TypeAlias = NDArray[np.float64]

ALPHA = 0.05
POWER = 0.8
_BLOCK_CELLS = 4_000_000
"""How many signs or weights are held in memory at once."""
_TIE = 1e-12
"""Means closer than this are equal: they differ by the order of additions alone."""
_SAME = 1 - 1e-9
"""Statistics whose ratio is above this are equal: they differ by the order of additions alone."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure, such as a correlation of systems' means, and what it could be with another sample."""

    value: float
    interval: tuple[float, float]
    """The central 95 % of its values on resamples."""
    over: str
    """What the resamples draw: "queries", "systems", "systems and queries", "topics"."""

    @classmethod
    def from_resamples(cls, value: Floats, drawn: Floats, over: str) -> Figure:
        """Take the interval from the values on resamples; NaN among them is left out."""
        ends = np.nanquantile(drawn, [ALPHA / 2, 1 - ALPHA / 2]) if np.isfinite(drawn).any() else (np.nan, np.nan)
        return cls(value=float(value), interval=(float(ends[0]), float(ends[1])), over=over)

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.interval[0]:.3f} to {self.interval[1]:.3f} over {self.over})"


@dataclass(frozen=True, kw_only=True)
class PairTests:
    """Tests of n pairs of systems; every array is float64 [n]."""

    mean: Floats
    """The mean over queries of the first system's score minus the second's."""
    effect: Floats
    """The mean divided by the standard deviation of the differences (Cohen's d for pairs).

    0 where all differences are 0, infinite where all are equal to another number.
    """
    p: Floats
    """Two-sided p-value of the sign-flip permutation test, uncorrected."""
    p_maxt: Floats
    """p, adjusted by step-down MaxT over these pairs; controls the family-wise error."""
    p_holm: Floats
    """p, adjusted by Holm's procedure."""


def sign_flip_tests(differences: Floats, *, permutations: int = PERMUTATIONS, seed: int = 0) -> PairTests:
    """Test differences between systems by flipping the signs of per-query differences.

    Args:
        differences: The differences of each pair of systems, float64 [pairs, queries].
        permutations: How many sign patterns are drawn. If there are no more of them than that, all are enumerated, and
            the p-values are exact.
        seed: Seeds the draws.

    Returns:
        The mean differences, their effect sizes and their two-sided p-values.

    Examples:
        >>> sign_flip_tests(np.array([[0.5, 0.1, 0.3, 0.2]])).p
        array([0.125])
    """
    n_pairs, n_queries = differences.shape
    largest = np.abs(differences).max(axis=1, initial=0.0)
    # Squares of tiny differences would be 0, and those of huge ones infinite.
    scaled = differences / np.where(largest > 0, largest, 1.0)[:, None]
    norms = np.sqrt(n_queries * (scaled**2).sum(axis=1))
    norms[norms == 0] = 1.0
    observed = np.abs(scaled.sum(axis=1)) / norms * _SAME
    # Step-down: the pair with the largest statistic is compared with the maximum over all pairs, the next with the
    # maximum over those that are left, and so on.
    order = np.argsort(-observed, kind="stable")
    reached = np.zeros(n_pairs, dtype=np.int64)
    exceeded = np.zeros(n_pairs, dtype=np.int64)
    total = 0
    rows = max(1, _BLOCK_CELLS // max(n_pairs, 1))
    for block in _signs(n_queries, permutations, seed):
        for start in range(0, len(block), rows):
            signs = block[start : start + rows]
            # |sum| / sqrt(n * sum of squares), from 0 to 1, orders flips and pairs as the paired t statistic does.
            drawn = np.abs(signs @ scaled.T)
            drawn /= norms
            reached += (drawn >= observed).sum(axis=0)
            maxima = np.maximum.accumulate(drawn[:, order[::-1]], axis=1)[:, ::-1]
            exceeded += (maxima >= observed[order]).sum(axis=0)
            total += len(signs)
    # The observed assignment is one of those enumerated, and is counted as one more where they are drawn.
    drawn_extra = 0 if total == 2**n_queries else 1
    p = (reached + drawn_extra) / (total + drawn_extra)
    p_maxt = np.empty(n_pairs)
    p_maxt[order] = np.maximum.accumulate((exceeded + drawn_extra) / (total + drawn_extra))
    mean = differences.mean(axis=1)
    deviation = differences.std(axis=1, ddof=1) if n_queries > 1 else np.zeros(n_pairs)
    spread = deviation > _TIE * largest
    effect = np.where(largest > 0, np.copysign(np.inf, mean), 0.0)
    np.divide(mean, deviation, out=effect, where=spread)
    return PairTests(mean=mean, effect=effect, p=p, p_maxt=p_maxt, p_holm=_holm(p))


def bootstrap_intervals(
    values: Floats, *, level: float = 1 - ALPHA, samples: int = SAMPLES, seed: int = 0
) -> NDArray[np.float64]:
    """Compute intervals of the means of rows by the symmetric studentised bootstrap (Hall, 1988).

    Each resample's mean is measured in its own standard errors, so that the interval is not too short if most scores
    are equal. If too many resamples have no spread, the interval is bias-corrected and accelerated (Efron, 1987).

    Args:
        values: Scores or differences, float64 [rows, queries]. The same queries are drawn for every row.
        level: The confidence of the intervals.
        samples: How many resamples are drawn.
        seed: Seeds the draws.

    Returns:
        The lower and upper ends, float64 [rows, 2].

    Examples:
        >>> bootstrap_intervals(np.array([[0.0, 0.5, 1.0, 0.5]])).round(2)  # doctest: +SKIP
    """
    n = values.shape[1]
    means = values.mean(axis=1)
    squares = (values - means[:, None]) ** 2
    errors = np.sqrt(squares.mean(axis=1) / n)
    rank = min(samples - 1, int(np.ceil(level * samples)) - 1)
    reach = np.empty(len(values))
    n_rows = max(1, 2 * _BLOCK_CELLS // samples)
    for start in range(0, len(values), n_rows):
        rows = slice(start, start + n_rows)
        # The same seed draws the same queries for every block of rows.
        drawn = [
            _studentised(weights, values[rows], means[rows], squares[rows]) for weights in _weights(n, samples, seed)
        ]
        reach[rows] = np.partition(np.concatenate(drawn), rank, axis=0)[rank]
    arms = np.multiply(reach, errors, where=errors > 0, out=np.zeros(len(values)))
    intervals: Floats = means[:, None] + arms[:, None] * np.array([-1.0, 1.0])
    for row in np.flatnonzero(np.isinf(reach) & (errors > 0)):
        resampled = np.sort(resample_means(values[row : row + 1], samples=samples, seed=seed)[:, 0])
        intervals[row] = bca_interval(resampled, float(means[row]), values[row], level)
    return intervals


def _studentised(weights: Floats, values: Floats, means: Floats, squares: Floats) -> Floats:
    """Measure how far each resample's mean is from the row's, in its own standard errors: float64 [weights, rows]."""
    n = values.shape[1]
    distances: Floats = np.abs(weights @ (values - means[:, None]).T) / n
    variances = weights @ squares.T / n - distances**2
    # Rounding leaves a little variance if all drawn values are equal.
    variances[variances <= _TIE * squares.max(axis=1)] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        distances /= np.sqrt(variances / n)
    distances[np.isnan(distances)] = 0.0
    return distances


def resample_means(values: Floats, *, samples: int = SAMPLES, seed: int = 0) -> Floats:
    """Resample the mean of each row, float64 [rows, queries], with replacement: float64 [samples, rows].

    The same queries are drawn for every row.
    """
    n = values.shape[1]
    transposed = np.ascontiguousarray(values.T)
    drawn: Floats = np.concatenate([weights @ transposed for weights in _weights(n, samples, seed)]) / n
    return drawn


def hierarchical_intervals(
    groups: Sequence[Floats], *, level: float = 1 - ALPHA, samples: int = SAMPLES, seed: int = 0
) -> NDArray[np.float64]:
    """Compute percentile intervals of the unweighted mean over datasets of each system's mean.

    Datasets are resampled, and then the queries within each: the interval is one over other datasets of this kind. A
    single dataset gives the interval over its queries.

    Args:
        groups: The scores on each dataset, float64 [systems, queries of that dataset].
        level: The confidence of the intervals.
        samples: How many resamples are drawn.
        seed: Seeds the draws.

    Returns:
        The lower and upper ends, float64 [systems, 2].
    """
    random = np.random.default_rng(seed)
    n_groups = len(groups)
    # means[g] holds independent resamples of dataset g; each draw of datasets takes its own sample of each.
    means = np.stack(
        [resample_means(group, samples=samples, seed=seed + 1 + number) for number, group in enumerate(groups)]
    )
    total = np.zeros((samples, groups[0].shape[0]))
    rows = np.arange(samples)
    for _ in range(n_groups):
        total += means[random.integers(n_groups, size=samples), rows]
    tail = (1 - level) / 2
    ends: Floats = np.quantile(total / n_groups, [tail, 1 - tail], axis=0).T
    return ends


def cluster_scores(scores: Floats, clusters: Sequence[Hashable]) -> Floats:
    """Turn scores on queries into scores on clusters of queries, which tests and intervals need as their sample.

    Queries of one cluster are not independent. The mean over clusters is that over queries, and the spread is that of
    the ratio of a cluster's sum to its size, linearised at the mean.

    Args:
        scores: float64 [systems, queries].
        clusters: The cluster of each query, such as the paragraph that it asks about.

    Returns:
        float64 [systems, clusters], clusters in the order in which they first occur.

    Examples:
        >>> cluster_scores(np.array([[1.0, 0.0, 0.5]]), ["a", "a", "b"])
        array([[0.5, 0.5]])
    """
    numbers = {cluster: number for number, cluster in enumerate(dict.fromkeys(clusters))}
    cluster_of = np.array([numbers[cluster] for cluster in clusters])
    sizes = np.bincount(cluster_of)
    means = scores.mean(axis=1, keepdims=True)
    sums = np.array([np.bincount(cluster_of, weights=row) for row in scores]).reshape(len(scores), len(sizes))
    values: Floats = (sums - means * sizes) * (len(sizes) / len(cluster_of)) + means
    return values


def minimum_detectable_effect(differences: Floats, *, alpha: float = ALPHA, power: float = POWER) -> Floats:
    """Compute the true mean difference that a two-sided paired t test finds with that power.

    Args:
        differences: The differences of each pair of systems, float64 [pairs, queries]; their spread is taken as true.
        alpha: The level of the test.
        power: The share of such experiments that find the difference.

    Returns:
        float64 [pairs]; infinite for so few queries that no test can reject, NaN if the differences have no spread.
    """
    n_pairs, n = differences.shape
    deviations = detectable_deviations(n, alpha=alpha, power=power)
    if not np.isfinite(deviations):
        return np.full(n_pairs, np.inf)
    spread = differences.std(axis=1, ddof=1)
    constant = spread <= _TIE * np.abs(differences).max(axis=1, initial=0.0)
    detectable: Floats = np.where(constant, np.nan, deviations * spread)
    return detectable


def detectable_deviations(n_queries: int, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """Compute the minimum detectable effect of so many queries, in standard deviations of per-query differences.

    Args:
        n_queries: The number of independent queries.
        alpha: The level of the test.
        power: The share of such experiments that find the effect.

    Returns:
        The effect; infinite for so few queries that the sign-flip test can never reject, since two of its 2^n flips
        reach any mean.

    Examples:
        >>> round(detectable_deviations(50), 3), detectable_deviations(5)
        (0.404, inf)
    """
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    if 2.0 ** (1 - n_queries) > alpha:
        return float("inf")
    return float(stdtrit(n_queries - 1, [1 - alpha / 2, power]).sum()) / float(np.sqrt(n_queries))


def rank_intervals(
    n_systems: int, pairs: Sequence[tuple[int, int]], tests: PairTests, *, alpha: float = ALPHA
) -> list[tuple[int, int]]:
    """Find the best and the worst rank of each system that the data do not contradict; rank 1 is the best.

    A system ranks behind those that beat it and ahead of those that it beats at the MaxT-adjusted level alpha. The
    family-wise error of these decisions is at most alpha, so all true ranks are inside with confidence 1 - alpha.

    Args:
        n_systems: How many systems there are.
        pairs: The tested pairs, by the indexes of their systems.
        tests: The tests of these pairs.
        alpha: The level.

    Returns:
        (best rank, worst rank) of each system.
    """
    better, worse = [0] * n_systems, [0] * n_systems
    for (first, second), mean, p in zip(pairs, tests.mean, tests.p_maxt, strict=True):
        if p <= alpha and mean != 0:
            winner, loser = (first, second) if mean > 0 else (second, first)
            better[loser] += 1
            worse[winner] += 1
    return [(1 + better[i], n_systems - worse[i]) for i in range(n_systems)]


def _signs(n: int, permutations: int, seed: int) -> Iterator[Floats]:
    """Yield blocks of sign vectors, float64 [block, n]: all of them if they are few, else that many drawn."""
    if n < 63 and 2**n <= permutations:
        bits = np.arange(2**n, dtype=np.uint64)[:, None] >> np.arange(n, dtype=np.uint64)
        yield 1.0 - 2.0 * (bits & np.uint64(1)).astype(np.float64)
        return
    random = np.random.default_rng(seed)
    size = max(1, _BLOCK_CELLS // n)
    for start in range(0, permutations, size):
        drawn = random.integers(0, 2, size=(min(size, permutations - start), n), dtype=np.int8)
        yield 1.0 - 2.0 * drawn.astype(np.float64)


def _weights(n: int, samples: int, seed: int) -> Iterator[Floats]:
    """Yield blocks of resampling weights, float64 [block, n]: how often each of n queries is drawn."""
    random = np.random.default_rng(seed)
    size = max(1, _BLOCK_CELLS // n)
    for start in range(0, samples, size):
        block = min(size, samples - start)
        drawn = random.integers(0, n, size=(block, n)) + n * np.arange(block)[:, None]
        yield np.bincount(drawn.ravel(), minlength=block * n).reshape(block, n).astype(np.float64)


def bca_interval(drawn: Floats, observed: float, values: Floats, level: float = 1 - ALPHA) -> tuple[float, float]:
    """Compute the bias-corrected and accelerated interval (Efron, 1987) of a statistic.

    Args:
        drawn: Its values on resamples, sorted.
        observed: Its value.
        values: The values of a mean; for another statistic, its value plus the influence of each query on it.
        level: The confidence.

    Returns:
        The lower and the upper end.
    """
    from scipy.special import ndtr, ndtri

    deviations = values - observed
    squares = float((deviations**2).sum())
    if squares <= 0:
        return observed, observed
    # Half of the resamples that equal the observed mean count as below it.
    below = (np.searchsorted(drawn, observed - _TIE) + np.searchsorted(drawn, observed + _TIE)) / (2 * len(drawn))
    bias = float(ndtri(min(max(below, 1 / len(drawn)), 1 - 1 / len(drawn))))
    skew = float((deviations**3).sum()) / (6 * squares**1.5)
    tail = float(ndtri((1 - level) / 2))
    ends = [float(ndtr(bias + (bias + z) / (1 - skew * (bias + z)))) for z in (tail, -tail)]
    low, high = np.quantile(drawn, ends)
    return float(low), float(high)


def _holm(p: Floats) -> Floats:
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted
