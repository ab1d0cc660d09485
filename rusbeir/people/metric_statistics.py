"""What is computed of people's ratings and the scores of a metric, so that documents can be weighted."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from rusbeir.audit import MISSING, SOURCE, Extent, SegmentScores
from rusbeir.evaluation import Floats, Units
from rusbeir.people.span_agreement import compute_measures, credit_spans


@dataclass(frozen=True, kw_only=True)
class RatedTable:
    """The segments of people's ratings that every metric has scored, too, as a table."""

    systems: list[str]
    segments: list[str]
    people: Floats
    """float64 [segments, systems]; NaN where a segment was not rated or not scored."""
    severe: NDArray[np.bool_] | None
    """bool [segments, systems]: a major or critical error; None where people marked no errors."""
    documents: dict[str, str]
    """segment -> its document; a segment that is not listed is a document of its own."""

    @property
    def known(self) -> NDArray[np.bool_]:
        return np.isfinite(self.people)


class Statistic(Protocol):
    """A figure of two tables of scores, float64 [segments, systems], in which documents can be weighted."""

    def compute(self, weights: Floats) -> Floats:
        """The figure for each row of weights, float64 [resamples, documents]."""
        ...


class Pearson:
    """Pearson's correlation over all rated segments."""

    def __init__(self, people: Floats, metric: Floats, units: Units) -> None:
        known = np.isfinite(people)
        x, y = (np.where(known, side - np.nanmean(side), 0.0) for side in (people, metric))
        self.sums = units.sum(np.array([side.sum(axis=1) for side in (known, x, y, x * x, y * y, x * y)])).T

    def compute(self, weights: Floats) -> Floats:
        n, x, y, xx, yy, xy = (weights @ self.sums).T
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y)))


class Auc:
    """The share of pairs in which a segment with a major error scores below one without; ties count half."""

    def __init__(self, severe: NDArray[np.bool_], metric: Floats, units: Units) -> None:
        rows, columns = np.nonzero(np.isfinite(metric))
        scores = metric[rows, columns]
        is_bad = severe[rows, columns]
        documents = np.array(units.clusters)[rows]
        good = np.sort(scores[~is_bad])
        self.good = documents[~is_bad][np.argsort(scores[~is_bad], kind="stable")]
        self.bad = documents[is_bad]
        # How many segments without an error have a lower score than one with an error, and one as low.
        self.lower, self.as_low = (np.searchsorted(good, scores[is_bad], side) for side in ("left", "right"))

    def compute(self, weights: Floats) -> Floats:
        bad = weights[:, self.bad]
        good = np.concatenate([np.zeros((len(weights), 1)), np.cumsum(weights[:, self.good], axis=1)], axis=1)
        higher = good[:, -1:] - (good[:, self.lower] + good[:, self.as_low]) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((bad * higher).sum(axis=1) / (bad.sum(axis=1) * good[:, -1]))


class PairsOfTranslations:
    """Pairs of translations of one segment, ordered or tied as by people, averaged over segments.

    Two scores count as tied that differ by at most the threshold, which is the one that gives the highest accuracy:
    tie calibration (Deutsch, Foster and Freitag 2023).
    """

    def __init__(self, people: Floats, metric: Floats, units: Units) -> None:
        first, second = np.array(list(combinations(range(people.shape[1]), 2))).T
        by_people, by_metric = (side[:, first] - side[:, second] for side in (people, metric))
        rows, pairs = np.nonzero(np.isfinite(by_people))
        by_people, by_metric = by_people[rows, pairs], by_metric[rows, pairs]
        n_pairs = np.bincount(rows, minlength=len(people))
        weights = 1.0 / n_pairs[rows]
        tied, agrees = by_people == 0, np.sign(by_people) * np.sign(by_metric) > 0
        distances = np.abs(by_metric)
        order = np.argsort(distances, kind="stable")
        # A pair that becomes tied gains where people tied it, and loses where it was in the right order.
        gains = np.cumsum((weights * (tied.astype(np.float64) - agrees))[order])
        ends = np.flatnonzero(np.concatenate((np.diff(distances[order]) > 0, [True])))
        best = int(np.argmax(gains[ends]))
        self.threshold = float(distances[order][ends[best]])
        right = np.where(distances <= self.threshold, tied, agrees)
        counted = n_pairs > 0
        accuracies = np.bincount(rows, weights=right * weights, minlength=len(people))
        self.sums = units.sum(np.array([accuracies, counted])).T

    def compute(self, weights: Floats) -> Floats:
        right, n = (weights @ self.sums).T
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(right / n)


class SystemMeans:
    """Pairs of systems that have the same order by the means of their segments."""

    def __init__(self, people: SegmentScores, metric: SegmentScores, rated: RatedTable, units: Units) -> None:
        numbers = {
            rated.documents.get(segment, segment): number
            for segment, number in zip(rated.segments, units.clusters, strict=True)
        }
        self.sums, self.counts = zip(*(self._add(side, rated, numbers) for side in (people, metric)), strict=True)
        self.first, self.second = np.array(list(combinations(range(len(rated.systems)), 2))).T

    def _add(self, side: SegmentScores, rated: RatedTable, numbers: dict[str, int]) -> tuple[Floats, Floats]:
        """Sums and counts by document and system; documents without a rated segment are in the last row."""
        sums, counts = np.zeros((2, max(numbers.values()) + 2, len(rated.systems)))
        for column, system in enumerate(rated.systems):
            for segment, score in side.scores[system].items():
                row = numbers.get(rated.documents.get(segment, segment), -1)
                sums[row, column] += score
                counts[row, column] += 1
        return sums, counts

    def compute(self, weights: Floats) -> Floats:
        # What has no rated segment is in every resample.
        weights = np.concatenate([weights, np.ones((len(weights), 1))], axis=1)
        signs = []
        for sums, counts in zip(self.sums, self.counts, strict=True):
            with np.errstate(divide="ignore", invalid="ignore"):
                means = (weights @ sums) / (weights @ counts)
            signs.append(np.sign(means[:, self.first] - means[:, self.second]))
        return np.asarray((signs[0] == signs[1]).mean(axis=1))


class SoftPairs:
    """Soft pairwise accuracy: 1 - |p of people - p of the metric|, averaged over pairs of systems.

    p is that of a one-sided paired permutation test, by its normal approximation (Thompson et al. 2024).
    """

    def __init__(self, people: Floats, metric: Floats, units: Units) -> None:
        first, second = np.array(list(combinations(range(people.shape[1]), 2))).T
        shared = np.isfinite(people[:, first] - people[:, second]).any(axis=0)
        first, second = first[shared], second[shared]
        self.sums = []
        for side in (people, metric):
            differences = np.nan_to_num(side[:, first] - side[:, second])
            self.sums.append(tuple(units.sum(part.T).T for part in (differences, differences**2)))

    def compute(self, weights: Floats) -> Floats:
        chances = []
        for sums, squares in self.sums:
            deviations = np.sqrt(weights @ squares)
            with np.errstate(divide="ignore", invalid="ignore"):
                chances.append(ndtr(np.nan_to_num(-(weights @ sums) / deviations)))
        return np.asarray(1 - np.abs(chances[0] - chances[1]).mean(axis=1))


class MarkedSpans:
    """The credit that the spans of a metric earn against people's, added up for each document."""

    def __init__(self, people: SegmentScores, metric: SegmentScores, rated: RatedTable, units: Units) -> None:
        # Where one file only says that something is missing, where it is in the source cannot be compared.
        somewhere = any(
            span.side == MISSING for side in (people, metric) for spans in side.spans.values() for span in spans
        )
        credits = np.zeros((4, len(rated.segments)))
        for row, segment in enumerate(rated.segments):
            for column, system in enumerate(rated.systems):
                key = system, segment
                if rated.known[row, column] and key in people.spans and key in metric.spans:
                    first, second = (
                        [
                            Extent(MISSING, 0, 1) if somewhere and span.side == SOURCE else span
                            for span in side.spans[key]
                        ]
                        for side in (metric, people)
                    )
                    credits[:, row] += credit_spans(first, second)
        self.sums = units.sum(credits).T


@dataclass(frozen=True)
class SpanMeasure:
    """Precision, recall or F of spans."""

    spans: MarkedSpans
    column: int

    def compute(self, weights: Floats) -> Floats:
        return np.asarray(compute_measures(weights @ self.spans.sums)[:, self.column])
