"""Read and write pairs of a text and its translation, one at a time: .jsonl, .tsv and .tmx files, .gz too."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple

import orjson

from rusbeir.datasets import Place, not_utf8, open_file
from rusbeir.errors import BadInput
from rusbeir.storage import atomic_file
from rusbeir.translation.tm.tmx import TMX_TAIL, read_tmx, tmx_head, tmx_unit

TSV_HEADER = b"# rusbeir tsv: \\t \\n \\r \\\\ stand for tab, line feed, carriage return, backslash\n"
"""The first line of .tsv files that rusbeir writes. In any other .tsv a backslash is a backslash."""

_ESCAPED = re.compile(r"\\([tnr\\])")
_UNESCAPED = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}


class TextPair(NamedTuple):
    """A text and its translation."""

    source: str
    target: str


def read_pairs(path: str | Path, source: str, target: str) -> Iterator[TextPair]:
    """Read the pairs of a file, in its order. The languages, BCP 47, select the variants of a .tmx.

    .jsonl has the keys source and target, .tsv two columns (a header "source, target" is skipped). Raises BadInput,
    with file and line, for any other content, and for a .tmx that declares entities.

    >>> next(read_pairs("xquad.tmx", "en", "ru"))  # doctest: +SKIP
    TextPair(source='What is the Rankine cycle?', target='Что такое цикл Ренкина?')
    """
    path = Path(path)
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if suffix not in _READERS:
        raise BadInput(f"{path}: a translation memory is a .jsonl, .tsv or .tmx file, or one of these with .gz.")
    with open_file(path) as file:
        yield from _READERS[suffix](file, str(path), source, target)


def _read_jsonl(file: IO[bytes], name: str, source: str, target: str) -> Iterator[TextPair]:
    for number, line in enumerate(file, 1):
        if line.isspace():
            continue
        location = Place(name, number)
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            reason = not_utf8(location, line)
            message = reason[2] if reason else f"not JSON ({str(error).split(': line ')[0]})"
            raise BadInput(f"{location}: {message}.") from error
        pair = (record.get("source"), record.get("target")) if isinstance(record, dict) else (None, None)
        if not isinstance(pair[0], str) or not isinstance(pair[1], str):
            raise BadInput(f'{location}: expected {{"source": "…", "target": "…"}}.')
        yield TextPair(pair[0], pair[1])


def _read_tsv(file: IO[bytes], name: str, source: str, target: str) -> Iterator[TextPair]:
    escaped = False
    for number, line in enumerate(file, 1):
        if number == 1 and line == TSV_HEADER:
            escaped = True
            continue
        if line.isspace() and b"\t" not in line:
            continue
        location = Place(name, number)
        if problem := not_utf8(location, line):
            raise BadInput(f"{location}: {problem[2]}.")
        columns = line.decode().removesuffix("\n").removesuffix("\r").split("\t")
        if len(columns) != 2:
            raise BadInput(f"{location}: {len(columns)} columns; a line is: source, tab, target.")
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


_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def write_pairs(path: str | Path, pairs: Iterable[tuple[str, str]], source: str, target: str) -> int:
    """Write (source, target) pairs, in their order, and return how many; read_pairs reads the same pairs back.

    A .tsv escapes tabs, line ends and backslashes, as its first line says. The same pairs give the same bytes, also in
    a .gz. Raises BadInput for another ending.

    >>> write_pairs("xquad.tmx", [("Yes.", "Да.")], "en", "ru")  # doctest: +SKIP
    1
    """
    path = Path(path)
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if suffix not in _WRITERS:
        raise BadInput(f"{path}: pairs are written as .jsonl, .tsv or .tmx, or one of these with .gz.")
    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(atomic_file(path))
        if path.suffix == ".gz":
            packed = stack.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
            file = stack.enter_context(io.BufferedWriter(packed, 1 << 16))
        return _WRITERS[suffix](file, pairs, source, target)


def _write_jsonl(file: IO[bytes], pairs: Iterable[tuple[str, str]], source: str, target: str) -> int:
    count = 0
    for text, translation in pairs:
        file.write(orjson.dumps({"source": text, "target": translation}) + b"\n")
        count += 1
    return count


def _write_tsv(file: IO[bytes], pairs: Iterable[tuple[str, str]], source: str, target: str) -> int:
    file.write(TSV_HEADER)
    count = 0
    for text, translation in pairs:
        file.write(f"{text.translate(_ESCAPES)}\t{translation.translate(_ESCAPES)}\n".encode())
        count += 1
    return count


def _write_tmx(file: IO[bytes], pairs: Iterable[tuple[str, str]], source: str, target: str) -> int:
    file.write(tmx_head(source).encode())
    count = 0
    for text, translation in pairs:
        file.write(tmx_unit(source, target, text, translation).encode())
        count += 1
    file.write(TMX_TAIL.encode())
    return count


_WRITERS: dict[str, Callable[[IO[bytes], Iterable[tuple[str, str]], str, str], int]] = {
    ".jsonl": _write_jsonl,
    ".tsv": _write_tsv,
    ".tmx": _write_tmx,
}
