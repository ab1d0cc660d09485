"""How often the interval of PSI holds the true one, and how often shuffled positions are rejected where nothing decays.

python -m benchmarks.position [--repetitions 1000]

A query has one relevant document, which its system finds at a rank that is geometric, or not in the first ten; the
mean nDCG@10 falls linearly over 20 positions from 0.7 to 0.5 (PSI 0.286), or is 0.6 at each. A percentile bootstrap
covers 73 % of these at 300 queries a position. Everything is seeded.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rusbeir.diagnostics.position_statistics import (
    compute_psi,
    covariance_of_means,
    permute_positions,
    psi_interval,
)

BINS = 20
REPETITIONS = 1000
DECAY = np.linspace(0.7, 0.5, BINS)
FLAT = np.full(BINS, 0.6)
SIZES = (300, 60, 30)
SAMPLES = 500
_RANKS = 0.6 ** np.arange(10)
_VALUES = 1 / np.log2(np.arange(10) + 2)


def draw_scores(means: NDArray[np.float64], n: int, random: np.random.Generator) -> NDArray[np.float64]:
    """nDCG@10 of n queries a position, float64 [positions * n], whose expectations are these means."""
    scores = means * _RANKS.sum() / (_RANKS @ _VALUES)
    shape = (len(means), n)
    ranks = np.searchsorted(np.cumsum(_RANKS) / _RANKS.sum(), random.random(shape))
    return np.where(random.random(shape) < scores[:, None], _VALUES[np.minimum(ranks, 9)], 0.0).ravel()


def measure_coverage(n: int, repetitions: int = REPETITIONS) -> tuple[float, float]:
    """The share of intervals that hold the true PSI, at n queries a position, and their mean width."""
    random = np.random.default_rng(n)
    bins, queries = np.repeat(np.arange(BINS), n), np.arange(BINS * n)
    true = compute_psi(DECAY) or 0.0
    ends = np.empty((repetitions, 2))
    for repetition in range(repetitions):
        scores = draw_scores(DECAY, n, random)
        means, covariance = scores.reshape(BINS, n).mean(axis=1), covariance_of_means(scores, bins, queries)
        ends[repetition] = psi_interval(means, covariance, n, samples=SAMPLES, seed=repetition)
    covered = (ends[:, 0] <= true) & (true <= ends[:, 1])
    return float(covered.mean()), float((ends[:, 1] - ends[:, 0]).mean())


def measure_rejections(n: int, repetitions: int = REPETITIONS) -> float:
    """The share of data without decay, at n queries a position, whose p-value is at most 0.05."""
    random = np.random.default_rng(n)
    bins, strata = np.repeat(np.arange(BINS), n), np.zeros(BINS * n, dtype=np.int64)
    rejected = 0
    for repetition in range(repetitions):
        permuted = permute_positions(
            draw_scores(FLAT, n, random), bins, np.arange(len(bins)), strata, permutations=SAMPLES - 1, seed=repetition
        )
        rejected += permuted is not None and permuted.p <= 0.05
    return rejected / repetitions


def rows(repetitions: int = REPETITIONS) -> list[dict[str, Any]]:
    """what, measure, value, and at_least, or expected and within, where the figure is claimed."""
    figures: list[dict[str, Any]] = []
    for n in SIZES:
        what = f"PSI 0.286, {n} queries at each of {BINS} positions, {repetitions:,} repetitions"
        covered, width = measure_coverage(n, repetitions)
        figures += [
            {"what": what, "measure": "coverage of the 95 % interval", "value": covered, "at_least": 0.9},
            {"what": what, "measure": "mean width of the interval", "value": width},
        ]
    what = f"no decay, 60 queries at each of {BINS} positions, {repetitions:,} repetitions"
    share = measure_rejections(60, repetitions)
    return [*figures, {"what": what, "measure": "rejected at 0.05", "value": share, "expected": 0.05, "within": 0.02}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    for row in rows(parser.parse_args().repetitions):
        print(f"{row['what']}: {row['measure']} {row['value']:.3f}")


if __name__ == "__main__":
    main()
