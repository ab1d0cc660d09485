"""Curves of relative position from the norms of a document's tokens, and the sums of many such curves."""

from __future__ import annotations

import numpy as np

from rusbeir.evaluation import Floats

POINTS = 100
NAMES = ("first", "middle", "last")
"""The names of the thirds."""
THIRDS = len(NAMES)
PERCENTILE = 99
SCALES = ("p99", "max")
"""What a document's norms are divided by: their 99th percentile, where they are clipped too, or the largest."""


def scale_norms(norms: Floats, scale: str) -> Floats:
    """Return the norms divided by their 99th percentile and cut off there, or by the largest; [] where all are 0.

    >>> scale_norms(np.array([1.0, 2.0, 4.0]), "max").tolist()
    [0.25, 0.5, 1.0]
    """
    top = 0.0
    if norms.any():
        top = float(np.percentile(norms, PERCENTILE) if scale == "p99" else norms.max())
    return np.minimum(norms / top, 1.0) if top else np.empty(0)


def resample(values: Floats) -> Floats:
    """Return the values at POINTS positions evenly from the first to the last, by linear interpolation.

    >>> resample(np.array([0.0, 0.99]))[1]
    np.float64(0.01)
    """
    n = len(values)
    return np.interp(np.linspace(0, 1, POINTS), np.linspace(0, 1, n), values)


def share_thirds(values: Floats) -> Floats:
    """Return the share of the sum that each third of the values has; one on a boundary counts in part for both.

    >>> share_thirds(np.array([1.0, 1.0, 1.0, 1.0])).round(4).tolist()
    [0.3333, 0.3333, 0.3333]
    """
    below = np.concatenate([[0.0], np.cumsum(values)])
    bounds = np.linspace(0, len(values), THIRDS + 1)
    shares: Floats = np.diff(np.interp(bounds, np.arange(len(below)), below)) / below[-1]
    return shares


class CurveSums:
    """The sums over pairs: of their curves, and of three shares of each."""

    def __init__(self) -> None:
        self.curve, self.squares = np.zeros(POINTS), np.zeros(POINTS)
        self.thirds: list[Floats] = []
        self.doc_ids: list[str] = []
        self.lengths: list[int] = []
        self.n_seen = self.n_truncated = self.tokens_cut = 0
        self.cosine = 0.0

    def add(self, doc_id: str, values: Floats, cosine: float, n_tokens: int, max_tokens: int | None) -> None:
        """Count a pair; it is left out of the curve where no value is given."""
        self.n_seen += 1
        if not len(values):
            return
        curve = resample(values)
        self.curve += curve
        self.squares += curve**2
        self.thirds.append(share_thirds(values))
        self.doc_ids.append(doc_id)
        self.lengths.append(n_tokens)
        self.cosine += cosine
        cut = max(0, n_tokens - (max_tokens or n_tokens))
        self.n_truncated += cut > 0
        self.tokens_cut += cut
