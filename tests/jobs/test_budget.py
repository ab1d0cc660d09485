"""Budgets: reserved before anything is sent, remembered over runs and kills."""

from __future__ import annotations

import math

import pytest

from rusbeir.errors import BadInput
from rusbeir.jobs import Budget, BudgetReached, Journal, Spent


@pytest.fixture
def journal(tmp_path):
    with Journal.open(tmp_path / "j.sqlite", {}) as journal:
        yield journal


def test_it_stops_before_it_is_passed(journal):
    budget = Budget(journal, chars=1000)
    for _ in range(3):
        budget.reserve(300, 0.0)
    with pytest.raises(BudgetReached) as caught:
        budget.reserve(300, 0.0)
    assert str(caught.value) == (
        "The budget of 1,000 characters is reached: 900 are spent and the next request takes 300. "
        "Everything finished is saved. Give a larger budget_chars= to continue."
    )
    assert budget.spent.chars == 900
    budget.reserve(100, 0.0)


def test_cost(journal):
    budget = Budget(journal, cost=0.3)
    for _ in range(3):
        budget.reserve(5, 0.1)  # as floats these add up to more than 0.3
    with pytest.raises(BudgetReached, match=r"The budget of 0.3 in money is reached: 0.3 .* takes 0.000001\..*cost="):
        budget.reserve(5, 0.000001)
    assert budget.spent.cost == 0.3
    assert budget.spent.chars == 15


def test_what_is_spent_is_remembered(tmp_path):
    path = tmp_path / "j.sqlite"
    for spent in (0, 400, 800):
        with Journal.open(path, {}) as journal:
            budget = Budget(journal, chars=1000, cost=2.0)
            assert (budget.spent.chars, budget.spent.cost) == (spent, spent / 800)
            if spent < 800:
                budget.reserve(400, 0.5)
    with Journal.open(path, {}) as journal:
        with pytest.raises(BudgetReached):
            Budget(journal, chars=1000).reserve(400, 0.5)
        Budget(journal, chars=1200).reserve(400, 0.5)


def test_reserved_is_on_disk_before_the_request_leaves(journal):
    Budget(journal, chars=1000).reserve(10, 0.0)
    assert Budget(journal).spent.chars == 10


def test_correction_when_the_cost_is_known(journal):
    budget = Budget(journal, cost=1.0)
    budget.reserve(10, 0.4)
    budget.correct(Spent(cost=-0.1))
    budget.correct(Spent(cost=0.05, chars=3))
    assert (budget.spent.chars, budget.spent.cost) == (13, 0.35)
    budget.correct(Spent(cost=-9.0))
    assert Budget(journal).spent.cost == 0.0


@pytest.mark.parametrize(
    ("limits", "need", "parts"),
    [
        ({"chars": 100}, (2500, 0.0), ["100 characters", "takes 2,500", "budget_chars="]),
        ({"cost": 0.01}, (10, 0.25), ["0.01 in money", "takes 0.25", "budget_cost="]),
    ],
)
def test_smaller_than_one_request(journal, limits, need, parts):
    budget = Budget(journal, **limits)
    with pytest.raises(BadInput) as caught:
        budget.reserve(*need)
    assert all(part in str(caught.value) for part in parts), caught.value
    assert budget.spent.chars == budget.spent.cost == 0


def test_without_limit_it_only_counts(journal):
    budget = Budget(journal)
    budget.reserve(10**9, 10.0**6)
    assert (budget.spent.chars, budget.spent.cost) == (10**9, 10.0**6)


@pytest.mark.parametrize("limits", [{"chars": 0}, {"chars": -1}, {"cost": 0.0}, {"cost": math.nan}])
def test_no_budget(journal, limits):
    with pytest.raises(BadInput, match="above 0"):
        Budget(journal, **limits)
