"""How far the relevance labels of a judge agree with those of people, and what few human labels say of many pairs.

Everything about agreement is computed from confusion matrices [..., s, s]: people's labels are rows, the judge's
columns, s the number of labels of the scale. Several matrices, such as those of resampled topics, are taken at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rusbeir.evaluation.significance import Floats, resample_means


def count_confusion(people: Floats, judge: Floats, size: int) -> Floats:
    """The confusion matrix [size, size] of two arrays of labels from 0 to size - 1."""
    cells = people.astype(int) * size + judge.astype(int)
    return np.bincount(cells, minlength=size * size).reshape(size, size).astype(np.float64)


def kappa(confusion: Floats, *, power: int = 0) -> Floats:
    """Cohen's kappa, [...]: with power 2 weighted by squared distance (Cohen, 1968). NaN where chance decides all.

    >>> float(kappa(np.array([[20.0, 5.0], [10.0, 15.0]])))
    0.4
    """
    size = confusion.shape[-1]
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    weights = distance**power if power else (distance > 0).astype(float)
    total = confusion.sum(axis=(-2, -1))
    chance = confusion.sum(axis=-1)[..., :, None] * confusion.sum(axis=-2)[..., None, :]
    observed = (weights * confusion).sum(axis=(-2, -1)) * total
    agreement: Floats = 1 - _divide(observed, (weights * chance).sum(axis=(-2, -1)))
    return agreement


def kappa_at(confusion: Floats, threshold: int) -> Floats:
    """Cohen's kappa of the question whether a label is at least the threshold, [...]."""
    rows = np.add.reduceat(confusion, [0, threshold], axis=-2)
    return kappa(np.add.reduceat(rows, [0, threshold], axis=-1))


def alpha(confusion: Floats) -> Floats:
    """Krippendorff's alpha of two raters, for ordinal labels, [...]. NaN where all labels are the same."""
    pairs = confusion + np.swapaxes(confusion, -2, -1)
    counts = pairs.sum(axis=-1)
    # The distance of two labels is the number of labels given from one to the other, of those at the ends half.
    upto = np.cumsum(counts, axis=-1) - counts / 2
    distance = (upto[..., :, None] - upto[..., None, :]) ** 2
    total = counts.sum(axis=-1)
    expected = (distance * counts[..., :, None] * counts[..., None, :]).sum(axis=(-2, -1))
    agreement: Floats = 1 - (total - 1) * _divide((distance * pairs).sum(axis=(-2, -1)), expected)
    return agreement


def strictness(confusion: Floats) -> Floats:
    """By how much people's mean label is above the judge's, [...]: above 0 the judge is the stricter."""
    labels = np.arange(confusion.shape[-1])
    total = confusion.sum(axis=(-2, -1))
    return _divide(((confusion.sum(axis=-1) - confusion.sum(axis=-2)) * labels).sum(axis=-1), total)


def resample_topics(by_topic: Floats, *, samples: int, seed: int = 0) -> Floats:
    """Confusion matrices of resampled topics, [samples, s, s], from those of the topics, [topics, s, s].

    Labels of one topic are not independent, so topics are drawn whole.
    """
    topics, size, _ = by_topic.shape
    drawn = resample_means(by_topic.reshape(topics, -1).T, samples=samples, seed=seed)
    resampled: Floats = topics * drawn.reshape(samples, size, size)
    return resampled


@dataclass(frozen=True, kw_only=True)
class PoweredMean:
    """The mean of people's labels over all pairs, from the labels of some and the judge's labels of all."""

    mean: float
    interval: tuple[float, float]
    """At 95 %: of the mean over these very pairs, the labelled ones having been drawn at random."""
    n_labelled: int
    n_pairs: int
    weight: float
    """Of the judge's labels, chosen for the narrowest interval: 0 for a judge that says nothing about people's."""
    worth: float
    """As many labels as these, times this number, would be needed for such an interval without the judge."""
    labels_to_halve: int
    """How many labels more would halve the interval."""


def estimate_mean(people: Mapping[int, float], judge: Floats) -> PoweredMean:
    """The prediction-powered mean (Angelopoulos et al., Science 2023, with the weight of Angelopoulos, Duchi and Zrnic,
    2023) for a finite set of pairs: people gives the labels of some pairs by their place in judge, [pairs].

    Raises ValueError for fewer than two labels.
    """
    if len(people) < 2:
        raise ValueError("the spread of a mean needs two labels")
    known = np.array(list(people.values()), dtype=np.float64)
    guessed = judge[list(people)]
    n, total = len(known), len(judge)
    spread = float(guessed.var(ddof=1))
    weight = float(np.cov(known, guessed)[0, 1]) / spread if spread > 0 else 0.0
    errors = known - weight * guessed
    mean = weight * float(judge.mean()) + float(errors.mean())
    # Two parameters are estimated; pairs that are all labelled leave nothing to estimate.
    variance = float(((errors - errors.mean()) ** 2).sum()) / max(n - 2, 1)
    half = 1.959964 * float(np.sqrt(variance / n * (1 - n / total)))
    alone = float(known.var(ddof=1))
    return PoweredMean(
        mean=mean,
        interval=(mean - half, mean + half),
        n_labelled=n,
        n_pairs=total,
        weight=weight,
        worth=alone / variance if variance > 0 else float("inf"),
        # (1 - m / N) / m = (1 - n / N) / 4n, solved for m.
        labels_to_halve=int(np.ceil(4 * n / (1 + 3 * n / total))) - n,
    )


def _divide(sums: Floats, by: Floats) -> Floats:
    divided: Floats = np.divide(sums, by, out=np.full(np.shape(sums), np.nan), where=np.asarray(by) > 0)
    return divided
