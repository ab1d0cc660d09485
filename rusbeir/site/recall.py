"""How many of the relevant documents a system finds among its first hits, by their number."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable

DEPTHS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1_000)


def measure_recall(ranking: Iterable[str], relevant: Collection[str]) -> list[float]:
    """Compute the share of the relevant documents among as many first hits as each of DEPTHS; 0 where none is relevant.

    >>> measure_recall(["a", "b", "c"], {"b", "d"})[:4]
    [0.0, 0.5, 0.5, 0.5]
    """
    ranks = [rank for rank, doc_id in enumerate(ranking, 1) if doc_id in relevant]
    return [bisect_right(ranks, depth) / max(1, len(relevant)) for depth in DEPTHS]
