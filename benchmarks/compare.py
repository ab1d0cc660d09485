"""What the tests and intervals of `rusbeir compare` are worth: levels, power and coverage by simulation, and speed.

`measure(golden, results)` returns rows of what, measure, value. golden is a folder of per-topic scores (a column a
system), results a folder that `rusbeir bench` filled with at least three systems on xquad/ru.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rusbeir.comparison.results import read_results
from rusbeir.evaluation.significance import (
    Floats,
    bootstrap_intervals,
    cluster_scores,
    rank_intervals,
    sign_flip_tests,
)

NULL_SPLITS = 10_000
DRAWS = 1_000
SYSTEMS = 20
PAIRS = [(i, j) for i in range(SYSTEMS) for j in range(i)]


def measure(golden: Path, results: Path) -> list[tuple[str, str, float]]:
    """Every figure, x1; see the module."""
    matrices = [np.loadtxt(path, delimiter=",", skiprows=1).T for path in sorted(golden.glob("*.csv"))]
    scores, clusters = _scores(results)
    coverages = interval_coverages(scores, clusters)
    return [
        ("10,000 null splits of TREC runs", "type I error at 0.05", type_one_error(matrices)),
        ("20 exchangeable systems", "family-wise error at 0.05", family_wise_error(matrices)),
        ("20 TREC systems, 100 draws", "rejections of MaxT / of Holm", power_ratio(matrices)),
        ("xquad/ru, means and differences", "least coverage of the 95 % intervals", min(coverages)),
        ("xquad/ru, means and differences", "greatest coverage of the 95 % intervals", max(coverages)),
        ("xquad/ru, systems", "coverage of all rank intervals", rank_coverage(scores)),
        ("1,190 queries x 20 systems, 10,000 flips", "seconds", seconds()),
    ]


def type_one_error(matrices: list[Floats]) -> float:
    """The share of null splits rejected: two systems whose scores are swapped at random, topic by topic."""
    random = np.random.default_rng(0)
    rejected = 0
    for draw in range(NULL_SPLITS):
        matrix = matrices[draw % len(matrices)]
        first, second = random.choice(len(matrix), 2, replace=False)
        signs = 1 - 2 * random.integers(0, 2, matrix.shape[1])
        tests = sign_flip_tests(((matrix[first] - matrix[second]) * signs)[None], permutations=1_000, seed=draw)
        rejected += bool(tests.p[0] <= 0.05)
    return rejected / NULL_SPLITS


def family_wise_error(matrices: list[Floats]) -> float:
    """The share of families of 20 exchangeable systems (scores shuffled per topic) in which any pair is rejected."""
    random = np.random.default_rng(1)
    wrong = 0
    for draw in range(DRAWS):
        matrix = matrices[draw % len(matrices)]
        systems = matrix[random.choice(len(matrix), SYSTEMS, replace=False)]
        systems = np.take_along_axis(systems, np.argsort(random.random(systems.shape), axis=0), axis=0)
        tests = sign_flip_tests(np.array([systems[i] - systems[j] for i, j in PAIRS]), permutations=500, seed=draw)
        wrong += bool(tests.p_maxt.min() <= 0.05)
    return wrong / DRAWS


def power_ratio(matrices: list[Floats]) -> float:
    """Pairs of real systems told apart by MaxT, over those told apart by Holm, with the same flips."""
    random = np.random.default_rng(2)
    maxt = holm = 0
    for draw in range(100):
        matrix = matrices[draw % len(matrices)]
        systems = matrix[random.choice(len(matrix), SYSTEMS, replace=False)]
        tests = sign_flip_tests(np.array([systems[i] - systems[j] for i, j in PAIRS]), seed=draw)
        maxt += int((tests.p_maxt <= 0.05).sum())
        holm += int((tests.p_holm <= 0.05).sum())
    return maxt / holm


def interval_coverages(scores: Floats, clusters: Sequence[int]) -> list[float]:
    """How often the interval holds the truth, the paragraphs of XQuAD being the population from which they are drawn.

    Of the mean of each system, and of the differences of the first system and each other.
    """
    random = np.random.default_rng(3)
    values = np.concatenate([scores, scores[0] - scores[1:]])
    members = [np.flatnonzero(np.equal(clusters, cluster)) for cluster in np.unique(clusters)]
    inside = np.zeros(len(values))
    for draw in range(DRAWS):
        drawn = [members[index] for index in random.integers(0, len(members), size=len(members))]
        copies = np.repeat(np.arange(len(drawn)), [len(queries) for queries in drawn])
        sample = cluster_scores(values[:, np.concatenate(drawn)], copies.tolist())
        low, high = bootstrap_intervals(sample, samples=2_000, seed=draw).T
        inside += (low <= values.mean(axis=1)) & (values.mean(axis=1) <= high)
    return [float(share) for share in inside / DRAWS]


def rank_coverage(scores: Floats) -> float:
    """How often the rank intervals of all systems hold their true ranks."""
    random = np.random.default_rng(4)
    n_systems, n_queries = scores.shape
    pairs = [(i, j) for i in range(n_systems) for j in range(i)]
    ranks = (-scores.mean(axis=1)).argsort().argsort() + 1
    inside = 0
    for draw in range(DRAWS):
        sample = scores[:, random.integers(0, n_queries, size=n_queries)]
        tests = sign_flip_tests(np.array([sample[i] - sample[j] for i, j in pairs]), permutations=1_000, seed=draw)
        spans = rank_intervals(n_systems, pairs, tests)
        inside += all(best <= rank <= worst for rank, (best, worst) in zip(ranks, spans, strict=True))
    return inside / DRAWS


def seconds() -> float:
    """All pairs of 20 systems on 1,190 queries: 10,000 flips, and intervals from as many resamples."""
    scores = np.random.default_rng(5).random((SYSTEMS, 1_190))
    started = time.perf_counter()
    differences = np.array([scores[i] - scores[j] for i, j in PAIRS])
    sign_flip_tests(differences)
    bootstrap_intervals(differences)
    return time.perf_counter() - started


def _scores(results: Path) -> tuple[Floats, list[int]]:
    """Scores of the systems on the questions of xquad/ru, and the paragraph of each question."""
    rows = [row for row in read_results([results], "nDCG@10") if row.dataset == "xquad/ru"]
    rows.sort(key=lambda row: len(row.label))
    queries = list(rows[0].scores)
    clusters = rows[0].clusters or {}
    scores = np.array([[row.scores[query_id] for query_id in queries] for row in rows])
    return scores, [clusters[query_id] for query_id in queries]
