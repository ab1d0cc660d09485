"""Scores summed up: of all segments, of documents, of queries."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rusbeir.audit import scores
from rusbeir.audit.ngrams import Ints

BINS = 20
"""Of the distribution, each 5 points wide; a score of 100 falls into the last."""


@dataclass(kw_only=True)
class Level:
    """The scores of one kind of text; 4 bytes each are kept."""

    values: array[float] = field(default_factory=lambda: array("f"))
    counts: Ints | None = None

    def add(self, values: Sequence[float], counts: Ints) -> None:
        """Take in the chrF of texts, and the sum of their counts."""
        if values:
            self.values.extend(values)
            self.counts = counts if self.counts is None else self.counts + counts

    def summary(self) -> dict[str, Any]:
        """n, the corpus' chrF and chrF++, and the distribution of the texts' chrF; {} where there are none."""
        if self.counts is None:
            return {}
        values = np.frombuffer(self.values, dtype=np.float32).astype(np.float64)
        found = {"n": len(values), **scores.corpus_scores(self.counts), "mean": float(values.mean())}
        found |= {
            f"p{percent}": float(value)
            for percent, value in zip((5, 25, 50, 75), np.quantile(values, [0.05, 0.25, 0.5, 0.75]), strict=True)
        }
        found["histogram"] = np.histogram(np.minimum(values, 99.999), bins=BINS, range=(0, 100))[0].tolist()
        return found
