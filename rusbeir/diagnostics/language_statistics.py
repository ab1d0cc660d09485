"""How often passages of one language are ranked above equally relevant ones of others, and what chance gives.

The passages of a query that have one grade are equals. Each pair of equals in two languages is one comparison: 1 where
the one is ranked above the other, 0 where it is below, 1/2 where their scores are equal or neither was found. A query's
rate for a language is the mean over the comparisons of its passages in that language; 1/2 is no preference.

Chance is what shuffled languages give: in each cluster of queries the languages of the passages are exchanged, by one
permutation for all its queries, as parallel queries have the same passages. The p-values of several languages are
adjusted by the maximum over them (Westfall and Young, 1993), each rate in its own standard deviations.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rusbeir.evaluation import ALPHA, FEW_PERMUTATIONS, Floats, Units

Numbers = NDArray[np.int64]

NEUTRAL = 0.5
"""The rate of a system without preference."""
_TIE = 1e-12


class Equals(NamedTuple):
    """The comparisons of the equals of some queries; arrays hold NaN where a query has none in that language."""

    rates: Floats
    """float64 [queries, languages]: the rate of each language against all others."""
    third_rates: Floats
    """float64 [queries, languages]: that of comparisons in which neither passage is in the query's language."""
    first: Floats
    """float64 [queries, languages]: 1 where the highest passage is in that language, shared by equal scores."""
    n_comparisons: int
    n_unseen: int
    """The comparisons of passages neither of which was found."""


class Chance(NamedTuple):
    """A rate under shuffled languages."""

    low: float | None
    """The ends of the central 95 % of the shuffles that have comparisons; None where none has."""
    high: float | None
    p: float
    """How often shuffled languages are at least as far from 1/2; two-sided, and adjusted where there are several."""


def compare_equals(
    hits: Sequence[Mapping[str, float]],
    judgements: Sequence[Mapping[str, int]],
    languages: Mapping[str, int],
    asked_in: Sequence[int],
    n_languages: int,
) -> Equals:
    """Compare the equals of each query, given its hits, its judgements and the number of its language (-1: none).

    languages has the number of each document's language; documents that it lacks are left out. Scores are equal where
    they are in single precision, as for trec_eval.
    """
    shape = (len(hits), n_languages)
    rates, third_rates, first = (np.full(shape, np.nan) for _ in range(3))
    n_comparisons = n_unseen = 0
    for row, (scores_of, grades_of) in enumerate(zip(hits, judgements, strict=True)):
        passages = [doc_id for doc_id, grade in grades_of.items() if grade > 0 and doc_id in languages]
        spoken = np.array([languages[doc_id] for doc_id in passages], dtype=np.int64)
        grades = np.array([grades_of[doc_id] for doc_id in passages])
        compared = (spoken[:, None] != spoken) & (grades[:, None] == grades)
        if not compared.any():
            continue
        with np.errstate(over="ignore"):
            scores = np.array([scores_of.get(doc_id, -np.inf) for doc_id in passages], dtype=np.float32)
        above = (scores[:, None] > scores) + 0.5 * (scores[:, None] == scores)
        others = spoken != asked_in[row]
        rates[row] = _average(above, compared, spoken, n_languages)
        third_rates[row] = _average(above, compared & others & others[:, None], spoken, n_languages)
        highest = scores[compared.any(axis=1)].max()
        if np.isfinite(highest):
            top = compared.any(axis=1) & (scores == highest)
            first[row, np.unique(spoken[compared.any(axis=1)])] = 0.0
            np.add.at(first[row], spoken[top], 1 / top.sum())
        n_comparisons += int(compared.sum()) // 2
        unseen = ~np.isfinite(scores)
        n_unseen += int((compared & unseen & unseen[:, None]).sum()) // 2
    return Equals(rates, third_rates, first, n_comparisons, n_unseen)


def _average(above: Floats, compared: NDArray[np.bool_], spoken: Numbers, n_languages: int) -> Floats:
    """Average the comparisons of the passages in each language, float64 [languages]; NaN where there are none."""
    totals = np.bincount(spoken, weights=(above * compared).sum(axis=1), minlength=n_languages)
    counts = np.bincount(spoken, weights=compared.sum(axis=1), minlength=n_languages)
    rates: Floats = np.divide(totals, counts, out=np.full(n_languages, np.nan), where=counts > 0)
    return rates


def shuffle_languages(
    equals: Equals, asked_in: Numbers, units: Units, *, permutations: int = FEW_PERMUTATIONS, seed: int = 0
) -> tuple[Chance, list[Chance]]:
    """Return what shuffled languages give for the query's own language, and for each against third languages.

    asked_in has the number of each query's language, -1 where no document is in it; units are the clusters of the
    queries. A shuffle that leaves nothing to compare does not count; p is NaN where the observed rate is not defined.
    """
    n_languages = equals.rates.shape[1]
    clusters = np.array(units.clusters)
    shape = (units.n_clusters, n_languages, n_languages)
    # Queries of a cluster share the permutation, so their sums are all that it needs.
    own_sums, own_counts = np.zeros(shape), np.zeros(shape)
    known = asked_in >= 0
    rows = clusters[known], asked_in[known]
    np.add.at(own_sums, rows, np.nan_to_num(equals.rates[known]))
    np.add.at(own_counts, rows, ~np.isnan(equals.rates[known]))
    sums, counts = np.zeros(shape[:2]), np.zeros(shape[:2])
    np.add.at(sums, clusters, np.nan_to_num(equals.third_rates))
    np.add.at(counts, clusters, ~np.isnan(equals.third_rates))

    random = np.random.default_rng(seed)
    order = np.broadcast_to(np.arange(n_languages), shape[:2])
    own_rates, third_rates = np.empty(permutations + 1), np.empty((permutations + 1, n_languages))
    for n in range(permutations + 1):
        # The first is the observed assignment.
        exchanged = random.permuted(order, axis=1) if n else order
        own_sum = np.take_along_axis(own_sums, exchanged[:, :, None], 2).sum()
        with np.errstate(invalid="ignore", divide="ignore"):
            own_rates[n] = own_sum / np.take_along_axis(own_counts, exchanged[:, :, None], 2).sum()
            third_rates[n] = np.take_along_axis(sums, exchanged, 1).sum(0) / np.take_along_axis(
                counts, exchanged, 1
            ).sum(0)
    return _conclude(own_rates[:, None])[0], _conclude(third_rates)


def _conclude(rates: Floats) -> list[Chance]:
    """Describe the rates of some languages, float64 [permutations, languages], of which the first row is observed."""
    with warnings.catch_warnings():
        # A language may have no comparison in any permutation, and a permutation none in any language.
        warnings.simplefilter("ignore", RuntimeWarning)
        ends = np.nanquantile(rates[1:], [ALPHA / 2, 1 - ALPHA / 2], axis=0)
        deviations = np.nanstd(rates, axis=0)
        distances = np.abs(rates - NEUTRAL) / np.where(deviations > _TIE, deviations, np.inf)
        largest = np.nanmax(distances, axis=1)
        largest = largest[~np.isnan(largest)]
        p = (largest[:, None] >= distances[0] - _TIE).mean(axis=0)
    p = np.where(np.isnan(rates[0]), np.nan, p)
    return [
        Chance(None, None, float(value)) if np.isnan(low) else Chance(float(low), float(high), float(value))
        for low, high, value in zip(ends[0], ends[1], p, strict=True)
    ]
