"""Axes of charts, with ticks at round numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """An axis: its ends, and the values that are labelled."""

    low: float
    high: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    def locate(self, value: float) -> float:
        """Return the position of a value in percent of the axis, from 0 to 100."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log10(low), math.log10(high), math.log10(max(value, 1e-12))
        return round(min(100.0, max(0.0, 100 * (value - low) / (high - low))), 2)

    def contains(self, value: float) -> bool:
        """Return whether a value is on the axis."""
        return self.low <= value <= self.high


def make_scale(low: float, high: float, n_ticks: int = 5) -> Scale:
    """Make a linear axis whose ends and ticks are round numbers."""
    span = max(high - low, 1e-6)
    magnitude = 10.0 ** math.floor(math.log10(span / n_ticks))
    step = next(step for step in (factor * magnitude for factor in _STEPS) if span / step <= n_ticks)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    ticks = tuple(round(step * number, 10) for number in range(first, last + 1))
    return Scale(low=ticks[0], high=ticks[-1], ticks=ticks)


def make_logarithmic_scale(low: float, high: float) -> Scale:
    """Make a logarithmic axis from one power of ten to another."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ends = (first, max(last, first + 1))
    return Scale(
        low=10.0 ** ends[0],
        high=10.0 ** ends[1],
        ticks=tuple(10.0**power for power in range(ends[0], ends[1] + 1)),
        logarithmic=True,
    )
