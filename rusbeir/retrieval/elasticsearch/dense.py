"""An encoded corpus on an Elasticsearch server: searched exactly, or by a graph that the server makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rusbeir.errors import BadInput
from rusbeir.retrieval.dense.embedding_store import EmbeddingStore
from rusbeir.retrieval.dense.encoded_corpus import EncodedCorpus
from rusbeir.retrieval.dense.encoder import Vectors
from rusbeir.retrieval.elasticsearch import connection, indexes, vectors
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.lexical.engines import AT, Hits, IndexKey
from rusbeir.types import Progress

KINDS: Mapping[str, vectors.Kind] = {"es-flat": "flat", "es-hnsw": "hnsw", "es-int8_hnsw": "int8_hnsw"}
"""Value of the option index -> the server's word for it."""

CANDIDATES = 100
"""What a graph looks at in each shard, at least; twice the hits asked for where that is more."""
_BLOCK_ROWS = 1_000
_TEXT = Bm25()
"""The index has this field, too, and leaves it empty: the terms of a corpus lie in the index of `bm25`."""


@dataclass(frozen=True, kw_only=True)
class ElasticVectors:
    """The vectors of one corpus on a server."""

    searcher: vectors.VectorSearcher
    kind: str
    max_hits: int = vectors.DEEPEST

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
        """Inner products [n, k] and places [n, k], by falling score and then by place; -1 where there are fewer."""
        found = self.searcher.search(queries, k, candidates=max(CANDIDATES, 2 * k))
        return _table(found, k)


def signature(kind: str, server: connection.Server) -> str:
    """The kind of index and the server's release, where it tells: its Lucene makes the graph."""
    return f"{kind}:{CANDIDATES}|{server.release}"


def connect(engine: str, kind: str) -> connection.Server:
    """The server of `--engine elasticsearch`; BadInput for another engine."""
    name, _, address = engine.partition(AT)
    if name != "elasticsearch":
        raise BadInput(f"index={kind} lies on a server: add --engine elasticsearch, and --es-url if it is not here.")
    return connection.connect(address)


def open_index(
    server: connection.Server,
    kind: str,
    key: IndexKey,
    encoded: EncodedCorpus,
    store: EmbeddingStore,
    progress: Progress,
) -> ElasticVectors:
    """The vectors of the encoded corpus on the server, loaded first where they are missing.

    Raises BackendError where the server has lost some.
    """
    count = len(encoded.rows)
    documents = ((str(place), ("",)) for place in range(count))
    blocks = _blocks(encoded, store, progress)
    index = vectors.build(server, key, documents, blocks, _TEXT, store.dim or 0, KINDS[kind])
    indexes.check_count(server, index.name, count)
    return ElasticVectors(searcher=index.vectors, kind=kind)


def _blocks(encoded: EncodedCorpus, store: EmbeddingStore, progress: Progress) -> Iterator[vectors.Array]:
    rows = encoded.rows
    for start in range(0, len(rows), _BLOCK_ROWS):
        block = store.read(rows[start : start + _BLOCK_ROWS].tolist())
        # The server wants unit length to 1e-4; half precision misses it by more.
        yield block / np.linalg.norm(block, axis=1, keepdims=True)
        progress("load vectors", min(start + _BLOCK_ROWS, len(rows)), len(rows))


def _table(found: list[Hits], k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
    scores = np.full((len(found), k), -np.inf, dtype=np.float32)
    places = np.full((len(found), k), -1, dtype=np.int64)
    for row, (hits, values) in enumerate(found):
        scores[row, : len(hits)] = values
        places[row, : len(hits)] = hits
    return scores, places
