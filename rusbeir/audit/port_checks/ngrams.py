"""Count the n-grams that two texts have in common, for many pairs of texts at once.

Each n-gram is a prefix of the longest n-gram at its position. So only the longest are packed into 64-bit numbers and
sorted, once for all pairs; truncated to their first n units they are still sorted, equal ones next to one another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
_KEY_BITS = 64


def count_shared(first: Sequence[Sequence[int]], second: Sequence[Sequence[int]], orders: int) -> Ints:
    """Count the n-grams that each pair of texts has in common, for n from 1: int64 [pairs, orders].

    Texts are sequences of numbers from 0. An n-gram found twice in one and three times in the other counts twice.

    >>> count_shared([[1, 2, 1, 2]], [[1, 2, 3]], 2).tolist()
    [[2, 1]]
    """
    lengths = np.fromiter(map(len, chain(first, second)), dtype=np.int64, count=2 * len(first))
    units = np.fromiter(chain.from_iterable(chain(first, second)), dtype=np.uint32, count=int(lengths.sum()))
    return count_shared_units(units, lengths, orders)


def count_shared_units(units: NDArray[np.uint32], lengths: Ints, orders: int) -> Ints:
    """Count them for concatenated texts of these lengths: all texts of the first side, then all of the second."""
    n = len(lengths) // 2
    if n == 0 or len(units) == 0:
        return np.zeros((n, orders), dtype=np.int64)
    names = np.zeros(int(units.max()) + 1, dtype=np.uint32)
    names[units] = 1
    n_units = int(names.sum())
    bits = n_units.bit_length()
    if orders * bits + 1 + (n - 1).bit_length() > _KEY_BITS:
        return _count_in_halves(units, lengths, orders) if n > 1 else _count_one_pair(units, int(lengths[0]), orders)
    # Units are renumbered from 1 without gaps; 0 marks the end of each text.
    names = np.cumsum(names, dtype=np.uint32)
    texts = np.repeat(np.arange(2 * n), lengths)
    positions = np.arange(len(units)) + (orders - 1) * texts
    padded = np.zeros(len(units) + (orders - 1) * 2 * n, dtype=np.uint64)
    padded[positions] = names[units]
    grams = padded[: len(padded) - orders + 1].copy()
    for k in range(1, orders):
        grams <<= np.uint64(bits)
        grams |= padded[k : len(padded) - orders + 1 + k]
    keys = grams[positions] << np.uint64(1)
    keys |= (texts >= n).astype(np.uint64)
    keys |= (texts % n).astype(np.uint64) << np.uint64(orders * bits + 1)
    keys.sort()
    of_second = np.zeros(len(keys) + 1, dtype=np.int64)
    np.cumsum(keys & np.uint64(1), out=of_second[1:])
    counts = np.zeros((n, orders), dtype=np.int64)
    for order in range(1, orders + 1):
        cut = keys >> np.uint64(1 + bits * (orders - order))
        starts = np.flatnonzero(np.concatenate(([True], cut[1:] != cut[:-1])))
        ends = np.append(starts[1:], len(keys))
        seconds = of_second[ends] - of_second[starts]
        common = np.minimum(ends - starts - seconds, seconds)
        heads = cut[starts]
        # Where the last unit is 0, the text ended before n units.
        common[(heads & np.uint64((1 << bits) - 1)) == 0] = 0
        pairs = (heads >> np.uint64(bits * order)).astype(np.int64)
        counts[:, order - 1] = np.bincount(pairs, weights=common, minlength=n)
    return counts


def _count_in_halves(units: NDArray[np.uint32], lengths: Ints, orders: int) -> Ints:
    """Count half of the pairs at a time: they have fewer different units, so that numbers are shorter."""
    n = len(lengths) // 2
    ends = np.concatenate(([0], np.cumsum(lengths)))
    parts = []
    for start, stop in ((0, n // 2), (n // 2, n)):
        sides = [(start, stop), (n + start, n + stop)]
        some = np.concatenate([units[ends[a] : ends[b]] for a, b in sides])
        parts.append(count_shared_units(some, np.concatenate([lengths[a:b] for a, b in sides]), orders))
    return np.concatenate(parts)


def _count_one_pair(units: NDArray[np.uint32], split: int, orders: int) -> Ints:
    """Count one pair that has too many different units for its n-grams to fit into 64 bits."""
    texts: list[list[Any]] = [units[:split].tolist(), units[split:].tolist()]
    row = []
    for order in range(1, orders + 1):
        first, second = (Counter(zip(*(text[k:] for k in range(order)), strict=False)) for text in texts)
        row.append((first & second).total())
    return np.array([row], dtype=np.int64)


def split_by_size(sizes: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Ranges (start, stop) of consecutive items whose sizes add up to at most the limit, or of a single larger item.

    >>> split_by_size([4, 4, 9, 1], 8)
    [(0, 2), (2, 3), (3, 4)]
    """
    cuts, total = [0], 0
    for i, size in enumerate(sizes):
        if total and total + size > limit:
            cuts.append(i)
            total = 0
        total += size
    return list(pairwise([*cuts, len(sizes)])) if sizes else []
