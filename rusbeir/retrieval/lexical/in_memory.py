"""BM25 of a corpus that is searched once, in memory: Lucene's scores of all documents, without an index on disk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse

from rusbeir.analysis import GRAM
from rusbeir.retrieval.lexical.bm25 import DEFAULT_GRAM_WEIGHT, Bm25
from rusbeir.retrieval.lexical.bm25s_engine import round_lengths, weigh_terms

Scores = npt.NDArray[np.float32]


def score_lines(documents: Sequence[str], queries: Sequence[str]) -> tuple[Scores, Scores]:
    """Score all documents for all queries by bm25's default parameters, by words and by grams.

    Args:
        documents: Terms separated by spaces, a line for each document; grams and words may be mixed.
        queries: The same for the queries.

    Returns:
        float32 [queries, documents] twice: the scores of words, and those of grams with the weight that a blend gives
        them. A blend scores the sum of both. 0 where a document holds none of the terms.
    """
    words = [_split_line(line, grams=False) for line in (*documents, *queries)]
    grams = [_split_line(line, grams=True) for line in (*documents, *queries)]
    return _score_terms(words, len(documents)), np.float32(DEFAULT_GRAM_WEIGHT) * _score_terms(grams, len(documents))


def _split_line(line: str, *, grams: bool) -> list[str]:
    return [term for term in line.split() if term.startswith(GRAM) == grams]


def _score_terms(texts: Sequence[Sequence[str]], n_documents: int) -> Scores:
    """Score the first texts for the others as queries."""
    vocabulary: dict[str, int] = {}
    tokens = [vocabulary.setdefault(term, len(vocabulary)) for text in texts for term in text]
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    shape = (len(texts), len(vocabulary))
    counts = scipy.sparse.csr_matrix((np.ones(len(tokens), np.float32), tokens, starts), shape=shape)
    counts.sum_duplicates()
    scores = np.zeros((len(texts) - n_documents, n_documents), np.float32)
    # As Lucene does, documents without a term are not counted.
    rows = np.flatnonzero(lengths[:n_documents])
    if len(rows):
        rounded, mean = round_lengths(lengths[rows]), lengths[rows].mean()
        weights = weigh_terms(counts[rows], rounded / mean, k1=Bm25.k1, b=Bm25.b)
        scores[:, rows] = (counts[n_documents:] @ weights.T.tocsr()).toarray()
    return scores
