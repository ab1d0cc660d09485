"""Scores summed up: of all segments, of documents, of queries."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rusbeir.audit import scores

BINS = 20
"""Of the distribution, each 5 points wide; a score of 100 falls into the last."""


@dataclass(kw_only=True)
class Level:
    """The scores of one kind of text; 4 bytes each are kept."""

    values: array[float] = field(default_factory=lambda: array("f"))
    counts: scores.Counts = field(default_factory=list)

    def add(self, values: Iterable[float], counts: Iterable[scores.Counts]) -> None:
        """Take in the scores of texts, and their counts where there are any."""
        self.values.extend(values)
        for found in counts:
            self.counts = scores.total([self.counts, found]) if self.counts else list(found)

    def summary(self) -> dict[str, Any]:
        """n, the corpus' chrF and chrF++, and the distribution of the texts' chrF; {} where there are none."""
        if not self.values:
            return {}
        values = np.frombuffer(self.values, dtype=np.float32).astype(np.float64)
        found: dict[str, Any] = {"n": len(values)}
        if self.counts:
            found |= {"chrF": scores.score_of("chrF", self.counts), "chrF++": scores.score_of("chrF++", self.counts)}
        found["mean"] = float(values.mean())
        found |= {
            f"p{percent}": float(value)
            for percent, value in zip((5, 25, 50, 75), np.quantile(values, [0.05, 0.25, 0.5, 0.75]), strict=True)
        }
        found["histogram"] = np.histogram(np.minimum(values, 99.999), bins=BINS, range=(0, 100))[0].tolist()
        return found
