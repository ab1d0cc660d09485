"""The audit's pages: templates, texts that are safe to show, differences, histograms."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

from rusbeir.audit.port_checks.segment_checks import FLAGS_MEANING
from rusbeir.errors import require

MAX_SHOWN_CHARS = 1500
"""The longest text on a page, in characters; longer ones are truncated with a note."""
MAX_COMPARED = 70_000
"""The pairs of equal words, spaces among them, up to which differences are looked for in full: a few seconds."""
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
# Characters that a page must not contain, and those that change the direction of the text after them.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff\ud800-\udfff]"
)


def clean_text(text: str, chars: int = MAX_SHOWN_CHARS) -> str:
    """The text with control characters replaced by �, truncated to that many characters with a note of its length.

    >>> clean_text("a\\x00b")
    'a�b'
    """
    short = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text[:chars])
    return short if len(text) <= chars else f"{short} … ({len(text):,} characters)"


def find_differences(before: str, after: str) -> list[tuple[str, str, str]]:
    """(how, words of before, words of after): "equal", "replace", "delete" or "insert".

    >>> find_differences("a red cat", "a cat")
    [('equal', 'a ', 'a '), ('delete', 'red ', ''), ('equal', 'cat', 'cat')]
    """
    old, new = _WORDS.findall(clean_text(before)), _WORDS.findall(clean_text(after))
    # Where a few words make up both texts, comparing all their places takes minutes; autojunk leaves those words out.
    counts = Counter(new)
    many = sum(counts[word] for word in old) > MAX_COMPARED
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=many)
    return [(how, "".join(old[a:b]), "".join(new[c:d])) for how, a, b, c, d in matcher.get_opcodes()]


def draw_bars(heights: Sequence[int], *, width: int = 360, height: int = 90) -> list[tuple[float, float, float, float]]:
    """(x, y, width, height) of the bars of a histogram in a drawing of that size."""
    step, top = width / len(heights), max([*heights, 1])
    return [(round(i * step, 1), round(height * (1 - n / top), 1), round(step - 1, 1), round(height * n / top, 1))
            for i, n in enumerate(heights)]  # fmt: skip


@cache
def template_environment() -> Any:
    """The jinja2 environment of the pages, in which everything is escaped."""
    jinja2 = require("jinja2", "The audit's pages", "audit")
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("rusbeir.audit"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {"shown": clean_text, "percent": lambda share: f"{share:.2%}", "number": lambda n: f"{n:,}"}
    made.globals |= {"differences": find_differences, "bars": draw_bars, "flags_meaning": FLAGS_MEANING}
    return made
