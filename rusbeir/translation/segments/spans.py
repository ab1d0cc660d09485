"""Where in a text the strings lie that no translator may touch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from rusbeir.translation.segments.glossary import Glossary
from rusbeir.translation.segments.span_patterns import (
    ENVIRONMENT,
    MAX_PAIR_CHARS,
    PAIRS,
    SPAN_PATTERNS,
    Pair,
    SpanPattern,
)

_SHORT_CHARS = 10_000
_TRAILING = ".,;:!?'\"»”’*_…"
_PAIR_CHARS = frozenset("<`$\\")
_BRACKETS = {")": "(", "]": "[", "}": "{"}


class Span(NamedTuple):
    """A stretch of a text that is protected."""

    start: int
    end: int
    kind: str
    """url, email, doi, identifier, reference, quantity, latex, code, path, tag, entity or term."""
    target: str | None = None
    """What stands in its place in the translation; None where it stays as it is."""


def find_spans(text: str, glossary: Glossary | None = None) -> tuple[Span, ...]:
    """The protected spans of a text, in order, none overlapping another; () for none.

    >>> [span.kind for span in find_spans("Give 5 mg/kg (https://a.org/b), <b>daily</b>.")]
    ['quantity', 'url', 'tag', 'tag']
    """
    return _kept_in_mind(text, glossary) if len(text) <= _SHORT_CHARS else _found(text, glossary)


def _found(text: str, glossary: Glossary | None) -> tuple[Span, ...]:
    found: list[Span] = []
    chars = set(text)
    for span_pattern in SPAN_PATTERNS:
        if not span_pattern.chars.isdisjoint(chars) and (
            span_pattern.trigger is None or span_pattern.trigger.search(text)
        ):
            found += _matches(span_pattern, text)
    if not _PAIR_CHARS.isdisjoint(chars):
        for pair in PAIRS:
            found += _enclosed(pair, text)
        found += _environments(text)
    if glossary is not None:
        found += [Span(start, end, "term", target) for start, end, target in glossary.find(text)]
    return tuple(_first_and_longest(found) if len(found) > 1 else found)


_kept_in_mind = lru_cache(maxsize=512)(_found)
"""A text's spans are asked for when it is sent and again when its answer is checked."""


def _matches(span_pattern: SpanPattern, text: str) -> Iterator[Span]:
    for match in span_pattern.pattern.finditer(text):
        start, end = match.span()
        if span_pattern.trailing:
            end = _without_trailing(text, start, end)
        yield Span(start, end, span_pattern.kind)


def _enclosed(pair: Pair, text: str) -> Iterator[Span]:
    """From each opening mark to the closing one that follows it; every character is looked at once."""
    start = text.find(pair.opens)
    end = -1
    while start >= 0:
        content = start + len(pair.opens)
        if end < content:
            end = text.find(pair.closes, content)
        if end < 0:
            return
        if content < end <= content + MAX_PAIR_CHARS:
            content = end + len(pair.closes)
            yield Span(start, content, pair.kind)
        start = text.find(pair.opens, content)


def _environments(text: str) -> Iterator[Span]:
    start = depth = 0
    for mark in ENVIRONMENT.finditer(text):
        if mark[1] == "begin":
            start = mark.start() if depth == 0 else start
            depth += 1
        elif depth > 0:
            depth -= 1
            if depth == 0 and mark.end() - start <= MAX_PAIR_CHARS:
                yield Span(start, mark.end(), "latex")


def _without_trailing(text: str, start: int, end: int) -> int:
    """The end without the punctuation of the sentence, and without brackets that were opened before the start."""
    surplus = {
        close: text.count(close, start, end) - text.count(open_, start, end) for close, open_ in _BRACKETS.items()
    }
    while end > start + 1:
        last = text[end - 1]
        if surplus.get(last, 0) > 0:
            surplus[last] -= 1
        elif last not in _TRAILING:
            break
        end -= 1
    return end


def _first_and_longest(found: Iterable[Span]) -> Iterator[Span]:
    done = 0
    for span in sorted(found, key=lambda span: (span.start, -span.end)):
        if span.start >= done:
            yield span
            done = span.end
