"""How far two raters of the same texts agree, and how far any number of them do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rusbeir.evaluation import agreement
from rusbeir.evaluation.significance import SAMPLES, Figure, Floats


class Agreement(NamedTuple):
    """The agreement of two raters on the texts that both have scored."""

    n: int
    within_one: float
    """The share of scores that differ by 1 or not at all."""
    mean_absolute_error: float
    figures: dict[str, Figure]
    """What rusbeir.evaluation.agreement.measure computes; the strictness is the second rater's."""
    confusion: list[list[int]]
    """The first rater's scores are rows, the second's columns."""


class Alpha(NamedTuple):
    """Krippendorff's alpha for ordinal scores of any number of raters."""

    value: float
    """NaN where no text has two scores, or where all scores are the same."""
    interval: tuple[float, float]
    n: int
    """The number of texts with two or more scores."""


def compare_raters(
    first: Sequence[int], second: Sequence[int], scale: Sequence[int], topics: Sequence[str], *, seed: int = 0
) -> Agreement | None:
    """The agreement of two raters' scores of the same texts; None where there are no scores.

    topics: the topic of each text, such as its query; intervals resample topics. The scale is of consecutive integers.

    >>> compare_raters([1, 2, 5], [1, 3, 2], (1, 2, 3, 4, 5), ["a", "b", "c"]).within_one
    0.6666666666666666
    """
    if not first:
        return None
    one, other = np.array(first), np.array(second)
    confusions = np.zeros((len(one), len(scale), len(scale)))
    confusions[np.arange(len(one)), one - scale[0], other - scale[0]] = 1
    by_topic = _add_by_topic(confusions, topics)
    return Agreement(
        len(one),
        float((np.abs(one - other) <= 1).mean()),
        float(np.abs(one - other).mean()),
        agreement.measure(by_topic, lowest=scale[0], seed=seed),
        by_topic.sum(axis=0).astype(int).tolist(),
    )


def compute_alpha(
    scores: Sequence[Sequence[int | None]], scale: Sequence[int], topics: Sequence[str], *, seed: int = 0
) -> Alpha:
    """Krippendorff's alpha of scores[rater][text], where None means no score; topics as in compare_raters."""
    counts = np.array(
        [[sum(row[text] == score for row in scores) for score in scale] for text in range(len(topics))],
        dtype=np.float64,
    ).reshape(-1, len(scale))
    # A text with a single score says nothing about agreement.
    told = np.flatnonzero(counts.sum(axis=1) >= 2).tolist()
    if not told:
        return Alpha(np.nan, (np.nan, np.nan), 0)
    by_topic = _add_by_topic(agreement.count_coincidences(counts[told]), [topics[text] for text in told])
    drawn = agreement.resample_topics(by_topic, samples=SAMPLES, seed=seed)
    found = Figure.of(agreement.alpha(by_topic.sum(axis=0)), agreement.alpha(drawn))
    return Alpha(found.value, found.interval, len(told))


def _add_by_topic(matrices: Floats, topics: Sequence[str]) -> Floats:
    """The sums of the matrices of each topic, [topics, s, s]."""
    names, places = np.unique(topics, return_inverse=True)
    sums = np.zeros((len(names), *matrices.shape[1:]))
    np.add.at(sums, places, matrices)
    return sums
