"""The alarm for texts that analyse to nothing, such as Russian under a tokeniser that knows ASCII alone."""

from __future__ import annotations

from typing import Literal

TOLERATED_DOCUMENTS = 0.01


def empty_warning(kind: Literal["documents", "queries"], n_empty: int, n_total: int) -> str | None:
    """One line where more than 1 % of the documents, or any query, has no terms; None where all is well.

    >>> empty_warning("documents", 1, 100) is None
    True
    >>> empty_warning("queries", 1, 100)
    '1 of 100 queries (1.00 %) have no terms after analysis and can find nothing; check language and profile.'
    """
    tolerated = TOLERATED_DOCUMENTS * n_total if kind == "documents" else 0
    if n_empty <= tolerated:
        return None
    effect = "can find nothing" if kind == "queries" else "cannot be found"
    share = f"{n_empty:,} of {n_total:,} {kind} ({100 * n_empty / n_total:.2f} %)"
    return f"{share} have no terms after analysis and {effect}; check language and profile."
