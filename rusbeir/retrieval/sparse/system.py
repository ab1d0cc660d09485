"""`sparse(MODEL,…)` as a system: which encoder it takes, and where its weights of terms lie."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from rusbeir import __version__
from rusbeir.errors import BadInput
from rusbeir.retrieval import models, user_code
from rusbeir.retrieval.dense import encoded_corpus
from rusbeir.retrieval.sparse.encoder import SparseEncoder
from rusbeir.retrieval.sparse.retriever import SparseRetriever
from rusbeir.retrieval.sparse.weight_store import WeightStore
from rusbeir.retrieval.spec import Options, Spec, Stage, only_argument
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings, System
from rusbeir.storage import cache_folder
from rusbeir.types import Corpus, Doc

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
                collection=found,
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
