"""Several answers of a judge about one text made into one verdict, and how far the answers agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from statistics import fmean, median
from typing import Any

import numpy as np

from rusbeir.evaluation import SAMPLES, Figure, Floats
from rusbeir.people.error_spans import ErrorSpan, add_costs, load_span
from rusbeir.people.span_agreement import compute_measures, credit_spans

_BATCH_SAMPLES = 100


def combine_votes(votes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One verdict from the valid answers about a text, at least one.

    `score` (where there is one) and `mqm` are medians, `major` says whether most answers have a major or critical
    error, and `errors` are those of the answer whose costs are nearest to the median. `votes` has each answer's figures
    where there are several.
    """
    figures = [_list_figures(vote) for vote in votes]
    medians: dict[str, Any] = {name: median(row[name] for row in figures) for name in figures[0] if name != "major"}
    nearest = min(range(len(votes)), key=lambda n: abs(figures[n]["mqm"] - medians["mqm"]))
    verdict = {
        **medians,
        "major": 2 * sum(row["major"] for row in figures) > len(figures),
        "errors": votes[nearest]["errors"],
    }
    return {**verdict, "votes": figures} if len(votes) > 1 else verdict


def _list_figures(vote: Mapping[str, Any]) -> dict[str, Any]:
    spans = _load_spans(vote)
    score = {"score": vote["score"]} if "score" in vote else {}
    return {**score, "mqm": add_costs(spans), "major": any(span.is_severe for span in spans)}


def _load_spans(vote: Mapping[str, Any]) -> list[ErrorSpan]:
    return [load_span(row) for row in vote["errors"]]


def compare_votes(texts: Sequence[Sequence[Mapping[str, Any]]], seed: int) -> dict[str, Any] | None:
    """Compare the answers about each text; None where no text has two.

    `score` is the mean difference between two scores, `major` the share of pairs of answers that agree on whether there
    is a major error, and `spans` the agreement of their spans (MPP, micro-averaged; see span_agreement). Intervals
    resample texts.
    """
    several = [votes for votes in texts if len(votes) > 1]
    if not several:
        return None
    rows = np.array([_compare_pairs(votes) for votes in several])
    generator = np.random.default_rng(seed)
    drawn = np.concatenate([_measure(weights @ rows) for weights in _draw(generator, len(rows))])
    values = _measure(rows.sum(axis=0, keepdims=True))[0]
    figures = {
        name: asdict(Figure.from_resamples(value, column, "texts"))
        for name, value, column in zip(("score", "major", "spans"), values, drawn.T, strict=True)
    }
    if "score" not in several[0][0]:
        del figures["score"]
    return {"n": len(several), **figures}


def _compare_pairs(votes: Sequence[Mapping[str, Any]]) -> list[float]:
    """1, two means over pairs of answers, and the sums of their span credits."""
    pairs = list(combinations(votes, 2))
    credits = np.zeros(4)
    apart, agree = [], []
    for first, second in pairs:
        spans, others = (_load_spans(vote) for vote in (first, second))
        apart.append(abs(first.get("score", 0) - second.get("score", 0)))
        agree.append(any(span.is_severe for span in spans) == any(span.is_severe for span in others))
        credits += credit_spans(*([span.extent for span in side] for side in (spans, others)))
    return [1.0, fmean(apart), fmean(agree), *credits]


def _measure(sums: Floats) -> Floats:
    """The figures of rows of sums, [n, 3]."""
    return np.concatenate([sums[:, 1:3] / sums[:, :1], compute_measures(sums[:, 3:])[:, 2:]], axis=1)


def _draw(generator: np.random.Generator, n: int) -> Iterator[Floats]:
    """Yield how often each text is in each resample."""
    for _ in range(0, SAMPLES, _BATCH_SAMPLES):
        yield generator.multinomial(n, np.full(n, 1 / n), size=_BATCH_SAMPLES).astype(np.float64)
