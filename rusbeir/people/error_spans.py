"""Errors marked in a translation and its source: where they are, of what kind, and what they cost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rusbeir.audit import SEVERE, SOURCE, TRANSLATION, WEIGHTS, Extent

SIDES = (SOURCE, TRANSLATION)
SEVERITIES = ("minor", "major", "critical")
KINDS = (
    "addition", "omission", "mistranslation", "untranslated", "terminology", "grammar", "spelling", "punctuation",
    "style", "other",
)  # fmt: skip
"""A short list of MQM's."""
MINOR_PUNCTUATION = 0.1
"""What a minor error of punctuation costs at WMT (Freitag et al. 2021, table 3)."""
_QUOTES = "\"'“”„«»‘’`"


class ErrorSpan(NamedTuple):
    """An error marked in one of the two texts."""

    side: str
    """"translation", or "source" for what is missing in the translation."""
    start: int
    end: int
    """The characters from start to before end."""
    kind: str
    severity: str

    @property
    def extent(self) -> Extent:
        return Extent(self.side, self.start, self.end)

    @property
    def cost(self) -> float:
        """The weight that WMT gives to such an error: 1 (minor), 5 (major), 25 (critical), 0.1 (minor punctuation)."""
        if (self.kind, self.severity) == ("punctuation", "minor"):
            return MINOR_PUNCTUATION
        return WEIGHTS[self.severity]

    @property
    def is_severe(self) -> bool:
        return self.severity in SEVERE


class MarkedError(NamedTuple):
    """An error as a judge names it: by its words."""

    side: str
    words: str
    kind: str
    severity: str


class Located(NamedTuple):
    """The spans of errors in two texts, and what became of the others."""

    spans: list[ErrorSpan]
    """Spans of the source, then of the translation, each in order; they do not overlap."""
    counts: Counter[str]
    """`marked` errors: `verified` ones, `moved` (verified in the other text than the one named), `not_in_text`, and
    `overlapping` (they overlap a span that is as severe or more so)."""


def locate_errors(errors: Sequence[MarkedError], source: str, translation: str) -> Located:
    """Find the words of errors in the texts, character by character; white space may differ.

    Words that occur several times are found at the first place where no other error is; the most severe errors come
    first.

    >>> error = MarkedError("translation", "chat", "mistranslation", "major")
    >>> locate_errors([error], "a dog", "un chat").spans[0].start
    3
    """
    texts = {SOURCE: source, TRANSLATION: translation}
    spans: list[ErrorSpan] = []
    counts = Counter({"marked": len(errors)})
    for error in sorted(errors, key=lambda error: -SEVERITIES.index(error.severity)):
        other = SOURCE if error.side == TRANSLATION else TRANSLATION
        matches = [
            Extent(side, start, end) for side in (error.side, other) for start, end in _search(texts[side], error.words)
        ]
        free = [match for match in matches if not any(span.extent.overlaps(match) for span in spans)]
        if not free:
            counts["overlapping" if matches else "not_in_text"] += 1
            continue
        side, start, end = free[0]
        counts["verified"] += 1
        counts["moved"] += side != error.side
        spans.append(ErrorSpan(side, start, end, error.kind, error.severity))
    return Located(sorted(spans), counts)


def _search(text: str, words: str) -> Iterator[tuple[int, int]]:
    """Yield where the words are in the text: as they are, else without quotation marks around them."""
    for variant in dict.fromkeys((words.strip(), words.strip().strip(_QUOTES).strip())):
        parts = variant.split()
        matches = [match.span() for match in re.finditer(r"\s+".join(map(re.escape, parts)), text)] if parts else []
        if matches:
            yield from matches
            return


def add_costs(spans: Sequence[ErrorSpan]) -> float:
    """Minus the sum of what the errors cost: the MQM score at WMT, 0 for a translation without an error."""
    return -sum(span.cost for span in spans) if spans else 0.0


def dump_span(span: ErrorSpan, text: str) -> dict[str, Any]:
    """The span as JSON, with its words; `rusbeir audit meta` reads `severity` and `score`."""
    return {
        "in": span.side,
        "start": span.start,
        "end": span.end,
        "span": text[span.start : span.end],
        "category": span.kind,
        "severity": span.severity,
        "score": span.cost,
    }


def load_span(row: Mapping[str, Any]) -> ErrorSpan:
    """The span that dump_span wrote."""
    return ErrorSpan(row["in"], row["start"], row["end"], row["category"], row["severity"])
