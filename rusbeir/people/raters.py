"""How far raters of the same texts agree, and what their scores of a sample say of all texts of a port."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf
from statistics import fmean, variance
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from rusbeir.errors import BadInput
from rusbeir.evaluation import ALPHA, SAMPLES, Figure, Floats
from rusbeir.evaluation import label_agreement as agreement
from rusbeir.people.sampling import Item, TextStratum


class RaterAgreement(NamedTuple):
    """The agreement of two raters on the texts that both have scored."""

    n: int
    within_one: float
    """The share of scores that differ by 1 or not at all."""
    mean_absolute_error: float
    figures: dict[str, Figure]
    """What rusbeir.evaluation.label_agreement.measure computes; the strictness is the second rater's."""
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
) -> RaterAgreement | None:
    """The agreement of two raters' scores of the same texts; None where there are no scores.

    topics: the topic of each text, such as its query; intervals resample topics. The scale is of consecutive integers.

    >>> compare_raters([1, 2, 5], [1, 3, 2], (1, 2, 3, 4, 5), ["a", "b", "c"]).within_one
    0.6666666666666666
    """
    if not first:
        return None
    scores, others = np.array(first), np.array(second)
    confusions = np.zeros((len(scores), len(scale), len(scale)))
    confusions[np.arange(len(scores)), scores - scale[0], others - scale[0]] = 1
    by_topic = _add_by_topic(confusions, topics)
    return RaterAgreement(
        len(scores),
        float((np.abs(scores - others) <= 1).mean()),
        float(np.abs(scores - others).mean()),
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
    shared = np.flatnonzero(counts.sum(axis=1) >= 2).tolist()
    if not shared:
        return Alpha(np.nan, (np.nan, np.nan), 0)
    by_topic = _add_by_topic(agreement.count_coincidences(counts[shared]), [topics[text] for text in shared])
    drawn = agreement.resample_topics(by_topic, samples=SAMPLES, seed=seed)
    figure = Figure.from_resamples(agreement.alpha(by_topic.sum(axis=0)), agreement.alpha(drawn), "topics")
    return Alpha(figure.value, figure.interval, len(shared))


def _add_by_topic(matrices: Floats, topics: Sequence[str]) -> Floats:
    """The sums of the matrices of each topic, [topics, s, s]."""
    names, rows = np.unique(topics, return_inverse=True)
    sums = np.zeros((len(names), *matrices.shape[1:]))
    np.add.at(sums, rows, matrices)
    return sums


_MIN_POWERED = 10
"""Texts with both scores below which people's are not extended by a judge's."""
MAX_TEXTS = 10**12
"""The largest port whose weights are believed."""


class PortMean(NamedTuple):
    """A mean over all texts of a port."""

    mean: float
    interval: tuple[float, float]
    """The 95 % interval of the mean that the same raters would give if they scored every text."""
    n_scored: int
    n_texts: int
    """The number of texts that the sample represents."""


class WeightedSample(NamedTuple):
    """The items of a sample by stratum, and the size of each stratum in the port; neighbours are similar."""

    items: Mapping[TextStratum, Sequence[str]]
    sizes: Mapping[TextStratum, int]


def has_weights(items: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether the key of sheets has the strata of all items; that of labels has not, nor a damaged one."""
    return bool(items) and all({"weight", *TextStratum._fields} <= about.keys() for about in items.values())


def read_sample(items: Mapping[str, Mapping[str, Any]]) -> WeightedSample:
    """The sample in the key of sheets: the weight of each item is the size of its stratum by the items drawn from it.

    Raises BadInput for impossible weights.
    """
    strata = {item: TextStratum(*(about[name] for name in TextStratum._fields)) for item, about in items.items()}
    drawn = Counter(strata.values())
    sizes: dict[TextStratum, int] = {}
    for item, stratum in strata.items():
        n = items[item]["weight"] * drawn[stratum]
        if not (drawn[stratum] - 0.5 < n < MAX_TEXTS and sizes.setdefault(stratum, round(n)) == round(n)):
            raise BadInput("The weights in the key of the sheets are impossible. Restore the file.")
    order = sorted(drawn, key=lambda stratum: (stratum.kind, stratum.flagged, stratum.length, stratum.decile))
    return WeightedSample({stratum: [item for item in strata if strata[item] == stratum] for stratum in order}, sizes)


class Scale(NamedTuple):
    """The scores that are possible."""

    low: float
    high: float
    step: float = 1
    """The difference that counts as one between texts whose scores are all the same (see estimate_port_mean)."""


def estimate_means(items: Sequence[Item], scores: Mapping[str, float], scale: Scale) -> dict[str, Any]:
    """The mean of scores by item, at least one, of the sample and weighted to the proportions of the port, as JSON.

    interval is that of the weighted mean; None where a single text has a score.
    """
    sample = read_sample({item.item_id: {"weight": item.weight, **item.stratum._asdict()} for item in items})
    mean, step = sum(scores.values()) / len(scores), scale.step
    steps = {item: score / step for item, score in scores.items()}
    of_port = estimate_port_mean(steps, sample, (scale.low / step, scale.high / step))
    if of_port is None:
        return {"sample": mean, "port": mean, "interval": None}
    low, high = of_port.interval
    return {"sample": mean, "port": of_port.mean * step, "interval": (low * step, high * step)}


def estimate_powered_mean(
    items: Sequence[Item], people: Mapping[str, float], judge: Mapping[str, float], scale: Scale
) -> dict[str, Any] | None:
    """People's mean weighted to the port, where a judge has scored more items than they, as JSON.

    This is prediction-powered inference (Angelopoulos, Duchi and Zrnic 2023): the judge's mean times a weight, and the
    mean of what is left of people's scores. The weight is the slope of people's scores on the judge's, so that the two
    means err independently. `worth` says how many times as many scores of people such an interval needs without the
    judge. None for fewer than ten items with both scores, or where the judge has scored no others.
    """
    shared = [item for item in people if item in judge]
    if not _MIN_POWERED <= len(shared) < len(judge):
        return None
    x, y = (np.array([scores[item] for item in shared]) for scores in (judge, people))
    weight = float(np.cov(x, y)[0, 1] / x.var(ddof=1)) if x.var() > 0 else 0.0
    rest = {item: people[item] - weight * judge[item] for item in shared}
    free = Scale(-inf, inf, scale.step)
    of_rest, of_judge, alone = (estimate_means(items, scores, free) for scores in (rest, judge, people))
    halves = [(row["interval"][1] - row["interval"][0]) / 2 for row in (of_rest, of_judge, alone)]
    mean, half = of_rest["port"] + weight * of_judge["port"], float(np.hypot(halves[0], weight * halves[1]))
    interval = (max(mean - half, scale.low), min(mean + half, scale.high))
    mean = min(max(mean, scale.low), scale.high)
    return {"port": mean, "interval": interval, "weight": weight, "worth": (halves[2] / half) ** 2 if half else 1.0}


def estimate_port_mean(scores: Mapping[str, float], sample: WeightedSample, scale: Sequence[float]) -> PortMean | None:
    """The mean of each stratum, weighted by its size; None for fewer than two scores of items of the sample.

    A text without a score is represented by the others of its stratum. The interval is that of Cochran (1977), Sampling
    Techniques, 5.6 and 5.9, with the degrees of freedom of Satterthwaite; it ends where the scale does.
    """
    groups = list(_join_small(scores, sample))
    n_scored, n_texts = sum(len(values) for _, values in groups), sum(size for size, _ in groups)
    if n_scored < 2:
        return None
    mean = sum(size * fmean(values) for size, values in groups) / n_texts
    spreads = [(_variance_of_mean(size, values) * (size / n_texts) ** 2, len(values) - 1) for size, values in groups]
    half, total = 0.0, sum(spread for spread, _ in spreads)
    if total > 0:
        freedom = total**2 / sum(spread**2 / n for spread, n in spreads if spread)
        half = float(stdtrit(freedom, 1 - ALPHA / 2)) * total**0.5
    return PortMean(mean, (max(mean - half, scale[0]), min(mean + half, scale[-1])), n_scored, n_texts)


def _join_small(scores: Mapping[str, float], sample: WeightedSample) -> list[tuple[int, list[float]]]:
    """The size and the scores of each stratum, where one with a single score, or none, is joined to the next."""
    groups: list[tuple[int, list[float]]] = []
    size, values = 0, list[float]()
    for stratum, items in sample.items.items():
        size += sample.sizes[stratum]
        values += [scores[item] for item in items if item in scores]
        if len(values) >= min(2, size):
            groups.append((size, values))
            size, values = 0, []
    # A stratum of one text is complete with its score; together with the rest it may again have too few.
    while size and groups and len(values) < min(2, size):
        last, others = groups.pop()
        size, values = size + last, others + values
    return [*groups, (size, values)] if values else groups


def _variance_of_mean(size: int, values: Sequence[float]) -> float:
    """The variance of the mean of values drawn from so many; 0 where they are all."""
    n = len(values)
    if n >= size:
        return 0.0
    # Scores that are all the same do not show that the next one will be: it is taken to differ by 1.
    return max(variance(values), n / (n + 1) ** 2) * (1 / n - 1 / size)
