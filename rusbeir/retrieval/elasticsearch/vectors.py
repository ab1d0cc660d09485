"""Embeddings beside the text, in one index: the two halves of a hybrid. Fusing them is left to rusbeir."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval.elasticsearch import bulk, indexes, mappings
from rusbeir.retrieval.elasticsearch.connection import Server
from rusbeir.retrieval.elasticsearch.searcher import SHAPE, ElasticSearcher, answers, hits_of
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.lexical.engines import Hits, IndexKey, Terms

Kind = Literal["flat", "hnsw", "int8_hnsw"]
"""Exact; approximate by a graph; the same with a byte a number."""
Array = npt.NDArray[np.float32]

FIELD = "vector"
DEEPEST = 10_000
"""Hits that a search by vector gives at most: the server's limit of candidates."""
_QUERIES_A_REQUEST = 32
"""As text a vector takes many times its bytes."""
_MOST_DIM = 4_096
_UNIT = 1e-4
"""How far from 1 the length of a vector may be; the server allows no more."""


@dataclass(frozen=True, kw_only=True)
class VectorSearcher:
    """The embeddings of an index. Threads may share it."""

    server: Server
    index: str
    dim: int

    def search(self, queries: Array, k: int, *, candidates: int | None = None) -> list[Hits]:
        """For each row of queries [n, dim] at most k corpus rows by falling inner product.

        candidates: how many a graph looks at in each shard, at least k; more is slower and misses fewer.
        """
        if not 1 <= k <= DEEPEST:
            raise BadInput(f"A search by vector gives from 1 to {DEEPEST:,} hits, not {k:,}.")
        if queries.ndim != 2 or queries.shape[1] != self.dim:
            raise BadInput(
                f"The index {self.index} has vectors of {self.dim} numbers; the queries are {queries.shape}."
            )
        wide = min(DEEPEST, max(k, candidates or 2 * k))
        found: list[Hits] = []
        for start in range(0, len(queries), _QUERIES_A_REQUEST):
            asked = [_body(query, k, wide) for query in queries[start : start + _QUERIES_A_REQUEST]]
            answered = answers(self.server, self.index, asked, len(asked))
            found += [_inner_products(hits_of(answer)) for answer in answered]
        return found


@dataclass(frozen=True, kw_only=True)
class HybridIndex:
    """One index, asked by terms or by vectors; rows are those of the corpus in both."""

    name: str
    text: ElasticSearcher
    vectors: VectorSearcher


def build(
    server: Server, key: IndexKey, documents: Iterable[Terms], vectors: Iterable[Array], bm25: Bm25, dim: int,
    kind: Kind = "flat",
) -> HybridIndex:  # fmt: skip
    """Load documents with their vectors, or find them loaded; resumed after a kill as a load of text is.

    vectors: float32 [n, dim] blocks, rows L2-normalised, in the order of the documents; the key names what made
    them. Raises BadInput where they do not match.
    """
    if not 1 <= dim <= _MOST_DIM:
        raise BadInput(f"Elasticsearch holds vectors of 1 to {_MOST_DIM:,} numbers, not {dim:,}.")
    name = key.name(f"{indexes.PREFIX}hybrid-{kind}")
    body = mappings.body_of(bm25)
    body["mappings"]["properties"][FIELD] = {
        "type": "dense_vector", "dims": dim, "index": True, "similarity": "dot_product",
        "index_options": {"type": kind},
    }  # fmt: skip
    held = indexes.create(server, name, key, body)
    if not held.published:
        bulk.load(server, held.index, _sources(documents, vectors, bm25, dim))
        indexes.publish(server, held)
    return HybridIndex(
        name=name,
        text=ElasticSearcher(server=server, index=name, bm25=bm25),
        vectors=VectorSearcher(server=server, index=name, dim=dim),
    )


def _sources(documents: Iterable[Terms], vectors: Iterable[Array], bm25: Bm25, dim: int) -> Iterable[bulk.Source]:
    singles = (vector for block in vectors for vector in _checked(block, dim))
    for row, (terms, vector) in enumerate(zip_longest(documents, singles)):
        if terms is None or vector is None:
            raise BadInput(f"Documents and vectors are not as many: row {row} has only one of them.")
        doc_id, fields = mappings.source(row, bm25, terms)
        yield doc_id, {**fields, FIELD: vector}


def _checked(block: Array, dim: int) -> Array:
    if block.ndim != 2 or block.shape[1] != dim:
        raise BadInput(f"A block of vectors is {block.shape}, not [n, {dim}].")
    lengths = np.linalg.norm(block, axis=1)
    if not np.all(np.abs(lengths - 1) < _UNIT):
        raise BadInput("Vectors have to be L2-normalised, without zeros and NaN.")
    return np.ascontiguousarray(block, dtype=np.float32)


def _body(query: Array, k: int, candidates: int) -> dict[str, Any]:
    knn = {"field": FIELD, "query_vector": query.astype(float).tolist(), "k": k, "num_candidates": candidates}
    return {"query": {"knn": knn}, **SHAPE, "size": k}


def _inner_products(hits: Hits) -> Hits:
    """The server's score of a unit vector is (1 + inner product) / 2."""
    rows, scores = hits
    if scores and not 0 <= scores[0] <= 1 + 1e-6:
        raise BackendError(f"The server scored a unit vector with {scores[0]}.")
    return rows, [2 * score - 1 for score in scores]
