"""BM25 as Lucene's BM25Similarity documents it, written from the formulas alone, in double precision.

idf = ln(1 + (N - n + 0.5) / (n + 0.5)), N documents that have the field, n of them with the term;
a document's length is kept in one byte by SmallFloat.intToByte4; the average length is that of exact lengths.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence


def long_to_int4(number: int) -> int:
    """A float of four significant bits, 3 stored and 1 implied."""
    bits = number.bit_length()
    if bits < 4:
        return number
    shift = bits - 4
    return ((number >> shift) & 7) | ((shift + 1) << 3)


def int4_to_long(code: int) -> int:
    bits, shift = code & 7, (code >> 3) - 1
    return bits if shift == -1 else (bits | 8) << shift


FREE_VALUES = 255 - long_to_int4(2**31 - 1)


def lucene_length(tokens: int) -> int:
    """byte4ToInt(intToByte4(tokens)): what is left of a length after its one byte."""
    if tokens < FREE_VALUES:
        return tokens
    return FREE_VALUES + int4_to_long(long_to_int4(tokens - FREE_VALUES))


def exact_length(tokens: int) -> int:
    return tokens


class Field:
    """One field of a corpus, counted once."""

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        self._lengths = [len(document) for document in documents]
        self._frequencies = [Counter(document) for document in documents]
        self._present = sum(length > 0 for length in self._lengths)
        self._having = Counter(term for frequencies in self._frequencies for term in frequencies)

    def scores(
        self, query: Sequence[str], *, k1: float, b: float, length: Callable[[int], int], factor: float
    ) -> list[float]:
        """A score a document; factor is k1 + 1 where an engine keeps it, else 1."""
        scores = [0.0] * len(self._lengths)
        if not self._present:
            return scores
        average = sum(self._lengths) / self._present
        for term in query:
            having = self._having[term]
            idf = math.log(1 + (self._present - having + 0.5) / (having + 0.5))
            for row, frequencies in enumerate(self._frequencies):
                if frequency := frequencies.get(term):
                    norm = k1 * (1 - b + b * length(self._lengths[row]) / average)
                    scores[row] += idf * factor * frequency / (frequency + norm)
        return scores


def combine(fields: str, tie_breaker: float, title: Sequence[float], text: Sequence[float]) -> list[float]:
    if fields == "sum":
        return [one + other for one, other in zip(title, text, strict=True)]
    return [max(one, other) + tie_breaker * min(one, other) for one, other in zip(title, text, strict=True)]
