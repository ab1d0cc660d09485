"""The remembered terms of every piece of text between white space, looked up for many texts at once.

A dict of a million strings is slow because each look-up waits for memory several times in turn: it takes 2.4 times the
processor time on Cocktail's NFCorpus and on XQuAD. Here pieces are known by 64-bit hashes in flat arrays, so that the
look-ups of thousands of words wait together, and no piece is stored. The probability that any of 100 million different
pieces is taken for one of a million remembered ones is 5e-6. The look-ups of all words of a long stream take about as
long as reading it; learning new pieces takes longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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
MAX_SPANS = 1 << 17
"""Pieces whose terms are joined at a time; more would take much memory where a text has millions."""

ENCODING = "utf-16-le"
SEPARATOR = "\x1e"
"""Between texts: white space, and rarer in them than a line break."""
SPACE = ord(" ")
NO_BREAK_SPACE = 0xA0
_BASE = 0xD1342543DE82EF95
"""An odd number without a pattern; its powers weigh the codes in a hash."""
_FACTORS = np.array([[_BASE], [pow(_BASE, -1, 2**64)]], np.uint64).repeat(MAX_WINDOW_CHARS, axis=1)
_FACTORS[:, 0] = 1
_PRODUCTS = np.multiply.accumulate(_FACTORS, axis=1)
_POWERS, _INVERSES = _PRODUCTS[0], _PRODUCTS[1]
"""The powers of _BASE and those of its inverse, modulo 2**64."""

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(64 - SLOT_BITS)
_LENGTH_BITS = 32
_LENGTH = (1 << _LENGTH_BITS) - 1
_ENTRY = np.dtype([("hash", np.uint64), ("span", np.int64)])
"""Together, so that both come into the processor's cache at once."""


class LookUp(NamedTuple):
    """The pieces of some texts whose terms are known, and those that are not."""

    memory: _Memory
    spans: Array
    """Where the memory has the terms of each piece, and the separators; 0 for pieces that it does not know."""
    unknown: Array
    """The indices of the spans that are 0."""
    hashes: Array
    """The hashes of the pieces in new."""
    which: Array
    """The index in new of each unknown piece."""
    new: list[str]
    """Each unknown piece once."""


class _Memory:
    """Hashes of pieces, and the spans of their terms: positions in one pool of codes, with lengths in the lower bits.

    It only grows, so a span remains right as long as anyone has the memory. Only terms may run in several threads.
    """

    def __init__(self) -> None:
        self.full = False
        self.count = 0
        self._entries: Array = np.zeros(SLOTS, _ENTRY)
        self._pool: Array = np.zeros(1 << 16, np.uint16)
        self._pooled = 0
        self._span_of: dict[str, int] = {}
        self.separator = int(self._store([SEPARATOR])[0])

    def find(self, hashes: Array) -> tuple[Array, Array]:
        """The slot of each hash, or the free slot where it would be; and its span, 0 where the hash is unknown."""
        slots = ((hashes * _SPREAD) >> _SHIFT).astype(np.intp)
        entries = self._entries.take(slots)
        stored = entries["hash"]
        taken = np.flatnonzero((stored != hashes) & (stored != 0))
        while len(taken):
            slots[taken] = (slots[taken] + 1) & (SLOTS - 1)
            entries[taken] = self._entries.take(slots[taken])
            stored = entries["hash"][taken]
            taken = taken[(stored != hashes[taken]) & (stored != 0)]
        return slots, entries["span"].copy()

    def add(self, hashes: Array, terms: Sequence[str]) -> Array:
        """Store the terms of pieces with these distinct hashes, remember them if there is room; return the spans."""
        added = spans = self._store(terms)
        # Another thread may have added some of them since they were looked for.
        n_new = int(np.count_nonzero(self.find(hashes)[1] == 0))
        if self.count + n_new > MAX_PIECES or self._pooled > MAX_POOL_CODES:
            self.full = True
            return spans
        self.count += n_new
        while len(hashes):
            slots, first = np.unique(self.find(hashes)[0], return_index=True)
            self._entries["hash"][slots] = hashes[first]
            self._entries["span"][slots] = added[first]
            # Where several hashes have the same slot, all but one look for another.
            hashes, added = np.delete(hashes, first), np.delete(added, first)
        return spans

    def terms(self, spans: Array) -> bytes:
        """Return what the pool has in these spans, one after the other, in ENCODING."""
        lengths = spans & _LENGTH
        some = lengths > 0
        lengths, positions = lengths[some], spans[some] >> _LENGTH_BITS
        if not len(lengths):
            return b""
        # Where in the pool each code comes from: next to the code before, except for the first of a span.
        ends = np.cumsum(lengths)
        sources = np.ones(ends[-1], np.intp)
        sources[0] = positions[0]
        sources[ends[:-1]] = positions[1:] - positions[:-1] - lengths[:-1] + 1
        return self._pool.take(np.cumsum(sources, out=sources), mode="clip").tobytes()

    def _store(self, terms: Sequence[str]) -> Array:
        """Put the terms that are new into the pool, and return the span of each."""
        if new := [text for text in dict.fromkeys(terms) if text not in self._span_of]:
            # Each ends with a line feed, which no term has, so that one pass over the codes finds the lengths of all.
            codes = np.frombuffer("\n".join([*new, ""]).encode(ENCODING), np.uint16)
            ends = np.flatnonzero(codes == ord("\n"))
            starts = np.concatenate([[0], ends[:-1] + 1])
            end = self._pooled + len(codes)
            if end > len(self._pool):
                # Not changed in place: another thread may be reading it.
                self._pool = np.concatenate([self._pool, np.zeros(max(end, len(self._pool)), np.uint16)])
            self._pool[self._pooled : end] = codes
            spans = (starts + self._pooled) << _LENGTH_BITS | (ends - starts)
            self._span_of.update(zip(new, spans.tolist(), strict=True))
            self._pooled = end
        return np.array([self._span_of[text] for text in terms], np.int64)


@dataclass
class Pieces:
    """The terms of pieces, remembered up to MAX_PIECES and then forgotten together. Threads may share them."""

    memory: _Memory = field(default_factory=_Memory)
    _lock: Lock = field(default_factory=Lock)

    def find(self, texts: Sequence[str]) -> LookUp:
        """Look up the pieces of these texts."""
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
            _, spans = memory.find(hashes)
        unknown = np.flatnonzero(spans == 0)
        distinct, first, which = np.unique(hashes[unknown], return_index=True, return_inverse=True)
        new_pieces = unknown[first]
        borders_of_new = zip(starts[new_pieces].tolist(), ends[new_pieces].tolist(), strict=True)
        if len(block) == len(codes):
            new = [block[start:end] for start, end in borders_of_new]
        else:  # characters that take two codes shift positions
            new = [codes[start:end].tobytes().decode(ENCODING, "surrogatepass") for start, end in borders_of_new]
        breaks = np.searchsorted(starts, np.flatnonzero(codes == ord(SEPARATOR)))
        spans = np.insert(spans, breaks, memory.separator)
        return LookUp(memory, spans, np.flatnonzero(spans == 0), distinct, which, new)

    def lines(self, look_up: LookUp, learned: Sequence[str]) -> list[str]:
        """The terms of each text joined by single spaces. learned: those of the new pieces, a space before each."""
        memory, spans, unknown, hashes, which, new = look_up
        if new:
            with self._lock:
                spans[unknown] = memory.add(hashes, learned)[which]
                if memory.full and self.memory is memory:
                    self.memory = _Memory()
        parts = [memory.terms(spans[start : start + MAX_SPANS]) for start in range(0, len(spans), MAX_SPANS)]
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
            np.cumsum(window * _POWERS[: len(window)], out=sums[1 : len(window) + 1])
            begin, end = starts[first:last] - start, ends[first:last] - start
            hashes[first:last] = (sums.take(end) - sums.take(begin)) * _INVERSES.take(begin)
            first = last
        hashes[hashes == 0] = 1
        return hashes
