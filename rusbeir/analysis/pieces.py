"""Many texts at once: for every piece between white space, the terms that were worked out for it before.

A dict of a million strings is slow because each look-up waits for memory several times in turn. Here pieces are known
by 64-bit hashes in flat arrays, so that the look-ups of thousands of words wait side by side, and no piece is kept.
That one of 100 million different pieces is taken for one of a million remembered ones has a probability of 5e-6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

SLOT_BITS = 21
SLOTS = 1 << SLOT_BITS
MAX_PIECES = SLOTS // 2
WINDOW_CHARS = 1 << 17
"""So much text is worked on at a time that the arrays stay in the processor's cache."""

ENCODING = "utf-16-le"
NEWLINE = ord("\n")
SPACE = ord(" ")
NO_BREAK_SPACE = 0xA0
_BASE = 0xD1342543DE82EF95
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(64 - SLOT_BITS)


def pack(texts: Iterable[str]) -> bytes:
    """Texts as one block, a line each, which is made, sent and read far faster than many strings.

    A line break inside a text becomes a space: to analysis the two are the same.
    """
    return "\n".join([text.replace("\n", " ") for text in texts]).encode(ENCODING, "surrogatepass")


def unpack(packed: bytes) -> list[str]:
    """The texts of the block; a block of no text counts as one empty text."""
    return packed.decode(ENCODING, "surrogatepass").split("\n")


class Pieces:
    """The terms of pieces, remembered up to MAX_PIECES and then forgotten all at once. For one thread at a time."""

    def __init__(self, learn: Callable[[list[str]], list[str]]) -> None:
        """learn gives, for each of some pieces, its terms with a space before each term."""
        self._learn = learn
        self._forget()

    def analyse(self, packed: bytes) -> bytes:
        """The terms of each line of the block joined by single spaces, as such a block."""
        codes = np.frombuffer(packed, np.uint16)
        lines = "".join([self._lines(window) for window in _windows(codes)])
        return lines.replace("\n ", "\n").removeprefix(" ").encode(ENCODING)

    def _lines(self, codes: Array) -> str:
        starts, ends = _borders(codes)
        breaks = np.searchsorted(starts, np.flatnonzero(codes == NEWLINE))
        if len(codes) > WINDOW_CHARS:  # one endless piece, not worth remembering
            return "".join(self._learn([_text(codes, *border) for border in zip(starts, ends, strict=True)]))
        hashes = _hashes(codes, starts, ends)
        slots = self._slots(hashes)
        unknown = np.flatnonzero(self._hashes[slots] != hashes)
        if len(unknown):
            new, positions = np.unique(hashes[unknown], return_index=True)
            if self._count + len(new) > MAX_PIECES:
                self._forget()
                return self._lines(codes)
            at = unknown[positions]
            pieces = [_text(codes, start, end) for start, end in zip(starts[at], ends[at], strict=True)]
            self._remember(new, self._learn(pieces))
            slots[unknown] = self._slots(hashes[unknown])
        ids = np.insert(self._ids[slots], breaks, 0)
        return "".join(self._terms[ids].tolist())

    def _forget(self) -> None:
        self._count = 0
        self._hashes: Array = np.zeros(SLOTS, np.uint64)
        self._ids: Array = np.zeros(SLOTS, np.int32)
        self._terms: Array = np.empty(1024, object)
        self._terms[0] = "\n"
        self._id_of = {"\n": 0}

    def _remember(self, hashes: Array, terms: list[str]) -> None:
        ids = np.array([self._id_of.setdefault(text, len(self._id_of)) for text in terms], np.int32)
        while len(self._id_of) > len(self._terms):
            self._terms = np.concatenate([self._terms, np.empty_like(self._terms)])
        self._terms[ids] = np.array([*terms, None], object)[:-1]
        self._count += len(hashes)
        while len(hashes):
            slots, first = np.unique(self._slots(hashes), return_index=True)
            self._hashes[slots] = hashes[first]
            self._ids[slots] = ids[first]
            # Of those that were after the same slot, all but one look for another.
            hashes, ids = np.delete(hashes, first), np.delete(ids, first)

    def _slots(self, hashes: Array) -> Array:
        """Where each hash stands, or the free slot where it would."""
        slots = ((hashes * _SPREAD) >> _SHIFT).astype(np.intp)
        there = self._hashes[slots]
        taken = np.flatnonzero((there != hashes) & (there != 0))
        while len(taken):
            slots[taken] = (slots[taken] + 1) & (SLOTS - 1)
            there = self._hashes[slots[taken]]
            taken = taken[(there != hashes[taken]) & (there != 0)]
        return slots


def _text(codes: Array, start: int, end: int) -> str:
    return codes[start:end].tobytes().decode(ENCODING, "surrogatepass")


def _windows(codes: Array) -> Iterator[Array]:
    """The codes in turn, cut before white space; a piece that no window holds comes in a longer one."""
    start = 0
    while len(codes) - start > WINDOW_CHARS:
        spaces = np.flatnonzero(~_solid(codes[start + 1 : start + WINDOW_CHARS]))
        if len(spaces):
            end = start + 1 + int(spaces[-1])
        else:
            beyond = np.flatnonzero(~_solid(codes[start + WINDOW_CHARS :]))
            end = start + WINDOW_CHARS + int(beyond[0]) if len(beyond) else len(codes)
        yield codes[start:end]
        start = end
    yield codes[start:]


def _solid(codes: Array) -> Array:
    """Whether each code belongs to a piece. Pieces may hold the rarer kinds of white space: learn parts them too."""
    return (codes > SPACE) & (codes != NO_BREAK_SPACE)


def _borders(codes: Array) -> tuple[Array, Array]:
    """Where pieces start and end."""
    solid = np.zeros(len(codes) + 2, bool)
    solid[1:-1] = _solid(codes)
    borders = np.flatnonzero(solid[1:] != solid[:-1])
    return borders[::2], borders[1::2]


def _hashes(codes: Array, starts: Array, ends: Array) -> Array:
    """A 64-bit hash of each piece, the sum of its codes times powers of a random number; never 0."""
    powers, inverses = _powers()
    sums = np.zeros(len(codes) + 1, np.uint64)
    np.cumsum(codes * powers[: len(codes)], out=sums[1:])
    hashes: Array = (sums[ends] - sums[starts]) * inverses[starts]
    hashes[hashes == 0] = 1
    return hashes


@cache
def _powers() -> tuple[Array, Array]:
    """The powers of a random odd number and those of its inverse, modulo 2**64."""

    def powers(number: int) -> Array:
        factors = np.full(WINDOW_CHARS, number, np.uint64)
        factors[0] = 1
        return np.multiply.accumulate(factors)

    return powers(_BASE), powers(pow(_BASE, -1, 2**64))
