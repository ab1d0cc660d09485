"""Samples of queries whose clusters are drawn whole."""

from __future__ import annotations

import numpy as np
import pytest

from rusbeir.evaluation.significance import resample_means
from rusbeir.evaluation.units import Units

QUERIES = ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("first", "second", "expected", "why"),
    [
        ([0, 1, 2, 3], [0, 1, 2, 3], (0, 1, 2, 3), "all are independent"),
        ([0, 0, 1, 2], [0, 1, 2, 3], (0, 0, 1, 2), "one side says so"),
        ([0, 1, 2, 3], [5, 4, 4, 5], (0, 1, 1, 0), "or the other"),
        ([0, 0, 1, 2], [0, 1, 1, 2], (0, 0, 0, 1), "a with b, and b with c"),
        ([0, 0, 1, 1], [0, 1, 1, 2], (0, 0, 0, 0), "a chain"),
    ],
)
def test_units_of_two_sides(first, second, expected, why):
    units, other = (
        Units.from_clusters(QUERIES, dict(zip(QUERIES, numbers, strict=True))) for numbers in (first, second)
    )
    assert units.join(other).clusters == other.join(units).clusters == expected, why


@pytest.mark.parametrize(
    ("clusters", "words"),
    [
        (None, "4 queries"),
        ({"a": 9, "b": 9, "c": 9, "d": 1}, "4 queries, 2 independent"),
        ({"a": 0, "b": 0, "c": 0, "d": 0}, "4 queries, 1 independent"),
    ],
)
def test_how_many_are_independent(clusters, words):
    assert str(Units.from_clusters(QUERIES, clusters)) == words


def test_clusters_are_drawn_whole():
    """Of two clusters a resample has the first twice, the second twice, or both; a mean is that of its queries."""
    units = Units.from_clusters(QUERIES, {"a": 0, "b": 0, "c": 0, "d": 1})
    drawn = units.resample(np.array([[1.0, 1.0, 1.0, 0.0]]), samples=200)
    assert {float(value) for value in drawn.round(9).ravel()} == {0.0, 0.75, 1.0}
    assert units.merge(np.array([[1.0, 1.0, 1.0, 0.0]])).mean() == pytest.approx(0.75)


def test_independent_queries_are_drawn_as_ever():
    scores = np.random.default_rng(0).random((3, 4))
    assert (Units.from_clusters(QUERIES, None).resample(scores, samples=50) == resample_means(scores, samples=50)).all()
