"""Many texts at once: the remembered terms of every piece of text between white space.

A dict of a million strings is slow because each look-up waits for memory several times in turn. Here pieces are known
by 64-bit hashes in flat arrays, so that the look-ups of thousands of words wait together, and no piece is stored.
That one of 100 million different pieces is taken for one of a million remembered ones has a probability of 5e-6.
The look-ups of all words of a long stream take about as long as reading it; to learn new pieces takes longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

SLOT_BITS = 21
SLOTS = 1 << SLOT_BITS
MAX_PIECES = SLOTS // 2
MAX_POOL_CODES = 1 << 25
MAX_WINDOW_CHARS = 1 << 16
"""Text hashed at a time; little enough that the arrays, eight bytes a character, stay in the processor's cache."""
MAX_PLACES = 1 << 17
"""Pieces whose terms are put together at a time; more would take much memory where one text has millions."""

ENCODING = "utf-16-le"
SEPARATOR = "\x1e"
"""Between texts: white space, and rarer in them than a line break."""
SPACE = ord(" ")
NO_BREAK_SPACE = 0xA0
_BASE = 0xD1342543DE82EF95
"""An odd number without a pattern; its powers weigh the codes in a hash."""

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(64 - SLOT_BITS)
_LENGTH_BITS = 32
_LENGTH = (1 << _LENGTH_BITS) - 1
_ENTRY = np.dtype([("hash", np.uint64), ("place", np.int64)])
"""Together, so that both come into the processor's cache at once."""


class Found(NamedTuple):
    """What is known of some texts."""

    memory: _Memory
    places: Array
    """The places of each piece's terms, and of the separators."""
    unknown: Array
    """Which of the places are to come."""
    hashes: Array
    """The hashes of the pieces in new."""
    which: Array
    """For each unknown one its number in new."""
    new: list[str]
    """Each unknown piece once."""


class Pieces:
    """The terms of pieces, remembered up to MAX_PIECES and then forgotten together. Threads may share them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.memory = _Memory()
        # The powers of _BASE and those of its inverse, modulo 2**64.
        factors = np.array([[_BASE], [pow(_BASE, -1, 2**64)]], np.uint64).repeat(MAX_WINDOW_CHARS, axis=1)
        factors[:, 0] = 1
        self._powers, self._inverses = np.multiply.accumulate(factors, axis=1)

    def find(self, texts: Sequence[str]) -> Found:
        """What is known of these texts, and which pieces are not."""
        block = SEPARATOR.join(texts)
        if block.count(SEPARATOR) >= len(texts):
            block = SEPARATOR.join([text.replace(SEPARATOR, " ") for text in texts])
        codes = np.frombuffer(block.encode(ENCODING, "surrogatepass"), np.uint16)
        # Pieces may contain rarer kinds of white space, at which learning splits them.
        solid = np.zeros(len(codes) + 2, bool)
        np.logical_and(codes > SPACE, codes != NO_BREAK_SPACE, out=solid[1:-1])
        borders = np.flatnonzero(solid[1:] != solid[:-1])
        starts, ends = borders[::2], borders[1::2]
        hashes = self._hashes(codes, starts, ends)
        with self._lock:
            memory = self.memory
            _, places = memory.find(hashes)
        unknown = np.flatnonzero(places == 0)
        distinct, first, which = np.unique(hashes[unknown], return_index=True, return_inverse=True)
        at = unknown[first]
        spans = zip(starts[at].tolist(), ends[at].tolist(), strict=True)
        if len(block) == len(codes):
            new = [block[start:end] for start, end in spans]
        else:  # characters that take two codes shift positions
            new = [codes[start:end].tobytes().decode(ENCODING, "surrogatepass") for start, end in spans]
        breaks = np.searchsorted(starts, np.flatnonzero(codes == ord(SEPARATOR)))
        places = np.insert(places, breaks, memory.separator)
        return Found(memory, places, np.flatnonzero(places == 0), distinct, which, new)

    def lines(self, found: Found, learned: Sequence[str]) -> list[str]:
        """The terms of each text joined by single spaces. learned: those of the new pieces, a space before each."""
        memory, places, unknown, hashes, which, new = found
        if new:
            with self._lock:
                places[unknown] = memory.add(hashes, learned)[which]
                if memory.full and self.memory is memory:
                    self.memory = _Memory()
        parts = [memory.terms(places[start : start + MAX_PLACES]) for start in range(0, len(places), MAX_PLACES)]
        return [line[1:] for line in b"".join(parts).decode(ENCODING).split(SEPARATOR)]

    def _hashes(self, codes: Array, starts: Array, ends: Array) -> Array:
        """A 64-bit hash of each piece, the sum of its codes times powers of a large number; never 0."""
        hashes: Array = np.empty(len(starts), np.uint64)
        sums = np.zeros(MAX_WINDOW_CHARS + 1, np.uint64)
        first = 0
        while first < len(starts):
            start = starts[first]
            last = int(np.searchsorted(ends, start + MAX_WINDOW_CHARS, "right"))
            if last == first:  # one very long piece
                piece = codes[start : ends[first]].tobytes()
                hashes[first] = int.from_bytes(blake2b(piece, digest_size=8).digest(), "little")
                first += 1
                continue
            window = codes[start : ends[last - 1]]
            np.cumsum(window * self._powers[: len(window)], out=sums[1 : len(window) + 1])
            begin, end = starts[first:last] - start, ends[first:last] - start
            hashes[first:last] = (sums.take(end) - sums.take(begin)) * self._inverses.take(begin)
            first = last
        hashes[hashes == 0] = 1
        return hashes


class _Memory:
    """Hashes of pieces, and the places of their terms: positions in one pool of codes, with lengths in the lower bits.

    It only grows, so that a place is right as long as anyone has the memory; only terms is for several threads at once.
    """

    def __init__(self) -> None:
        self.full = False
        self.count = 0
        self._entries: Array = np.zeros(SLOTS, _ENTRY)
        self._pool: Array = np.zeros(1 << 16, np.uint16)
        self._pooled = 0
        self._place_of: dict[str, int] = {}
        self.separator = int(self._places([SEPARATOR])[0])

    def find(self, hashes: Array) -> tuple[Array, Array]:
        """The slot of each hash, or the free slot where it would be; the place, 0 where the hash is unknown."""
        slots = ((hashes * _SPREAD) >> _SHIFT).astype(np.intp)
        entries = self._entries.take(slots)
        there = entries["hash"]
        taken = np.flatnonzero((there != hashes) & (there != 0))
        while len(taken):
            slots[taken] = (slots[taken] + 1) & (SLOTS - 1)
            entries[taken] = self._entries.take(slots[taken])
            there = entries["hash"][taken]
            taken = taken[(there != hashes[taken]) & (there != 0)]
        return slots, entries["place"].copy()

    def add(self, hashes: Array, terms: Sequence[str]) -> Array:
        """The places of these terms, which belong to pieces with these distinct hashes; remembered if there is room."""
        added = places = self._places(terms)
        # Others may have added some of them since they were looked for.
        n_new = int(np.count_nonzero(self.find(hashes)[1] == 0))
        if self.count + n_new > MAX_PIECES or self._pooled > MAX_POOL_CODES:
            self.full = True
            return places
        self.count += n_new
        while len(hashes):
            slots, first = np.unique(self.find(hashes)[0], return_index=True)
            self._entries["hash"][slots] = hashes[first]
            self._entries["place"][slots] = added[first]
            # Where several wanted the same slot, all but one look for another.
            hashes, added = np.delete(hashes, first), np.delete(added, first)
        return places

    def terms(self, places: Array) -> bytes:
        """What is at these places, one after the other, in ENCODING."""
        lengths = places & _LENGTH
        some = lengths > 0
        lengths, positions = lengths[some], places[some] >> _LENGTH_BITS
        if not len(lengths):
            return b""
        # Where in the pool each code comes from: one place further than the code before, but for the first of a place.
        ends = np.cumsum(lengths)
        sources = np.ones(ends[-1], np.intp)
        sources[0] = positions[0]
        sources[ends[:-1]] = positions[1:] - positions[:-1] - lengths[:-1] + 1
        return self._pool.take(np.cumsum(sources, out=sources), mode="clip").tobytes()

    def _places(self, terms: Sequence[str]) -> Array:
        """Where the pool has these terms."""
        if new := [text for text in dict.fromkeys(terms) if text not in self._place_of]:
            # Each ends with a line feed, which no term has, so that one pass over the codes finds the lengths of all.
            codes = np.frombuffer("\n".join([*new, ""]).encode(ENCODING), np.uint16)
            ends = np.flatnonzero(codes == ord("\n"))
            starts = np.concatenate([[0], ends[:-1] + 1])
            end = self._pooled + len(codes)
            if end > len(self._pool):
                # Not changed in place: another thread may be reading it.
                self._pool = np.concatenate([self._pool, np.zeros(max(end, len(self._pool)), np.uint16)])
            self._pool[self._pooled : end] = codes
            places = (starts + self._pooled) << _LENGTH_BITS | (ends - starts)
            self._place_of.update(zip(new, places.tolist(), strict=True))
            self._pooled = end
        return np.array([self._place_of[text] for text in terms], np.int64)
