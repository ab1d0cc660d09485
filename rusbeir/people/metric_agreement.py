"""How well metrics and judges of translations agree with people: on segments, and on the order of systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from rusbeir import __version__
from rusbeir.audit import SegmentScores, read_documents, read_segment_scores
from rusbeir.errors import BadInput, option
from rusbeir.evaluation import FEW_SAMPLES, Figure, Floats, Units, estimate_mean, find_families
from rusbeir.people.metric_statistics import (
    Auc,
    MarkedSpans,
    PairsOfTranslations,
    Pearson,
    RatedTable,
    SoftPairs,
    SpanMeasure,
    Statistic,
    SystemMeans,
)

MIN_SEGMENTS = 3
"""Rated segments below which nothing is computed."""
FIGURES = ("auc", "pearson", "acc_eq", "tau_eq", "pairs", "soft_pairs")
"""The figures of each metric, in the order in which they are printed."""
SPAN_FIGURES = ("precision", "recall", "f")
"""The figures of a metric's spans: the columns of compute_measures."""
_BATCH_SAMPLES = 25
"""Resamples that are computed at once."""


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
        the other covers (MPP of Perrella et al. 2026), micro-averaged; severities make no difference. Where the metric
        has scored translations that nobody rated, `of_all` is what people would say of all, on average, by
        prediction-powered inference: `rated` (the mean of the rated ones), and the fields of PoweredMean.
        `shared_families` has the systems that are of a family with a judge, by their names.

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


def _join(people: SegmentScores, metrics: Sequence[SegmentScores], without: frozenset[str]) -> RatedTable:
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
    return RatedTable(
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
    metric: SegmentScores, people: SegmentScores, rated: RatedTable, units: Units, over: str, seed: int
) -> dict[str, Any]:
    """The figures of one metric."""
    table = np.array([[metric.scores[system].get(segment, np.nan) for system in rated.systems]
                      for segment in rated.segments])  # fmt: skip
    table[~rated.known] = np.nan
    statistics: dict[str, Statistic] = {"pearson": Pearson(rated.people, table, units)}
    if rated.severe is not None:
        statistics = {"auc": Auc(rated.severe, table, units), **statistics}
    threshold = None
    if len(rated.systems) > 1:
        statistics["pairs"] = SystemMeans(people, metric, rated, units)
    # Systems may have translated different segments.
    if (rated.known.sum(axis=1) > 1).any():
        by_segment = PairsOfTranslations(rated.people, table, units)
        threshold = by_segment.threshold
        statistics |= {"acc_eq": by_segment, "soft_pairs": SoftPairs(rated.people, table, units)}
    figures = _resample(statistics, units, over, seed)
    spans = None
    if people.spans and metric.spans:
        marked = MarkedSpans(people, metric, rated, units)
        measures = {name: SpanMeasure(marked, column) for column, name in enumerate(SPAN_FIGURES)}
        spans = _resample(measures, units, over, seed)
    if accuracy := figures.get("acc_eq"):
        ends = tuple(2 * end - 1 for end in accuracy["interval"])
        figures["tau_eq"] = {**accuracy, "value": 2 * accuracy["value"] - 1, "interval": ends}
    n_pairs = len(rated.systems) * (len(rated.systems) - 1) // 2
    return {
        "name": metric.name,
        "figures": {name: figures.get(name) for name in FIGURES},
        "spans": spans,
        "of_all": _estimate_all(people, metric, rated),
        "shared_families": _find_relatives(metric, rated.systems),
        "n_repeated": metric.n_repeated,
        "alike": round(figures["pairs"]["value"] * n_pairs) if n_pairs else None,
        "tie_threshold": threshold,
    }


def _estimate_all(people: SegmentScores, metric: SegmentScores, rated: RatedTable) -> dict[str, Any] | None:
    """Estimate what people would say on average of all translations that a metric has scored, by rating some.

    None where they have rated all. Systems are strata; the rated translations of each are taken for a random draw.
    """
    scores, systems, ratings = list[float](), list[int](), dict[int, float]()
    for number, system in enumerate(rated.systems):
        rows = [(score, people.scores[system].get(segment)) for segment, score in metric.scores[system].items()]
        # In an order that no file decides, so that sums are the same to the last bit.
        for score, rating in sorted(rows, key=lambda row: (row[0], row[1] is None, row[1] or 0.0)):
            if rating is not None:
                ratings[len(scores)] = rating
            scores.append(score)
            systems.append(number)
    if len(ratings) in (1, len(scores)):
        return None
    rated_mean = sum(ratings.values()) / len(ratings)
    return {"rated": rated_mean, **asdict(estimate_mean(ratings, np.array(scores), np.array(systems)))}


def _find_relatives(metric: SegmentScores, systems: Sequence[str]) -> dict[str, list[str]]:
    """The systems that are of a family with the model that scored them, by the names of both, and the families."""
    families = find_families(f"{metric.name} {metric.judge}")
    return {system: sorted(shared) for system in systems if (shared := families & find_families(system))}


def _resample(statistics: Mapping[str, Statistic], units: Units, over: str, seed: int) -> dict[str, Any]:
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
