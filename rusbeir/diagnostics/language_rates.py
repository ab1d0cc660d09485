"""Rates of language preference with intervals, and what they show in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rusbeir.diagnostics.language_statistics import NEUTRAL, Chance
from rusbeir.evaluation import ALPHA, Floats, Units, bootstrap_intervals
from rusbeir.languages import english_name

OWN = "own"
"""What stands for the language of the query."""
PIVOT = "en"
"""The language for which a preference is always stated, as most models have read most of it."""
MIN_CLUSTERS = 20
"""The independent queries below which nothing is concluded, as their interval says little."""


@dataclass(frozen=True, kw_only=True)
class LanguageRate:
    """How often a passage in one language is ranked above its equals in others; 1/2 is no preference."""

    language: str
    """"own" for the language of the query: against all others. Any other one is compared with third languages, where
    neither passage is in the query's."""
    n_queries: int
    n_clusters: int
    """The independent units among the queries."""
    rate: float
    low: float
    """The ends of its 95 % interval over independent queries."""
    high: float
    first: float | None
    """The share of queries whose highest passage is in that language; None where none was found."""
    chance_low: float | None
    """The ends of the central 95 % of the rate under shuffled languages; None where no shuffle has comparisons."""
    chance_high: float | None
    p: float
    """How often shuffled languages are at least as far from 1/2; that of several languages is adjusted."""

    @property
    def chance_words(self) -> str:
        """The ends under shuffled languages, in percent; a dash where there are none."""
        if self.chance_low is None or self.chance_high is None:
            return "–"
        return f"{100 * self.chance_low:.1f} to {100 * self.chance_high:.1f}"


def describe_rate(
    language: str, rates: Floats, first: Floats, units: Units, chance: Chance, samples: int, seed: int
) -> LanguageRate | None:
    """Describe the rates of queries, float64 [queries], of which those that are NaN do not count; None if all are."""
    counted = ~np.isnan(rates)
    if not counted.any():
        return None
    rows = np.flatnonzero(counted)
    chosen = Units.from_clusters(list(map(str, rows)), {str(row): units.clusters[row] for row in rows})
    low, high = bootstrap_intervals(chosen.merge(rates[None, counted]), samples=samples, seed=seed)[0]
    ranked = counted & ~np.isnan(first)
    return LanguageRate(
        language=language,
        n_queries=chosen.n_queries,
        n_clusters=chosen.n_clusters,
        rate=float(rates[counted].mean()),
        low=max(float(low), 0.0),
        high=min(float(high), 1.0),
        first=float(first[ranked].mean()) if ranked.any() else None,
        chance_low=chance.low,
        chance_high=chance.high,
        p=chance.p,
    )


def conclude(
    own_rate: LanguageRate | None, languages: Sequence[LanguageRate], asked_in: Sequence[str]
) -> Iterator[str]:
    """Say what the rates show, and what they do not, for queries asked in these languages."""
    if own_rate:
        yield f"{_compare_words('in the language of the query', own_rate)}: {_judge(own_rate)}."
        if len(set(asked_in)) == 1 and _is_shown(own_rate):
            yield "All queries are in one language, so that may be a preference for it whatever is asked."
    if lacking := len(asked_in) - (own_rate.n_queries if own_rate else 0):
        queries = "1 query has" if lacking == 1 else f"{lacking:,} queries have"
        yield f"{queries} no equals in the language of the query and in another, and say nothing about it."
    pivot = next((rate for rate in languages if rate.language == PIVOT), None)
    if pivot:
        yield f"{_compare_words(f'in {english_name(PIVOT)}, for queries in other languages,', pivot)}: {_judge(pivot)}."
    shown = [rate for rate in languages if _is_shown(rate)]
    for words, chosen in (
        ("above", sorted((rate for rate in shown if rate.rate > NEUTRAL), key=lambda rate: -rate.rate)),
        ("below", sorted((rate for rate in shown if rate.rate < NEUTRAL), key=lambda rate: rate.rate)),
    ):
        if chosen:
            names = ", ".join(f"{english_name(rate.language)} ({100 * rate.rate:.1f} %)" for rate in chosen)
            yield f"Ranked {words} equals in third languages: {names}."


def _compare_words(where: str, rate: LanguageRate) -> str:
    chance = "leave nothing to compare" if rate.chance_low is None else rate.chance_words
    return (
        f"A passage {where} is ranked above its equals {100 * rate.rate:.1f} % of the time "
        f"({100 * rate.low:.1f} to {100 * rate.high:.1f}; shuffled languages {chance})"
    )


def _is_shown(rate: LanguageRate) -> bool:
    return rate.n_clusters >= MIN_CLUSTERS and rate.p <= ALPHA


def _judge(rate: LanguageRate) -> str:
    if rate.n_clusters < MIN_CLUSTERS:
        return f"{rate.n_clusters} independent queries are too few to tell"
    if not _is_shown(rate):
        return "no preference was shown"
    return "it is preferred" if rate.rate > NEUTRAL else "other languages are preferred"
