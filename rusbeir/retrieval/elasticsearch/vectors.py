"""Vectors on a server, searched exactly or by a graph; an index may hold text in addition.

Such an index serves both halves of a hybrid; rusbeir fuses them, as Elasticsearch's own fusion is a paid feature.
OpenSearch holds vectors by its k-NN plugin, which its distribution has: its graphs are Lucene's, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rusbeir.errors import BackendError, BadInput, option
from rusbeir.retrieval.elasticsearch import bulk, connection, indexes, mappings
from rusbeir.retrieval.elasticsearch.connection import Server
from rusbeir.retrieval.elasticsearch.engine import SHAPE, ElasticSearcher, answers
from rusbeir.retrieval.encoding.embedding_store import EmbeddingStore
from rusbeir.retrieval.encoding.encoded_corpus import EncodedCorpus
from rusbeir.retrieval.encoding.encoder import Vectors
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.lexical.engines import AT, SERVERS, Hits, IndexKey, Terms
from rusbeir.types import Progress

Kind = Literal["flat", "hnsw", "int8_hnsw"]
"""Exact search; a graph, which is approximate; a graph with a byte for each number."""
Array = npt.NDArray[np.float32]

FIELD = "vector"
MAX_HITS = 10_000
"""Hits that a search by vector gives at most: the server's limit of candidates."""
_QUERIES_PER_REQUEST = 32
"""A vector takes many times its bytes as text."""
_MAX_DIM = 4_096
_UNIT = 1e-4
"""How far from 1 the length of a vector may be; the server allows no more."""

KINDS: Mapping[str, Kind] = {"es-flat": "flat", "es-hnsw": "hnsw", "es-int8_hnsw": "int8_hnsw"}
"""Value of the option index -> Elasticsearch's word for it."""

CANDIDATES = 100
"""What a graph looks at in each shard, at least; twice the hits asked for where that is more."""
_SPACE = "cosinesimil"
"""OpenSearch's similarity whose scores of unit vectors are those of Elasticsearch's dot_product."""
_BLOCK_ROWS = 1_000
_TEXT = Bm25()
"""The index has this text field and leaves it empty: the terms of a corpus are in the index of `bm25`."""


@dataclass(frozen=True, kw_only=True)
class ElasticVectors:
    """The vectors of one corpus on a server."""

    searcher: VectorSearcher
    kind: str
    max_hits: int = MAX_HITS

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
        """Search exactly or by the graph: inner products [n, k] and rows [n, k], by falling score and then by row.

        Rows are -1 where there are fewer hits.
        """
        hits = self.searcher.search(queries, k, candidates=max(CANDIDATES, 2 * k))
        return _make_table(hits, k)


def signature(kind: str, server: Server) -> str:
    """Name the kind of index and the server's release, where it says: its Lucene makes the graph."""
    return f"{kind}:{CANDIDATES}|{server.release}"


def connect(engine: str, kind: str) -> Server:
    """Name the server of the engine. Raises BadInput for an engine that has none."""
    name, _, address = engine.partition(AT)
    if name not in SERVERS:
        raise BadInput(
            f"index={kind} is on a server: add {option('engine', 'elasticsearch')} or opensearch, and "
            f"{option('es_url', python='the address in engine=')} if it is not here."
        )
    return connection.connect(address, name)


def open_index(
    server: Server,
    kind: str,
    key: IndexKey,
    encoded: EncodedCorpus,
    store: EmbeddingStore,
    progress: Progress,
) -> ElasticVectors:
    """Open the vectors of the encoded corpus on the server, loaded first where they are missing.

    Raises BackendError where the server has lost some.
    """
    count = len(encoded.rows)
    documents = ((str(row), ("",)) for row in range(count))
    blocks = _blocks(encoded, store, progress)
    index = build(server, key, documents, blocks, _TEXT, store.dim or 0, KINDS[kind])
    indexes.check_count(server, index.name, count)
    return ElasticVectors(searcher=index.vectors, kind=kind)


def _blocks(encoded: EncodedCorpus, store: EmbeddingStore, progress: Progress) -> Iterator[Array]:
    rows = encoded.rows
    for start in range(0, len(rows), _BLOCK_ROWS):
        block = store.read(rows[start : start + _BLOCK_ROWS].tolist())
        # The server wants unit length to 1e-4; half precision misses it by more.
        yield block / np.linalg.norm(block, axis=1, keepdims=True)
        progress("load vectors", min(start + _BLOCK_ROWS, len(rows)), len(rows))


def _make_table(answered: list[Hits], k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
    scores = np.full((len(answered), k), -np.inf, dtype=np.float32)
    rows = np.full((len(answered), k), -1, dtype=np.int64)
    for number, (hits, values) in enumerate(answered):
        scores[number, : len(hits)] = values
        rows[number, : len(hits)] = hits
    return scores, rows


@dataclass(frozen=True, kw_only=True)
class VectorSearcher:
    """The embeddings of an index. Threads may share it."""

    server: Server
    index: str
    dim: int
    kind: Kind = "flat"

    def search(self, queries: Array, k: int, *, candidates: int | None = None) -> list[Hits]:
        """Find for each row of queries [n, dim] at most k corpus rows by falling inner product.

        A graph looks at that many candidates in each shard, at least k; more is slower and misses fewer.
        """
        if not 1 <= k <= MAX_HITS:
            raise BadInput(f"A search by vector gives from 1 to {MAX_HITS:,} hits, not {k:,}.")
        if queries.ndim != 2 or queries.shape[1] != self.dim:
            raise BadInput(
                f"The index {self.index} has vectors of {self.dim} numbers; the queries are {queries.shape}."
            )
        wide = min(MAX_HITS, max(k, candidates or 2 * k))
        hits: list[Hits] = []
        for start in range(0, len(queries), _QUERIES_PER_REQUEST):
            bodies = [
                {"query": self._build_query(query, k, wide), **SHAPE, "size": k}
                for query in queries[start : start + _QUERIES_PER_REQUEST]
            ]
            hits += map(_inner_products, answers(self.server, self.index, bodies, len(bodies)))
        return hits

    def _build_query(self, query: Array, k: int, candidates: int) -> dict[str, Any]:
        vector = query.astype(float).tolist()
        if self.server.product == connection.ELASTICSEARCH:
            return {"knn": {"field": FIELD, "query_vector": vector, "k": k, "num_candidates": candidates}}
        if self.kind == "flat":
            script = {"field": FIELD, "query_value": vector, "space_type": _SPACE}
            scored = {"source": "knn_score", "lang": "knn", "params": script}
            return {"script_score": {"query": {"match_all": {}}, "script": scored}}
        return {"knn": {FIELD: {"vector": vector, "k": k, "method_parameters": {"ef_search": candidates}}}}


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
    """Load documents with their vectors where they are missing; a load that was killed resumes, as one of text does.

    Vectors are float32 [n, dim] blocks, rows L2-normalised, in the order of the documents; the key names what made
    them. Raises BadInput where they do not match, and BackendError where the server cannot hold vectors.
    """
    if not 1 <= dim <= _MAX_DIM:
        raise BadInput(f"A server holds vectors of 1 to {_MAX_DIM:,} numbers, not {dim:,}.")
    name = key.name(f"{indexes.PREFIX}hybrid-{kind}")
    body = mappings.body_of(bm25, server)
    if server.product == connection.OPENSEARCH:
        # Without a graph the vectors are only stored, and a script compares them all.
        body["settings"]["knn"] = kind != "flat"
    body["mappings"]["properties"][FIELD] = _map_vectors(server.product, kind, dim)
    try:
        held = indexes.create(server, name, key, body)
    except BackendError as error:
        if "knn" not in str(error):
            raise
        raise BackendError(
            f"{server.address} lacks the k-NN plugin, which holds the vectors of OpenSearch. Install it, or search "
            f"them on this machine: leave out index=es-{kind}."
        ) from error
    if not held.published:
        bulk.load(server, held.index, _pair(documents, vectors, bm25, dim))
        indexes.publish(server, held)
    return HybridIndex(
        name=name,
        text=ElasticSearcher(server=server, index=name, bm25=bm25),
        vectors=VectorSearcher(server=server, index=name, dim=dim, kind=kind),
    )


def _pair(documents: Iterable[Terms], vectors: Iterable[Array], bm25: Bm25, dim: int) -> Iterable[bulk.Source]:
    singles = (vector for block in vectors for vector in _check(block, dim))
    for row, (terms, vector) in enumerate(zip_longest(documents, singles)):
        if terms is None or vector is None:
            raise BadInput(f"There are not as many documents as vectors: row {row} has only one of them.")
        doc_id, fields = mappings.source(row, bm25, terms)
        yield doc_id, {**fields, FIELD: vector}


def _check(block: Array, dim: int) -> Array:
    if block.ndim != 2 or block.shape[1] != dim:
        raise BadInput(f"A block of vectors is {block.shape}, not [n, {dim}].")
    lengths = np.linalg.norm(block, axis=1)
    if not np.all(np.abs(lengths - 1) < _UNIT):
        raise BadInput("Vectors have to be L2-normalised, without zeros and NaN.")
    return np.ascontiguousarray(block, dtype=np.float32)


def _map_vectors(product: str, kind: Kind, dim: int) -> dict[str, Any]:
    if product == connection.ELASTICSEARCH:
        options = {"index": True, "similarity": "dot_product", "index_options": {"type": kind}}
        return {"type": "dense_vector", "dims": dim, **options}
    graph: dict[str, Any] = {"name": "hnsw", "engine": "lucene", "space_type": _SPACE}
    if kind == "int8_hnsw":
        graph["parameters"] = {"encoder": {"name": "sq"}}
    return {"type": "knn_vector", "dimension": dim, **({} if kind == "flat" else {"method": graph})}


def _inner_products(hits: Hits) -> Hits:
    """Turn the server's scores of unit vectors, (1 + inner product) / 2, into inner products."""
    rows, scores = hits
    if scores and not 0 <= scores[0] <= 1 + 1e-6:
        raise BackendError(f"The server scored a unit vector with {scores[0]}.")
    return rows, [2 * score - 1 for score in scores]
