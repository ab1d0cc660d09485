"""The dev and test splits of a made test set, as AIR-Bench divides its own: one to four."""

from __future__ import annotations

from collections.abc import Collection

from rusbeir.errors import BadInput
from rusbeir.text import digest

DEV_SHARE = 5
"""One id in so many goes to dev, rounded down, and at least one."""


def split_dev_test(ids: Collection[str], *, seed: int = 0) -> dict[str, list[str]]:
    """{"dev": a fifth of the ids, drawn at random, "test": the others}, both in the order given.

    The ids are those of queries, or for long documents, where all queries of one document belong together, the names
    of the datasets of one domain. The draw depends on the ids and the seed, not on the order. Raises BadInput for
    fewer than two ids.

    Examples:
        >>> split_dev_test(["q1", "q2", "q3", "q4", "q5"])
        {'dev': ['q3'], 'test': ['q1', 'q2', 'q4', 'q5']}
    """
    if len(ids) < 2:
        raise BadInput(f"A test set of {len(ids)} cannot be divided into dev and test; it needs at least 2.")
    n_dev = max(1, len(ids) // DEV_SHARE)
    drawn = set(sorted(ids, key=lambda name: digest(str(seed), name))[:n_dev])
    return {"dev": [name for name in ids if name in drawn], "test": [name for name in ids if name not in drawn]}
