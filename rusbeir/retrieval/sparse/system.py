"""`sparse(MODEL,…)` as a system: which encoder it takes, and where its weights of terms lie."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from rusbeir import __version__
from rusbeir.errors import BadInput
from rusbeir.retrieval import models, user_code
from rusbeir.retrieval.dense import encoded_corpus
from rusbeir.retrieval.dense.encoded_corpus import EncodedCorpus
from rusbeir.retrieval.sparse.encoder import SparseEncoder, Weights
from rusbeir.retrieval.sparse.weight_store import WeightReader, WeightStore
from rusbeir.retrieval.spec import Options, Spec, Stage, only_argument
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings, System
from rusbeir.storage import cache_folder
from rusbeir.types import Corpus, Doc, Progress, Queries, Run

RUNTIMES = {
    "flagembedding": "rusbeir.retrieval.bge_m3:make_sparse",
}
"""Name -> "module:function" that makes the encoder of a Model, imported on use."""

MakeEncoder: TypeAlias = Callable[[models.Model], SparseEncoder]

MODEL = "bge-m3"
OPTIONS = ("runtime", *(setting for setting in models.SETTINGS if setting != "pooling"))


@dataclass(frozen=True, kw_only=True)
class SparseSystem:
    """An encoder that weighs terms, and the kept weights."""

    name: str
    model: models.Model
    encoder: SparseEncoder

    @property
    def engine(self) -> str:
        return "scipy"

    @property
    def signature(self) -> str:
        return f"sparse|{self._documents}|v:{__version__}"

    @property
    def _documents(self) -> str:
        """What decides the documents' weights."""
        return f"{self.encoder.signature}|sep:{models.visible(self.model.separator)}"

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """The encoded corpus in the cache; what is missing is encoded first."""
        progress = settings.progress
        folder = cache_folder() / "embeddings" / user_code.folder_name(self.model.name, self.encoder.signature)
        documents = WeightStore(folder / "documents")
        place = folder / "documents" / user_code.folder_name("corpus", f"{self._documents}\n{fingerprint}")
        found, reused = encoded_corpus.encoded(
            place, corpus, documents, self.encoder, self._texts, progress, name=self.name, model=self.model.name
        )
        return Prepared(
            retriever=SparseRetriever(
                name=self.name,
                signature=self.signature,
                encoder=self.encoder,
                documents=documents,
                queries=WeightStore(folder / "queries"),
                encoded=found,
                progress=progress,
            ),
            path=place,
            analyse_seconds=0.0,
            index_seconds=found.built.seconds,
            index_bytes=documents.reader().count_bytes(found.rows),
            reused=reused,
        )

    def _texts(self, doc: Doc) -> list[str]:
        return [self.model.join(doc.title, doc.text)]


@dataclass(frozen=True, kw_only=True)
class SparseRetriever:
    """Answers queries by the terms that a document shares with them."""

    name: str
    signature: str
    encoder: SparseEncoder
    documents: WeightStore
    queries: WeightStore
    encoded: EncodedCorpus
    progress: Progress

    def search(self, queries: Queries, k: int) -> Run:
        """At most k hits a query by falling score, equal scores in corpus order; no shared term is no hit."""
        if k < 1:
            raise BadInput(f"k is {k}; ask for at least 1 hit a query.")
        texts = list(queries.values())
        rows = encoded_corpus.query_rows(self.queries, texts, self.encoder, self.progress, name=self.name)
        weights = self.queries.reader().read(np.array(rows, dtype=np.int64))
        found = search(weights, self.documents.reader(), self.encoded.rows, k)
        return {
            query_id: dict(zip(self.encoded.doc_ids.of(places.tolist()), scores.tolist(), strict=True))
            for query_id, (scores, places) in zip(queries, found, strict=True)
        }


BLOCK_NUMBERS = 2 << 20
"""ScoreCache of a block at most, and weights of its documents; some 50 bytes of each are in memory at once."""

_TERMS = 64
"""A document has so many, or more; so of few queries no more documents are asked for than a block is likely to hold."""
_LAST = np.uint64((1 << 32) - 1)


def search(
    queries: Weights,
    documents: WeightReader,
    rows: npt.NDArray[np.uint32],
    k: int,
    *,
    block_numbers: int = BLOCK_NUMBERS,
) -> list[tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]:
    """Of each query at most k scores above 0 and their places in `rows`, by falling score and then by place."""
    n, vocabulary = queries.shape
    if not n:
        return []
    of_terms = queries.T.tocsr()
    step = max(1, block_numbers // max(n, _TERMS))
    best = np.empty((n, 0), np.uint64)
    start = 0
    while start < len(rows):
        block = documents.read(rows[start : start + step], most=block_numbers)
        # Terms that no query has are left out, or are none yet.
        block.resize(block.shape[0], vocabulary)
        end = start + block.shape[0]
        scores = (block @ of_terms).toarray()
        # The bits of numbers that are not negative sort as the numbers do. With the place behind them no two are equal,
        # so the best k are the same whatever the blocks.
        keys = scores.view(np.uint32).astype(np.uint64) << np.uint64(32)
        keys |= _LAST - np.arange(start, end, dtype=np.uint64)[:, None]
        best = np.concatenate([best, keys.T], axis=1)
        if best.shape[1] > k:
            best = np.partition(best, -k, axis=1)[:, -k:]
        start = end
    best = np.sort(best, axis=1)[:, ::-1]
    scores = (best >> np.uint64(32)).astype(np.uint32).view(np.float32)
    places = (_LAST - (best & _LAST)).astype(np.int64)
    return [(row[row > 0], at[row > 0]) for row, at in zip(scores, places, strict=True)]


def from_stage(stage: Stage, language: str, engine: str, source: System | None) -> SparseSystem:
    """The sparse system of a stage; language and engine do not concern it."""
    if source is not None:
        raise BadInput(f"{stage.name} searches the corpus itself and cannot follow '{source.name} >>'.")
    name = only_argument(stage, "model", MODEL) if stage.args else MODEL
    options = Options(stage, OPTIONS)
    runtime = options.word("runtime", next(iter(RUNTIMES)), RUNTIMES)
    model = models.find("dense", name, options)
    if runtime not in model.runtimes:
        raise BadInput(
            f"{name} gives terms no weights by {runtime}: take {MODEL}, or say like={MODEL} of a model of its kind."
        )
    module, attribute = RUNTIMES[runtime].split(":")
    make: MakeEncoder = getattr(importlib.import_module(module), attribute)
    return SparseSystem(name=str(Spec((stage,))), model=model, encoder=make(model))
