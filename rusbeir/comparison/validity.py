"""The validity of a port: systems in the order in which the original puts them, as translations by people put them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rusbeir.comparison.order_agreement import find_reversals
from rusbeir.comparison.task_scores import TaskScores, find_task, read_task_scores
from rusbeir.datasets import read_tsv
from rusbeir.errors import BadInput, option
from rusbeir.evaluation import (
    FEW_SAMPLES,
    MIN_SYSTEMS,
    Figure,
    Sides,
    compare_orders,
    describe_queries,
    draw_systems,
    rank,
)

N_MOVERS = 3
_CONTROL = Path(__file__).parent / "control.toml"

AS_GOOD, WORSE, UNKNOWN = "as good", "worse", "inconclusive"
"""Verdicts: tau is within the band of translations by people, below it, or its interval holds both."""


@dataclass(frozen=True, kw_only=True)
class Move:
    """A system and its ranks; 1 is the best."""

    system: str
    rank_original: int
    rank_port: int


@dataclass(frozen=True, kw_only=True)
class TaskValidity:
    """The order of systems on a port against that on its original, or on the means over several."""

    original: str
    port: str
    systems: tuple[str, ...]
    mean_original: float
    mean_port: float
    kendall: Figure
    """Its interval resamples systems, and queries where both sides have their scores."""
    tau_ap: Figure
    n_queries: tuple[int, int] | None
    """None where only means are known."""
    n_clusters: tuple[int, int] | None
    """The independent units among the queries, which resamples draw whole: queries, or clusters of them."""
    reversals: int
    """Pairs of systems in opposite order that are further apart than the gap on either side."""
    movers: tuple[Move, ...]
    """The systems whose rank changes most."""
    verdict: str
    """"as good" as translations by people, "worse", or "inconclusive"."""


@dataclass(frozen=True, kw_only=True)
class Validity:
    """Ports against their originals."""

    measure: str
    gap: float
    band: tuple[float, float]
    """Lowest and highest tau between translations by people: XQuAD, English against Russian, Spanish and German."""
    claims: dict[str, tuple[str, ...]]
    """The languages that each system claims, where known."""
    tasks: tuple[TaskValidity, ...]
    average: TaskValidity | None
    """The orders by each system's mean over all tasks; None for one task."""
    n_without_measure: int = 0
    """Result files of these tasks that do not have the measure and were left out."""

    @property
    def conclusion(self) -> tuple[str, ...]:
        """A sentence for each task, and for the average."""
        phrases = {
            AS_GOOD: "the order is as stable as between translations by people",
            WORSE: "the order is less stable than between translations by people",
            UNKNOWN: "whether the order is as stable as between translations by people cannot be told",
        }
        low, high = self.band
        without = self.n_without_measure
        left_out = f"{without:,} result {'file' if without == 1 else 'files'} without {self.measure} left out."
        return (
            f"Between XQuAD's languages, translated by people, Kendall's tau is {low:.3f} to {high:.3f}.",
            *(
                f"{task.original} and {task.port}, {len(task.systems)} systems{_say_units(task)}: tau {task.kendall}; "
                f"{phrases[task.verdict]}."
                for task in (*self.tasks, *([self.average] if self.average else []))
            ),
            *([left_out] if without else []),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "conclusion": list(self.conclusion)}


def measure_validity(
    scores: Sequence[str | Path],
    pairs: Sequence[tuple[str, str]],
    *,
    measure: str = "nDCG@10",
    claims: str | Path | None = None,
    claiming: str | None = None,
    gap: float = 0.02,
    seed: int = 0,
) -> Validity:
    """Compare the order of systems on each port with that on its original.

    Args:
        scores: Folders of `bench`, .tsv tables (task, split, subset, model, value), or folders of MTEB's results.
        pairs: (original, port), by the names of their tasks.
        measure: The measure that orders the systems.
        claims: A .tsv of models and the languages that they claim.
        claiming: A language: only the systems that claim it count.
        gap: Two systems in opposite order count as reversed if they are further apart than this on either side.
        seed: Seeds the resamples.

    Returns:
        The rank correlations of each pair with a verdict, and those of the means over several pairs.

    Raises:
        BadInput: Scores cannot be read, or all tasks have fewer than four systems in common.
        UnknownName: A task has no scores.

    Examples:
        >>> measure_validity(["results"], [("xquad/en", "xquad/ru")]).conclusion  # doctest: +SKIP
    """
    if not pairs:
        raise BadInput(f"Name an original and its port with {option('pair')} ORIGINAL=PORT.")
    all_scores = read_task_scores(scores, measure, {name for pair in pairs for name in pair})
    sides = [(find_task(original, all_scores), find_task(port, all_scores)) for original, port in pairs]
    known = read_claims(Path(claims)) if claims is not None else {}
    if claiming is not None and not known:
        raise BadInput(f"{option('claiming')} needs {option('claims')}, a .tsv of models and their languages.")
    common = [
        name
        for name in sides[0][0].means
        if all(name in side.means for both in sides for side in both)
        and (claiming is None or claiming in known.get(name, ()))
    ]
    if len(common) < MIN_SYSTEMS:
        raise BadInput(
            f"{len(common)} systems have scores on all of these tasks"
            f"{f' and claim {claiming}' if claiming else ''}; an order needs {MIN_SYSTEMS}."
        )
    compared = [_compare(original, port, common, gap, seed) for original, port in sides]
    average = None
    if len(sides) > 1:
        averages = (_average([both[side] for both in sides], common) for side in (0, 1))
        average = _compare(next(averages), next(averages), common, gap, seed)
    return Validity(
        measure=measure,
        gap=gap,
        band=read_band(),
        claims={name: known[name] for name in common if name in known},
        tasks=tuple(compared),
        average=average,
        n_without_measure=sum(all_scores.without.values()),
    )


def read_claims(path: Path) -> dict[str, tuple[str, ...]]:
    """Read which languages each model claims, from a .tsv with these two columns and a line of column names."""
    claims = {}
    for where, cells in read_tsv(path):
        if len(cells) != 2:
            raise BadInput(f"{where}: it has {len(cells)} columns; two are a model and its languages.")
        claims[cells[0]] = tuple(cells[1].split())
    return claims


@cache
def read_band() -> tuple[float, float]:
    """The lowest and highest Kendall's tau between XQuAD in English and in its translations by people."""
    control: Mapping[str, Any] = tomllib.loads(_CONTROL.read_text(encoding="utf-8"))
    taus = [float(tau) for tau in control["tau"].values()]
    return min(taus), max(taus)


def _average(tasks: Sequence[TaskScores], systems: Sequence[str]) -> TaskScores:
    means = {name: float(np.mean([task.means[name] for task in tasks])) for name in systems}
    return TaskScores(task=f"mean over {len(tasks)} tasks, {tasks[0].task} …", split="", subset="", means=means)


def _compare(original: TaskScores, port: TaskScores, systems: Sequence[str], gap: float, seed: int) -> TaskValidity:
    means = [np.array([task.means[name] for name in systems]) for task in (original, port)]
    chosen = draw_systems(len(systems), FEW_SAMPLES, seed)
    units, queries = None, None
    if original.per_query and port.per_query:
        sides = Sides.align(systems, (original.per_query, port.per_query), (original.clusters, port.clusters))
        units, queries = sides.units, sides.resample(samples=FEW_SAMPLES, seed=seed + 1)
    order = compare_orders(means, queries=queries, systems=chosen)
    ranks = [rank(side) for side in means]
    moved = sorted(range(len(systems)), key=lambda index: -abs(ranks[0][index] - ranks[1][index]))
    return TaskValidity(
        original=original.task,
        port=port.task,
        systems=tuple(systems),
        mean_original=float(means[0].mean()),
        mean_port=float(means[1].mean()),
        kendall=order["kendall"],
        tau_ap=order["tau_ap"],
        n_queries=(units[0].n_queries, units[1].n_queries) if units else None,
        n_clusters=(units[0].n_clusters, units[1].n_clusters) if units else None,
        reversals=sum(
            max(reversal.first, -reversal.second) > gap for reversal in find_reversals(systems, means[0], means[1])
        ),
        movers=tuple(
            Move(system=systems[index], rank_original=ranks[0][index], rank_port=ranks[1][index])
            for index in moved[:N_MOVERS]
            if ranks[0][index] != ranks[1][index]
        ),
        verdict=_judge(order["kendall"]),
    )


def _say_units(task: TaskValidity) -> str:
    """The queries of both sides, where not all of them are independent."""
    if task.n_queries is None or task.n_clusters is None or task.n_queries == task.n_clusters:
        return ""
    sides = dict.fromkeys(map(describe_queries, task.n_queries, task.n_clusters))
    return f", {' and '.join(sides)}"


def _judge(tau: Figure) -> str:
    lowest, _ = read_band()
    if tau.interval[0] >= lowest:
        return AS_GOOD
    return WORSE if tau.interval[1] < lowest else UNKNOWN
