"""The agreement of a small version of a dataset with the whole, measured on systems that did not choose it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from rusbeir.evaluation import (
    ALPHA,
    FEW_SAMPLES,
    Figure,
    Floats,
    Units,
    compare_orders,
    describe_queries,
    draw_systems,
    minimum_detectable_effect,
    sign_flip_tests,
)
from rusbeir.retrieval import FUSIONS, Spec, as_spec

LEXICAL, DENSE, OTHER = "lexical", "dense", "other"


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """A system that did not choose, and its mean on both sides."""

    system: str
    kind: str
    """"lexical" (BM25), "dense" (one encoder) or "other"."""
    full: float
    nano: float


@dataclass(frozen=True, kw_only=True)
class Gap:
    """The mean of the dense systems minus that of the lexical ones; fractions, as measures are."""

    full: float
    nano: float
    distortion: Figure
    """nano minus full: below 0 the small version flatters lexical systems. The interval resamples queries."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The small version against the whole."""

    measure: str
    systems: tuple[HeldOut, ...]
    kendall: Figure
    """The correlation of the two orders of systems; its interval is over systems and queries."""
    told_apart: int
    """Pairs of systems whose means on the whole differ by the sign-flip test, corrected for all pairs by MaxT."""
    reversed: int
    """Those of them that the small version orders otherwise, or ties."""
    gap: Gap | None
    """None without a held-out system of both kinds."""
    level: float
    """How much higher the mean score of the systems is than on the whole."""
    detectable_full: float
    """The difference of two systems that is found with a power of 80 %: the median over all pairs."""
    detectable_nano: float
    n_queries: tuple[int, int]
    """On the whole and here."""
    n_clusters: tuple[int, int]
    """The independent units among the queries, which intervals and tests draw whole: queries, or clusters of them."""

    @property
    def conclusion(self) -> tuple[str, ...]:
        """The conclusions, a sentence a figure."""
        n = len(self.systems)
        gap = "No dense or no lexical system was held out, so the gap between them was not measured."
        if self.gap:
            low, high = self.gap.distortion.interval
            gap = (
                f"Dense minus lexical systems: {100 * self.gap.full:+.2f} points on the whole, "
                f"{100 * self.gap.nano:+.2f} here; distorted by {100 * self.gap.distortion.value:+.2f} points "
                f"({100 * low:+.2f} to {100 * high:+.2f})."
            )
        full, here = map(describe_queries, self.n_queries, self.n_clusters)
        dependent = self.n_clusters[0] < self.n_queries[0]
        power = (
            f"Two systems must differ by {100 * self.detectable_nano:.1f} points to be told apart "
            f"({100 * self.detectable_full:.1f} on the whole): the median over pairs, with a power of 80 %."
            if np.isfinite(self.detectable_nano)
            else "No two systems can be told apart here: that needs six independent queries, and scores that differ."
        )
        return (
            f"{n} systems that did not choose it, {self.measure}: Kendall's tau with the whole is {self.kendall}.",
            f"Of {self.told_apart} pairs that the whole tells apart, {self.reversed} are in another order here.",
            gap,
            f"Scores are {abs(100 * self.level):.2f} points {'higher' if self.level > 0 else 'lower'} here.",
            power,
            *([f"The whole has {full}; here there are {here}."] if dependent else []),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "conclusion": list(self.conclusion)}


def find_kind(system: str) -> str:
    """Find what a system compares: words, vectors of one encoder, or something else.

    >>> find_kind("bm25(profile=raw)"), find_kind("dense(bge-m3)"), find_kind("rrf(bm25,dense)")
    ('lexical', 'dense', 'other')
    """
    stages = as_spec(system).stages
    return {"bm25": LEXICAL, "dense": DENSE}.get(stages[0].name, OTHER) if len(stages) == 1 else OTHER


def list_parts(spec: Spec) -> set[str]:
    """List the systems that a composition is made of; the system itself where it searches alone."""
    first, *rest = spec.stages
    inner = [part for arg in first.args for part in list_parts(as_spec(arg))] if first.name in FUSIONS else [str(first)]
    return {*inner, *map(str, rest)}


def measure_agreement(
    measure: str,
    full: Mapping[str, Mapping[str, float]],
    nano: Mapping[str, Mapping[str, float]],
    *,
    clusters: Mapping[str, int] | None = None,
    seed: int = 0,
) -> Agreement:
    """Measure the agreement of systems' scores on the whole and on the small version: system -> {query id: score}.

    The queries of the small version are some of the whole. In each resample a query has the same weight on both sides.
    clusters are those of the queries of the whole, as cluster_queries numbers them; None if all are independent.
    """
    systems = list(full)
    queries = list(full[systems[0]])
    chosen = list(nano[systems[0]])
    index = {query_id: number for number, query_id in enumerate(queries)}
    there = np.array([[full[name][query_id] for query_id in queries] for name in systems])
    here = np.array([[nano[name][query_id] for query_id in chosen] for name in systems])
    means_there, means_here = there.mean(axis=1), here.mean(axis=1)
    units, units_here = Units.from_clusters(queries, clusters), Units.from_clusters(chosen, clusters)
    drawn_there, drawn_here = _resample(there, here, [index[query_id] for query_id in chosen], units, seed)
    order = compare_orders(
        (means_there, means_here),
        queries=(drawn_there, drawn_here),
        systems=draw_systems(len(systems), FEW_SAMPLES, seed),
        correlations=["kendall"],
    )
    first, second = np.array(list(combinations(range(len(systems)), 2))).T
    differences, differences_here = (
        units.merge(there[first] - there[second]),
        units_here.merge(here[first] - here[second]),
    )
    apart = sign_flip_tests(differences, seed=seed).p_maxt <= ALPHA
    same_order = (means_there[first] - means_there[second]) * (means_here[first] - means_here[second]) > 0
    kinds = [find_kind(name) for name in systems]
    return Agreement(
        measure=measure,
        systems=tuple(
            HeldOut(system=name, kind=kind, full=float(full_mean), nano=float(nano_mean))
            for name, kind, full_mean, nano_mean in zip(systems, kinds, means_there, means_here, strict=True)
        ),
        kendall=order["kendall"],
        told_apart=int(apart.sum()),
        reversed=int((apart & ~same_order).sum()),
        gap=_measure_gap(kinds, (means_there, means_here), (drawn_there, drawn_here)),
        level=float((means_here - means_there).mean()),
        detectable_full=_find_detectable(differences),
        detectable_nano=_find_detectable(differences_here),
        n_queries=(units.n_queries, units_here.n_queries),
        n_clusters=(units.n_clusters, units_here.n_clusters),
    )


def _find_detectable(differences: Floats) -> float:
    """Find the median over pairs whose differences have a spread; infinite without one."""
    detectable = minimum_detectable_effect(differences)
    known = detectable[~np.isnan(detectable)]
    return float(np.median(known)) if len(known) else float("inf")


def _resample(there: Floats, here: Floats, columns: Sequence[int], units: Units, seed: int) -> tuple[Floats, Floats]:
    """Return the means of both sides over the same resampled queries, each [samples, systems]."""
    n_systems, n_queries = there.shape
    spread = np.zeros((n_systems + 1, n_queries))
    spread[:-1, columns], spread[-1, columns] = here, 1
    drawn = units.resample(np.concatenate([there, spread]), samples=FEW_SAMPLES, seed=seed)
    # A resample without any query of the small version says nothing of it.
    drawn = drawn[drawn[:, -1] > 0]
    return drawn[:, :n_systems], drawn[:, n_systems:-1] / drawn[:, -1:]


def _measure_gap(kinds: Sequence[str], means: tuple[Floats, Floats], drawn: tuple[Floats, Floats]) -> Gap | None:
    dense, lexical = (
        [row for row, system_kind in enumerate(kinds) if system_kind == kind] for kind in (DENSE, LEXICAL)
    )
    if not dense or not lexical:
        return None

    def find_gap(side: Floats) -> Floats:
        gap: Floats = side[..., dense].mean(axis=-1) - side[..., lexical].mean(axis=-1)
        return gap

    full, nano = map(find_gap, means)
    there, here = map(find_gap, drawn)
    return Gap(
        full=float(full), nano=float(nano), distortion=Figure.from_resamples(nano - full, here - there, "queries")
    )
