"""How each text of a port was cut, in a file beside the journal, so that it is cut once and not again to be joined.

A line a text: the lengths of its pieces, those that are not translated below zero: "14 -1 20" for a text of 35
characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rusbeir.datasets.files import open_file
from rusbeir.errors import BadInput
from rusbeir.translation.segment import Piece


def line_of(pieces: Iterable[Piece]) -> bytes:
    """The line of a text that was cut into these pieces."""
    return b"%s\n" % " ".join([str(len(text) if sent else -len(text)) for text, sent in pieces]).encode()


def pieces_of(lines: Iterable[Sequence[int]], texts: Iterable[str], path: Path) -> Iterator[list[Piece]]:
    """The pieces of each text. Raises BadInput, naming the file, where it was made of other texts."""
    lengths = iter(lines)
    for text in texts:
        pieces = []
        start = 0
        for length in next(lengths, ()):
            end = start + abs(length)
            pieces.append(Piece(text[start:end], length > 0))
            start = end
        if start != len(text):
            raise BadInput(f"{path} does not fit its source any more: remove it, and the texts are cut again.")
        yield pieces


def read_lines(path: Path) -> Iterator[list[int]]:
    """The lengths of each text's pieces."""
    with open_file(path) as file:
        for line in file:
            yield list(map(int, line.split()))
