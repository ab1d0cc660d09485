"""The strings of a text that no translator may change, and the masks that replace them in what it receives.

A source text may contain something that looks like a mask. It is masked, too, so that everything that looks like a
mask in an answer is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rusbeir.errors import unknown
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
    """Find the protected spans of a text, in order, none overlapping another; () for none.

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
    """Select the patterns to try on a text with these of _CHARS, 0 being any digit, and whether to look for PAIRS."""
    there = {chr(char) for char in chars}
    selected = tuple(pattern for pattern in SPAN_PATTERNS if not pattern.chars.isdisjoint(there))
    return selected, not _PAIR_CHARS.isdisjoint(there)


def _enclosed(pair: Pair, text: str) -> Iterator[Span]:
    """Yield the spans from each opening mark to the closing one that follows it; reads every character once."""
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
    """Return the end before the sentence's punctuation and before closing brackets that open before the start."""
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


_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "#39": "'", "#34": '"'}
_ENTITY = re.compile(rf"&({'|'.join(_ENTITIES)});")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def _same(text: str) -> str:
    return text


def _escape(text: str) -> str:
    return text.translate(_ESCAPES)


def _unescape(text: str) -> str:
    return _ENTITY.sub(lambda match: _ENTITIES[match[1]], text) if "&" in text else text


@dataclass(frozen=True, kw_only=True)
class Style:
    """A form of masks, and what is done to the text between them."""

    form: str = ""
    """A mask, with {} for its number; empty where texts are sent without masks."""
    pattern: re.Pattern[str] = re.compile(r"(?!)")
    """A mask as it may appear in an answer; group 1 is its number."""
    lookalike: re.Pattern[str] = re.compile(r"(?!)")
    """A part of a source text that could be taken for a mask or a part of one; it begins with one of openers."""
    openers: str = ""
    growth: int = 1
    """The most characters that one character of the text between the masks can become."""
    escape: Callable[[str], str] = _same
    """Applied to the text between the masks before it is sent."""
    unescape: Callable[[str], str] = _same
    """Applied to the text between the masks of an answer."""

    @cached_property
    def width(self) -> int:
        """Characters of the longest mask that capacities allow for."""
        return len(self.form.format(99_999)) if self.form else 0

    def cost(self, text: str) -> int:
        """Return an upper bound of the characters that look-alikes and escapes add to the text; it is additive."""
        more = len(self.escape(text)) - len(text) if self.escape is not _same else 0
        return more + self.width * sum(map(text.count, self.openers))


_QUOTE = r"[\"'“”„«»‘’]?"
_TAG = re.compile(
    rf"<\s*+x\s++id\s*+=\s*+{_QUOTE}\s*+(\d{{1,6}})\s*+{_QUOTE}\s*+/?\s*+>(?:\s*+<\s*+/\s*+x\s*+>)?", re.IGNORECASE
)
_TAG_START = re.compile(r"<\s*+/?\s*+x", re.IGNORECASE)
_BRACE = re.compile(r"[{｛]\s*+(\d{1,6})\s*+[}｝]")
_BRACKET = re.compile(r"[\[［【]\s*+(\d{1,6})\s*+[\]］】]")
_WORD = re.compile(r"Q(\d{1,6})Z")

STYLES: Mapping[str, Style] = {
    "none": Style(),
    "plain": Style(),
    "split": Style(),
    "tag": Style(form='<x id="{}"/>', pattern=_TAG, lookalike=_TAG_START, openers="<", growth=9),
    "xml": Style(form='<x id="{}"/>', pattern=_TAG, growth=5, escape=_escape, unescape=_unescape),
    "brace": Style(form="{{{}}}", pattern=_BRACE, lookalike=_BRACE, openers="{｛", growth=3),
    "bracket": Style(form="[{}]", pattern=_BRACKET, lookalike=_BRACKET, openers="[［【", growth=3),
    "word": Style(form="Q{}Z", pattern=_WORD, lookalike=_WORD, openers="Q", growth=3),
}
"""none: the text is sent as it is, and protected strings are counted in the answer. plain: nothing is protected.
split: only the text between protected strings is sent.
tag: for LLMs. xml: the same in well-formed XML, for DeepL and Google Cloud. brace: for LLMs that repair tags.
bracket, word: for neural translators, whose vocabulary often lacks braces and ⟦⟧: of 12 sentences through a small model
of English and Portuguese, [1] and Q1Z came back from all, {1}, ⟦1⟧ and <x id="1"/> from none."""


def style_of(name: str) -> Style:
    """Return the style of that name; UnknownName where there is none."""
    if name not in STYLES:
        raise unknown("mask style", name, STYLES)
    return STYLES[name]
