"""chrF and chrF++ as sacrebleu defines them, from 0 to 100.

fastchrf gives chrF of single segments, about four times as fast as sacrebleu; sacrebleu gives what it has not:
chrF++, and the counts whose sums are a corpus' score. Equal to sacrebleu's own numbers; a test compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from rusbeir.errors import MissingExtra

CHAR_ORDERS = 6
_CHAR_COUNTS = 3 * CHAR_ORDERS
Counts = list[int]
"""[n-grams of the hypothesis, of the reference, common to both] for characters 1 to 6, then words 1 and 2."""


def segment_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """chrF of each hypothesis; 0 where one of the two is empty.

    >>> [round(score, 2) for score in segment_chrf(["The cat sat."], ["A cat sat."])]
    [74.06]
    """
    fastchrf = _fastchrf()
    # What is white space is Python's word, as in sacrebleu: fastchrf's own differs in U+001C to U+001F.
    pairs = [[["".join(text.split())] for text in texts] for texts in (hypotheses, references)]
    return [row[0][0] for row in fastchrf.pairwise_chrf(*pairs)]


def counts(hypotheses: Sequence[str], references: Sequence[str]) -> list[Counts]:
    """The n-gram counts of each pair."""
    # The method under corpus_score: the public ones give no counts to add up across processes.
    found: list[Counts] = _metric(2)._extract_corpus_statistics(hypotheses, [references])
    return found


def total(parts: Iterable[Counts]) -> Counts:
    """The counts of a corpus from those of its segments."""
    return [sum(column) for column in zip(*parts, strict=True)] or [0] * (_CHAR_COUNTS + 6)


def chrf_of(found: Counts) -> float:
    """chrF of counts: of a segment, or of a corpus."""
    return float(_metric(0)._compute_f_score(found[:_CHAR_COUNTS]))


def chrf_plus_of(found: Counts) -> float:
    """chrF++ of counts: of a segment, or of a corpus."""
    return float(_metric(2)._compute_f_score(found))


@cache
def signatures() -> dict[str, str]:
    """sacrebleu's signature of each score.

    >>> signatures()["chrF"].rpartition("|")[0]
    'nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no'
    """
    found = {}
    for name, order in (("chrF", 0), ("chrF++", 2)):
        metric = _metric(order)
        metric.corpus_score(["a"], [["a"]])
        found[name] = str(metric.get_signature())
    return found


@cache
def _metric(word_order: int) -> Any:
    try:
        from sacrebleu.metrics.chrf import CHRF
    except ImportError as error:
        raise MissingExtra("Scores need sacrebleu: pip install 'rusbeir[audit]'") from error
    return CHRF(word_order=word_order)


@cache
def _fastchrf() -> Any:
    try:
        import fastchrf
    except ImportError as error:
        raise MissingExtra("Scores need fastchrf: pip install 'rusbeir[audit]'") from error
    return fastchrf
