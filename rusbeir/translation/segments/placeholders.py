"""The placeholders ("masks") that replace protected strings in what a translator receives.

A source text may contain something that looks like a mask. It is masked, too, so that everything that looks like a
mask in an answer is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from rusbeir.errors import unknown

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
        """An upper bound of the characters that look-alikes and escapes add to the text; it is additive."""
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
    """The style of that name; UnknownName where there is none."""
    if name not in STYLES:
        raise unknown("mask style", name, STYLES)
    return STYLES[name]
