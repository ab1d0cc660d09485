"""Estimate the share of bad segments in a port, and find those that are worth translating again.

A judge's sample says which segments have a major or critical error; scores of all segments, where there are some, make
the estimate narrower and say where the bad ones are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray
from scipy.special import ndtri

from rusbeir.audit import SEVERE, read_segments
from rusbeir.datasets import QA
from rusbeir.evaluation import ALPHA, Floats
from rusbeir.people.span_report import read_span_verdicts
from rusbeir.storage import atomic_file

RETRY: Final = "retry"
"""The folder in qa/ with a file of segments for each list."""
EXPECTED: Final = "expected.json"
PERCENTAGES = (1, 5, 20)
"""The shares of all segments, those with the lowest scores, that lists have."""
FLAGGED, JUDGED, CHRF = "flagged", "judged", "chrf"
MIN_TEXTS = 10
"""Judged texts below which nothing is estimated."""
_CHARS = 1000


class Share(NamedTuple):
    """A share of segments."""

    value: float
    interval: tuple[float, float]
    """95 %; over documents and queries, which were drawn whole."""


@dataclass(frozen=True, kw_only=True)
class RetryList:
    """Segments that might be translated again."""

    name: str
    segments: int
    chars: int
    judged: int
    """Segments of the list that the judge has read."""
    bad: Share | None
    """The expected share of bad ones; None where the judge has read none of them."""
    gain: Share | None
    """Bad segments that are repaired for 1,000 characters, if new translations are as good as the port's average."""
    file: str


@dataclass(frozen=True)
class _Segments:
    """The facts about all segments of a port, in the order of qa/segments.jsonl."""

    texts: NDArray[np.int64]
    """The number of the text that each is of."""
    keys: list[tuple[str, str, str, int]]
    """Kind, id, field and number of each."""
    chars: NDArray[np.int64]
    flagged: NDArray[np.bool_]
    scores: dict[str, Floats]
    """Quality estimation and chrF, by name; NaN where a segment has no score."""
    numbers: dict[tuple[str, str], int]
    """The number of each text, by its kind and id."""

    @classmethod
    def read(cls, folder: Path) -> _Segments:
        keys, texts, chars, flagged = [], [], [], []
        numbers: dict[tuple[str, str], int] = {}
        scores: dict[str, list[float]] = {}
        for n, row in enumerate(read_segments(folder)):
            keys.append((row["kind"], row["id"], row["field"], row["segment"]))
            texts.append(numbers.setdefault((row["kind"], row["id"]), len(numbers)))
            chars.append(len(row["source"]))
            flagged.append(bool(row["flags"]))
            for name, score in (row.get("qe", {}) | ({CHRF: row["chrF"]} if "chrF" in row else {})).items():
                scores.setdefault(name, [np.nan] * n).append(np.nan if score is None else score)
        return cls(
            np.array(texts, dtype=np.int64), keys, np.array(chars, dtype=np.int64), np.array(flagged, dtype=np.bool_),
            {name: np.array(values) for name, values in scores.items() if np.isfinite(values).any()}, numbers,
        )  # fmt: skip

    def add_by_text(self, values: Floats) -> Floats:
        """The sum over the segments of each text."""
        return np.bincount(self.texts, weights=values, minlength=len(self.numbers)).astype(np.float64)


@dataclass(frozen=True)
class _Sample:
    """The texts that a judge has read, and which of their segments are bad."""

    texts: NDArray[np.int64]
    weights: Floats
    """How many texts of the port each represents; their sum is the number of texts."""
    bad: NDArray[np.bool_]
    """Whether the judge marked a major or critical error in a segment, for all segments of the port."""

    @classmethod
    def of_verdicts(cls, rows: Sequence[Mapping[str, Any]], segments: _Segments) -> _Sample:
        known = [row for row in rows if (row["kind"], row["id"]) in segments.numbers]
        severe = {
            (row["kind"], row["id"], *_split(name))
            for row in known
            for error in row["errors"]
            if error["severity"] in SEVERE
            for name in error["segments"]
        }
        texts = np.array([segments.numbers[row["kind"], row["id"]] for row in known], dtype=np.int64)
        weights = np.array([row["weight"] for row in known], dtype=np.float64)
        bad = np.array([key in severe for key in segments.keys], dtype=np.bool_)
        return cls(texts, weights * (len(segments.numbers) / weights.sum()) if len(known) else weights, bad)


def _split(name: str) -> tuple[str, int]:
    field, _, number = name.rpartition("/")
    return field, int(number)


def expect_errors(folder: Path) -> dict[str, Any] | None:
    """Estimate the share of bad segments and the gain of lists, from the files in qa/; None without enough verdicts.

    Bad is a segment in which the judge of `rusbeir audit judge` marked a major or critical error. Each list is written
    to qa/retry/NAME.jsonl, for `rusbeir port --retry-segments`, and the outcome to qa/expected.json.

    Returns:
        `texts` that were judged, `segments` of the port, `by` (the score that the estimate uses, or null), the `share`
        that is expected to be bad, and `lists`, those with the highest gain (the lower end of its interval) first:
        `name`, `segments`, `chars`, `judged`, `bad`, `gain` for 1,000 characters, `file`. Shares have `value` and
        `interval`.
    """
    rows, _ = read_span_verdicts(folder)
    if len(rows) < MIN_TEXTS:
        return None
    segments = _Segments.read(folder)
    sample = _Sample.of_verdicts(rows, segments)
    if len(sample.texts) < MIN_TEXTS:
        return None
    by = next(iter(segments.scores), None)
    share = estimate_share(segments, sample, None if by is None else segments.scores[by])
    members = _make_lists(segments, sample)
    home = folder / QA / RETRY
    lists = [
        _weigh_list(name, chosen, segments, sample, share.value, home / f"{name}.jsonl")
        for name, chosen in members.items()
    ]
    _write_lists(folder, lists, members)
    lists.sort(key=lambda row: (row.gain is not None, row.gain.interval[0] if row.gain else 0.0), reverse=True)
    expected = {
        "texts": len(sample.texts),
        "segments": len(segments.keys),
        "by": by,
        "share": share._asdict(),
        "lists": [_describe(row) for row in lists],
    }
    with atomic_file(folder / QA / EXPECTED) as file:
        file.write(orjson.dumps(expected, option=orjson.OPT_INDENT_2) + b"\n")
    return expected


def _describe(row: RetryList) -> dict[str, Any]:
    shares = {
        name: None if share is None else share._asdict() for name, share in (("bad", row.bad), ("gain", row.gain))
    }
    return {**asdict(row), **shares}


def estimate_share(segments: _Segments, sample: _Sample, scores: Floats | None) -> Share:
    """The share of bad segments: a regression on the number of segments of each text, and on their scores.

    This is the generalised regression estimator (Särndal, Swensson and Wretman 1992, 6.4): the regression only makes
    the interval narrower, and may be wrong. The interval is Wilson's, with as many independent segments as give the
    variance of the residuals between texts.
    """
    ones = np.ones(len(segments.keys))
    auxiliaries = [segments.add_by_text(ones)]
    if scores is not None:
        auxiliaries.append(segments.add_by_text(np.where(np.isnan(scores), np.nanmean(scores), scores)))
    table = np.stack(auxiliaries, axis=1)
    drawn, counts = table[sample.texts], segments.add_by_text(sample.bad.astype(np.float64))[sample.texts]
    roots = np.sqrt(sample.weights)
    slopes = np.linalg.lstsq(drawn * roots[:, None], counts * roots, rcond=None)[0]
    residuals = sample.weights * (counts - drawn @ slopes)
    n = len(segments.keys)
    value = float(np.clip((table.sum(axis=0) @ slopes + residuals.sum()) / n, 0, 1))
    return Share(value, _find_interval(value, residuals / n, sample.weights, len(segments.numbers)))


def _find_interval(value: float, residuals: Floats, weights: Floats, n_texts: int) -> tuple[float, float]:
    """Wilson's interval; residuals are what each judged text adds to the error of the value.

    The weights are those of the judged texts; 0 for texts that say nothing of the value.
    """
    n = len(residuals)
    left_out = 1 - n / n_texts
    if left_out <= 0:
        return value, value
    variance = left_out * n / (n - 1) * float(((residuals - residuals.mean()) ** 2).sum())
    # Where all are the same, texts count as drawn one by one with their weights (Kish).
    effective = float(weights.sum() ** 2 / (weights**2).sum()) / left_out
    if variance > 0 and 0 < value < 1:
        effective = value * (1 - value) / variance
    z = float(ndtri(1 - ALPHA / 2))
    centre = (value + z**2 / (2 * effective)) / (1 + z**2 / effective)
    half = z / (1 + z**2 / effective) * (value * (1 - value) / effective + (z / (2 * effective)) ** 2) ** 0.5
    return max(centre - half, 0.0), min(centre + half, 1.0)


def _make_lists(segments: _Segments, sample: _Sample) -> dict[str, NDArray[np.bool_]]:
    """The segments of each list; empty lists are left out."""
    lists = {JUDGED: sample.bad, FLAGGED: segments.flagged}
    for name, scores in segments.scores.items():
        order = np.argsort(scores, kind="stable")
        n_scored = int(np.isfinite(scores).sum())
        for percentage in PERCENTAGES:
            members = np.zeros(len(scores), dtype=np.bool_)
            members[order[: round(n_scored * percentage / 100)]] = True
            lists[f"{name}-{percentage}"] = members
    return {name: members for name, members in lists.items() if members.any()}


def _weigh_list(
    name: str, members: NDArray[np.bool_], segments: _Segments, sample: _Sample, share: float, path: Path
) -> RetryList:
    n, chars = int(members.sum()), int(segments.chars[members].sum())
    counts = segments.add_by_text(members.astype(np.float64))[sample.texts]
    bad = None
    if name == JUDGED:
        bad = Share(1.0, (1.0, 1.0))
    elif counts.any():
        n_bad = segments.add_by_text((members & sample.bad).astype(np.float64))[sample.texts]
        total = float(sample.weights @ counts)
        value = float(sample.weights @ n_bad) / total
        residuals = sample.weights * (n_bad - value * counts) / total
        weights = np.where(counts > 0, sample.weights, 0.0)
        bad = Share(value, _find_interval(value, residuals, weights, len(segments.numbers)))
    per_chars = n * _CHARS / max(chars, 1)
    gain = None
    if bad is not None:
        low, high = bad.interval
        gain = Share((bad.value - share) * per_chars, ((low - share) * per_chars, (high - share) * per_chars))
    return RetryList(
        name=name, segments=n, chars=chars, judged=int(counts.sum()), bad=bad, gain=gain, file=str(path)
    )  # fmt: skip


def _write_lists(folder: Path, lists: Sequence[RetryList], members: Mapping[str, NDArray[np.bool_]]) -> None:
    """Write the segments of each list, as `rusbeir port --retry-segments` reads them."""
    (folder / QA / RETRY).mkdir(exist_ok=True)
    with ExitStack() as stack:
        files = [(stack.enter_context(atomic_file(Path(row.file))), members[row.name]) for row in lists]
        for n, segment in enumerate(read_segments(folder)):
            about = {key: segment[key] for key in ("kind", "id", "field", "segment", "source")}
            for file, is_member in files:
                if is_member[n]:
                    file.write(orjson.dumps(about) + b"\n")
