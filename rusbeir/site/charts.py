"""Scales and points of the charts of results, which the templates draw as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rusbeir.comparison import DatasetComparison, LanguageMatrix, SystemScore
from rusbeir.pages import Scale, make_logarithmic_scale, make_scale
from rusbeir.site.recall import DEPTHS

_FOCUS = 8
"""An axis of intervals reaches at most so many typical widths of an interval below the best system's upper end."""
_LABEL_HEIGHT = 18
"""The height of a label in pixels."""
_LEAST_HEIGHT = 290
"""The height of the area of a chart in pixels; more where its labels need it."""


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
    """A system in a chart of effectiveness against cost; distances from the left and the bottom, in percent."""

    score: SystemScore
    cost: float
    x: float
    y: float
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
    height: int
    """The height of its area in pixels."""
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
    heights = [up.locate(mean) for mean in means]
    area, labels = _place_labels(heights)
    points = []
    best = -math.inf
    for (cost, score), y, label_y in zip(costs, heights, labels, strict=True):
        points.append(
            CostPoint(
                score=score, cost=cost, x=across.locate(cost), y=y, label_y=label_y, efficient=score.mean > best
            )
        )  # fmt: skip
        best = max(best, score.mean)
    return CostChart(
        unit="money paid" if money else "milliseconds per query, logarithmic", across=across, up=up, height=area,
        points=tuple(points),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RecallLine:
    """A system in a chart of recall against depth; distances from the left and the bottom, in percent."""

    system: str
    points: tuple[tuple[float, float], ...]
    label_y: float
    ends: tuple[float, float]
    """Recall at the least and the greatest depth, in percent."""


@dataclass(frozen=True, kw_only=True)
class RecallChart:
    """Recall against the number of hits that are looked at."""

    across: Scale
    up: Scale
    height: int
    """The height of its area in pixels."""
    depth: int
    lines: tuple[RecallLine, ...]
    """The best at the greatest depth first."""


def chart_recall(recall: Mapping[str, Sequence[float]], depth: int) -> RecallChart | None:
    """Lay out the recall of systems at DEPTHS up to the depth of their runs; None for fewer than two depths."""
    depths = [level for level in DEPTHS if level <= depth]
    if not recall or len(depths) < 2:
        return None
    percents = {system: [100 * value for value in values[: len(depths)]] for system, values in recall.items()}
    order = sorted(percents, key=lambda system: -percents[system][-1])
    across = make_logarithmic_scale(1, depths[-1])
    up = make_scale(min(values[0] for values in percents.values()), 100)
    area, labels = _place_labels([up.locate(percents[system][-1]) for system in order])
    lines = tuple(
        RecallLine(
            system=system, label_y=label_y, ends=(percents[system][0], percents[system][-1]),
            points=tuple(
                (across.locate(level), up.locate(value))
                for level, value in zip(depths, percents[system], strict=True)
            ),
        )
        for system, label_y in zip(order, labels, strict=True)
    )  # fmt: skip
    return RecallChart(across=across, up=up, height=area, depth=depths[-1], lines=lines)


def _place_labels(heights: Sequence[float]) -> tuple[int, list[float]]:
    """Find heights of labels that do not collide, in percent, near those of what they name, and the area they need."""
    area = max(_LEAST_HEIGHT, _LABEL_HEIGHT * len(heights))
    step = 100 * _LABEL_HEIGHT / area
    labels = [0.0] * len(heights)
    top = math.inf
    order = sorted(range(len(heights)), key=lambda n: -heights[n])
    for n in order:
        labels[n] = top = min(heights[n], top - step)
    # What would be below the area pushes up what is above it.
    bottom = 0.0
    for n in reversed(order):
        labels[n] = max(labels[n], bottom)
        bottom = labels[n] + step
    return area, labels


def _is_paid(dataset: DatasetComparison) -> bool:
    return any(score.cost for score in dataset.systems)


def scale_heat(mean: float, matrices: Sequence[LanguageMatrix]) -> int:
    """Return the strength of a cell's colour, in percent, on one scale for these matrices."""
    means = [cell.mean for matrix in matrices for row in matrix.cells for cell in row if cell]
    low, high = min(means), max(means)
    return round(100 * (mean - low) / ((high - low) or 1.0))


def shade_grid(scores: Mapping[tuple[str, str], SystemScore]) -> dict[tuple[str, str], int]:
    """Say how strong the colour of each cell is, in percent: from the weakest to the best system of its column."""
    means: dict[str, list[float]] = {}
    for (_, column), score in scores.items():
        means.setdefault(column, []).append(score.mean)
    ends = {column: (min(values), max(values)) for column, values in means.items()}
    return {
        (label, column): round(100 * (score.mean - ends[column][0]) / ((ends[column][1] - ends[column][0]) or 1.0))
        for (label, column), score in scores.items()
    }
