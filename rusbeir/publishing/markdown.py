"""Words of a dataset's card in a page of Markdown: on one line, of bounded length, and as text, not as markup."""

from __future__ import annotations

import re

from rusbeir.text import make_line, shorten

NAME_CHARS = 200
_MARKUP = re.compile(r"[\\`*_\[\]<>#|~]")


def escape(value: object, *, code: bool = False, max_chars: int = NAME_CHARS) -> str:
    """The value as Markdown shows it unchanged, shortened; code: for a place between backticks.

    >>> escape("x\\n# <b>y"), escape("a`b", code=True)
    ('x \\\\# \\\\<b\\\\>y', "a'b")
    """
    line = one_line(value, max_chars)
    return line.replace("`", "'") if code else _MARKUP.sub(r"\\\g<0>", line)


def one_line(value: object, max_chars: int = NAME_CHARS) -> str:
    """The value on one printable line, shortened."""
    return make_line(shorten(str(value), max_chars))
