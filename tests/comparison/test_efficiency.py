"""Systems on the Pareto front of effectiveness and costs."""

from __future__ import annotations

import pytest

from rusbeir.comparison import SystemScore, list_efficient

SMALL, LARGE = {"index": 10}, {"index": 99}
FRONTS = [
    # (mean, seconds, bytes, money) of a, b, c; those that no other beats
    ([(0.9, 5.0, SMALL, None), (0.8, 1.0, SMALL, None), (0.7, 2.0, SMALL, None)], "ab"),
    ([(0.9, 1.0, SMALL, None), (0.8, 1.0, LARGE, None), (0.8, 1.0, SMALL, None)], "a"),
    ([(0.8, 1.0, SMALL, None), (0.8, 1.0, SMALL, None)], "ab"),  # equal in all: neither is worse
    ([(0.8, 1.0, LARGE, None), (0.8, 2.0, SMALL, None)], "ab"),  # faster, smaller
    ([(0.9, 1.0, SMALL, 2.0), (0.8, 1.0, SMALL, 1.0), (0.7, 1.0, SMALL, 1.5)], "ab"),
    ([(0.9, 1.0, SMALL, 2.0), (0.8, 1.0, SMALL, None)], "a"),  # money is not known of both
    ([(0.9, None, {}, None), (0.8, 1.0, SMALL, None)], "ab"),  # a run of another program has no cost
]


@pytest.mark.parametrize(("systems", "front"), FRONTS)
def test_the_front(systems, front):
    scores = [
        SystemScore(
            system=name, mean=mean, interval=(mean, mean), rank=1, rank_interval=None, best_group=None, n_zero_hit=0,
            n_tied=0, seconds={} if seconds is None else {"search": seconds}, bytes=size, cost=cost,
        )
        for name, (mean, seconds, size, cost) in zip("abc", systems, strict=False)
    ]  # fmt: skip
    assert "".join(list_efficient(scores)) == front
