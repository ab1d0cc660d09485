"""Two test sets over the same systems: rank correlations against their definitions and published values."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from rusbeir.comparison.order_agreement import compare_rankings
from rusbeir.comparison.validity import measure_validity
from rusbeir.errors import BadInput, UnknownName
from rusbeir.evaluation.orders import count_queries_needed, kendall, spearman, tau_ap

GOLDEN = Path(__file__).parents[3] / "shared" / "golden" / "mteb"

# Kendall's tau of the English set and its Vietnamese translation, over the 13 models that claim Vietnamese.
TAUS = {
    ("ArguAna", "ArguAna-VN"): 0.538,
    ("NFCorpus", "NFCorpus-VN"): 0.846,
    ("SciFact", "SciFact-VN"): 0.667,
    ("SCIDOCS", "SCIDOCS-VN"): 0.923,
    ("FiQA2018", "FiQA2018-VN"): 0.949,
    ("TRECCOVID", "TRECCOVID-VN"): 0.282,
    ("QuoraRetrieval", "Quora-VN"): 0.692,
    ("Touche2020", "Touche2020-VN"): 0.590,
    ("NQ", "NQ-VN"): 0.923,
    ("HotpotQA", "HotpotQA-VN"): 0.897,
    ("FEVER", "FEVER-VN"): 0.949,
    ("ClimateFEVER", "ClimateFEVER-VN"): 0.897,
    ("DBPedia", "DBPedia-VN"): 0.949,
}


def read_table(name: str) -> list[dict[str, str]]:
    with (GOLDEN / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_translations_reorder_models_as_published(needs):
    needs("golden scores of MTEB", GOLDEN.is_dir(), f"put them into {GOLDEN}")
    claims = {row["model"] for row in read_table("model_languages.tsv") if "vie-Latn" in row["languages"].split()}
    scores: dict[str, dict[str, float]] = {}
    for row in read_table("ndcg10.tsv"):
        scores.setdefault(row["task"], {})[row["model"]] = float(row["ndcg10"])
    models = sorted(claims.intersection(*(scores[task].keys() for pair in TAUS for task in pair)))
    assert len(models) == 13
    sides = [np.array([[scores[pair[side]][model] for model in models] for pair in TAUS]) for side in (0, 1)]
    taus = kendall(*sides)
    assert dict(zip(TAUS, taus.round(3).tolist(), strict=True)) == TAUS
    assert np.median(taus) == pytest.approx(0.897, abs=5e-4)
    assert kendall(*(side.mean(axis=0) for side in sides)) == pytest.approx(0.923, abs=5e-4)


def test_the_same_rows_have_one_interval_for_each_question(results):
    """`compare --rankings` asks about these systems, `validity` about others of their kind, too; both say so."""
    noise = np.random.default_rng(0).normal(0, 0.2, (2, 6, 60))
    for side, name in enumerate(("toy/en", "toy/ru")):
        scores = {f"m{n}": np.clip(0.5 - n / 40 + noise[side, n], 0, 1).tolist() for n in range(6)}
        folder = results(scores, dataset=name)
    these = compare_rankings([folder], "toy/en", "toy/ru")
    (others,) = measure_validity([folder], [("toy/en", "toy/ru")]).tasks
    tau = these.correlations["kendall"]
    assert (tau.value, tau.over, others.kendall.over) == (others.kendall.value, "queries", "systems and queries")
    assert np.ptp(others.kendall.interval) > np.ptp(tau.interval)
    assert f"tau {tau.value:.3f} ({tau.interval[0]:.3f} to {tau.interval[1]:.3f} over queries)" in these.conclusion[0]


def test_correlations_are_those_of_scipy_also_with_ties():
    values = np.random.default_rng(0).integers(0, 5, size=(2, 200, 6)).astype(float)
    untied = (np.ptp(values, axis=-1) > 0).all(axis=0)
    values_here, values_there = values[:, untied]
    expected = [
        (stats.kendalltau(a, b)[0], stats.spearmanr(a, b)[0]) for a, b in zip(values_here, values_there, strict=True)
    ]
    assert np.allclose(np.array([kendall(values_here, values_there), spearman(values_here, values_there)]).T, expected)


def test_equal_means_have_no_order():
    assert kendall(np.ones(4), np.arange(4.0)) == spearman(np.ones(4), np.arange(4.0)) == 0
    assert tau_ap(np.ones(4), np.ones(4)) == tau_ap(np.ones(4), np.arange(4.0)) == 0


def test_tau_ap_is_its_formula():
    """2/(n-1) · Σ C(i)/(i-1) - 1 (Yilmaz et al., 2008), with C(i) written out, for every order of five systems."""
    reference = np.arange(5.0)
    for order in itertools.permutations(range(5)):
        total = sum(sum(above > order[i] for above in order[:i]) / i for i in range(1, 5))
        scores = np.empty(5)
        scores[list(order)] = np.arange(5.0, 0, -1)
        assert tau_ap(reference, scores) == pytest.approx(2 * total / 4 - 1)


def test_a_system_counted_twice_changes_no_perfect_order():
    """Resampled systems repeat: a pair of a system and itself is no error."""
    means = np.array([0.4, 0.4, 0.3, 0.2, 0.2, 0.2])
    assert tau_ap(means, means) == kendall(means, means) == 1
    assert tau_ap(means, -means) == kendall(means, -means) == -1


def test_a_swap_at_the_top_costs_tau_ap_more():
    reference = np.arange(6.0, 0, -1)
    top, bottom = ([5.0, 6, 4, 3, 2, 1], [6.0, 5, 4, 3, 1, 2])
    assert kendall(reference, np.array(top)) == kendall(reference, np.array(bottom))
    assert tau_ap(reference, np.array(top)) < tau_ap(reference, np.array(bottom))


def test_queries_needed_give_that_agreement():
    """Means over as many drawn queries agree with a tau of about 0.9, and equal systems never do."""
    random = np.random.default_rng(1)
    scores = np.clip(np.linspace(0.3, 0.6, 8)[:, None] + random.normal(0, 0.3, (8, 400)), 0, 1)
    n = count_queries_needed(scores)
    assert n is not None
    drawn = scores[:, random.integers(0, 400, (2, 300, n))].mean(axis=-1)
    assert kendall(drawn[:, 0].T, drawn[:, 1].T).mean() == pytest.approx(0.9, abs=0.01)
    assert count_queries_needed(np.repeat(scores[:1], 4, axis=0)) is None


@pytest.mark.parametrize("seed", range(20))
def test_systems_that_answer_alike_have_no_order(seed):
    """Nor have their simulated means, whatever the last digits of the scores are."""
    scores = np.random.default_rng(seed).random((6, 50)) + np.linspace(0, 0.5, 6)[:, None]
    scores[3] = scores[1]
    shaken = scores.copy()
    shaken[3] = scores[1] * 3 / 3
    assert count_queries_needed(scores, agreement=0.8) == count_queries_needed(shaken, agreement=0.8)


def draw_around(*means: float, n: int = 40) -> dict[str, list[float]]:
    """Scores of systems with these means, the same queries being hard for all."""
    noise = np.random.default_rng(2).normal(0, 0.05, n)
    return {f"s{i}": (mean + noise - noise.mean()).tolist() for i, mean in enumerate(means)}


def test_a_reversal_is_named(results):
    results(draw_around(0.5, 0.4, 0.3, 0.2), dataset="made/ru")
    folder = results(draw_around(0.5, 0.3, 0.4, 0.2), dataset="human/ru")
    agreement = compare_rankings([folder], "made/ru", "human/ru")
    assert [(ranked.system, ranked.rank_first, ranked.rank_second) for ranked in agreement.systems] == [
        ("s0", 1, 1), ("s1", 2, 3), ("s2", 3, 2), ("s3", 4, 4),
    ]  # fmt: skip
    (reversal,) = agreement.reversals
    assert (reversal.ahead, reversal.behind) == ("s1", "s2")
    assert (reversal.first, reversal.second) == (pytest.approx(0.1), pytest.approx(-0.1))
    tau = agreement.correlations["kendall"]
    # Every query has the same differences, so every resample has this order.
    assert (tau.value, *tau.interval) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert agreement.same_queries
    assert "1 of 6 pairs are reversed" in agreement.conclusion[0]


def test_other_queries_are_drawn_on_their_own(results):
    results(draw_around(0.5, 0.4, 0.3, 0.2), dataset="made/ru")
    folder = results(draw_around(0.5, 0.4, 0.3, 0.2, n=30), dataset="human/ru")
    agreement = compare_rankings([folder], "made/ru", "human/ru")
    assert not agreement.same_queries
    assert agreement.n_queries == (40, 30)
    assert agreement.correlations["spearman"].value == pytest.approx(1)


def test_questions_about_one_paragraph_tell_nothing_of_an_order(results):
    scores = draw_around(0.5, 0.4, 0.3, 0.2)
    results(scores, dataset="made/ru", clusters=[0] * 40)
    folder = results(scores, dataset="human/ru", clusters=[0] * 40)
    agreement = compare_rankings([folder], "made/ru", "human/ru")
    assert (agreement.n_clusters, agreement.queries_needed) == ((1, 1), (None, None))


def test_too_few_systems_are_refused(results):
    results(draw_around(0.5, 0.4, 0.3), dataset="made/ru")
    folder = results(draw_around(0.5, 0.4, 0.3, 0.2), dataset="human/ru")
    with pytest.raises(BadInput, match="3 systems in common"):
        compare_rankings([folder], "made/ru", "human/ru")
    with pytest.raises(UnknownName, match="human/ru"):
        compare_rankings([folder], "made/ru", "human/en")
