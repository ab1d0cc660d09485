"""The distributions of quality scores over a port, and its worst segments by each."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson

from rusbeir.audit.port_checks.gates import LEVELS

WORST = 10
"""Segments with the lowest scores that a report shows."""
_PERCENTILES = (5, 25, 50, 75)


@dataclass
class _Scores:
    """The scores of one quality estimation so far, 8 bytes each."""

    levels: dict[str, array[float]] = field(default_factory=lambda: {name: array("d") for name in LEVELS})
    n_missing: int = 0
    worst: list[tuple[float, int, bytes]] = field(default_factory=list)
    """A heap of the lowest: its root, negated, is the best of them."""


@dataclass(kw_only=True)
class QualityTally:
    """Scores by the name of their quality estimation."""

    scores: dict[str, _Scores] = field(default_factory=dict)
    n_segments: int = 0

    def add(
        self, kind: str, quality: Mapping[str, tuple[float | None, Sequence[float | None]]], rows: Sequence[bytes]
    ) -> None:
        """Add the scores of a text and of its segments, of which rows are the lines of segments.jsonl."""
        for name, (average, values) in quality.items():
            scores = self.scores.setdefault(name, _Scores())
            if average is not None:
                scores.levels["documents" if kind == "document" else "queries"].append(average)
            for n, value in enumerate(values):
                if value is None:
                    scores.n_missing += 1
                    continue
                scores.levels["segments"].append(value)
                entry = (-value, -(self.n_segments + n), rows[n])
                if len(scores.worst) < WORST:
                    heapq.heappush(scores.worst, entry)
                elif entry > scores.worst[0]:
                    heapq.heapreplace(scores.worst, entry)
        self.n_segments += len(rows)

    def summary(self) -> dict[str, dict[str, Any]]:
        """Name -> `levels` with their distributions, segments that are `missing`, and the `worst` segments."""
        return {
            name: {
                "levels": {level: _describe(values) for level, values in scores.levels.items() if values},
                "missing": scores.n_missing,
                "worst": [orjson.loads(row) for _, _, row in sorted(scores.worst, reverse=True)],
            }
            for name, scores in self.scores.items()
        }


def _describe(values: array[float]) -> dict[str, float]:
    numbers = np.frombuffer(values)
    quantiles = np.quantile(numbers, [percent / 100 for percent in _PERCENTILES]).tolist()
    named = {f"p{percent}": value for percent, value in zip(_PERCENTILES, quantiles, strict=True)}
    return {"n": len(numbers), "mean": float(numbers.mean()), **named}
