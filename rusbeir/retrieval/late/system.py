"""`late(MODEL,…)` as a system: its encoder, its cached vectors of tokens, and the search among them."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from rusbeir import __version__
from rusbeir.costs import CarriedSeconds
from rusbeir.errors import BadInput
from rusbeir.retrieval.encoding import encoded_corpus
from rusbeir.retrieval.encoding.encoded_corpus import EncodedCorpus
from rusbeir.retrieval.encoding.encoder import LateEncoder
from rusbeir.retrieval.encoding.pools import Encoding
from rusbeir.retrieval.late import maxsim
from rusbeir.retrieval.late.token_store import TokenStore
from rusbeir.retrieval.models import settings as models
from rusbeir.retrieval.spec import Options, Spec, Stage, only_argument
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings, check_available
from rusbeir.text import digest
from rusbeir.types import Corpus, Queries, Run

RUNTIMES = {
    "flagembedding": "rusbeir.retrieval.bge_m3:BgeM3LateEncoder",
    "sentence-transformers": "rusbeir.retrieval.late.sentence_transformers:make_encoder",
}
"""Name -> "module:function", imported on use and called with model=Model; it returns a LateEncoder."""

MakeEncoder: TypeAlias = Callable[..., LateEncoder]

DEFAULT_MODEL = "mLateOn"
DTYPES = ("float16", "float32")
OPTIONS: tuple[str, ...] = (
    "runtime", "dtype", *(setting for setting in models.SETTINGS if setting not in ("pooling", *models.PRICES)),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LateSystem:
    """Searches by the token vectors of one encoder, which are cached."""

    name: str
    model: models.Model
    encoder: LateEncoder
    dtype: str = DTYPES[0]

    @property
    def engine(self) -> str:
        return "numpy"

    def check_available(self) -> None:
        check_available(self.encoder)

    @property
    def signature(self) -> str:
        return f"late|{self._recipe}|maxsim:exact|v:{__version__}"

    @property
    def _recipe(self) -> str:
        """Name everything that decides the documents' vectors."""
        return f"{self.encoder.signature}|sep:{models.escape(self.model.separator)}|store:{self.dtype}"

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """Open the encoded corpus in the cache; encode it first where it is missing."""
        folder = encoded_corpus.find_folder(self.model.name, self.encoder.signature)
        store = TokenStore(folder / self.dtype, self.dtype)
        encoding = Encoding(
            store=store, encoder=settings.bind_encoder(self.encoder), name=self.name, progress=settings.progress
        )
        path = store.folder / f"corpus-{digest(self._recipe, fingerprint, chars=12)}"
        encoded, reused = encoded_corpus.open_or_encode(
            path, corpus, encoding, lambda doc: [self.model.join(doc.title, doc.text)], model=self.model.name
        )
        return Prepared(
            retriever=LateRetriever(
                signature=self.signature,
                documents=store,
                queries=replace(encoding, store=TokenStore(folder / "queries", "float32")),
                encoded=encoded,
                carried=settings.carried,
            ),
            path=path,
            index_seconds=encoded.seconds,
            index_bytes=store.open_reader().count_bytes(encoded.rows),
            reused=reused,
        )


@dataclass(frozen=True, kw_only=True)
class LateRetriever:
    """Answers queries by MaxSim with every document."""

    signature: str
    documents: TokenStore
    queries: Encoding
    encoded: EncodedCorpus
    carried: CarriedSeconds

    def search(self, queries: Queries, k: int) -> Run:
        """Find at most k hits a query by falling score, equal scores in corpus order; every document is a hit."""
        if k < 1:
            raise BadInput(f"k is {k}; it must be at least 1.")
        if not queries:
            return {}
        vectors = self.queries.store.read(encoded_corpus.encode_queries(queries, self.queries, self.carried))
        hits = maxsim.search(vectors, self.documents.open_reader(), self.encoded.rows, k)
        return {
            query_id: dict(zip(self.encoded.doc_ids.read(documents.tolist()), scores.tolist(), strict=True))
            for query_id, (scores, documents) in zip(queries, hits, strict=True)
        }


def from_stage(stage: Stage, language: str, engine: str) -> LateSystem:
    """Make the late system of a stage, whatever the language and engine are."""
    name = only_argument(stage, "model", DEFAULT_MODEL)
    options = Options(stage, OPTIONS)
    model = models.find("late", name, options)
    runtime = options.word("runtime", "", ("", *RUNTIMES)) or model.runtimes[0]
    if runtime not in model.runtimes:
        raise BadInput(f"{name} is run by {', '.join(model.runtimes)}, not by {runtime}.")
    if runtime == models.DEFAULT_RUNTIMES["late"][0]:
        model = replace(model, own_prompts=tuple(prefix for prefix in models.PREFIXES if prefix not in options))
    make: MakeEncoder = pkgutil.resolve_name(RUNTIMES[runtime])
    return LateSystem(
        name=str(Spec((stage,))),
        model=model,
        encoder=make(model=model),
        dtype=options.word("dtype", DTYPES[0], DTYPES),
    )
