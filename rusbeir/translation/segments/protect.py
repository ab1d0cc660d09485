"""Hide the protected strings of a unit from a translator, and restore them in its answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rusbeir.errors import BadInput
from rusbeir.translation.segments.segment import Piece, join, translatable
from rusbeir.translation.segments.spans import Span, Style, style_of
from rusbeir.translation.translator import Failure


class Masked(NamedTuple):
    """A unit as a translator receives it."""

    source: str
    style: str
    spans: tuple[Span, ...]
    pieces: tuple[Piece, ...]
    """Those sent go to the translator. The others are part of the translation as they are."""
    hidden: tuple[str, ...]
    """The strings that must come back, in the order of the masks' numbers, which begin at 1."""

    @property
    def parts(self) -> list[str]:
        """The texts to translate: one, or with style split any number; [] where nothing is left to translate."""
        return [piece.text for piece in self.pieces if piece.sent]


def mask(text: str, style: str, spans: Sequence[Span]) -> Masked:
    """Mask the unit in that style; the spans are those of find_spans. Raises UnknownName for another style.

    >>> mask("Take 5 mg daily.", "bracket", [Span(5, 9, "quantity")]).parts
    ['Take [1] daily.']
    """
    form = style_of(style)
    spans = () if style == "plain" else tuple(spans)
    start, end = 0, len(text)
    first, last = 0, len(spans)
    if not spans and style != "split" and not form.lookalike.search(text) and translatable(text, start, end, ()):
        # So it is with most units.
        return Masked(text, style, (), (Piece(form.escape(text), True),), ())
    if style == "split" or not translatable(text, start, end, _without_targets(spans)):
        return Masked(text, style, spans, tuple(_around(text, spans)), ())
    while first < last and _is_outer(spans[first]) and not text[start : spans[first].start].strip():
        start, first = spans[first].end, first + 1
    while first < last and _is_outer(spans[last - 1]) and not text[spans[last - 1].end : end].strip():
        end, last = spans[last - 1].start, last - 1
    inner = spans[first:last]
    sent, hidden = _hide(text, start, end, inner, form) if form.form else (text[start:end], _strings(text, inner))
    pieces = Piece(text[:start], False), Piece(sent, True), Piece(text[end:], False)
    return Masked(text, style, spans, tuple(piece for piece in pieces if piece.text), tuple(hidden))


def split(masked: Masked) -> Masked:
    """Make the unit one in style split, to try it again after it lost a mask."""
    return mask(masked.source, "split", masked.spans)


def restore(masked: Masked, answers: Sequence[str]) -> str | Failure:
    """Restore the translation from an answer for each part; Failure "lost-mask" unless every string came back once.

    >>> restore(mask("Take 5 mg daily.", "bracket", [Span(5, 9, "quantity")]), ["Принимать [ 1 ] ежедневно."])
    'Принимать 5 mg ежедневно.'
    """
    if masked.style == "split" or not masked.parts:
        return join(masked.pieces, answers)
    if len(answers) != 1:
        raise BadInput(f"There are {len(answers)} answers to 1 part.")
    form = style_of(masked.style)
    shown = _reveal(answers[0], masked.hidden, form) if form.form else _counted(answers[0], masked)
    return shown if isinstance(shown, Failure) else join(masked.pieces, [shown])


def _is_outer(span: Span) -> bool:
    """Return whether it may be left out at the ends of a unit: markup around a text need not be sent with it."""
    return span.kind == "tag"


def _without_targets(spans: Sequence[Span]) -> list[Span]:
    """Return the spans as if the glossary translated no term: a unit of terms alone needs no translator."""
    return [span._replace(target=None) for span in spans]


def _strings(text: str, spans: Sequence[Span]) -> list[str]:
    return [text[span.start : span.end] if span.target is None else span.target for span in spans]


def _around(text: str, spans: Sequence[Span]) -> Iterator[Piece]:
    """Yield the spans as kept pieces, and the texts between them as sent ones where they have a letter."""
    done = 0
    for span, string in zip([*spans, None], [*_strings(text, spans), ""], strict=True):
        between = text[done : span.start if span else len(text)]
        content = between.strip()
        if translatable(content, 0, len(content), ()):
            lead = len(between) - len(between.lstrip())
            yield from (
                Piece(between[:lead], False),
                Piece(content, True),
                Piece(between[lead + len(content) :], False),
            )
        else:
            yield Piece(between, False)
        if span:
            yield Piece(string, False)
            done = span.end


def _hide(text: str, start: int, end: int, spans: Sequence[Span], form: Style) -> tuple[str, list[str]]:
    """text[start:end] with numbered masks in place of spans and look-alikes, and the strings they stand for."""
    out: list[str] = []
    hidden: list[str] = []

    def add(string: str) -> None:
        hidden.append(string)
        out.append(form.form.format(len(hidden)))

    for span, string in zip([*spans, None], [*_strings(text, spans), ""], strict=True):
        stop = span.start if span else end
        for match in form.lookalike.finditer(text, start, stop):
            out.append(form.escape(text[start : match.start()]))
            add(match[0])
            start = match.end()
        out.append(form.escape(text[start:stop]))
        if span:
            add(string)
            start = span.end
    return "".join(out), hidden


def _reveal(answer: str, hidden: Sequence[str], form: Style) -> str | Failure:
    out: list[str] = []
    seen: set[int] = set()
    done = 0
    for match in form.pattern.finditer(answer):
        number = int(match[1])
        if not 1 <= number <= len(hidden):
            return _lost(f"the answer has a mask {match[0]!r} that was not sent")
        if number in seen:
            return _lost(f"{hidden[number - 1]!r} came back twice")
        seen.add(number)
        out += (form.unescape(answer[done : match.start()]), hidden[number - 1])
        done = match.end()
    out.append(form.unescape(answer[done:]))
    for number, string in enumerate(hidden, 1):
        if number not in seen:
            return _lost(f"{string!r} did not come back")
    return "".join(out)


def _counted(answer: str, masked: Masked) -> str | Failure:
    """Return the answer to a text sent as it is, in which protected strings must occur as often as in the text."""
    sent = masked.parts[0]
    for string in dict.fromkeys(masked.hidden):
        expected = sent.count(string) or masked.hidden.count(string)
        if (count := answer.count(string)) != expected:
            return _lost(f"{string!r} is {expected} times in the source and {count} times in the answer")
    return answer


def _lost(detail: str) -> Failure:
    return Failure("lost-mask", detail, retry=True)
