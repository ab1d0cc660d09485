"""Measure texts against a translator's capacity, masks included, and cut those that are too long."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from rusbeir.errors import BadInput
from rusbeir.translation.segments.spans import STYLES, Span
from rusbeir.translation.translator import Capacity

# White space between words, and the places after Chinese and Japanese punctuation.
_GAP = re.compile(r"\s++|(?<=[，、；：。！？])")
_CLAUSE_ENDS = frozenset(",;:—–)，、；：。！？")
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")
_JOINED_CHARS = 16
MAX_BYTES_PER_CHAR = 4


class CapacityGauge:
    """Measures stretches of one text against a capacity that has limits. Spans are ordered and do not overlap.

    Raises BadInput for a capacity that no text fits.
    """

    def __init__(self, text: str, capacity: Capacity, spans: Sequence[Span]) -> None:
        no_chars = capacity.max_chars is not None and capacity.max_chars < 1
        no_bytes = capacity.max_bytes is not None and capacity.max_bytes < MAX_BYTES_PER_CHAR
        if no_chars or no_bytes:
            raise BadInput("A translator must accept texts of at least 1 character and 4 bytes.")
        self._text = text
        self._style = STYLES[capacity.mask]
        self._max_chars = capacity.max_chars
        self._max_bytes = capacity.max_bytes
        self._spans = spans
        self._starts = [span.start for span in spans]
        self._more_chars, self._more_bytes = [0], [0]
        if self._style.form:
            strings = [text[span.start : span.end] for span in spans]
            self._more_chars += accumulate(self._style.width - len(string) for string in strings)
            self._more_bytes += accumulate(self._style.width - _n_bytes(string) for string in strings)

    def size(self, start: int, end: int) -> tuple[int, int]:
        """Return (chars, bytes) that text[start:end] may need when it is sent; additive over neighbours.

        A number that nothing limits is 0.
        """
        stretch = self._text[start:end]
        more = self._style.cost(stretch)
        chars = len(stretch) + more if self._max_chars is not None else 0
        n_bytes = _n_bytes(stretch) + more if self._max_bytes is not None else 0
        if len(self._more_chars) > 1:
            first, last = bisect_left(self._starts, start), bisect_left(self._starts, end)
            if self._max_chars is not None:
                chars += self._more_chars[last] - self._more_chars[first]
            if self._max_bytes is not None:
                n_bytes += self._more_bytes[last] - self._more_bytes[first]
        return chars, n_bytes

    def fits(self, size: tuple[int, int]) -> bool:
        """Return whether a text of that size may be sent."""
        return (self._max_chars is None or size[0] <= self._max_chars) and (
            self._max_bytes is None or size[1] <= self._max_bytes
        )

    def cuts(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the stretches, each within the capacity, to send of one that is too long.

        White space between them is left out, and so are protected spans that are too long even when masked.
        """
        words = list(self._words(start, end))
        first = 0
        while first < len(words):
            last = self._filled(words, first)
            if last == first:
                yield from self._forced(*words[first])
                first += 1
                continue
            if last < len(words):
                # After a comma rather than in the middle of a phrase, where there is one in the second half.
                ends = (i for i in range(last, (first + last) // 2, -1) if self._ends_clause(words[i - 1][1]))
                last = next(ends, last)
            yield words[first][0], words[last - 1][1]
            first = last

    def _filled(self, words: Sequence[tuple[int, int]], first: int) -> int:
        """Return the index after the last word that fits together with those from the first on."""
        chars = n_bytes = 0
        done = words[first][0]
        for i in range(first, len(words)):
            more = self.size(done, words[i][1])
            chars, n_bytes, done = chars + more[0], n_bytes + more[1], words[i][1]
            if not self.fits((chars, n_bytes)):
                return i
        return len(words)

    def _ends_clause(self, position: int) -> bool:
        return self._text[position - 1] in _CLAUSE_ENDS

    def _words(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the stretches between the gaps that are not within a span."""
        for gap in _GAP.finditer(self._text, start, end):
            before = bisect_left(self._starts, gap.end()) - 1
            if before >= 0 and self._spans[before].end > gap.start():
                continue
            if start < gap.start():
                yield start, gap.start()
            start = gap.end()
        if start < end:
            yield start, end

    def _forced(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of a word that is too long, cut anywhere except within a span."""
        first, last = bisect_left(self._starts, start), bisect_left(self._starts, end)
        for span in self._spans[first:last]:
            yield from self._slices(start, span.start)
            if self.fits(self.size(span.start, span.end)):
                yield span.start, span.end
            start = span.end
        yield from self._slices(start, end)

    def _slices(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        limits = [end - start]
        if self._max_chars is not None:
            limits.append(self._max_chars // self._style.growth)
        if self._max_bytes is not None:
            limits.append(self._max_bytes // (self._style.growth * MAX_BYTES_PER_CHAR))
        step = max(1, min(limits))
        while start < end:
            stop = self._whole_character(start, min(start + step, end))
            yield start, stop
            start = stop

    def _whole_character(self, start: int, stop: int) -> int:
        """Return the last place up to stop that does not part a letter from its marks; stop where none is near."""
        for end in range(stop, max(start, stop - _JOINED_CHARS), -1):
            if end == len(self._text) or not _belongs_to_previous(self._text[end]):
                return end
        return stop


def _belongs_to_previous(char: str) -> bool:
    return char in _JOINERS or unicodedata.combining(char) != 0


def _n_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
