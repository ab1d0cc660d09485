"""PSI, its interval and its test: by hand where that can be, and short versions of the simulations."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.position import BINS, measure_coverage, measure_rejections
from rusbeir.diagnostics.position_curve import make_curve
from rusbeir.diagnostics.position_statistics import (
    compute_psi,
    covariance_of_means,
    permute_positions,
    psi_interval,
)


def curve(scores_by_bin: dict[int, list[float]], **options: int):
    bins = np.repeat(list(scores_by_bin), [len(one) for one in scores_by_bin.values()])
    scores = np.concatenate([np.array(one) for one in scores_by_bin.values()])
    queries = np.arange(len(scores))
    chosen = {"samples": 200, "permutations": 200, **options}
    return make_curve("up to 512", scores, bins, queries, np.zeros_like(queries), **chosen)


def test_a_curve_is_described_as_posir_describes_it_and_guarded():
    found = curve({0: [1.0, 0.5], 10: [0.5, 0.5, 0.5], 19: [0.0]}, min_count=2)
    assert [one.ndcg for one in found.bins if one.ndcg is not None] == [0.75, 0.5, 0.0]
    assert found.ndcg == pytest.approx((0.75 + 0.5 + 0.0) / 3), "the unweighted mean over positions"
    assert found.psi == 1.0, "published: every position that has a query counts"
    assert found.psi_counted == pytest.approx(1 - 0.5 / 0.75), "positions with one query do not"
    assert (found.n_counted, found.bins[19].low) == (2, None)
    assert found.trend is not None
    assert found.trend.spearman == pytest.approx(-1)
    assert found.trend.slope == pytest.approx(np.polyfit([0.025, 0.525, 0.975], [0.75, 0.5, 0.0], 1)[0])


@pytest.mark.parametrize(
    ("scores", "because"),
    [
        ({3: [1.0, 0.5]}, "1 of 20 positions have at least 2 queries"),
        ({0: [0.0, 0.0], 1: [0.0, 0.0]}, "no answer is found"),
    ],
)
def test_what_cannot_be_told_is_not(scores, because):
    found = curve(scores, min_count=2)
    assert (found.psi_counted, found.low, found.p, found.told) == (None, None, None, False)
    assert found.sentence == f"PSI cannot be told at this size: {because}."


def test_a_wide_interval_does_not_tell():
    random = np.random.default_rng(0)
    few = curve({place: random.integers(0, 2, 30).astype(float).tolist() for place in range(20)})
    many = curve({place: (random.random(400) < 0.8).astype(float).tolist() for place in range(20)})
    assert not few.told
    assert few.sentence.startswith("PSI cannot be told at this size: it is between 0.0")
    assert many.told


def test_queries_of_one_document_are_not_independent():
    random = np.random.default_rng(1)
    scores, bins = random.random(400), np.arange(400) % 4
    once = covariance_of_means(scores, bins, np.arange(400))
    # Each query asked twice tells no more than once.
    twice = covariance_of_means(np.tile(scores, 2), np.tile(bins, 2), np.tile(np.arange(400), 2))
    assert np.diag(twice) == pytest.approx(np.diag(once), rel=0.05)
    assert np.diag(once) == pytest.approx([scores[bins == one].var() / 100 for one in range(4)], rel=0.05)


def test_the_p_value_is_the_share_of_orders():
    # Of the 6 ways to put two 1s and two 0s into two bins of two, 2 have a mean of 0 in one bin: PSI 1.
    found = permute_positions(
        np.array([1.0, 1, 0, 0]), np.array([0, 0, 1, 1]), np.arange(4), np.zeros(4, dtype=int), permutations=5000
    )
    assert found is not None
    assert found.p == pytest.approx(1 / 3, abs=0.03)
    assert found.mean == pytest.approx(1 / 3, abs=0.03), "PSI is 0 in the other four"


def test_positions_are_shuffled_among_documents_of_a_length():
    # Long documents are harder and answer late: within a length nothing changes.
    scores, bins = np.repeat([1.0, 0.2], 50), np.repeat([0, 1], 50)
    assert permute_positions(scores, bins, np.arange(100), bins, permutations=99) == pytest.approx((1.0, 0.8, 0.8))
    across = permute_positions(scores, bins, np.arange(100), np.zeros(100, dtype=int), permutations=99)
    assert across is not None
    assert across.p == 0.01


@pytest.mark.parametrize(
    ("means", "deviation", "holds"),
    [
        ([0.8, 0.6, 0.4], 1e-6, (0.5, 0.5)),
        ([0.8, 0.8], 0.02, (0.0, 0.069)),
        ([0.5, 0.0], 0.001, (0.99, 1.0)),
    ],
)
def test_the_interval_is_as_wide_as_the_means_are_uncertain(means, deviation, holds):
    low, high = psi_interval(np.array(means), np.eye(len(means)) * deviation**2, 100)
    psi = compute_psi(np.array(means))
    assert low <= psi <= high
    assert (low, high) == pytest.approx(holds, abs=0.01)


@pytest.mark.parametrize("n", [300, 60])
def test_the_interval_holds_the_true_psi(n):
    assert measure_coverage(n, 30)[0] >= 0.9
    assert BINS == 20


def test_shuffled_positions_are_rarely_rejected():
    assert measure_rejections(15, 100) <= 0.1
