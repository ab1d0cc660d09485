"""Many texts at once: the remembered terms of every piece of text between white space.

A dict of a million strings is slow because each look-up waits for memory several times in turn. Here pieces are known
by 64-bit hashes in flat arrays, so that the look-ups of thousands of words wait together, and no piece is stored.
That one of 100 million different pieces is taken for one of a million remembered ones has a probability of 5e-6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

SLOT_BITS = 21
SLOTS = 1 << SLOT_BITS
MAX_PIECES = SLOTS // 2
MAX_WINDOW_CHARS = 1 << 16
"""Text analysed at a time; little enough that most arrays stay in the processor's cache."""

ENCODING = "utf-16-le"
NEWLINE = ord("\n")
SPACE = ord(" ")
NO_BREAK_SPACE = 0xA0
_BASE = 0xD1342543DE82EF95
"""An odd number without a pattern; its powers weigh the codes in a hash."""

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(64 - SLOT_BITS)
_LENGTH_BITS = 24


def pack(texts: Sequence[str]) -> bytes:
    """Texts as one block, one per line, which is made, sent and read much faster than many strings.

    A line break inside a text becomes a space, which is the same to analysis.
    """
    block = "\n".join(texts)
    if block.count("\n") >= len(texts):
        block = "\n".join([text.replace("\n", " ") for text in texts])
    return block.encode(ENCODING, "surrogatepass")


def unpack(analysed: bytes) -> list[str]:
    """The lines of a block that analyse returned."""
    return [line[1:] for line in analysed.decode(ENCODING).split("\n")]


class Pieces:
    """The terms of pieces, remembered up to MAX_PIECES and then forgotten together. For one thread at a time."""

    def __init__(self, learn: Callable[[list[str]], list[str]]) -> None:
        """learn returns the terms of each of some pieces, with a space before each term."""
        self._learn = learn
        self._forget()

    def analyse(self, packed: bytes) -> bytes:
        """The terms of each line of a packed block, with a space before each term, as such a block."""
        codes = np.frombuffer(packed, np.uint16)
        return b"".join([self._terms_of(window) for window in _windows(codes)])

    def _terms_of(self, codes: Array) -> bytes:
        solid = np.zeros(len(codes) + 2, bool)
        solid[1:-1] = _solid(codes)
        borders = np.flatnonzero(solid[1:] != solid[:-1])
        starts, ends = borders[::2], borders[1::2]
        if len(codes) > MAX_WINDOW_CHARS:  # a single very long piece, not worth remembering
            return "".join(self._learn(_texts(codes, starts, ends))).encode(ENCODING)
        # A 64-bit hash of each piece, the sum of its codes times powers of a large number; never 0.
        powers, inverses = _powers()
        sums = np.zeros(len(codes) + 1, np.uint64)
        np.cumsum(codes * powers[: len(codes)], out=sums[1:])
        hashes: Array = (sums[ends] - sums[starts]) * inverses[starts]
        hashes[hashes == 0] = 1
        slots = self._slots(hashes)
        unknown = np.flatnonzero(self._hashes[slots] != hashes)
        if len(unknown):
            new, positions = np.unique(hashes[unknown], return_index=True)
            if self._count + len(new) > MAX_PIECES:
                self._forget()
                return self._terms_of(codes)
            at = unknown[positions]
            self._remember(new, self._learn(_texts(codes, starts[at], ends[at])))
            slots[unknown] = self._slots(hashes[unknown])
        breaks = np.searchsorted(starts, np.flatnonzero(codes == NEWLINE))
        places = np.insert(self._places[slots], breaks, self._place("\n"))
        # The terms of all pieces together: where in the pool each character comes from.
        lengths = places & ((1 << _LENGTH_BITS) - 1)
        ends = np.cumsum(lengths)
        sources = np.repeat((places >> _LENGTH_BITS) - ends + lengths, lengths)
        sources += np.arange(len(sources))
        found: Array = self._pool[sources]
        return bytes(found)

    def _forget(self) -> None:
        self._count = 0
        self._hashes: Array = np.zeros(SLOTS, np.uint64)
        self._places: Array = np.zeros(SLOTS, np.int64)
        self._place_of: dict[str, int] = {}
        self._pool: Array = np.zeros(1 << 16, np.uint16)
        self._pooled = 0

    def _place(self, terms: str) -> int:
        """Where the pool holds these terms: their position and, in the lower bits, their number of codes."""
        if (place := self._place_of.get(terms)) is None:
            codes = np.frombuffer(terms.encode(ENCODING), np.uint16)
            end = self._pooled + len(codes)
            while end > len(self._pool):
                self._pool = np.concatenate([self._pool, np.zeros_like(self._pool)])
            self._pool[self._pooled : end] = codes
            place = self._place_of[terms] = self._pooled << _LENGTH_BITS | len(codes)
            self._pooled = end
        return place

    def _remember(self, hashes: Array, terms: list[str]) -> None:
        places = np.array([self._place(text) for text in terms], np.int64)
        self._count += len(hashes)
        while len(hashes):
            slots, first = np.unique(self._slots(hashes), return_index=True)
            self._hashes[slots] = hashes[first]
            self._places[slots] = places[first]
            # Where several wanted the same slot, all but one look for another.
            hashes, places = np.delete(hashes, first), np.delete(places, first)

    def _slots(self, hashes: Array) -> Array:
        """The slot of each hash, or the free slot where it would be."""
        slots = ((hashes * _SPREAD) >> _SHIFT).astype(np.intp)
        there = self._hashes[slots]
        taken = np.flatnonzero((there != hashes) & (there != 0))
        while len(taken):
            slots[taken] = (slots[taken] + 1) & (SLOTS - 1)
            there = self._hashes[slots[taken]]
            taken = taken[(there != hashes[taken]) & (there != 0)]
        return slots


def _texts(codes: Array, starts: Array, ends: Array) -> list[str]:
    """The pieces themselves."""
    text = codes.tobytes().decode(ENCODING, "surrogatepass")
    borders = zip(starts.tolist(), ends.tolist(), strict=True)
    if len(text) == len(codes):
        return [text[start:end] for start, end in borders]
    # Characters that take two codes shift positions.
    return [codes[start:end].tobytes().decode(ENCODING, "surrogatepass") for start, end in borders]


def _windows(codes: Array) -> Iterator[Array]:
    """The codes in windows, cut between pieces; a piece that is too long for a window has a longer one to itself."""
    start = 0
    while len(codes) - start > MAX_WINDOW_CHARS:
        end = start + MAX_WINDOW_CHARS
        for tail in (MAX_WINDOW_CHARS // 64, MAX_WINDOW_CHARS):
            if len(spaces := np.flatnonzero(~_solid(codes[end - tail : end]))):
                end += int(spaces[-1]) + 1 - tail
                break
        else:
            beyond = np.flatnonzero(~_solid(codes[end:]))
            end = end + int(beyond[0]) if len(beyond) else len(codes)
        yield codes[start:end]
        start = end
    yield codes[start:]


def _solid(codes: Array) -> Array:
    """Whether each code belongs to a piece. Pieces may contain rarer kinds of white space, which learn splits too."""
    solid: Array = (codes > SPACE) & (codes != NO_BREAK_SPACE)
    return solid


@cache
def _powers() -> tuple[Array, Array]:
    """The powers of _BASE and those of its inverse, modulo 2**64."""
    factors = np.array([[_BASE], [pow(_BASE, -1, 2**64)]], np.uint64).repeat(MAX_WINDOW_CHARS, axis=1)
    factors[:, 0] = 1
    powers, inverses = np.multiply.accumulate(factors, axis=1)
    return powers, inverses
