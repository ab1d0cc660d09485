"""nDCG of one ranking under every order of hits with equal scores: expected, lowest and highest, all exact.

Scores are equal where trec_eval holds them for equal, in single precision. An order of ties says nothing about the
system: trec_eval's is by falling document id, and another corpus has other ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rusbeir.evaluation import Floats

Places: TypeAlias = NDArray[np.intp]

ORDERS = ("trec_eval", "reversed", "expected", "lowest", "highest")
"""trec_eval's order, its reverse within each group of equal scores, the mean over all orders, and their bounds."""
TREC_EVAL, REVERSED, EXPECTED, LOWEST, HIGHEST = range(len(ORDERS))


class OrderScores(NamedTuple):
    """One query under the ORDERS."""

    ndcg: Floats
    """float64 [orders, judgements, cutoffs]."""
    shares: Floats
    """float64 [orders, groups, cutoffs]: the share of hits in the top k that is of each group."""
    is_cut: bool
    """Whether hits that tie with the last of the deepest top k may be missing, as the run ends with them."""


def score_tie_orders(
    hits: Mapping[str, float],
    judgements: Sequence[Mapping[str, int]],
    cutoffs: Sequence[int],
    *,
    group_of: Callable[[str], int],
    n_groups: int,
    depth: int,
) -> OrderScores:
    """Return the nDCG of a query's hits by several judgements, and the share of each group of documents in its top k.

    judgements: {doc_id: grade} each; grades below 1 are not relevant. group_of gives the number of a document's group.
    Where every judgement is of other documents, one order is the lowest for the one and the highest for all others.
    """
    deepest = max(cutoffs)
    doc_ids = list(hits)
    with np.errstate(over="ignore"):
        scores = np.fromiter(hits.values(), dtype=np.float32, count=len(hits))
    # As trec_eval: by falling score, equal scores by falling id.
    values = scores.tolist()
    ranked = sorted(range(len(doc_ids)), key=lambda row: (values[row], doc_ids[row]), reverse=True)
    ordered = scores[ranked]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ranked)])
    end = next((int(start) for start in starts if start >= deepest), len(ranked))
    top = [doc_ids[row] for row in ranked[:end]]
    starts = starts[starts < end]
    sizes = np.diff(starts, append=end)
    discounts = 1 / np.log2(np.arange(2, deepest + 2))
    gains = np.array([[max(grades.get(doc_id, 0), 0) for doc_id in top] for grades in judgements], dtype=np.float64)
    ideal = np.zeros((len(judgements), deepest))
    for row, grades in enumerate(judgements):
        best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:deepest]
        ideal[row, : len(best)] = best
    members = np.zeros((n_groups, end))
    members[[group_of(doc_id) for doc_id in top], np.arange(end)] = 1

    ranks = np.array(cutoffs) - 1
    reached = _cumulate(gains.reshape(len(judgements), end), starts, sizes, discounts)[..., ranks]
    reachable = np.cumsum(ideal * discounts, axis=1)[:, ranks]
    ndcg = np.divide(reached, reachable, out=np.zeros_like(reached), where=reachable > 0)
    shares = _cumulate(members, starts, sizes, np.ones(deepest))[..., ranks]
    shares /= np.maximum(np.minimum(np.array(cutoffs), len(hits)), 1)
    return OrderScores(ndcg=ndcg, shares=shares, is_cut=0 < end == len(hits) >= depth)


def _cumulate(gains: Floats, starts: Places, sizes: Places, discounts: Floats) -> Floats:
    """The sums of discounted gains down to each rank, float64 [orders, rows, ranks], of gains by rank [rows, hits]."""
    n_rows, n_hits = gains.shape
    sums = np.zeros((len(ORDERS), n_rows, len(discounts)))
    if not n_hits:
        return sums
    group = np.repeat(np.arange(len(sizes)), sizes)
    ordered = np.empty((len(ORDERS), n_rows, n_hits))
    ordered[TREC_EVAL] = gains
    # A group's first and last rank add up to the same as those of any hit and its place in the reverse.
    ordered[REVERSED] = gains[:, np.repeat(2 * starts + sizes - 1, sizes) - np.arange(n_hits)]
    # In a random order, each rank of a group has the mean gain of the group.
    ordered[EXPECTED] = np.repeat(np.add.reduceat(gains, starts, axis=1) / sizes, sizes, axis=1)
    for number, row in enumerate(gains):
        ordered[LOWEST, number] = row[np.lexsort((row, group))]
        ordered[HIGHEST, number] = row[np.lexsort((-row, group))]
    n = min(n_hits, len(discounts))
    sums[..., :n] = ordered[..., :n] * discounts[:n]
    total: Floats = np.cumsum(sums, axis=-1)
    return total
