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
from rusbeir.translation.segments.capacity import MAX_BYTES_PER_CHAR, CapacityGauge
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


def units(
    text: str, *, language: str, capacity: Capacity, level: str = "segment", spans: Sequence[Span] = ()
) -> list[Piece]:
    """The pieces of a text at that level, the sent ones within the capacity; [] for an empty text.

    Spans are those of find_spans over the same text: none of them is cut. Raises UnknownName for another level
    or form of masks, BadInput for a capacity that no text fits.

    >>> [piece.text for piece in units("- One. Two.", language="en", capacity=Capacity()) if piece.sent]
    ['One. Two.']
    """
    if level not in LEVELS:
        raise unknown("level", level, LEVELS)
    if capacity.mask not in STYLES:
        raise unknown("mask style", capacity.mask, STYLES)
    is_one_line = text == text.strip() and not _BREAK.search(text) and not _content_start(text, 0, len(text), spans)
    if level == "field" or (level != "sentence" and is_one_line):
        is_limited = (capacity.max_chars, capacity.max_bytes) != (None, None)
        gauge = CapacityGauge(text, capacity, spans) if is_limited else None
        if translatable(text, 0, len(text), spans) and (gauge is None or gauge.fits(gauge.size(0, len(text)))):
            return [Piece(text, True)]
    return pack(cut(text, language, spans), capacity, spans, merge=level != "sentence")


def cut(text: str, language: str, spans: Sequence[Span] = ()) -> list[Piece]:
    """The sentences of a text as sent pieces, and everything between them as pieces that are kept.

    >>> [piece.text for piece in cut("1. Да. Нет!\\r\\n", "ru")]
    ['1. ', 'Да.', ' ', 'Нет!', '\\r\\n']
    """
    sentences: list[tuple[int, int]] = []
    for line_start, line_end in _lines(text, spans):
        start = _content_start(text, line_start, line_end, spans)
        end = start + len(text[start:line_end].rstrip())
        if not translatable(text, start, end, spans):
            continue
        if _SENTENCE_END.search(text, start, end):
            sentences_of_line = _outside(_split(text, start, end, language), spans)
            sentences += (sentence for sentence in sentences_of_line if translatable(text, *sentence, spans))
        else:
            sentences.append((start, end))
    return _pieces(text, sentences)


def pack(pieces: Sequence[Piece], capacity: Capacity, spans: Sequence[Span] = (), *, merge: bool = True) -> list[Piece]:
    """Pack a text into other pieces: sentences of one line joined up to the capacity, longer ones cut to it.

    A sentence over the limit is cut behind a comma or at white space, a word over it anywhere. A protected span is
    never cut; one that is over the limit even when masked is kept instead of sent.
    Raises BadInput for a capacity that no text fits.
    """
    no_chars = capacity.max_chars is not None and capacity.max_chars < 1
    no_bytes = capacity.max_bytes is not None and capacity.max_bytes < MAX_BYTES_PER_CHAR
    if no_chars or no_bytes:
        raise BadInput("A translator must accept texts of at least 1 character and 4 bytes.")
    text = "".join([piece.text for piece in pieces])
    is_limited = (capacity.max_chars, capacity.max_bytes) != (None, None)
    gauge = CapacityGauge(text, capacity, spans) if is_limited else None
    packed: list[tuple[int, int]] = []
    chars = n_bytes = end = 0
    for piece in pieces:
        start, end = end, end + len(piece.text)
        if not piece.sent:
            continue
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
    return _pieces(text, packed)


def join(pieces: Iterable[Piece], answers: Iterable[str]) -> str:
    """The text with the sent pieces replaced by the answers, in their order. BadInput where the numbers differ."""
    unused = iter(answers)
    try:
        text = "".join([next(unused) if piece.sent else piece.text for piece in pieces])
    except StopIteration:
        raise BadInput("There are fewer answers than sent pieces.") from None
    if next(unused, None) is not None:
        raise BadInput("There are more answers than sent pieces.")
    return text


def translatable(text: str, start: int, end: int, spans: Sequence[Span]) -> bool:
    """Whether text[start:end] has a letter outside the spans, or a term that the glossary translates."""
    if not spans:
        return _has_letter(text, start, end)
    for span in spans[bisect_left(spans, start, key=_start) : bisect_left(spans, end, key=_start)]:
        if span.target is not None or _has_letter(text, start, span.start):
            return True
        start = span.end
    return _has_letter(text, start, end)


def _has_letter(text: str, start: int, end: int) -> bool:
    # The pattern lets fractions and superscripts through.
    while match := _LETTER.search(text, start, end):
        if match[0].isalpha():
            return True
        start = match.end()
    return False


def _pieces(text: str, sent: Iterable[tuple[int, int]]) -> list[Piece]:
    pieces = []
    done = 0
    for start, end in sent:
        if done < start:
            pieces.append(Piece(text[done:start], False))
        pieces.append(Piece(text[start:end], True))
        done = end
    if done < len(text):
        pieces.append(Piece(text[done:], False))
    return pieces


def _lines(text: str, spans: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """The lines, without the parts covered by spans that contain a line break."""
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
    """Where the content of a line begins, after indentation and list markers."""
    marker = _MARKER.match(text, start, end)
    content = marker.end() if marker else start
    before = bisect_left(spans, content, key=_start) - 1
    if before >= 0 and spans[before].end > start:
        # What looks like a marker is part of something protected.
        return end - len(text[start:end].lstrip())
    return content


def _split(text: str, start: int, end: int, language: str) -> Iterator[tuple[int, int]]:
    """The sentences of a line, found through a window, as splitters take quadratic time.

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


def _outside(sentences: Iterable[tuple[int, int]], spans: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """The sentences, with those joined again that a span connects."""
    held: tuple[int, int] | None = None
    for start, end in sentences:
        if held is None:
            held = start, end
            continue
        before = bisect_left(spans, start, key=_start) - 1
        if before >= 0 and spans[before].end > held[1]:
            held = held[0], end
        else:
            yield held
            held = start, end
    if held is not None:
        yield held


@dataclass(frozen=True)
class Cutter:
    """Cuts texts for one step; sent to worker processes."""

    language: str
    glossary: Glossary | None
    capacity: Capacity
    level: str

    def __call__(self, texts: Iterable[str]) -> list[list[Piece]]:
        """The pieces of each text."""
        return [
            units(
                text,
                language=self.language,
                capacity=self.capacity,
                level=self.level,
                spans=find_spans(text, self.glossary),
            )
            for text in texts
        ]
