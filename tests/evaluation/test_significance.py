"""Tests and intervals against scipy, exact enumeration and the textbooks' definitions."""

from __future__ import annotations

import inspect
import math
import tracemalloc
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from rusbeir.evaluation.significance import (
    bootstrap_intervals,
    cluster_scores,
    hierarchical_intervals,
    minimum_detectable_effect,
    rank_intervals,
    sign_flip_tests,
)

SEEDED_BY = "rng" if "rng" in inspect.signature(stats.bootstrap).parameters else "random_state"
"""The parameter of scipy's generator, which has had this name since 1.15."""
RANDOM = np.random.default_rng(13)


def exact_maxt(differences: np.ndarray) -> list[float]:
    """Step-down MaxT by all sign patterns, written from Westfall and Young's definition."""
    n = differences.shape[1]
    patterns = np.array(list(product((1, -1), repeat=n)))

    def statistics(flipped: np.ndarray) -> np.ndarray:
        return np.abs(flipped.mean(axis=1)) / (flipped.std(axis=1, ddof=1) / np.sqrt(n))

    observed = statistics(differences)
    drawn = np.array([statistics(differences * signs) for signs in patterns])
    adjusted, so_far = [0.0] * len(observed), 0.0
    left = list(np.argsort(-observed))
    while left:
        hardest = left[0]
        p = float((drawn[:, left].max(axis=1) >= observed[hardest] - 1e-9).mean())
        so_far = max(so_far, p)
        adjusted[hardest] = so_far
        left = left[1:]
    return adjusted


@pytest.mark.parametrize("n", [20, 50, 300])
def test_p_is_scipys_within_monte_carlo_error(n: int):
    differences = RANDOM.normal(0.05, 0.2, size=(3, n))
    tests = sign_flip_tests(differences)
    for row, p in zip(differences, tests.p, strict=True):
        theirs = stats.permutation_test(
            (row,), lambda x, axis: x.mean(axis=axis), permutation_type="samples", n_resamples=10_000,
            vectorized=True, **{SEEDED_BY: np.random.default_rng(5)},
        )  # fmt: skip
        assert abs(p - theirs.pvalue) < 5 * np.sqrt(2 * max(p * (1 - p), 1e-4) / 10_000)


def test_few_queries_are_enumerated():
    differences = RANDOM.normal(0.2, 0.3, size=(4, 9))
    tests = sign_flip_tests(differences)
    for row, p in zip(differences, tests.p, strict=True):
        theirs = stats.permutation_test((row,), np.mean, permutation_type="samples", n_resamples=np.inf)
        assert p == pytest.approx(theirs.pvalue, abs=1e-12)
    assert tests.p_maxt == pytest.approx(exact_maxt(differences), abs=1e-12)


def test_maxt_rejects_at_least_what_holm_rejects():
    systems = RANDOM.normal(0, 0.2, size=(6, 100)) + RANDOM.normal(0, 0.2, size=100)
    systems += np.linspace(0, 0.2, 6)[:, None]
    tests = sign_flip_tests(np.array([systems[i] - systems[j] for i in range(6) for j in range(i)]))
    assert (tests.p_maxt <= 0.05).sum() >= (tests.p_holm <= 0.05).sum()
    assert tests.p_maxt.mean() < tests.p_holm.mean()
    assert (tests.p_maxt >= tests.p - 1e-12).all()


@pytest.mark.parametrize(
    ("row", "p", "effect", "why"),
    [
        ([0.0, 0.0, 0.0], 1.0, 0.0, "equal systems"),
        ([0.3], 1.0, math.inf, "one query can be flipped in two ways, both as far from zero"),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 2 / 64, math.inf, "constant differences"),
        *[([-0.3] * n, 2 / 2**n, -math.inf, "constant, and not exact in binary") for n in range(2, 14)],
    ],
)
def test_edges(row: list[float], p: float, effect: float, why: str):
    tests = sign_flip_tests(np.array([row]))
    assert tests.p[0] == p, why
    assert tests.p_maxt[0] == p, why
    assert tests.effect[0] == effect


def exact_family(rows: list[list[Fraction]]) -> tuple[list[Fraction], list[Fraction]]:
    """p and p MaxT of a small family, by enumeration in exact fractions: squares of s / sqrt(n * sum of squares)."""

    def statistics(signs: tuple[int, ...]) -> list[Fraction]:
        sums = [sum((sign * value for sign, value in zip(signs, row, strict=True)), Fraction(0)) for row in rows]
        norms = [sum((value * value for value in row), Fraction(0)) or Fraction(1) for row in rows]
        return [total * total / norm for total, norm in zip(sums, norms, strict=True)]

    observed = statistics((1,) * len(rows[0]))
    flips = [statistics(signs) for signs in product((1, -1), repeat=len(rows[0]))]
    plain = [Fraction(sum(flip[i] >= observed[i] for flip in flips), len(flips)) for i in range(len(rows))]
    order = sorted(range(len(rows)), key=lambda i: -observed[i])
    adjusted, largest = [Fraction(0)] * len(rows), Fraction(0)
    for step, i in enumerate(order):
        reached = sum(max(flip[j] for j in order[step:]) >= observed[i] for flip in flips)
        largest = max(largest, Fraction(reached, len(flips)))
        adjusted[i] = largest
    return plain, adjusted


FAMILIES = [
    ([[1, -3], [3, -3], [1, 1]], "tiny differences, ties between pairs"),
    ([[2, 2, 2], [1, 2, 3], [0, 0, 0]], "constant, varied and equal"),
    ([[1, 1, 1, 1], [2, 2, 2, 2], [-1, -1, -1, -1]], "one difference, doubled and negative"),
    ([[1, 0, 0, 0, 0], [0, 0, 0, 0, 1]], "most queries tied"),
    ([[3, -1, 2, 2, 1, -1], [1, 1, 1, 1, 1, 1], [5, 5, 5, 5, 5, 4]], "mixed"),
    ([[1, 2, 3, 4, 5, 6, 7, 8], [8, 7, 6, 5, 4, 3, 2, 1]], "the same differences in another order"),
]


@pytest.mark.parametrize("unit", [Fraction(1, 10), Fraction(1, 10**9), Fraction(1, 3), Fraction(10**6)])
@pytest.mark.parametrize(("rows", "why"), FAMILIES)
def test_small_families_are_exact(rows: list[list[int]], why: str, unit: Fraction):
    exact = [[value * unit for value in row] for row in rows]
    tests = sign_flip_tests(np.array([[float(value) for value in row] for row in exact]))
    plain, adjusted = exact_family(exact)
    assert list(tests.p) == [float(p) for p in plain], why
    assert list(tests.p_maxt) == [float(p) for p in adjusted], why


@pytest.mark.parametrize(("n", "finds"), [(1, False), (2, False), (5, False), (6, True), (50, True)])
def test_no_difference_is_detectable_where_the_test_cannot_reject(n: int, finds: bool):
    """The least p of n queries is 2 / 2^n: 0.0625 for five."""
    assert np.isfinite(minimum_detectable_effect(RANDOM.normal(size=(1, n)))[0]) == finds


def test_differences_without_spread_say_nothing_of_what_is_detectable():
    assert np.isnan(minimum_detectable_effect(np.full((1, 7), 0.3))[0])


def test_memory_does_not_grow_with_pairs_times_permutations():
    """19,900 pairs of 200 systems once took 10,000 statistics each, 1.6 GB at a time."""
    differences = np.random.default_rng(1).normal(size=(19_900, 12))
    tracemalloc.start()
    sign_flip_tests(differences)
    bootstrap_intervals(differences[:4_000])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 600 * 2**20


def test_holm_is_the_textbooks():
    p = sign_flip_tests(np.array([[1.0] * 7, [1, 1, 1, 1, 1, 1, -0.5], [0.1, -0.1, 0.1, -0.1, 0.1, -0.1, 0.1]]))
    expected = np.maximum.accumulate(np.sort(p.p) * [3, 2, 1])
    assert np.sort(p.p_holm) == pytest.approx(np.minimum(expected, 1))


def test_the_interval_against_resamples_drawn_and_measured_one_by_one():
    values = RANDOM.exponential(0.2, size=(2, 80))
    random = np.random.default_rng(2)
    for row, (low, high) in zip(values, bootstrap_intervals(values, samples=20_000), strict=True):
        samples = random.choice(row, (20_000, 80))
        distances = np.abs(stats.ttest_1samp(samples, row.mean(), axis=1).statistic)
        arm = np.quantile(distances, 0.95) * stats.sem(row)
        assert (low, high) == pytest.approx((row.mean() - arm, row.mean() + arm), abs=0.003)


def test_few_values_that_differ_have_scipys_bca():
    """Of 60 values 2 differ from 0: one resample in seven holds neither, and has no spread to measure its mean in."""
    values = np.zeros((1, 60))
    values[0, :2] = 0.5, 0.4
    ours = bootstrap_intervals(values, samples=20_000)[0]
    generator = {SEEDED_BY: np.random.default_rng(2)}
    theirs = stats.bootstrap(values, np.mean, n_resamples=20_000, **generator).confidence_interval
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.003)


@pytest.mark.parametrize("share", [0.05, 0.15, 1.0])
def test_intervals_hold_the_truth_as_often_as_they_say(share: float):
    """Exponential differences, of which that share is not 0; a percentile bootstrap covers some 89, 92 and 94 %."""
    random = np.random.default_rng(7)
    drawn = random.exponential(1.0, (600, 240)) * (random.random((600, 240)) < share)
    low, high = bootstrap_intervals(drawn, samples=1_000).T
    assert 0.93 <= ((low <= share) & (share <= high)).mean() <= 0.975


def test_intervals_of_constants_are_points():
    assert bootstrap_intervals(np.full((1, 5), 0.25)).tolist() == [[0.25, 0.25]]
    assert hierarchical_intervals([np.full((1, 5), 0.2), np.full((1, 3), 0.4)])[0] == pytest.approx([0.2, 0.4])


def test_an_average_over_datasets_varies_more_than_one_over_their_queries():
    groups = [RANDOM.normal(mean, 0.1, size=(1, 50)) for mean in (0.2, 0.5, 0.8)]
    low, high = hierarchical_intervals(groups)[0]
    pooled = bootstrap_intervals(np.concatenate(groups, axis=1))[0]
    assert low < pooled[0]
    assert high > pooled[1]
    # Means of three datasets drawn from three: standard deviation of the datasets' means over the root of three.
    spread = np.std([group.mean() for group in groups]) / np.sqrt(3)
    assert (high - low) / 2 == pytest.approx(1.96 * spread, rel=0.2)


def test_the_detectable_difference_is_found_in_four_of_five():
    differences = RANDOM.normal(0, 0.3, size=(1, 100))
    effect = float(minimum_detectable_effect(differences)[0])
    spread = differences.std(ddof=1)
    rejected = [stats.ttest_1samp(RANDOM.normal(effect, spread, 100), 0).pvalue < 0.05 for _ in range(2000)]
    assert np.mean(rejected) == pytest.approx(0.8, abs=0.03)
    assert np.isinf(minimum_detectable_effect(np.array([[0.1]])))[0]


def test_ranks_leave_open_what_the_tests_leave_open():
    systems = np.array([[0.9, 0.8, 0.9, 0.7, 0.9, 0.8, 0.9]] * 3) * np.array([[1.0], [0.98], [0.1]])
    systems[1] += [0.03, -0.01, 0.02, 0.04, -0.03, 0.01, 0.02]
    pairs = [(0, 1), (0, 2), (1, 2)]
    tests = sign_flip_tests(np.array([systems[i] - systems[j] for i, j in pairs]))
    assert rank_intervals(3, pairs, tests) == [(1, 2), (1, 2), (3, 3)]


def test_queries_of_one_cluster_are_one_observation():
    """Copies of a query add nothing, and neither does the order of the queries."""
    scores = np.random.default_rng(3).random((2, 40))
    copied = cluster_scores(np.concatenate([scores] * 5, axis=1), [*range(40)] * 5)
    assert copied == pytest.approx(scores)
    assert bootstrap_intervals(copied) == pytest.approx(bootstrap_intervals(scores))


def test_clusters_of_unlike_sizes_against_a_bootstrap_of_their_queries():
    """Drawing clusters, and taking the mean over the queries in them, is what the values stand for."""
    random = np.random.default_rng(5)
    sizes = random.integers(1, 12, 150)
    clusters = np.repeat(np.arange(150), sizes)
    scores = np.clip(0.7 + random.normal(0, 0.2, 150)[clusters] + random.normal(0, 0.1, len(clusters)), 0, 1)
    ours = bootstrap_intervals(cluster_scores(scores[None], clusters.tolist()))[0]
    sums = np.bincount(clusters, weights=scores)
    drawn = random.integers(0, 150, (20_000, 150))
    expected = np.quantile(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), [0.025, 0.975])
    assert ours == pytest.approx(expected, abs=0.003)
    alone = bootstrap_intervals(scores[None])[0]
    assert np.diff(ours)[0] > 1.5 * np.diff(alone)[0], "queries of a cluster are alike"
    assert cluster_scores(scores[None], clusters.tolist()).mean() == pytest.approx(scores.mean())
