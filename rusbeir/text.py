"""Small operations that several rooms need: a short line, a name for a file, a digest, items in batches."""

from __future__ import annotations

import csv
import hashlib
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _csv import Reader

T = TypeVar("T")

SHORT_CHARS = 200
LINE_CHARS = 1000
MAX_CELL_CHARS = 1 << 24
"""The longest cell of a CSV file: Python's own limit, 131,072 characters, is below that of some documents."""
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_UNPAIRED = re.compile("[\ud800-\udfff]")
_MARKUP = re.compile(r"[\\`*_\[\]<>#|~]")


def shorten(text: str, max_chars: int = SHORT_CHARS) -> str:
    """Return the text on one line, at most max_chars characters long; an ellipsis marks what was left out.

    >>> shorten("one  two\\nthree", 10)
    'one two t…'
    """
    # Only the head is normalised: a message may quote a text of megabytes.
    line = " ".join(text[: 4 * max_chars].split())
    return line if len(line) <= max_chars and len(text) <= 4 * max_chars else line[: max_chars - 1] + "…"


def make_line(message: str) -> str:
    """Put the message on one printable line of at most LINE_CHARS characters; its middle is left out.

    What a terminal would obey, such as an escape, is written as Python writes it in a string.

    >>> make_line("a\\x1b[2J\\n b")
    'a\\\\x1b[2J b'
    """
    if len(message) > 4 * LINE_CHARS:
        # It may quote an id of megabytes; file and remedy are at its ends.
        message = f"{message[: 2 * LINE_CHARS]} … {message[-2 * LINE_CHARS :]}"
    words = " ".join(message.split())
    line = words if words.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words)
    half = (LINE_CHARS - 3) // 2
    return line if len(line) <= LINE_CHARS else f"{line[:half]} … {line[-half:]}"


def has_control(text: str) -> bool:
    """Return whether a text, such as an id, has a control character (NUL, a tab, a line end, an escape).

    >>> has_control("q2"), has_control("q2\\x00")
    (False, True)
    """
    return _CONTROL.search(text) is not None


def replace_surrogates(value: Any) -> Any:
    """Return a value of json.loads, which joins pairs, with U+FFFD for each surrogate that is left.

    >>> replace_surrogates({"label": ["half \\ud83d"]})
    {'label': ['half \ufffd']}
    """
    if isinstance(value, str):
        return value if value.isascii() else _UNPAIRED.sub("\ufffd", value)
    if isinstance(value, list):
        return [replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {replace_surrogates(key): replace_surrogates(item) for key, item in value.items()}
    return value


def hide_passwords(text: str) -> str:
    """Return the text without the user names and passwords of the URLs in it.

    >>> hide_passwords("403 for https://me:secret@example.org/v1")
    '403 for https://***@example.org/v1'
    """
    return re.sub(r"(?<=://)[^/?#\s]*@", "***@", text)


def slug(text: str, max_chars: int = 80) -> str:
    """Return the text as a readable file name in lower-case ASCII letters, digits, dots and hyphens.

    >>> slug("bm25(k1=0.9) >> rerank(M)")
    'bm25-k1-0.9-rerank-m'
    """
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:max_chars]


def write_command(*words: object) -> str:
    """Write the command of rusbeir with these words, quoted where a shell needs it; messages print no other ones.

    >>> write_command("audit", "check", "my port", "--back-translator", "NAME")
    "rusbeir audit check 'my port' --back-translator NAME"
    """
    return shlex.join(["rusbeir", *map(str, words)])


def read_csv(lines: Iterable[str], delimiter: str = ",") -> Reader:
    """Read the rows of CSV text.

    Raises csv.Error, which the caller words, for wrong quotes and for cells longer than MAX_CELL_CHARS.

    >>> list(read_csv(["a,'b'", '"c, d",e']))
    [['a', "'b'"], ['c, d', 'e']]
    """
    csv.field_size_limit(MAX_CELL_CHARS)
    return csv.reader(lines, delimiter=delimiter, strict=True)


def digest(*parts: str, chars: int = 32) -> str:
    """Return the first chars hex digits of the sha256 over the parts, each ended by a line feed; names cached files.

    >>> digest("a", "b", chars=8)
    '911169dd'
    """
    joined = "".join(f"{part}\n" for part in parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogateescape")).hexdigest()[:chars]


def batched(
    items: Iterable[T], size: int, *, chars: Callable[[T], int] | None = None, max_chars: int = 0
) -> Iterator[list[T]]:
    """Yield the items in lists of that size, the last perhaps shorter; items are read as lists are asked for.

    Where chars tells the length of an item, a list also ends with the item by which it has max_chars or more.
    """
    rest = iter(items)
    if chars is None:
        while batch := list(islice(rest, size)):
            yield batch
        return
    left = max_chars
    batch = []
    for item in rest:
        batch.append(item)
        left -= chars(item)
        if left <= 0 or len(batch) >= size:
            yield batch
            batch, left = [], max_chars
    if batch:
        yield batch


def escape_markdown(value: object, *, code: bool = False, max_chars: int = SHORT_CHARS) -> str:
    """Return the value as Markdown shows it unchanged, shortened; code: for a place between backticks.

    >>> escape_markdown("x\\n# <b>y"), escape_markdown("a`b", code=True)
    ('x \\\\# \\\\<b\\\\>y', "a'b")
    """
    line = one_line(value, max_chars)
    return line.replace("`", "'") if code else _MARKUP.sub(r"\\\g<0>", line)


def one_line(value: object, max_chars: int = SHORT_CHARS) -> str:
    """Return the value on one printable line, shortened."""
    return make_line(shorten(str(value), max_chars))
