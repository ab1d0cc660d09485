"""Scores summed up: of all segments, of documents, of queries."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rusbeir.audit import chrf

BINS = 20
"""Of the distribution, each 5 points wide; a score of 100 falls into the last."""


@dataclass(kw_only=True)
class Level:
    """The scores of one kind of text; 4 bytes each are kept."""

    scores: array[float] = field(default_factory=lambda: array("f"))
    counts: chrf.Counts = field(default_factory=list)

    def add(self, scores: Iterable[float], counts: Iterable[chrf.Counts]) -> None:
        """Take in the scores of texts, and their counts where there are any."""
        self.scores.extend(scores)
        for found in counts:
            self.counts = chrf.total([self.counts, found]) if self.counts else list(found)

    def summary(self) -> dict[str, Any]:
        """n, the corpus' chrF and chrF++, and the distribution of the texts' chrF; {} where there are none."""
        if not self.scores:
            return {}
        scores = np.frombuffer(self.scores, dtype=np.float32).astype(np.float64)
        found: dict[str, Any] = {"n": len(scores)}
        if self.counts:
            found |= {"chrF": chrf.chrf_of(self.counts), "chrF++": chrf.chrf_plus_of(self.counts)}
        found["mean"] = float(scores.mean())
        found |= {
            f"p{percent}": float(value)
            for percent, value in zip((5, 25, 50, 75), np.quantile(scores, [0.05, 0.25, 0.5, 0.75]), strict=True)
        }
        found["histogram"] = np.histogram(np.minimum(scores, 99.999), bins=BINS, range=(0, 100))[0].tolist()
        return found
