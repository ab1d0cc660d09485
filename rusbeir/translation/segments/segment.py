"""Cut texts into the units that a translator receives, and put them together again from its answers.

A text is a list of pieces whose texts, joined, are the text itself, byte for byte. Some pieces are sent, the others
stay as they are: line breaks of every kind, indentation, list markers, white space at the ends of lines, sentences
without a letter (numbers, rules), and protected spans that run over a line break.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from rusbeir.errors import BadInput, unknown
from rusbeir.sentences import sentence_spans
from rusbeir.translation.segments.capacity import CapacityGauge
from rusbeir.translation.segments.spans import STYLES, Span, find_spans
from rusbeir.translation.translator import Capacity

if TYPE_CHECKING:
    from rusbeir.translation.segments.glossary import Glossary

LEVELS = ("field", "paragraph", "segment", "sentence")
"""field: the whole text, unchanged. paragraph: a line. segment: as many sentences of a line as fit. sentence: one."""

_BREAKS = "\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_LINE = re.compile(rf"[^{_BREAKS}]++")
_BREAK = re.compile(rf"[{_BREAKS}]")
# Quote and heading signs, then one marker: "- ", "• ", "1. ", "12) ", "a) ", "(iv) ".
_MARKER = re.compile(r"\s*+(?:(?:>|#{1,6})\s++)*+(?:(?:[-–—*+•‣◦⁃∙▪●○·]|\d{1,3}[.)]|[^\W\d_]\)|\(\w{1,4}\))\s++)?")
_LETTER = re.compile(r"[^\W\d_]")
# A line without any of these is one sentence, whatever splits it.
_SENTENCE_END = re.compile(r"[^\w\s,(\-–—]\s|[。．！？｡…।॥؟۔։።။៕]")
# Splitters know the ASCII space alone.
_WIDE_SPACES = dict.fromkeys((i for i in range(0x80, 0x3001) if chr(i).isspace()), " ")
_WINDOW_CHARS = 4_000
_MAX_WINDOW_CHARS = 16_000
_start = attrgetter("start")


class Piece(NamedTuple):
    """A part of a text."""

    text: str
    sent: bool
    """Whether it is translated; a piece that is not stays as it is."""


@dataclass(frozen=True)
class Cutter:
    """Cuts texts for one step; sent to worker processes."""

    language: str
    glossary: Glossary | None
    capacity: Capacity
    level: str = "segment"

    def __call__(self, texts: Iterable[str]) -> list[list[Piece]]:
        """Cut each text into pieces, the sent ones within the capacity; none is cut within a protected span.

        Raises UnknownName for another level or form of masks, BadInput for a capacity that no text fits.

        >>> (pieces,) = Cutter("en", None, Capacity())(["- One. Two."])
        >>> [piece.text for piece in pieces if piece.sent]
        ['One. Two.']
        """
        capacity, level = self.capacity, self.level
        if level not in LEVELS:
            raise unknown("level", level, LEVELS)
        if capacity.mask not in STYLES:
            raise unknown("mask style", capacity.mask, STYLES)
        is_limited = (capacity.max_chars, capacity.max_bytes) != (None, None)
        cuts = []
        for text in texts:
            end = len(text)
            spans = find_spans(text, self.glossary)
            gauge = CapacityGauge(text, capacity, spans) if is_limited else None
            is_one_line = text == text.strip() and not _BREAK.search(text) and not _content_start(text, 0, end, spans)
            is_whole = level == "field" or (level != "sentence" and is_one_line)
            if is_whole and translatable(text, 0, end, spans) and (not gauge or gauge.fits(gauge.size(0, end))):
                sent = [(0, end)]
            else:
                sent = pack(text, find_sentences(text, self.language, spans), gauge, spans, merge=level != "sentence")
            pieces = []
            done = 0
            for start, stop in (*sent, (end, end)):
                if done < start:
                    pieces.append(Piece(text[done:start], False))
                if start < stop:
                    pieces.append(Piece(text[start:stop], True))
                done = stop
            cuts.append(pieces)
        return cuts


def find_sentences(text: str, language: str, spans: Sequence[Span] = ()) -> list[tuple[int, int]]:
    """Find the sentences of a text that have something to translate, as (start, end).

    >>> find_sentences("1. Да. Нет!\\r\\n", "ru")
    [(3, 6), (7, 11)]
    """
    sentences: list[tuple[int, int]] = []
    for line_start, line_end in _lines(text, spans):
        start = _content_start(text, line_start, line_end, spans)
        end = start + len(text[start:line_end].rstrip())
        if not translatable(text, start, end, spans):
            continue
        if not _SENTENCE_END.search(text, start, end):
            sentences.append((start, end))
            continue
        of_line: list[tuple[int, int]] = []
        for first, last in _split(text, start, end, language):
            before = bisect_left(spans, first, key=_start) - 1
            if of_line and before >= 0 and spans[before].end > of_line[-1][1]:
                # A span connects it with the sentence before it.
                of_line[-1] = of_line[-1][0], last
            else:
                of_line.append((first, last))
        sentences += [sentence for sentence in of_line if translatable(text, *sentence, spans)]
    return sentences


def pack(
    text: str,
    sentences: Iterable[tuple[int, int]],
    gauge: CapacityGauge | None,
    spans: Sequence[Span],
    *,
    merge: bool,
) -> list[tuple[int, int]]:
    """Pack the sentences of a text into what is sent: those of a line joined up to the capacity, longer ones cut to it.

    A sentence over the limit is cut behind a comma or at white space, a word over it anywhere. A protected span is
    never cut; one that is over the limit even when masked is kept instead of sent.
    """
    packed: list[tuple[int, int]] = []
    chars = n_bytes = 0
    for start, end in sentences:
        joins = merge and packed and not _BREAK.search(text, packed[-1][1], start)
        if gauge is None:
            if joins:
                packed[-1] = packed[-1][0], end
            else:
                packed.append((start, end))
            continue
        if joins:
            more = gauge.size(packed[-1][1], end)
            if gauge.fits((chars + more[0], n_bytes + more[1])):
                packed[-1] = packed[-1][0], end
                chars, n_bytes = chars + more[0], n_bytes + more[1]
                continue
        chars, n_bytes = gauge.size(start, end)
        if gauge.fits((chars, n_bytes)):
            packed.append((start, end))
            continue
        parts = [part for part in gauge.cuts(start, end) if translatable(text, *part, spans)]
        packed += parts
        if parts:
            chars, n_bytes = gauge.size(*parts[-1])
    return packed


def join(pieces: Iterable[Piece], answers: Iterable[str]) -> str:
    """Replace the sent pieces by the answers, in their order. Raises BadInput where the numbers differ."""
    unused = iter(answers)
    try:
        text = "".join([next(unused) if piece.sent else piece.text for piece in pieces])
    except StopIteration:
        raise BadInput("There are fewer answers than sent pieces.") from None
    if next(unused, None) is not None:
        raise BadInput("There are more answers than sent pieces.")
    return text


def translatable(text: str, start: int, end: int, spans: Sequence[Span]) -> bool:
    """Return whether text[start:end] has a letter outside the spans, or a term that the glossary translates."""
    within = spans[bisect_left(spans, start, key=_start) : bisect_left(spans, end, key=_start)]
    for span_start, span_end, _, target in (*within, (end, end, "", None)):
        # The pattern lets fractions and superscripts through.
        while match := _LETTER.search(text, start, span_start):
            if match[0].isalpha():
                return True
            start = match.end()
        if target is not None:
            return True
        start = span_end
    return False


def _lines(text: str, spans: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Yield the lines, without the parts covered by spans that contain a line break."""
    walls = iter([span for span in spans if _BREAK.search(text, span.start, span.end)])
    wall = next(walls, None)
    for line in _LINE.finditer(text):
        start, end = line.span()
        while wall is not None and wall.end <= start:
            wall = next(walls, None)
        while wall is not None and wall.start < end:
            if start < wall.start:
                yield start, wall.start
            start = min(end, wall.end)
            if wall.end > end:
                break
            wall = next(walls, None)
        if start < end:
            yield start, end


def _content_start(text: str, start: int, end: int, spans: Sequence[Span]) -> int:
    """Find where the content of a line begins, after indentation and list markers."""
    marker = _MARKER.match(text, start, end)
    content = marker.end() if marker else start
    before = bisect_left(spans, content, key=_start) - 1
    if before >= 0 and spans[before].end > start:
        # What looks like a marker is part of something protected.
        return end - len(text[start:end].lstrip())
    return content


def _split(text: str, start: int, end: int, language: str) -> Iterator[tuple[int, int]]:
    """Split a line into sentences through a window, as splitters take quadratic time.

    The last sentence in the window may continue after it, and is split again in the next window or a wider one.
    """
    window = _WINDOW_CHARS
    while end - start > window:
        sentences = sentence_spans(text[start : start + window].translate(_WIDE_SPACES), language)
        if len(sentences) > 1:
            yield from ((start + first, start + last) for first, last in sentences[:-1])
            start += sentences[-1][0]
            window = _WINDOW_CHARS
        elif window < _MAX_WINDOW_CHARS:
            window *= 2
        else:
            space = text.rfind(" ", start + window // 2, start + window)
            stop = start + window if space < 0 else space
            content = len(text[start:stop].lstrip())
            if text[start:stop].strip():
                yield stop - content, start + len(text[start:stop].rstrip())
            start = stop
            window = _WINDOW_CHARS
    rest = sentence_spans(text[start:end].translate(_WIDE_SPACES), language)
    yield from ((start + first, start + last) for first, last in rest)
