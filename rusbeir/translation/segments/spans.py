"""Find the strings of a text that no translator may change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rusbeir.translation.segments.span_patterns import (
    ENVIRONMENT,
    MAX_PAIR_CHARS,
    PAIRS,
    SPAN_PATTERNS,
    Pair,
    SpanPattern,
)

if TYPE_CHECKING:
    from rusbeir.translation.segments.glossary import Glossary

_TRAILING = ".,;:!?'\"»”’*_…"
_PAIR_CHARS = frozenset("<`$\\")
_CHARS = _PAIR_CHARS.union(*(pattern.chars for pattern in SPAN_PATTERNS))
"""All ASCII: of a text in UTF-8, what is left without the other bytes says which patterns need not be tried."""
_OTHER_BYTES = bytes(set(range(256)) - set(map(ord, _CHARS)))
_ONE_DIGIT = bytes.maketrans(b"123456789", b"000000000")
_DOT = frozenset(b".")
_DOT_WITHIN = re.compile(r"\.\S")
"""What the patterns for texts with a dot begin with; most dots are full stops."""
_BRACKETS = {")": "(", "]": "[", "}": "{"}


class Span(NamedTuple):
    """A stretch of a text that is protected."""

    start: int
    end: int
    kind: str
    """url, email, doi, identifier, reference, quantity, latex, code, path, tag, entity or term."""
    target: str | None = None
    """Its translation; None where it stays as it is."""


def find_spans(text: str, glossary: Glossary | None = None) -> tuple[Span, ...]:
    """The protected spans of a text, in order, none overlapping another; () for none.

    >>> [span.kind for span in find_spans("Give 5 mg/kg (https://a.org/b), <b>daily</b>.")]
    ['quantity', 'url', 'tag', 'tag']
    """
    spans: list[Span] = []
    chars = frozenset(text.encode("utf-8", "surrogatepass").translate(_ONE_DIGIT, _OTHER_BYTES))
    if not chars.isdisjoint(_DOT) and not _DOT_WITHIN.search(text):
        chars -= _DOT
    patterns, pairs = _select_patterns(chars)
    tried: re.Pattern[str] | None = None
    has_trigger = True
    for kind, _, pattern, trigger, trailing in patterns:
        # Neighbours may share a trigger.
        if trigger is not tried:
            tried, has_trigger = trigger, trigger is None or trigger.search(text) is not None
        if has_trigger:
            for match in pattern.finditer(text):
                start, end = match.span()
                spans.append(Span(start, _without_trailing(text, start, end) if trailing else end, kind))
    if pairs:
        for pair in PAIRS:
            spans += _enclosed(pair, text)
        spans += _environments(text)
    if glossary is not None:
        spans += [Span(start, end, "term", target) for start, end, target in glossary.find(text)]
    apart: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not apart or span.start >= apart[-1].end:
            apart.append(span)
    return tuple(apart)


@lru_cache(maxsize=1024)
def _select_patterns(chars: frozenset[int]) -> tuple[tuple[SpanPattern, ...], bool]:
    """The patterns to try on a text with these of _CHARS, 0 being any digit, and whether to look for PAIRS."""
    there = {chr(char) for char in chars}
    selected = tuple(pattern for pattern in SPAN_PATTERNS if not pattern.chars.isdisjoint(there))
    return selected, not _PAIR_CHARS.isdisjoint(there)


def _enclosed(pair: Pair, text: str) -> Iterator[Span]:
    """The spans from each opening mark to the closing one that follows it; reads every character once."""
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
    """The end, moved before the sentence's punctuation and before closing brackets that open before the start."""
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
