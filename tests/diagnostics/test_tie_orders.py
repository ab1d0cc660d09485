"""nDCG over orders of ties, against enumeration, random orders and trec_eval's own code."""

from __future__ import annotations

from itertools import chain, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rusbeir import evaluate
from rusbeir.diagnostics.tie_orders import EXPECTED, HIGHEST, LOWEST, REVERSED, TREC_EVAL, score_tie_orders

CUTOFFS = (1, 3, 5)
JUDGED = st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 2)), min_size=1, max_size=6)
"""Hits as pairs of a score and a grade; the few scores make many ties."""


def scored(hits: dict[str, float], *judgements: dict[str, int], depth: int = 100):
    return score_tie_orders(
        hits, judgements, CUTOFFS, group_of=lambda one: int(one.endswith("1")), n_groups=2, depth=depth
    )


def ndcg(gains: list[int], ideal: list[int], k: int) -> float:
    """By the definition: gains over log2(rank + 1), divided by those of the best ranking."""
    best = sorted((gain for gain in ideal if gain > 0), reverse=True)

    def dcg(of: list[int]) -> float:
        return sum(max(gain, 0) / np.log2(rank + 1) for rank, gain in enumerate(of[:k], 1))

    return dcg(gains) / dcg(best) if best else 0.0


def all_orders(pairs: list[tuple[int, int]]) -> list[list[int]]:
    """The grades of the hits in every order that keeps scores falling."""
    groups = [[grade for one, grade in pairs if one == score] for score in sorted({s for s, _ in pairs}, reverse=True)]
    return [list(chain(*order)) for order in product(*(permutations(group) for group in groups))]


@given(JUDGED, st.lists(st.integers(0, 2), max_size=2))
def test_against_every_order(pairs, not_found):
    """Mean, least and greatest of the nDCG of all orders."""
    hits = {f"d{n}": float(score) for n, (score, _) in enumerate(pairs)}
    grades = {f"d{n}": grade for n, (_, grade) in enumerate(pairs)} | {f"x{n}": g for n, g in enumerate(not_found)}
    found = scored(hits, grades).ndcg[:, 0]
    for place, k in enumerate(CUTOFFS):
        values = [ndcg(order, list(grades.values()), k) for order in all_orders(pairs)]
        assert found[EXPECTED, place] == pytest.approx(np.mean(values))
        assert found[LOWEST, place] == pytest.approx(min(values))
        assert found[HIGHEST, place] == pytest.approx(max(values))


@pytest.mark.parametrize("seed", range(4))
def test_against_random_orders(seed: int):
    """The expected nDCG is the mean over 20,000 random orders, to five standard errors, and inside the bounds."""
    random = np.random.default_rng(seed)
    n = int(random.integers(5, 40))
    scores, grades = random.integers(0, 5, n), random.integers(0, 3, n)
    hits = {f"d{one}": float(score) for one, score in enumerate(scores)}
    found = scored(hits, {f"d{one}": int(grade) for one, grade in enumerate(grades)}).ndcg[:, 0]
    orders = np.argsort(-scores + random.random((20_000, n)), axis=1)
    discounts = 1 / np.log2(np.arange(2, 7))
    for place, k in enumerate(CUTOFFS):
        best = np.sort(grades)[::-1][:k] @ discounts[:k]
        values = grades[orders][:, :k] @ discounts[:k] / best
        assert abs(values.mean() - found[EXPECTED, place]) <= 5 * values.std() / np.sqrt(len(values)) + 1e-12
        assert found[LOWEST, place] <= values.min() + 1e-12
        assert values.max() <= found[HIGHEST, place] + 1e-12


@given(JUDGED)
def test_trec_evals_order_and_its_reverse(pairs):
    """As evaluate, which asks trec_eval's code; the reverse as with ids whose order is the reverse."""
    for order, numbers in ((TREC_EVAL, range(len(pairs))), (REVERSED, range(len(pairs))[::-1])):
        names = [f"d{number}" for number in numbers]
        hits = {f"d{n}": float(score) for n, (score, _) in enumerate(pairs)}
        grades = {f"d{n}": grade for n, (_, grade) in enumerate(pairs)}
        run = {"q": {name: float(score) for name, (score, _) in zip(names, pairs, strict=True)}}
        qrels = {"q": {name: grade for name, (_, grade) in zip(names, pairs, strict=True)}}
        expected = evaluate(qrels, run, [f"nDCG@{k}" for k in CUTOFFS]).per_query["q"]
        found = scored(hits, grades).ndcg[order, 0]
        assert found == pytest.approx([expected[f"nDCG@{k}"] for k in CUTOFFS])


def test_a_cut_inside_a_group_by_hand():
    """Three hits tie on ranks 2 to 4, one of them relevant; half of the hits in the top 3 are in group 1."""
    found = scored({"d9": 2.0, "d1": 1.0, "d2": 1.0, "d11": 1.0}, {"d1": 1})
    assert found.ndcg[:, 0, 1] == pytest.approx([0.0, 1 / np.log2(3), (1 / np.log2(3) + 0.5) / 3, 0.0, 1 / np.log2(3)])
    assert found.shares[EXPECTED] == pytest.approx(np.array([[1, 5 / 9, 1 / 2], [0, 4 / 9, 1 / 2]]))


@pytest.mark.parametrize(
    ("hits", "depth", "is_cut"),
    [
        ({}, 5, False),
        ({f"d{n}": 1.0 for n in range(5)}, 5, True),  # a sixth may tie
        ({f"d{n}": 1.0 for n in range(5)}, 6, False),  # there was no sixth
        ({**{f"d{n}": 2.0 for n in range(5)}, "e": 1.0}, 6, False),  # the sixth is behind the top 5
        ({f"d{n}": 1e39 + n for n in range(6)}, 6, True),  # equal in single precision
    ],
)
def test_where_ties_may_be_missing(hits, depth, is_cut):
    found = scored(hits, {"d0": 1}, depth=depth)
    assert found.is_cut is is_cut
    assert bool(found.ndcg.any()) is bool(hits)
