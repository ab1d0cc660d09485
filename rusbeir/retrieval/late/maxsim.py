"""Exact MaxSim: the sum, over a query's vectors, of the greatest inner product with a vector of the document."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from rusbeir.retrieval.encoding.encoder import Vectors
from rusbeir.retrieval.encoding.token_vectors import TokenVectors
from rusbeir.retrieval.late.token_store import TokenReader
from rusbeir.retrieval.rerank.token_scores import EMPTY_SCORE

BLOCK_NUMBERS = 16 << 20
"""The most numbers of the documents' vectors, and of their products with queries, that are in memory at a time."""
QUERY_TOKENS = 2_048
"""The most vectors of queries that are compared with a block together; a query may have more."""
_NEAR = 1e-5
"""Scores that differ by less, for each vector of the query, may differ by rounding."""


def search(
    queries: TokenVectors,
    documents: TokenReader,
    rows: npt.NDArray[np.uint32],
    k: int,
    *,
    block_numbers: int = BLOCK_NUMBERS,
) -> list[tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]:
    """Find for each query the k best scores and their documents, by falling score; equal scores by document.

    rows are the rows of the documents in the store; a document is an index into them. What is near the k-th score is
    computed again in double precision, so that no result depends on the blocks.
    """
    distinct, document_of = np.unique(rows, return_inverse=True)
    best = [(np.empty(0, np.float32), np.empty(0, np.int64))] * len(queries)
    for start, block in _read_blocks(documents, distinct, block_numbers):
        for query, scores in _score_block(queries, block, block_numbers):
            indices = np.concatenate([best[query][1], np.arange(start, start + len(block))])
            n_vectors = int(queries.borders[query + 1] - queries.borders[query])
            best[query] = _take_near(np.concatenate([best[query][0], scores]), indices, k, n_vectors)
        del block
    copies = _Copies(document_of, len(distinct))
    return [
        _rank(query, documents, distinct[indices], copies.find(indices), k)
        for query, (_, indices) in zip(queries, best, strict=True)
    ]


class _Copies:
    """The documents that have the same row, so the same text."""

    def __init__(self, document_of: npt.NDArray[np.int64], count: int) -> None:
        self._order = np.argsort(document_of, kind="stable")
        self._borders = np.searchsorted(document_of[self._order], np.arange(count + 1))

    def find(self, indices: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
        """Return the documents of each distinct row, in corpus order."""
        return [self._order[self._borders[index] : self._borders[index + 1]] for index in indices.tolist()]


def _read_blocks(
    documents: TokenReader, rows: npt.NDArray[np.uint32], block_numbers: int
) -> Iterator[tuple[int, TokenVectors]]:
    start = 0
    while start < len(rows):
        step = max(1, block_numbers // max(1, documents.dim))
        block = documents.read(rows[start : start + step], max_tokens=step)
        yield start, block
        start += len(block)


def _score_block(
    queries: TokenVectors, block: TokenVectors, block_numbers: int
) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
    """Yield each query's index and its scores with the documents of the block, float32."""
    lengths = np.diff(block.borders)
    for first, last in _group_queries(queries.borders):
        vectors = queries.vectors[queries.borders[first] : queries.borders[last]]
        starts = queries.borders[first:last] - queries.borders[first]
        scores = np.full((len(block), last - first), EMPTY_SCORE, np.float32)
        for length in np.unique(lengths[lengths > 0]).tolist():
            chosen = np.flatnonzero(lengths == length)
            step = max(1, block_numbers // max(1, length * max(vectors.shape)))
            for at in range(0, len(chosen), step):
                some = chosen[at : at + step]
                tokens = block.vectors[(block.borders[some][:, None] + np.arange(length)).reshape(-1)]
                products = tokens.astype(np.float32, copy=False) @ vectors.T
                greatest = products.reshape(len(some), length, -1).max(axis=1)
                scores[some] = _sum_parts(greatest, starts)
        yield from ((first + number, column) for number, column in enumerate(np.ascontiguousarray(scores.T)))


def _sum_parts(numbers: Vectors, starts: npt.NDArray[np.int64]) -> Vectors:
    """Sum the columns of each query, which begin at starts; a query may have none."""
    sums = np.zeros((len(numbers), numbers.shape[1] + 1))
    np.cumsum(numbers, axis=1, out=sums[:, 1:])
    ends = np.append(starts[1:], numbers.shape[1])
    return (sums[:, ends] - sums[:, starts]).astype(np.float32)


def _group_queries(borders: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last query, exclusive, of groups with at most QUERY_TOKENS vectors, or of one query."""
    first = 0
    while first < len(borders) - 1:
        last = int(np.searchsorted(borders, borders[first] + QUERY_TOKENS, side="right")) - 1
        last = max(first + 1, last)
        yield first, last
        first = last


def _take_near(
    scores: npt.NDArray[np.float32], indices: npt.NDArray[np.int64], k: int, n_vectors: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Keep the k best scores, and those that are as good but for rounding."""
    if len(scores) <= k:
        return scores, indices
    near = scores >= np.partition(scores, -k)[-k] - _NEAR * n_vectors
    return scores[near], indices[near]


def _rank(
    query: Vectors,
    documents: TokenReader,
    rows: npt.NDArray[np.uint32],
    copies: list[npt.NDArray[np.int64]],
    k: int,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return the k best of those documents, by scores in double precision."""
    vectors = query.astype(np.float64)
    exact = [_score(vectors, document) for document in documents.read(rows)] if len(rows) else []
    scores = np.repeat(np.array(exact, np.float32), [len(same) for same in copies])
    numbers = np.concatenate([np.empty(0, np.int64), *copies])
    order = np.lexsort((numbers, -scores))[:k]
    return scores[order], numbers[order]


def _score(query: npt.NDArray[np.float64], document: npt.NDArray[np.floating]) -> float:
    if not len(document):
        return EMPTY_SCORE
    return float((document.astype(np.float64) @ query.T).max(axis=0).sum())
