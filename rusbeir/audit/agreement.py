"""How far people, and a judge, agree on scores from 1 to 5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rusbeir.audit.rubric import SCALE
from rusbeir.errors import MissingExtra

BOOTSTRAPS = 1000
_INTERVAL = (2.5, 97.5)


class Agreement(NamedTuple):
    """Two raters on the texts that both have scored."""

    n: int
    within_one: float
    """The share of scores that differ by 1 or not at all."""
    mean_absolute_error: float
    kappa: float | None
    """Cohen's, with quadratic weights; None where each has given one score throughout, the same."""


class Alpha(NamedTuple):
    """Krippendorff's α of any number of raters, ordinal."""

    value: float | None
    """None where no text has two scores, or where all scores are the same: there is nothing to agree on."""
    low: float | None
    high: float | None
    """The middle 95 % of bootstraps over texts; None with value."""
    n: int
    """Texts with two scores or more."""


def agreement(first: Sequence[int], second: Sequence[int]) -> Agreement | None:
    """How two raters agree; None where there is no text that both have scored.

    >>> agreement([1, 2, 5], [1, 3, 2]).within_one
    0.6666666666666666
    """
    if not first:
        return None
    differences = np.abs(np.array(first) - np.array(second))
    return Agreement(
        len(first), float((differences <= 1).mean()), float(differences.mean()), quadratic_kappa(first, second)
    )


def quadratic_kappa(first: Sequence[int], second: Sequence[int]) -> float | None:
    """Cohen's κ weighted by the square of the difference (Cohen 1968); None where no disagreement is expected."""
    observed = np.zeros((len(SCALE), len(SCALE)))
    np.add.at(observed, (np.array(first) - SCALE[0], np.array(second) - SCALE[0]), 1)
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / observed.sum()
    places = np.arange(len(SCALE))
    weights = (places[:, None] - places[None, :]) ** 2
    below = float((weights * expected).sum())
    return None if below == 0 else 1 - float((weights * observed).sum()) / below


def alpha(scores: Sequence[Sequence[int | None]], *, bootstraps: int = BOOTSTRAPS, seed: int = 0) -> Alpha:
    """Krippendorff's α of scores[rater][text], None where a rater has given none; the interval drawn by the seed."""
    counts = np.zeros((len(scores[0]) if scores else 0, len(SCALE)), dtype=np.int64)
    for row in scores:
        for text, score in enumerate(row):
            if score is not None:
                counts[text, score - SCALE[0]] += 1
    # A score that nothing stands beside says nothing of agreement.
    counts = counts[counts.sum(axis=1) >= 2]
    value = _alpha(counts)
    if value is None:
        return Alpha(None, None, None, len(counts))
    draw = np.random.default_rng(seed)
    drawn = [_alpha(counts[draw.integers(len(counts), size=len(counts))]) for _ in range(bootstraps)]
    found = [one for one in drawn if one is not None]
    low, high = np.percentile(found, _INTERVAL).tolist() if found else (None, None)
    return Alpha(value, low, high, len(counts))


def _alpha(counts: NDArray[np.int64]) -> float | None:
    if np.count_nonzero(counts.sum(axis=0)) < 2:
        return None
    value: Any = _krippendorff().alpha(value_counts=counts, value_domain=list(SCALE), level_of_measurement="ordinal")
    return float(value)


def _krippendorff() -> Any:
    try:
        import krippendorff
    except ImportError as error:
        raise MissingExtra("Agreement needs krippendorff: pip install 'rusbeir[audit]'") from error
    return krippendorff
