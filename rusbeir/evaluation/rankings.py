"""Whether two test sets order systems in the same way: rank correlations, and the queries that an order needs.

Each function works on the last axis, the systems, so that it takes one set of means or many resampled ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rusbeir.evaluation.significance import Floats

DRAWS = 1_000
MAX_QUERIES = 1_000_000


def kendall(first: Floats, second: Floats) -> Floats:
    """Kendall's tau-b, [...]: 1 for the same order, -1 for the reverse; 0 where either ties all systems.

    >>> float(kendall(np.array([0.3, 0.2, 0.1]), np.array([0.3, 0.1, 0.2])).round(3))
    0.333
    """
    one, other = _signs(first), _signs(second)
    untied = np.sqrt(np.abs(one).sum(axis=(-2, -1)) * np.abs(other).sum(axis=(-2, -1)))
    return _divide((one * other).sum(axis=(-2, -1)), untied)


def tau_ap(reference: Floats, other: Floats) -> Floats:
    """The AP correlation (Yilmaz, Aslam and Robertson, SIGIR 2008), [...]: errors among the best systems weigh more.

    For each system in the order of other: the share of those above it that the reference puts above it, too; the mean
    of the shares, scaled to [-1, 1]. A pair that one of them ties counts half; one that both tie is left out, and so
    is a system with none above it. 0 where no pair is left.

    >>> float(tau_ap(np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.3, 0.4, 0.2, 0.1])).round(3))
    0.333
    """
    order = np.argsort(-other, axis=-1, kind="stable")
    one, two = (_signs(np.take_along_axis(values, order, -1)) for values in (reference, other))
    above = np.tril((one != 0) | (two != 0), -1)
    n_above = above.sum(axis=-1).astype(np.float64)
    shares = _divide((above * (1 + one * two) / 2).sum(axis=-1), n_above)
    n_shares = (n_above > 0).sum(axis=-1).astype(np.float64)
    return _divide(2 * shares.sum(axis=-1) - n_shares, n_shares)


def spearman(first: Floats, second: Floats) -> Floats:
    """Spearman's rho, [...]: the correlation of the ranks, tied systems sharing a rank; 0 where either ties all."""
    from scipy.stats import rankdata  # most of a second

    one, other = (rankdata(values, axis=-1) - (values.shape[-1] + 1) / 2 for values in (first, second))
    return _divide((one * other).sum(axis=-1), np.sqrt((one**2).sum(axis=-1) * (other**2).sum(axis=-1)))


def rank(means: Floats) -> list[int]:
    """The rank of each system, 1 for the highest mean; tied systems share the best of their ranks."""
    return [int(place) + 1 for place in np.searchsorted(np.sort(-means), -means)]


def draw_systems(n_systems: int, samples: int, seed: int) -> NDArray[np.int64]:
    """Places of resampled systems, [samples or fewer, systems]: a sample of one system again and again has no order."""
    drawn: NDArray[np.int64] = np.random.default_rng(seed).integers(n_systems, size=(samples, n_systems))
    return drawn[np.flatnonzero(np.ptp(drawn, axis=1))]


def count_queries_needed(scores: Floats, *, agreement: float = 0.9, seed: int = 0) -> int | None:
    """How many queries of this kind two test sets need for a mean Kendall's tau of that much between their orders.

    scores: float64 [systems, queries]. The means over n queries are drawn from the normal distribution that they
    have for large n, with the observed means as the true ones: close systems may need more. None where a million are
    not enough, as for equal systems.
    """
    mean = scores.mean(axis=1)
    values, vectors = np.linalg.eigh(np.cov(scores))
    noise = np.random.default_rng(seed).standard_normal((2, DRAWS, len(mean)))
    noise = noise @ (vectors * np.sqrt(np.maximum(values, 0))).T

    def agrees(n: int) -> bool:
        one, other = mean + noise / np.sqrt(n)
        return bool(kendall(one, other).mean() >= agreement)

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
