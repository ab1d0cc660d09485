"""The audit's pages: their verdict, templates, texts that are safe to show, differences."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from rusbeir.audit.port_checks.segment_checks import FLAGS_MEANING
from rusbeir.pages import make_environment

PAGE: Final = "report.html"
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
    """Find (how, words of before, words of after): "equal", "replace", "delete" or "insert".

    >>> find_differences("a red cat", "a cat")
    [('equal', 'a ', 'a '), ('delete', 'red ', ''), ('equal', 'cat', 'cat')]
    """
    old, new = _WORDS.findall(clean_text(before)), _WORDS.findall(clean_text(after))
    # Where a few words make up both texts, comparing all their places takes minutes; autojunk leaves those words out.
    counts = Counter(new)
    many = sum(counts[word] for word in old) > MAX_COMPARED
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=many)
    return [(how, "".join(old[a:b]), "".join(new[c:d])) for how, a, b, c, d in matcher.get_opcodes()]


@cache
def template_environment() -> Any:
    """Return the jinja2 environment of the pages, in which everything is escaped."""
    environment = make_environment(Path(__file__).parent.parent / "templates", "The audit's pages", "audit")
    environment.filters["shown"] = clean_text
    environment.globals |= {"differences": find_differences, "flags_meaning": FLAGS_MEANING}
    environment.globals |= {"verdict": say_verdict, "parts": list_parts}
    return environment


def say_verdict(report: Mapping[str, Any]) -> str:
    """Say in one sentence whether the gates hold, or what was found where no gate was set.

    >>> say_verdict({"gates": {"asked": "flagged<=2%", "failed": []}})
    'Good enough: the gate flagged<=2% holds.'
    """
    gates = report["gates"]
    if not gates:
        sentence = f"{report['flagged']['share']:.2%} of the segments are flagged"
        if (score := report["levels"].get("documents", {}).get("chrF")) is not None:
            sentence += f", and chrF of the documents' back-translation is {score:.1f}"
        return f"No gate was set: {sentence}.".replace("%", " %")
    conditions = gates["asked"].split(", ")
    several = len(conditions) > 1
    if gates["failed"]:
        return f"Not good enough: {len(gates['failed'])} of {len(conditions)} gate{'s' if several else ''} failed."
    return f"Good enough: the gate{'s' if several else ''} {gates['asked']} hold{'' if several else 's'}."


def list_parts(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The parts of the page worth a look, as (anchor, name): the worst segments first, then flags by their number."""
    parts = [("worst", "lowest chrF")] if report["worst"] else []
    parts += [(f"qe-{n}", f"lowest {name}") for n, name in enumerate(report["qe"], 1)]
    if report["round_trip"] and report["round_trip"]["lost"]:
        parts.append(("round-trip", "queries that lost most"))
    flags = sorted(report["examples"], key=lambda name: (-report["flags"][name]["segments"], name))
    return parts + [(f"flag-{name}", f"{name}: {report['flags'][name]['segments']:,}") for name in flags]
