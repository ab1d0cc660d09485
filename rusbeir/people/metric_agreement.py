"""How well metrics and judges of translations agree with people: on segments, and on the order of systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from rusbeir import __version__
from rusbeir.audit import MISSING, SOURCE, Extent, SegmentScores, read_documents, read_segment_scores
from rusbeir.errors import BadInput, option
from rusbeir.evaluation import FEW_SAMPLES, Figure, Floats, Units
from rusbeir.people.span_agreement import compute_measures, credit_spans

MIN_SEGMENTS = 3
"""Rated segments below which nothing is computed."""
FIGURES = ("auc", "pearson", "acc_eq", "tau_eq", "pairs", "soft_pairs")
"""The figures of each metric, in the order in which they are printed."""
SPAN_FIGURES = ("precision", "recall", "f")
"""The figures of a metric's spans: the columns of compute_measures."""
_BATCH_SAMPLES = 25
"""Resamples that are computed at once."""


@dataclass(frozen=True, kw_only=True)
class _Rated:
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


def compare_metrics(
    ratings: str | Path,
    scores: Sequence[str | Path],
    *,
    documents: str | Path | None = None,
    without: Sequence[str] = (),
    seed: int = 0,
) -> dict[str, Any]:
    """Measure how well metrics, quality estimation or judges agree with people's ratings of translations.

    All are compared on the systems and the rated segments that every file has. A system's score is the mean of all its
    segments in a file, as in WMT's `.sys.score`.

    Args:
        ratings: People's scores or MQM errors, in a form that `read_segment_scores` reads.
        scores: A file for each metric, in the same forms; a higher score must mean a better translation.
        documents: The document of each segment, in order, as WMT's `.docs` has them. Intervals resample documents;
            without it, and without a column `document` in the ratings, they resample segments.
        without: Systems to leave out, such as references by people.
        seed: Seed of the resamples.

    Returns:
        Counts of what was compared, and `metrics`: for each the `figures` by name (value, 95 % interval, and over what
        the interval is), the number of system pairs `alike`, and the `tie_threshold` of acc_eq. The figures:
        `auc` of "people marked a major error" (None where they marked no errors), `pearson` over all segments,
        `acc_eq`, the share of pairs of translations of one segment that are ordered or tied as by people, with ties
        calibrated (Deutsch et al. 2023), `tau_eq`, which is 2 acc_eq - 1, `pairs`, the share of system pairs in the
        same order, and `soft_pairs`, soft pairwise accuracy (Thompson et al. 2024). Figures of pairs are None where
        there are none. Where both files have the characters of errors, `spans` has `precision`, `recall` and `f` of the
        metric's spans, else it is None: spans are matched one to one, and each earns the share of its characters that
        the other covers (MPP of Perrella et al. 2026), micro-averaged; severities make no difference.

    Raises:
        BadInput: A file cannot be read, or the files have no rated segments in common.
    """
    people = read_segment_scores(ratings)
    metrics = [read_segment_scores(path) for path in scores]
    for metric, path in zip(metrics, scores, strict=True):
        _refuse_other_segments(people, metric, ratings, path)
    if documents is not None:
        people.documents = _name_documents(people, documents)
    rated = _join(people, metrics, frozenset(without))
    n_rated = int(rated.known.sum())
    if n_rated < MIN_SEGMENTS:
        raise BadInput(
            f"{ratings} and the scores have {n_rated} rated segments in common; at least {MIN_SEGMENTS} are needed. "
            f"People rated: {_list_some(people.scores)}; scored were: {_list_some(metrics[0].scores)}."
        )
    units = Units.from_clusters(
        rated.segments, {segment: rated.documents.get(segment, segment) for segment in rated.segments}
    )
    over = "documents" if units.is_dependent else "segments"
    return {
        "version": __version__,
        "ratings": str(ratings),
        "systems": rated.systems,
        "n_segments": len(rated.segments),
        "n_documents": units.n_clusters,
        "n_rated": n_rated,
        "n_major": int(rated.severe[rated.known].sum()) if rated.severe is not None else None,
        "n_pairs": len(rated.systems) * (len(rated.systems) - 1) // 2,
        "n_repeated": people.n_repeated,
        "resampled": over,
        "metrics": [_compare(metric, people, rated, units, over, seed) for metric in metrics],
    }


def _refuse_other_segments(people: SegmentScores, metric: SegmentScores, ratings: str | Path, path: str | Path) -> None:
    """Raise BadInput where segments are known by their order alone, and their numbers differ."""
    if people.named != metric.named:
        unnamed = path if people.named else ratings
        raise BadInput(f"{unnamed} names no segments, and the other file does. Name them in both, or in neither.")
    for system in people.n_rows.keys() & metric.n_rows.keys():
        if not people.named and people.n_rows[system] != metric.n_rows[system]:
            raise BadInput(
                f"{path} has {metric.n_rows[system]:,} segments of {system or 'one system'}, and {ratings} "
                f"{people.n_rows[system]:,}. Segments without a name are known by their order: write a line for each, "
                "with None where there is no score."
            )


def _name_documents(people: SegmentScores, path: str | Path) -> dict[str, str]:
    names, n_segments = read_documents(path), max(people.n_rows.values())
    if people.named or len(names) != n_segments:
        raise BadInput(
            f"{option('docs', path)} has {len(names):,} lines; it must have one for each of the {n_segments:,} "
            "segments, which are then known by their order. Else name documents in the ratings."
        )
    return {str(number): name for number, name in enumerate(names, 1)}


def _join(people: SegmentScores, metrics: Sequence[SegmentScores], without: frozenset[str]) -> _Rated:
    systems = [
        system
        for system in people.scores
        if system not in without and people.scores[system] and all(metric.scores.get(system) for metric in metrics)
    ]
    segments = list(dict.fromkeys(segment for system in systems for segment in people.scores[system]))
    table = np.full((len(segments), len(systems)), np.nan)
    severe = np.zeros(table.shape, dtype=np.bool_)
    for column, system in enumerate(systems):
        for row, segment in enumerate(segments):
            if segment in people.scores[system] and all(segment in metric.scores[system] for metric in metrics):
                table[row, column] = people.scores[system][segment]
                severe[row, column] = people.severe.get((system, segment), False)
    left = np.isfinite(table).any(axis=1)
    return _Rated(
        systems=systems,
        segments=[segment for segment, is_left in zip(segments, left, strict=True) if is_left],
        people=table[left],
        severe=severe[left] if people.severe else None,
        documents=people.documents,
    )


def _list_some(systems: dict[str, Any]) -> str:
    names = [name or "a system without a name" for name in systems]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _compare(
    metric: SegmentScores, people: SegmentScores, rated: _Rated, units: Units, over: str, seed: int
) -> dict[str, Any]:
    """The figures of one metric."""
    table = np.array([[metric.scores[system].get(segment, np.nan) for system in rated.systems]
                      for segment in rated.segments])  # fmt: skip
    table[~rated.known] = np.nan
    statistics: dict[str, _Statistic] = {"pearson": _Pearson(rated.people, table, units)}
    if rated.severe is not None:
        statistics = {"auc": _Auc(rated.severe, table, units), **statistics}
    threshold = None
    if len(rated.systems) > 1:
        statistics["pairs"] = _SystemMeans(people, metric, rated, units)
    # Systems may have translated different segments.
    if (rated.known.sum(axis=1) > 1).any():
        by_segment = _PairsOfTranslations(rated.people, table, units)
        threshold = by_segment.threshold
        statistics |= {"acc_eq": by_segment, "soft_pairs": _SoftPairs(rated.people, table, units)}
    figures = _resample(statistics, units, over, seed)
    spans = None
    if people.spans and metric.spans:
        marked = _Spans(people, metric, rated, units)
        measures = {name: _SpanMeasure(marked, column) for column, name in enumerate(SPAN_FIGURES)}
        spans = _resample(measures, units, over, seed)
    if accuracy := figures.get("acc_eq"):
        ends = tuple(2 * end - 1 for end in accuracy["interval"])
        figures["tau_eq"] = {**accuracy, "value": 2 * accuracy["value"] - 1, "interval": ends}
    n_pairs = len(rated.systems) * (len(rated.systems) - 1) // 2
    return {
        "name": metric.name,
        "figures": {name: figures.get(name) for name in FIGURES},
        "spans": spans,
        "n_repeated": metric.n_repeated,
        "alike": round(figures["pairs"]["value"] * n_pairs) if n_pairs else None,
        "tie_threshold": threshold,
    }


def _resample(statistics: Mapping[str, _Statistic], units: Units, over: str, seed: int) -> dict[str, Any]:
    """The values of statistics with their intervals, as JSON."""
    figures = {}
    for name, statistic in statistics.items():
        value = statistic.compute(np.ones((1, units.n_clusters)))[0]
        drawn = np.concatenate([statistic.compute(weights) for weights in _draw_weights(units.n_clusters, seed)])
        figures[name] = asdict(Figure.from_resamples(value, drawn, over))
    return figures


def _draw_weights(n_documents: int, seed: int) -> Iterator[Floats]:
    """Yield how often each document is in each resample: float64 [resamples, documents]."""
    generator = np.random.default_rng(seed)
    for _ in range(0, FEW_SAMPLES, _BATCH_SAMPLES):
        drawn = generator.integers(0, n_documents, (_BATCH_SAMPLES, n_documents))
        rows = np.arange(_BATCH_SAMPLES)[:, None] * n_documents
        counts = np.bincount((drawn + rows).ravel(), minlength=_BATCH_SAMPLES * n_documents)
        yield counts.reshape(_BATCH_SAMPLES, n_documents).astype(np.float64)


class _Statistic(Protocol):
    """A figure of two tables of scores, float64 [segments, systems], in which documents can be weighted."""

    def compute(self, weights: Floats) -> Floats:
        """The figure for each row of weights, float64 [resamples, documents]."""
        ...


class _Pearson:
    """Pearson's correlation over all rated segments."""

    def __init__(self, people: Floats, metric: Floats, units: Units) -> None:
        known = np.isfinite(people)
        x, y = (np.where(known, side - np.nanmean(side), 0.0) for side in (people, metric))
        self.sums = units.sum(np.array([side.sum(axis=1) for side in (known, x, y, x * x, y * y, x * y)])).T

    def compute(self, weights: Floats) -> Floats:
        n, x, y, xx, yy, xy = (weights @ self.sums).T
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y)))


class _Auc:
    """How often a segment with a major error has a lower score than one without; ties count half."""

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


class _PairsOfTranslations:
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


class _SystemMeans:
    """Pairs of systems that have the same order by the means of their segments."""

    def __init__(self, people: SegmentScores, metric: SegmentScores, rated: _Rated, units: Units) -> None:
        numbers = {
            rated.documents.get(segment, segment): number
            for segment, number in zip(rated.segments, units.clusters, strict=True)
        }
        self.sums, self.counts = zip(*(self._add(side, rated, numbers) for side in (people, metric)), strict=True)
        self.first, self.second = np.array(list(combinations(range(len(rated.systems)), 2))).T

    def _add(self, side: SegmentScores, rated: _Rated, numbers: dict[str, int]) -> tuple[Floats, Floats]:
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


class _SoftPairs:
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


class _Spans:
    """What the spans of a metric earn against people's, added up for each document."""

    def __init__(self, people: SegmentScores, metric: SegmentScores, rated: _Rated, units: Units) -> None:
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
class _SpanMeasure:
    """Precision, recall or F of spans."""

    spans: _Spans
    column: int

    def compute(self, weights: Floats) -> Floats:
        return np.asarray(compute_measures(weights @ self.spans.sums)[:, self.column])
