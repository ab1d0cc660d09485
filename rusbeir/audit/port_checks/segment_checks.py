"""The checks of the audit: what may be wrong with a segment, found by rules.

CHECKS is the table of checks. To add one, write it as a function of a Segment in rusbeir.translation.checks (then
translators reject or flag their own answers by it, too), or as an AuditCheck here, and add it to the table: its flags
are then counted in reports, can be gated by, and select what `rusbeir audit clean` removes.
"""

from __future__ import annotations

import re
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rusbeir.translation import SEGMENT_CHECKS, Flag, Segment, find_empty, find_untranslated


class CheckedSegment(NamedTuple):
    """The input of a check."""

    segment: Segment
    back: str | None
    """Its back-translation; None where there is no back-translator."""


class Finder(Protocol):
    """Finds the flags of one check. Sent to worker processes: picklable, and a model is loaded when first used."""

    def __call__(self, segments: Sequence[CheckedSegment], /) -> Sequence[Flag | None]:
        """Return a Flag or None for each segment of a batch."""
        ...


@dataclass(frozen=True, kw_only=True)
class CheckedTexts:
    """The segments that are checked together: those of a port, or the lines of two files."""

    languages: tuple[str, str]
    """The languages of the source and of the translation, BCP 47."""
    pairs: Callable[[], Iterable[tuple[str, str]]]
    """Reads (source, translation) of every segment; may be called any number of times."""
    translated_back: bool = False
    """Whether segments come with their back-translation."""


class AuditCheck(Protocol):
    """One check of the audit."""

    def prepare(self, texts: CheckedTexts) -> Finder | None:
        """Return the finder of this check's flags in these texts; None where it cannot be applied to them.

        Here a check learns what it needs of the whole dataset, such as which lengths are usual.
        """
        ...


@runtime_checkable
class ReportsFigures(Protocol):
    """A finder that adds what it learned of the dataset to the report, under the name of its check."""

    def figures(self) -> dict[str, float] | None: ...


@dataclass(frozen=True)
class SegmentCheck:
    """A check that needs nothing but one segment, and its own finder."""

    check: Callable[[Segment], Flag | None]

    def prepare(self, texts: CheckedTexts) -> Finder:
        return self

    def __call__(self, segments: Sequence[CheckedSegment]) -> list[Flag | None]:
        return [self.check(checked.segment) for checked in segments]


def find_missing(segment: Segment) -> Flag | None:
    """Return a Flag where the answer has no letter and no digit, though the source has; or nothing but white space."""
    return find_empty(segment) if segment.answer.strip() else Flag("empty", "there is no translation")


class Bounds(NamedTuple):
    """Ratios of length, translation to source in characters, between which a translation is like the others."""

    low: float
    high: float
    median: float
    n: int
    """The number of segments from which the bounds were computed."""


@dataclass(frozen=True)
class LengthFinder:
    """Flags translations far longer or shorter than is usual in the same texts; none where there are no bounds."""

    bounds: Bounds | None

    @classmethod
    def prepare(cls, texts: CheckedTexts) -> LengthFinder:
        return cls(usual_lengths(texts.pairs()))

    def figures(self) -> dict[str, float] | None:
        return self.bounds._asdict() if self.bounds else None

    def __call__(self, segments: Sequence[CheckedSegment]) -> list[Flag | None]:
        return [self.find(checked.segment.source, checked.segment.answer) for checked in segments]

    def find(self, source: str, translation: str) -> Flag | None:
        """Return a Flag where the length of the translation is outside the bounds."""
        if self.bounds is None or len(source) < MIN_CHARS or not translation.strip():
            return None
        low, high, ratio = self.bounds.low, self.bounds.high, len(translation) / len(source)
        if low <= ratio and len(translation) <= high * len(source) + SLACK_CHARS:
            return None
        return Flag("length", f"{ratio:.2f} times as long as the source; {low:.2f} to {high:.2f} is usual")


MIN_CHARS = 40
"""The shortest source whose length is compared: the ratio of a shorter one says little."""
BELOW, ABOVE = 3.0, 1.5
"""Interquartile ranges allowed below the first and above the third quartile: PosIR (2026), appendix B.5.3."""
TOLERATED = 1.6
"""A ratio up to this many times the median is usual: those of rule-based translators hardly vary."""
SLACK_CHARS = 20
"""Characters allowed above the ratio: spelling out one abbreviation takes as many in a short text."""
MIN_SEGMENTS = 20
"""Usual lengths are not known from fewer segments of MIN_CHARS."""


def usual_lengths(pairs: Iterable[tuple[str, str]]) -> Bounds | None:
    """Return the bounds of (source, translation) pairs by PosIR's rule; None for fewer than MIN_SEGMENTS that count."""
    ratios = array("f", (len(t) / len(s) for s, t in pairs if len(s) >= MIN_CHARS and t.strip()))
    if len(ratios) < MIN_SEGMENTS:
        return None
    first, median, third = np.quantile(np.frombuffer(ratios, dtype=np.float32), [0.25, 0.5, 0.75]).tolist()
    spread = third - first
    low, high = min(first - BELOW * spread, median / TOLERATED), max(third + ABOVE * spread, median * TOLERATED)
    return Bounds(max(low, 0.0), high, median, len(ratios))


@dataclass(frozen=True)
class CopyFinder:
    """Flags texts that were not translated; those with capitals, as in headlines, where other texts show it.

    Else their words may be names: words that stay the same in other texts, too.
    """

    met: NDArray[np.uint32]
    """How many sources have a word, by its hash."""
    copied: NDArray[np.uint32]
    """How many of these have a translation that has the word as well."""

    @classmethod
    def prepare(cls, texts: CheckedTexts) -> CopyFinder:
        met, unchanged = (np.zeros(_BUCKETS, dtype=np.uint32) for _ in range(2))
        for source, translation in islice(texts.pairs(), MAX_PAIRS):
            words = _hash_words(source)
            met[list(words)] += 1
            unchanged[list(words & _hash_words(translation))] += 1
        return cls(met, unchanged)

    def __call__(self, segments: Sequence[CheckedSegment]) -> list[Flag | None]:
        return [find_untranslated(checked.segment) or self._find(checked.segment) for checked in segments]

    def _find(self, segment: Segment) -> Flag | None:
        flag = find_untranslated(segment, names=True)
        if flag is None:
            return None
        buckets = _hash_words(segment.source) & _hash_words(segment.answer)
        # What this text itself shows does not count.
        others = [(int(self.met[bucket]) - 1, int(self.copied[bucket]) - 1) for bucket in buckets]
        translated = sum(unchanged < KEPT_SHARE * met for met, unchanged in others if met > 0)
        return flag if translated > len(buckets) / 2 else None


KEPT_SHARE = 0.5
"""A word that stays in fewer of the other texts is one that is translated."""
MAX_PAIRS = 500_000
"""Pairs from which the words that stay are learned."""
_BUCKETS = 1 << 20
_LETTERS = re.compile(r"[^\W\d_]{2,}")


def _hash_words(text: str) -> set[int]:
    return {zlib.crc32(word.casefold().encode("utf-8", "surrogatepass")) % _BUCKETS for word in _LETTERS.findall(text)}


EMPTY = "empty"
"""The flag of the first check: a segment that has it is not checked further."""
CHECKS: Mapping[str, AuditCheck] = {
    **{name: SegmentCheck(check) for name, check in SEGMENT_CHECKS.items()},
    EMPTY: SegmentCheck(find_missing),
    "untranslated": CopyFinder,
    "length": LengthFinder,
}
"""All checks of the audit, by the names of their flags."""

FLAGS_MEANING = (
    "Rules see gross faults, not most errors: on WMT23 English-German they flagged 4.8 % of the paragraphs in which "
    "people had marked a major error (of those with an omission 15 %, with an addition 12 %, with words left in the "
    "source language 3 %), and 82 % of what they flagged had one."
)
"""What a share of flagged segments says, for wherever one is printed: measured by `benchmarks.audit recall`."""


def prepare_checks(texts: CheckedTexts, table: Mapping[str, AuditCheck] = CHECKS) -> dict[str, Finder]:
    """Return the finders of the checks that can be applied to the texts, by the names of their flags."""
    finders = {name: check.prepare(texts) for name, check in table.items()}
    return {name: finder for name, finder in finders.items() if finder is not None}


def find_flags(finders: Mapping[str, Finder], segments: Sequence[CheckedSegment]) -> list[list[Flag]]:
    """Find the flags of each segment, in the order of the finders."""
    flags: list[list[Flag]] = [[] for _ in segments]
    left: Sequence[int] = range(len(segments))
    for name, find in finders.items():
        for i, flag in zip(left, find([segments[i] for i in left]), strict=True):
            if flag is not None:
                flags[i].append(Flag(name, flag.detail))
        if name == EMPTY:
            left = [i for i in left if not flags[i]]
    return flags
