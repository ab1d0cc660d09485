"""Scales and points of the charts of results, which the templates draw as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rusbeir.comparison import DatasetComparison, LanguageMatrix, SystemScore
from rusbeir.pages import Scale, make_logarithmic_scale, make_scale

_FOCUS = 8
"""An axis of intervals reaches at most so many typical widths of an interval below the best system's upper end."""
_LABEL_HEIGHT = 6.5
"""The height of a label in percent of the chart."""


def scale_intervals(systems: Sequence[SystemScore]) -> Scale:
    """Choose an axis for means with intervals, in points, on which the best systems can be told apart.

    A system that is much weaker would press all others together; it lies left of the axis and is drawn as an arrow.
    """
    lows, highs = ([100 * score.interval[end] for score in systems] for end in (0, 1))
    widths = sorted(high - low for low, high in zip(lows, highs, strict=True))
    typical = max(widths[len(widths) // 2], 0.5)
    low = max(min(lows), max(highs) - _FOCUS * typical)
    return make_scale(low, max(highs))


@dataclass(frozen=True, kw_only=True)
class CostPoint:
    """A system in a chart of effectiveness against cost."""

    score: SystemScore
    cost: float
    x: float
    """The distance from the left, in percent of the chart."""
    y: float
    """The distance from the bottom, in percent of the chart."""
    label_y: float
    """The height of its label, which makes way for others."""
    efficient: bool
    """Whether no other system is both cheaper and better."""


@dataclass(frozen=True, kw_only=True)
class CostChart:
    """Effectiveness against search time per query, or against money."""

    unit: str
    across: Scale
    up: Scale
    points: tuple[CostPoint, ...]
    """The cheapest first."""


def chart_costs(dataset: DatasetComparison, money: bool = False) -> CostChart | None:
    """Lay out the systems whose cost is known; None for fewer than two, or if nothing was paid."""
    if money:
        costs = [(score.cost or 0.0, score) for score in dataset.systems if _is_paid(dataset)]
    else:
        costs = [
            (1000 * max(score.seconds["search"], 1e-3) / dataset.n_queries, score)
            for score in dataset.systems
            if "search" in score.seconds
        ]
    if len(costs) < 2:
        return None
    costs.sort(key=lambda entry: (entry[0], -entry[1].mean))
    across = make_scale(0, costs[-1][0]) if money else make_logarithmic_scale(costs[0][0], costs[-1][0])
    means = [100 * score.mean for _, score in costs]
    up = make_scale(min(means), max(means))
    points = []
    labels: list[float] = []
    best = -math.inf
    for cost, score in costs:
        y = up.locate(100 * score.mean)
        label_y = y
        while any(abs(label_y - other) < _LABEL_HEIGHT for other in labels):
            label_y -= _LABEL_HEIGHT / 2
        labels.append(label_y)
        points.append(
            CostPoint(
                score=score, cost=cost, x=across.locate(cost), y=y, label_y=label_y, efficient=score.mean > best
            )
        )  # fmt: skip
        best = max(best, score.mean)
    return CostChart(
        unit="money paid" if money else "milliseconds per query, logarithmic", across=across, up=up,
        points=tuple(points),
    )  # fmt: skip


def _is_paid(dataset: DatasetComparison) -> bool:
    return any(score.cost for score in dataset.systems)


def scale_heat(mean: float, matrices: Sequence[LanguageMatrix]) -> int:
    """How strong a cell's colour is, in percent, on one scale for these matrices."""
    means = [cell.mean for matrix in matrices for row in matrix.cells for cell in row if cell]
    low, high = min(means), max(means)
    return round(100 * (mean - low) / ((high - low) or 1.0))
