"""Translations that are far longer or shorter than the others of their dataset."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from rusbeir.translation.checks import Flag

MIN_CHARS = 40
"""Of a source: the ratio of shorter ones says little."""
BELOW, ABOVE = 3.0, 1.5
"""Interquartile ranges kept under the first and above the third quartile: PosIR (2026), appendix B.5.3."""
TOLERATED = 1.6
"""So many times the median, or a part of it, is never an outlier: a rule-based translator's ratios hardly differ."""
SLACK_CHARS = 20
"""More than the ratio allows: in a short text an abbreviation that is spelled out makes as much."""
_MIN_SEGMENTS = 20


class Bounds(NamedTuple):
    """Ratios of length, translation to source in characters, between which a translation is like the others."""

    low: float
    high: float
    median: float
    n: int
    """Of how many segments."""

    def outlier(self, source: str, translation: str) -> Flag | None:
        """A Flag where the ratio lies outside; None for sources under MIN_CHARS, and for empty translations."""
        if len(source) < MIN_CHARS or not translation.strip():
            return None
        ratio = len(translation) / len(source)
        if self.low <= ratio and len(translation) <= self.high * len(source) + SLACK_CHARS:
            return None
        return Flag("length", f"{ratio:.2f} times as long as the source; {self.low:.2f} to {self.high:.2f} is usual")


def bounds(pairs: Iterable[tuple[str, str]]) -> Bounds | None:
    """The bounds of (source, translation) pairs by PosIR's rule; None of fewer than 20 that count."""
    ratios = array("f", (len(t) / len(s) for s, t in pairs if len(s) >= MIN_CHARS and t.strip()))
    if len(ratios) < _MIN_SEGMENTS:
        return None
    first, median, third = np.quantile(np.frombuffer(ratios, dtype=np.float32), [0.25, 0.5, 0.75]).tolist()
    spread = third - first
    low, high = min(first - BELOW * spread, median / TOLERATED), max(third + ABOVE * spread, median * TOLERATED)
    return Bounds(max(low, 0.0), high, median, len(ratios))
