"""Pairs of a text and its translation, written to .tmx, .tsv and .jsonl files (.gz too)."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import orjson

from rusbeir.errors import BadInput
from rusbeir.storage import atomic_file
from rusbeir.translation.pairs import TSV_HEADER
from rusbeir.translation.tmx import TMX_TAIL, tmx_head, tmx_unit

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def write_pairs(path: str | Path, pairs: Iterable[tuple[str, str]], source: str, target: str) -> int:
    """Write (source, target) pairs, in their order, and give back how many; read_pairs reads them back equal.

    A .tsv escapes tabs, line ends and backslashes, and says so in its first line. The same pairs give the same bytes,
    in a .gz too. Raises BadInput for another ending.

    >>> write_pairs("xquad.tmx", [("Yes.", "Да.")], "en", "ru")  # doctest: +SKIP
    1
    """
    path = Path(path)
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if suffix not in _WRITERS:
        raise BadInput(f"{path}: pairs are written as .jsonl, .tsv or .tmx, or one of them with .gz.")
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
