"""The agreement of a judge's relevance labels with those of people, and what few human labels say of many pairs.

Everything about agreement is computed from confusion matrices [..., s, s]: people's labels are rows, the judge's
columns, s the number of labels of the scale. Several matrices, such as those of resampled topics, are taken at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rusbeir.evaluation import SAMPLES
from rusbeir.evaluation.significance import Figure, Floats, resample_means


def count_confusion(people: Floats, judge: Floats, size: int) -> Floats:
    """The confusion matrix [size, size] of two arrays of labels from 0 to size - 1."""
    cells = people.astype(int) * size + judge.astype(int)
    return np.bincount(cells, minlength=size * size).reshape(size, size).astype(np.float64)


def count_coincidences(counts: Floats) -> Floats:
    """Count matrices [units, s, s] that `alpha` takes in place of confusion matrices, for any number of raters.

    counts says how often each label was given to a unit, [units, s]; a unit with a single label has zeros. A matrix is
    half of Krippendorff's coincidences, since `alpha` adds the two halves of a confusion matrix.
    """
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(counts.shape[1])
    coincidences: Floats = pairs / np.maximum(counts.sum(axis=1) - 1, 1)[:, None, None] / 2
    return coincidences


def kappa(confusion: Floats, *, power: int = 0) -> Floats:
    """Compute Cohen's kappa, [...]; power 2 weights by squared distance (Cohen, 1968). NaN if chance decides all.

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
    """Compute Cohen's kappa on whether a label is at least the threshold, [...]."""
    rows = np.add.reduceat(confusion, [0, threshold], axis=-2)
    return kappa(np.add.reduceat(rows, [0, threshold], axis=-1))


def alpha(confusion: Floats) -> Floats:
    """Compute Krippendorff's alpha of two raters for ordinal labels, [...]. NaN if all labels are the same."""
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
    """Subtract the judge's mean label from people's, [...]: above 0 the judge is the stricter."""
    labels = np.arange(confusion.shape[-1])
    total = confusion.sum(axis=(-2, -1))
    return _divide(((confusion.sum(axis=-1) - confusion.sum(axis=-2)) * labels).sum(axis=-1), total)


def measure(by_topic: Floats, *, lowest: int = 0, seed: int = 0) -> dict[str, Figure]:
    """Measure the agreement in the confusion matrices of topics, [topics, s, s], with intervals that resample topics.

    The figures are kappa, quadratic_kappa, `kappa >= t` for each threshold t, alpha and strictness. lowest is the
    first label of the scale.
    """
    size = by_topic.shape[-1]
    functions: dict[str, Callable[[Floats], Floats]] = {
        "kappa": kappa,
        "quadratic_kappa": partial(kappa, power=2),
        **{f"kappa >= {lowest + t}": partial(kappa_at, threshold=t) for t in range(1, size)},
        "alpha": alpha,
        "strictness": strictness,
    }
    whole, drawn = by_topic.sum(axis=0), resample_topics(by_topic, samples=SAMPLES, seed=seed)
    return {
        name: Figure.from_resamples(function(whole), function(drawn), "topics") for name, function in functions.items()
    }


def resample_topics(by_topic: Floats, *, samples: int, seed: int = 0) -> Floats:
    """Resample the confusion matrices of topics, [topics, s, s]: their sums, [samples, s, s].

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
    """The 95 % interval of the mean over these very pairs, the labelled ones having been drawn at random."""
    n_labelled: int
    n_pairs: int
    weight: float
    """The weight of the judge's labels, for the narrowest interval: 0 for a judge that says nothing about people's."""
    worth: float
    """How many times as many labels such an interval would need without the judge."""
    labels_to_halve: int
    """How many more labels would halve the interval."""


def estimate_mean(people: Mapping[int, float], judge: Floats, strata: NDArray[np.int64] | None = None) -> PoweredMean:
    """Estimate people's mean label over a finite set of pairs from the judge's labels and some of people's.

    This is the prediction-powered mean (Angelopoulos et al., Science 2023) with the weight of Angelopoulos, Duchi and
    Zrnic (2023).

    Args:
        people: People's labels of some pairs, by the indexes of the pairs in judge.
        judge: The judge's labels of all pairs, float64 [pairs].
        strata: The stratum of each pair, from 0, if people's labels were drawn from each stratum on its own.

    Returns:
        The mean with its interval, and what the judge's labels were worth.

    Raises:
        ValueError: There are fewer than two labels of people.

    Examples:
        >>> estimate_mean({0: 1.0, 1: 0.0}, np.array([1.0, 0.0, 1.0, 0.0])).mean
        0.5
    """
    if len(people) < 2:
        raise ValueError("the spread of a mean needs two labels")
    indexes, known = np.array(list(people)), np.array(list(people.values()), dtype=np.float64)
    guessed = judge[indexes]
    n, total = len(known), len(judge)
    groups = _join_small(np.zeros(total, dtype=np.int64) if strata is None else strata, indexes)
    stratum = groups[indexes]
    n_labelled, n_pairs = np.bincount(stratum), np.bincount(groups)
    shares = n_pairs / total

    def average(values: Floats) -> Floats:
        """The mean of each stratum."""
        means: Floats = np.bincount(stratum, weights=values) / n_labelled
        return means

    apart, guessed_apart = known - average(known)[stratum], guessed - average(guessed)[stratum]
    cost = (shares**2 / n_labelled / np.maximum(n_labelled - 1, 1))[stratum]
    spread = float((cost * guessed_apart**2).sum())
    weight = float((cost * apart * guessed_apart).sum()) / spread if spread > 0 else 0.0
    mean = weight * float(judge.mean()) + float(shares @ average(known - weight * guessed))
    # A mean is estimated in each stratum, and the weight where the judge's labels differ there.
    free = n_labelled - 1 - (average(guessed_apart**2) > 0)
    variances = n_labelled * average((apart - weight * guessed_apart) ** 2) / np.maximum(free, 1)
    # Labels that are all the same do not show that the next one will be: it is taken to differ by 1.
    variances = np.maximum(variances, n_labelled / (n_labelled + 1) ** 2)
    of_sample = float((shares**2 * variances / n_labelled).sum())
    # If all pairs are labelled, nothing is left to estimate.
    of_all = float((shares**2 * variances / n_pairs).sum())
    half = 1.959964 * float(np.sqrt(max(of_sample - of_all, 0)))
    alone = (float(shares @ average(known**2)) - float(shares @ average(known)) ** 2) * n / (n - 1)
    in_all = np.minimum(n_labelled * of_sample / ((of_sample - of_all) / 4 + of_all), n_pairs).sum()
    return PoweredMean(
        mean=mean,
        interval=(mean - half, mean + half),
        n_labelled=n,
        n_pairs=total,
        weight=weight,
        worth=alone / (n * of_sample),
        labels_to_halve=int(np.ceil(in_all - 1e-9)) - n,
    )


def _join_small(strata: NDArray[np.int64], labelled: NDArray[np.int64]) -> NDArray[np.int64]:
    """Join each stratum with fewer than two labelled pairs, given by their indexes, to the next one."""
    sizes = np.bincount(strata)
    counts = np.bincount(strata[labelled], minlength=len(sizes))
    joined = np.zeros(len(sizes), dtype=np.int64)
    number = n_labelled = n_pairs = 0
    for stratum in range(len(sizes)):
        joined[stratum] = number
        n_labelled, n_pairs = n_labelled + counts[stratum], n_pairs + sizes[stratum]
        if n_labelled >= min(2, n_pairs) > 0:
            number, n_labelled, n_pairs = number + 1, 0, 0
    return np.minimum(joined, number - 1)[strata]


def _divide(sums: Floats, by: Floats) -> Floats:
    divided: Floats = np.divide(sums, by, out=np.full(np.shape(sums), np.nan), where=np.asarray(by) > 0)
    return divided
