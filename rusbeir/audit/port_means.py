"""The mean score of all texts of a port, from the scores of a stratified sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rusbeir.audit.sampling import Stratum
from rusbeir.errors import BadInput
from rusbeir.evaluation.agreement import estimate_mean

MAX_TEXTS = 10_000_000
"""The largest port whose strata are believed."""


class PortMean(NamedTuple):
    """A mean over all texts of a port."""

    mean: float
    interval: tuple[float, float]
    """At 95 %: of the mean that the same raters would give if they scored every text."""
    n_scored: int
    n_texts: int
    """The number of texts that the sample represents."""


class Sample(NamedTuple):
    """Where the items of a sample are among the texts of a port, which are ordered by stratum."""

    places: Mapping[str, int]
    strata: NDArray[np.int64]
    """The stratum of each text, from 0."""


def read_sample(items: Mapping[str, Mapping[str, Any]]) -> Sample:
    """The sample in the key of sheets: the weight of each item is the size of its stratum by the items drawn from it.

    Raises BadInput for impossible weights.
    """
    strata = {item: Stratum(*(about[name] for name in Stratum._fields)) for item, about in items.items()}
    drawn = Counter(strata.values())
    sizes: dict[Stratum, int] = {}
    for item, stratum in strata.items():
        n = items[item]["weight"] * drawn[stratum]
        if not (drawn[stratum] - 0.5 < n < MAX_TEXTS and sizes.setdefault(stratum, round(n)) == round(n)):
            raise BadInput("The weights in the key of the sheets are impossible. Restore the file.")
    if sum(sizes.values()) > MAX_TEXTS:
        raise BadInput("The weights in the key of the sheets are impossible. Restore the file.")
    # A stratum with a single score is joined to the next, which should be similar.
    order = sorted(sizes, key=lambda one: (one.kind, one.flagged, one.length, one.decile))
    return place_items(strata, {stratum: sizes[stratum] for stratum in order})


def has_weights(items: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether the key of sheets tells the strata of all items: not that of labels, nor a damaged one."""
    return bool(items) and all({"weight", *Stratum._fields} <= about.keys() for about in items.values())


def place_items(strata: Mapping[str, Hashable], sizes: Mapping[Any, int]) -> Sample:
    """Each item at one of the first places of its stratum: texts of a stratum differ in nothing that is known here."""
    numbers = list(sizes.values())
    free = dict(zip(sizes, (np.cumsum(numbers) - numbers).tolist(), strict=True))
    places = {}
    for item, stratum in strata.items():
        places[item] = free[stratum]
        free[stratum] += 1
    return Sample(places, np.repeat(np.arange(len(numbers)), numbers))


def estimate_port_mean(scores: Mapping[str, float], sample: Sample, scale: Sequence[int]) -> PortMean | None:
    """The mean of each stratum, weighted by its size; scores has items of the sample. None for fewer than two scores.

    A text without a score is represented by the others of its stratum. The interval ends where the scale does.
    """
    if len(scores) < 2:
        return None
    of_places = {sample.places[item]: score for item, score in scores.items()}
    found = estimate_mean(of_places, np.zeros(len(sample.strata)), sample.strata)
    low, high = found.interval
    interval = max(low, float(scale[0])), min(high, float(scale[-1]))
    return PortMean(found.mean, interval, found.n_labelled, found.n_pairs)
