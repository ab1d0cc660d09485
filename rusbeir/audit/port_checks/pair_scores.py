"""Translations scored against references and checked against sources, a batch at a time, in several processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from rusbeir.audit.port_checks import scores
from rusbeir.audit.port_checks.segment_checks import CheckedSegment, Finder, find_flags
from rusbeir.translation import Flag, Segment


class PairBatch(NamedTuple):
    """Translations of one level, with what they are compared with."""

    level: str
    """"documents", "queries" or "lines"."""
    translations: Sequence[str]
    references: Sequence[str | None] | None = None
    """None where nothing is scored; None for a text that the reference lacks."""
    sources: Sequence[str] | None = None
    """None where nothing is checked."""


class PairResult(NamedTuple):
    """What came of a batch."""

    level: str
    lacking: int
    """How many texts the reference lacks; they are not scored."""
    compared: scores.Compared
    flags: list[list[Flag]]
    """The flags of each translation; [] where nothing is checked."""


@dataclass(frozen=True, kw_only=True)
class PairScorer:
    """Scores and checks batches; sent to worker processes."""

    languages: tuple[str, str]
    """The languages of the sources and of the translations."""
    finders: Mapping[str, Finder] = field(default_factory=dict)
    ter_words: float = inf
    """A batch with a text of more words has no TER."""

    def __call__(self, batch: PairBatch) -> PairResult:
        references = batch.references or ()
        pairs = [
            (translation, reference)
            for translation, reference in zip(batch.translations, references, strict=False)
            if reference is not None
        ]
        compared = scores.Compared({}, [])
        if pairs:
            translations, known = ([*side] for side in zip(*pairs, strict=True))
            ter = all(len(text.split()) <= self.ter_words for text in (*translations, *known))
            compared = scores.compare(translations, known, self.languages[1], ter=ter)
        lines = zip(batch.sources or (), batch.translations, strict=False)
        segments = [CheckedSegment(Segment(*line, *self.languages), None) for line in lines]
        return PairResult(batch.level, len(references) - len(pairs), compared, find_flags(self.finders, segments))
