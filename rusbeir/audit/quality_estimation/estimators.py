"""Protocols of what scores the segments of a port, and a journal of the answers of slow ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import orjson

from rusbeir.audit.port_checks.aligned import Record
from rusbeir.audit.port_checks.measurement import RecordFile
from rusbeir.errors import BackendError
from rusbeir.jobs import Attempt, Journal, Task, TaskQueue
from rusbeir.text import shorten
from rusbeir.types import Progress

KIND = "quality"
BATCH_PAIRS = 64
"""Pairs that an estimator scores in one call; each call's answers are recorded."""
Pairs: TypeAlias = Sequence[tuple[str, str]]
"""Source and translation of each segment."""
Estimate: TypeAlias = Sequence[float | None]
"""A score for each segment, higher for a better translation; None where there is none."""


class Estimator(Protocol):
    """Scores translations without a reference, while it is open."""

    @property
    def signature(self) -> str:
        """Names everything that decides its scores: the model, its version, its code."""
        ...

    def estimate(self, pairs: Pairs) -> Estimate:
        """Estimate one score for each pair, higher for a better translation; None where it has none."""
        ...


class OpensEstimator(Protocol):
    """Makes an Estimator for a pair of languages; whatever it starts is ended with the context."""

    def open(self, source: str, target: str) -> AbstractContextManager[Estimator]:
        """Start it; source and target are BCP 47."""
        ...


class SegmentQuality(Protocol):
    """The scores of a port's segments."""

    @property
    def signature(self) -> str:
        """Names everything that decides the scores."""
        ...

    def add_to(self, records: Sequence[Record]) -> list[list[float | None]]:
        """Return the scores of the segments of each record. Called once with all records, in their order."""
        ...


class NamedQuality(NamedTuple):
    """Scores under the name that reports and gates use."""

    name: str
    quality: SegmentQuality


@dataclass(kw_only=True)
class KeptEstimates:
    """The answers of an estimator in a journal."""

    queue: TaskQueue
    signature: str

    def add_to(self, records: Sequence[Record]) -> list[list[float | None]]:
        """Look up the scores of the segments of each record."""
        keys = [[_make_task(part.source, part.translation).key for part in record.segments] for record in records]
        values = self.queue.values([key for row in keys for key in row])
        return [[values.get(key) for key in row] for row in keys]


def estimate_all(
    estimator: Estimator, records: RecordFile, journal: Journal, name: str, progress: Progress
) -> KeptEstimates:
    """Score all segments that the journal has no answer to.

    Raises BackendError for an answer that is not a list of as many scores.
    """
    queue = TaskQueue(journal, KIND, f"qe|{estimator.signature}")
    done = 0
    for batch in records.batches():
        pairs = {}
        for part in (part for record in batch for part in record.segments):
            task = _make_task(part.source, part.translation)
            pairs[task] = part.source, part.translation
        settled = queue.outcomes([task.key for task in pairs]).keys()
        pending = [task for task in pairs if task.key not in settled]
        journal.add(pending)
        for start in range(0, len(pending), BATCH_PAIRS):
            tasks = pending[start : start + BATCH_PAIRS]
            scores = check_estimate(estimator.estimate([pairs[task] for task in tasks]), len(tasks), name)
            journal.record(
                [
                    Attempt(task.key, queue.worker, "done", orjson.dumps(score).decode())
                    for task, score in zip(tasks, scores, strict=True)
                ]
            )
            progress(f"estimate quality by {name}", done + start + len(tasks), None)
        done += len(pending)
    return KeptEstimates(queue=queue, signature=estimator.signature)


def check_estimate(scores: object, n: int, name: str) -> list[float | None]:
    """Return the scores as floats. Raises BackendError where they are not n numbers, or None."""
    if isinstance(scores, str | bytes) or not isinstance(scores, Sequence) or len(scores) != n:
        shown = shorten(repr(scores))
        raise BackendError(f"{name} must give a list of {n} scores for {n} pairs; it gave {shown}.")
    return [None if score is None else _check_score(score, name) for score in scores]


def _check_score(score: object, name: str) -> float:
    try:
        number = float(score)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise BackendError(f"{name} gave {shorten(repr(score))} as a score. A score is a number, or None for none.")
    return number


def _make_task(source: str, translation: str) -> Task:
    return Task.of(KIND, orjson.dumps([source, translation]).decode())
