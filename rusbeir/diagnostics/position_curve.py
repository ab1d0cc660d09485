"""The curve of a system's nDCG@10 over positions, with PSI and what chance alone would give."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from rusbeir.diagnostics.position_statistics import (
    Permuted,
    Places,
    compute_psi,
    count_independent,
    covariance_of_means,
    permute_positions,
    psi_interval,
)
from rusbeir.evaluation import ALPHA, FEW_PERMUTATIONS, FEW_SAMPLES, Floats, describe_queries

BINS = 20
ALL = "all"
"""The name of the curve over all lengths."""
MIN_COUNT = 30
"""Independent queries that a bin needs, unless another number is given; at 30 the interval covers more than 90 %."""
MAX_WIDTH = 0.25
"""The widest interval that tells how large PSI is."""
_Z = 1.959964
_CENTRES = (np.arange(BINS) + 0.5) / BINS


@dataclass(frozen=True, kw_only=True)
class PositionBin:
    """The queries that are answered in one twentieth of their documents."""

    centre: float
    n_queries: int
    ndcg: float | None
    """The mean; None without queries."""
    low: float | None
    """The ends of its 95 % interval; None if the bin does not count."""
    high: float | None


@dataclass(frozen=True, kw_only=True)
class Trend:
    """The dependence of the means on the bin's centre, as PosIR's script computes it over bins that have queries.

    A correlation is None where all means are equal.
    """

    slope: float
    intercept: float
    r_squared: float | None
    pearson: float | None
    pearson_p: float | None
    spearman: float | None
    spearman_p: float | None
    kendall: float | None
    kendall_p: float | None


@dataclass(frozen=True, kw_only=True)
class PositionCurve:
    """nDCG@10 by position, of documents of some length."""

    bucket: str
    """One of BUCKETS, in tokens, or "all"."""
    n_queries: int
    n_clusters: int
    """The independent units among the queries: those of one document are not independent."""
    ndcg: float
    """The unweighted mean over bins for a bucket, as PosIR has it; the mean over queries for all lengths."""
    psi: float | None
    """PSI as it is published: over all bins that have queries."""
    psi_counted: float | None
    """PSI over the bins that have enough independent queries; the figures below are over these bins, too."""
    n_counted: int
    low: float | None
    """The ends of the 95 % interval of PSI; None if fewer than two bins count."""
    high: float | None
    told: bool
    """Whether there is an interval and it is narrow enough to say how large PSI is."""
    p: float | None
    """How often shuffled positions give a PSI at least as large."""
    chance: float | None
    """The mean PSI of shuffled positions."""
    chance_high: float | None
    """Its 95th percentile."""
    trend: Trend | None
    """None for fewer than three bins."""
    sentence: str
    bins: tuple[PositionBin, ...]


def make_curve(
    bucket: str,
    scores: Floats,
    bins: Places,
    documents: Places,
    strata: Places,
    *,
    min_count: int = MIN_COUNT,
    samples: int = FEW_SAMPLES,
    permutations: int = FEW_PERMUTATIONS,
    seed: int = 0,
) -> PositionCurve:
    """Make the curve of these queries: of each its score, its bin from 0 to 19, its document, and its stratum.

    Queries of one document are not independent, and positions are shuffled within a stratum.
    """
    counts, independent = np.bincount(bins, minlength=BINS), count_independent(bins, documents, BINS)
    counted = independent >= max(min_count, 1)
    inside = counted[bins]
    n_counted = int(counted.sum())
    means = np.divide(np.bincount(bins, weights=scores, minlength=BINS), counts, out=np.zeros(BINS), where=counts > 0)
    spread, interval, permuted, psi = np.zeros(n_counted), None, None, None
    if n_counted:
        bin_numbers = (np.cumsum(counted) - 1)[bins[inside]]
        _, clusters = np.unique(documents[inside], return_inverse=True)
        covariance = covariance_of_means(scores[inside], bin_numbers, clusters)
        spread = np.sqrt(np.diag(covariance))
        psi = compute_psi(means[counted])
        if psi is not None:
            least = int(independent[counted].min())
            interval = psi_interval(means[counted], covariance, least, samples=samples, seed=seed)
            permuted = permute_positions(
                scores[inside], bin_numbers, clusters, strata[inside], permutations=permutations, seed=seed
            )
    errors = dict(zip(np.flatnonzero(counted).tolist(), spread.tolist(), strict=True))
    seen = counts > 0
    low, high = interval or (None, None)
    n_clusters = len(np.unique(documents))
    is_narrow = interval is not None and interval[1] - interval[0] <= MAX_WIDTH
    return PositionCurve(
        bucket=bucket,
        n_queries=len(scores),
        n_clusters=n_clusters,
        ndcg=float(scores.mean() if bucket == ALL else means[seen].mean()),
        psi=compute_psi(means[seen]),
        psi_counted=psi,
        n_counted=n_counted,
        low=low,
        high=high,
        told=is_narrow,
        p=permuted and permuted.p,
        chance=permuted and permuted.mean,
        chance_high=permuted and permuted.high,
        trend=_find_trend(_CENTRES[seen], means[seen]) if seen.sum() > 2 else None,
        sentence=_tell(n_counted, min_count, interval, is_narrow, permuted, (len(scores), n_clusters)),
        bins=tuple(_make_bins(counts, means, errors)),
    )


def _make_bins(counts: Places, means: Floats, errors: Mapping[int, float]) -> Iterator[PositionBin]:
    """The bins from the first to the last; errors are the standard errors of those that count, by their numbers."""
    for number, (centre, n, mean) in enumerate(zip(_CENTRES, counts, map(float, means), strict=True)):
        margin = _Z * errors[number] if number in errors else None
        yield PositionBin(
            centre=float(centre),
            n_queries=int(n),
            ndcg=mean if n else None,
            low=None if margin is None else max(0.0, mean - margin),
            high=None if margin is None else min(1.0, mean + margin),
        )


def _tell(
    n_counted: int,
    min_count: int,
    interval: tuple[float, float] | None,
    is_narrow: bool,
    permuted: Permuted | None,
    sizes: tuple[int, int],
) -> str:
    """Return the sentence of a curve; sizes are its queries and how many of them are independent."""
    dependent = sizes[1] < sizes[0]
    if interval is None or permuted is None:
        few = (
            f"{n_counted} of {BINS} positions have at least {min_count}{' independent' if dependent else ''} queries"
            if n_counted < 2
            else "no answer is found"
        )
        return f"PSI cannot be told at this size: {few}."
    queries = f"; {describe_queries(*sizes)}" if dependent else ""
    between = f"between {interval[0]:.2f} and {interval[1]:.2f} (95 % interval{queries})"
    size = f"PSI is {between}" if is_narrow else f"PSI cannot be told at this size: it is {between}"
    if permuted.p > ALPHA:
        return f"{size}. Shuffled positions give as much with p = {permuted.p:.2g}: no sign that positions matter."
    return f"{size}. Positions matter: shuffled ones give as much with p = {permuted.p:.2g} only."


def _find_trend(centres: Floats, means: Floats) -> Trend:
    from scipy.stats import kendalltau, linregress, pearsonr, spearmanr

    with warnings.catch_warnings():
        # Of means that are all equal: the correlations are not defined.
        warnings.simplefilter("ignore")
        line = linregress(centres, means)
        pairs = [float(value) for test in (pearsonr, spearmanr, kendalltau) for value in test(centres, means)]
    names = ("pearson", "pearson_p", "spearman", "spearman_p", "kendall", "kendall_p")
    constant = float(np.ptp(means)) == 0
    return Trend(
        slope=float(line.slope),
        intercept=float(line.intercept),
        r_squared=None if constant else float(line.rvalue**2),
        **dict.fromkeys(names) if constant else dict(zip(names, pairs, strict=True)),
    )
