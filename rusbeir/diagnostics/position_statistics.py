"""Statistics of a curve of means over bins of positions: PSI, its interval, and a test of whether positions matter.

PSI is 1 - min/max of the means. Minimum and maximum of noisy means lie outside those of the true means, so PSI is too
large by chance, and resampling makes it larger still. The interval here inverts tests that hold whatever the shape of
the true curve is. Below: PSI <= t says that every mean is at least 1 - t times every other, and is rejected where the
smallest studentised difference of all pairs is below what a Gaussian multiplier bootstrap gives (Chernozhukov,
Chetverikov and Kato, Annals of Statistics 2013) for the pairs that are near to it (generalised moment selection,
Andrews and Soares, Econometrica 2010). Above: PSI >= t says that some pair has that ratio, and is rejected where every
pair rejects it (intersection-union test, Berger, Technometrics 1982). Each side has half of the error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rusbeir.evaluation import ALPHA, FEW_PERMUTATIONS, FEW_SAMPLES, Floats

Places = NDArray[np.int64]

_PRIOR = 4
"""Observations of the variance over all bins that each bin's own variance is joined with: a bin of equal scores has
no variance, which says little about the next query."""
_STEPS = 14
"""Halvings of the interval in which the lower end is searched for: an error below 1e-4."""
_BLOCK_CELLS = 4_000_000


class Permuted(NamedTuple):
    """PSI under random positions."""

    p: float
    """The share of permutations, the observed one included, with a PSI at least as large."""
    mean: float
    high: float
    """The 95th percentile."""


def compute_psi(means: Floats) -> float | None:
    """Compute the position sensitivity index 1 - min/max; None for fewer than two means, or if all are 0.

    >>> compute_psi(np.array([0.8, 0.6, 0.4]))
    0.5
    """
    return float(1 - means.min() / means.max()) if len(means) > 1 and means.max() > 0 else None


def covariance_of_means(scores: Floats, bins: Places, clusters: Places) -> Floats:
    """Return the covariance of the means over bins, float64 [bins, bins]; queries of one cluster are not independent.

    bins and clusters are the numbers, from 0, of the bin and the cluster of each query; no bin is empty.
    """
    counts, independent = np.bincount(bins), count_independent(bins, clusters, int(bins.max()) + 1)
    residuals = scores - (np.bincount(bins, weights=scores) / counts)[bins]
    n, k = int(clusters.max()) + 1, len(counts)
    parts = np.bincount(clusters * k + bins, weights=residuals / counts[bins], minlength=n * k).reshape(n, k)
    covariance: Floats = np.asarray(parts.T @ parts, dtype=np.float64)
    pooled = float((residuals**2).mean())
    covariance[np.diag_indices(k)] += pooled * _PRIOR / (independent * (independent + _PRIOR))
    return covariance


def count_independent(bins: Places, clusters: Places, n_bins: int) -> Places:
    """Count the clusters that have queries in each bin, [bins]."""
    pairs = np.unique(np.array([bins, clusters]), axis=1)
    return np.bincount(pairs[0], minlength=n_bins)


def psi_interval(
    means: Floats, covariance: Floats, n: float, *, alpha: float = ALPHA, samples: int = FEW_SAMPLES, seed: int = 0
) -> tuple[float, float]:
    """The interval of the PSI of the true means, whose estimates have that covariance; n is how many queries a bin has.

    Two means at least, not all of them 0.
    """
    from scipy.special import ndtri

    psi = compute_psi(means)
    if psi is None or covariance.max() <= 0:
        return (psi or 0.0, psi or 0.0)
    i, j = np.nonzero(~np.eye(len(means), dtype=bool))
    low, high, cross = means[i], means[j], covariance[i, j]
    var_low, var_high = covariance[i, i], covariance[j, j]

    z = float(ndtri(1 - alpha / 2))
    # The smallest ratio r of a pair that is not rejected: (low - r high)^2 = z^2 var(low - r high).
    a, b, c = high**2 - z**2 * var_high, low * high - z**2 * cross, low**2 - z**2 * var_low
    root = np.sqrt(np.maximum(b * b - a * c, 0))
    ratio = np.divide(b - root, a, out=np.zeros_like(a), where=a > 0)
    upper = 1 - float(np.clip(ratio.min(), 0, 1))

    normal = np.random.default_rng(seed).standard_normal((samples, len(means)))
    drawn = normal @ np.linalg.cholesky(covariance).T
    near = np.sqrt(np.log(max(n, 2.0)))

    def rejects(t: float) -> bool:
        r = 1 - t
        spread = np.sqrt(var_low - 2 * r * cross + r * r * var_high)
        statistics = (low - r * high) / spread
        smallest = statistics.min()
        # No critical value is below that of a pair alone.
        if smallest >= -z:
            return False
        close = statistics <= near
        differences = (drawn[:, i[close]] - r * drawn[:, j[close]]) / spread[close]
        return bool(-smallest > np.quantile(-differences.min(axis=1), 1 - alpha / 2))

    if not rejects(0.0):
        return 0.0, upper
    accepted, refused = 0.0, psi
    for _ in range(_STEPS):
        middle = (accepted + refused) / 2
        accepted, refused = (middle, refused) if rejects(middle) else (accepted, middle)
    return accepted, upper


def permute_positions(
    scores: Floats,
    bins: Places,
    clusters: Places,
    strata: Places,
    *,
    permutations: int = FEW_PERMUTATIONS,
    seed: int = 0,
) -> Permuted | None:
    """PSI where positions say nothing: scores are shuffled among the queries of a stratum, bins keep their sizes.

    The scores of a cluster are drawn together: they are shuffled within it, and clusters of as many queries exchange
    theirs. None where PSI is not defined.
    """
    counts = np.bincount(bins)
    psi = compute_psi(np.bincount(bins, weights=scores) / counts)
    if psi is None:
        return None
    _, blocks = np.unique(np.array([strata, clusters]), axis=1, return_inverse=True)
    blocks = blocks.ravel()
    sizes = np.bincount(blocks)[blocks]
    order = np.lexsort((blocks, sizes, strata))
    ends = np.flatnonzero((np.diff(strata[order]) != 0) | (np.diff(sizes[order]) != 0)) + 1
    groups = [scores[part].reshape(-1, sizes[part[0]]) for part in np.split(order, ends)]
    by_bin = np.argsort(bins[order], kind="stable")
    starts = np.cumsum(counts) - counts
    random, within = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    size = max(1, _BLOCK_CELLS // len(scores))

    def shuffle(group: Floats, n: int) -> Floats:
        """The scores of a group, float64 [clusters, queries of each], in n random orders: float64 [n, scores]."""
        drawn = group[random.permuted(np.broadcast_to(np.arange(len(group)), (n, len(group))), axis=1)]
        return (within.permuted(drawn, axis=2) if group.shape[1] > 1 else drawn).reshape(n, -1)

    blocks_of_psi = []
    for start in range(0, permutations, size):
        n = min(size, permutations - start)
        shuffled = np.concatenate([shuffle(group, n) for group in groups], axis=1)
        means = np.add.reduceat(shuffled[:, by_bin], starts, axis=1) / counts
        blocks_of_psi.append(1 - means.min(axis=1) / means.max(axis=1))
    values = np.concatenate(blocks_of_psi)
    reached = int((values >= psi - 1e-12).sum())
    return Permuted((reached + 1) / (permutations + 1), float(values.mean()), float(np.quantile(values, 0.95)))
