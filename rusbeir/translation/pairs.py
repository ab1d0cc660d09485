"""Pairs of a text and its translation, read from .jsonl, .tsv and .tmx files (.gz too), one at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

import orjson

from rusbeir.datasets.files import open_file
from rusbeir.datasets.records import Place, not_utf8
from rusbeir.errors import BadInput
from rusbeir.translation.tmx import read_tmx

TSV_HEADER = b"# rusbeir tsv: \\t \\n \\r \\\\ stand for tab, line feed, carriage return, backslash\n"
"""Begins the .tsv files that we write. In any other .tsv a backslash is a backslash."""

_ESCAPED = re.compile(r"\\([tnr\\])")
_UNESCAPED = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}


class TextPair(NamedTuple):
    """A text and its translation."""

    source: str
    target: str


def read_pairs(path: str | Path, source: str, target: str) -> Iterator[TextPair]:
    """The pairs of a file, in its order. The languages, BCP 47, choose the variants of a .tmx.

    .jsonl has the keys source and target, .tsv two columns (a header "source, target" is skipped). Raises BadInput,
    with file and line, for what is neither, and for a .tmx that declares entities.

    >>> next(read_pairs("xquad.tmx", "en", "ru"))  # doctest: +SKIP
    TextPair(source='What is the Rankine cycle?', target='Что такое цикл Ренкина?')
    """
    path = Path(path)
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if suffix not in _READERS:
        raise BadInput(f"{path}: a translation memory is a .jsonl, .tsv or .tmx file, or one of them with .gz.")
    with open_file(path) as file:
        yield from _READERS[suffix](file, str(path), source, target)


def _read_jsonl(file: IO[bytes], name: str, source: str, target: str) -> Iterator[TextPair]:
    for number, line in enumerate(file, 1):
        if line.isspace():
            continue
        place = Place(name, number)
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            reason = not_utf8(place, line)
            message = reason[2] if reason else f"not JSON ({str(error).split(': line ')[0]})"
            raise BadInput(f"{place}: {message}.") from error
        pair = (record.get("source"), record.get("target")) if isinstance(record, dict) else (None, None)
        if not isinstance(pair[0], str) or not isinstance(pair[1], str):
            raise BadInput(f'{place}: expected {{"source": "…", "target": "…"}}.')
        yield TextPair(pair[0], pair[1])


def _read_tsv(file: IO[bytes], name: str, source: str, target: str) -> Iterator[TextPair]:
    escaped = False
    for number, line in enumerate(file, 1):
        if number == 1 and line == TSV_HEADER:
            escaped = True
            continue
        if line.isspace() and b"\t" not in line:
            continue
        place = Place(name, number)
        if problem := not_utf8(place, line):
            raise BadInput(f"{place}: {problem[2]}.")
        columns = line.decode().removesuffix("\n").removesuffix("\r").split("\t")
        if len(columns) != 2:
            raise BadInput(f"{place}: {len(columns)} columns; a line is: source, tab, target.")
        if number == 1 and [column.lower() for column in columns] in (["source", "target"], [source, target]):
            continue
        yield TextPair(*(map(_unescape, columns) if escaped else columns))


def _unescape(column: str) -> str:
    return _ESCAPED.sub(lambda match: _UNESCAPED[match[1]], column)


def _read_tmx(file: IO[bytes], name: str, source: str, target: str) -> Iterator[TextPair]:
    return (TextPair(*pair) for pair in read_tmx(file, name, source, target))


_READERS: dict[str, Callable[[IO[bytes], str, str, str], Iterator[TextPair]]] = {
    ".jsonl": _read_jsonl,
    ".tsv": _read_tsv,
    ".tmx": _read_tmx,
}
