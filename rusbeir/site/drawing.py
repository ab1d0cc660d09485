"""Scales and lines of the drawings on the pages of diagnoses."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

_DRAWN = ("published", "reversed", "expected", "low", "high", "lowest", "highest")
"""The numbers of a Relative Delta that are drawn."""


def scale_curves(documents: Iterable[dict[str, Any]]) -> tuple[float, float]:
    """The ends of a scale, in tenths, that shows the first curve of each document, over all lengths, with intervals."""
    bins = [part for document in documents for curve in document["curves"][:1] for part in curve["bins"]]
    values = [part[key] for part in bins for key in ("ndcg", "low", "high") if part[key] is not None] or [0.0, 1.0]
    low = math.floor(10 * min(values)) / 10
    return low, max(math.ceil(10 * max(values)) / 10, low + 0.1)


def scale_deltas(documents: Iterable[dict[str, Any]]) -> float:
    """The end of a scale around 0 that shows all Relative Deltas of these diagnoses: a multiple of 10."""
    numbers = [delta[key] for document in documents for delta in document["deltas"] for key in _DRAWN]
    return 10 * math.ceil(max((abs(number) for number in numbers if number is not None), default=0) / 10) or 10


def locate(value: float | None, limit: float, width: int = 240) -> float:
    """Return the position of a value in a drawing of that width, scaled from -limit to limit; the middle for None."""
    return round(width / 2 + (width / 2 - 6) * (value or 0) / limit, 1)


def draw_curve(document: dict[str, Any], width: int = 400, height: int = 160) -> tuple[str, str]:
    """The mean of a saliency curve and the band of one deviation around it, as points of an SVG; cut off at 0 and 1."""
    step = width / max(1, len(document["mean"]) - 1)

    def trace(sign: int) -> list[str]:
        values = (mean + sign * sd for mean, sd in zip(document["mean"], document["sd"], strict=False))
        return [f"{step * n:.1f},{height * (1 - min(1.0, max(0.0, value))):.1f}" for n, value in enumerate(values)]

    return " ".join(trace(0)), " ".join([*trace(1), *reversed(trace(-1))])
