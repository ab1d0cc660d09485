"""The report as one HTML page that needs nothing besides itself and runs nothing."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rusbeir.errors import MissingExtra
from rusbeir.storage import atomic_file

SHOWN_CHARS = 1500
"""Of a text; what is longer is cut, and says so."""
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
# Those that no page may hold, and those that turn the direction of what follows.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff\ud800-\udfff]"
)


def write_page(path: Path, report: Mapping[str, Any]) -> None:
    """Write the report of check_port as a page."""
    with atomic_file(path) as file:
        file.write(environment().get_template("report.html.j2").render(report=report).encode())


def shown(text: str, chars: int = SHOWN_CHARS) -> str:
    """The text as a page may show it: control characters as �, and no longer than that.

    >>> shown("a\\x00b")
    'a�b'
    """
    short = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text[:chars])
    return short if len(text) <= chars else f"{short} … ({len(text):,} characters)"


def differences(before: str, after: str) -> list[tuple[str, str, str]]:
    """(how, words of before, words of after): "equal", "replace", "delete" or "insert".

    >>> differences("a red cat", "a cat")
    [('equal', 'a ', 'a '), ('delete', 'red ', ''), ('equal', 'cat', 'cat')]
    """
    old, new = _WORDS.findall(shown(before)), _WORDS.findall(shown(after))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [(how, "".join(old[a:b]), "".join(new[c:d])) for how, a, b, c, d in matcher.get_opcodes()]


def bars(heights: Sequence[int], *, width: int = 360, height: int = 90) -> list[tuple[float, float, float, float]]:
    """(x, y, width, height) of the bars of a histogram in a drawing of that size."""
    step, top = width / len(heights), max([*heights, 1])
    return [(round(i * step, 1), round(height * (1 - n / top), 1), round(step - 1, 1), round(height * n / top, 1))
            for i, n in enumerate(heights)]  # fmt: skip


@cache
def environment() -> Any:
    """Templates in which everything is escaped."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise MissingExtra("Pages need jinja2: pip install 'rusbeir[audit]'") from error
    made = Environment(
        loader=PackageLoader("rusbeir.audit"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {"shown": shown, "percent": lambda share: f"{share:.2%}", "number": lambda n: f"{n:,}"}
    made.globals |= {"differences": differences, "bars": bars}
    return made
