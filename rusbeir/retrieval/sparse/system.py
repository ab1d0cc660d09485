"""`sparse(MODEL,…)` as a system: its encoder, its cached term weights, and the search among them."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from rusbeir import __version__
from rusbeir.costs import CarriedSeconds
from rusbeir.errors import BadInput
from rusbeir.retrieval.encoding import encoded_corpus
from rusbeir.retrieval.encoding.encoded_corpus import EncodedCorpus
from rusbeir.retrieval.encoding.encoder import SparseEncoder, Weights
from rusbeir.retrieval.encoding.pools import Encoding
from rusbeir.retrieval.models import settings as models
from rusbeir.retrieval.sparse.pruning import WHOLE, Pruning, count_terms
from rusbeir.retrieval.sparse.weight_store import WeightReader, WeightStore
from rusbeir.retrieval.spec import Options, Spec, Stage, only_argument
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings, check_available
from rusbeir.text import digest
from rusbeir.types import Corpus, Queries, Run

RUNTIMES = {
    "flagembedding": "rusbeir.retrieval.bge_m3:BgeM3SparseEncoder",
    "sentence-transformers": "rusbeir.retrieval.sparse.sentence_transformers:make_encoder",
}
"""Name -> "module:function", imported on use and called with model=Model; it returns a SparseEncoder."""

MakeEncoder: TypeAlias = Callable[..., SparseEncoder]

DEFAULT_MODEL = "bge-m3"
OPTIONS: tuple[str, ...] = (
    "runtime", "top", "prune",
    *(setting for setting in models.SETTINGS if setting not in ("pooling", *models.PRICES)),
)  # fmt: skip

BLOCK_NUMBERS = 2 << 20
"""The most scores of a block, and the most weights of its documents; each takes some 50 bytes of memory."""

_MIN_TERMS = 64
"""Fewer terms than most documents have: with few queries, hardly more documents are read than fit into a block."""
_MAX_DOCUMENT = np.uint64((1 << 32) - 1)


@dataclass(frozen=True, kw_only=True)
class SparseSystem:
    """Searches by the term weights of one encoder, which are cached."""

    name: str
    model: models.Model
    encoder: SparseEncoder
    pruning: Pruning = WHOLE

    @property
    def engine(self) -> str:
        return "scipy"

    def check_available(self) -> None:
        check_available(self.encoder)

    @property
    def signature(self) -> str:
        return f"sparse|{self._recipe}{self.pruning.signature}|v:{__version__}"

    @property
    def _recipe(self) -> str:
        """Name everything that decides the documents' weights."""
        return f"{self.encoder.signature}|sep:{models.escape(self.model.separator)}"

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """Open the encoded corpus in the cache; encode it first where it is missing."""
        folder = encoded_corpus.find_folder(self.model.name, self.encoder.signature)
        store = WeightStore(folder / "documents")
        encoding = Encoding(
            store=store, encoder=settings.bind_encoder(self.encoder), name=self.name, progress=settings.progress
        )
        path = folder / "documents" / f"corpus-{digest(self._recipe, fingerprint, chars=12)}"
        encoded, reused = encoded_corpus.open_or_encode(
            path, corpus, encoding, lambda doc: [self.model.join(doc.title, doc.text)], model=self.model.name
        )
        return Prepared(
            retriever=SparseRetriever(
                signature=self.signature,
                documents=store,
                queries=replace(encoding, store=WeightStore(folder / "queries")),
                encoded=encoded,
                carried=settings.carried,
                pruning=self.pruning,
            ),
            path=path,
            index_seconds=encoded.seconds,
            index_bytes=store.open_reader().count_bytes(encoded.rows),
            reused=reused,
        )


@dataclass(frozen=True, kw_only=True)
class SparseRetriever:
    """Answers queries by the terms that a document shares with them."""

    signature: str
    documents: WeightStore
    queries: Encoding
    encoded: EncodedCorpus
    carried: CarriedSeconds
    pruning: Pruning = WHOLE

    def count_terms(self, queries: Queries) -> dict[str, float]:
        """Return `document` and `query`, their terms on average, and `flops`, the products that comparing two takes."""
        rows, reader, start = self.encoded.rows, self.documents.open_reader(), 0

        def read_blocks() -> Iterator[Weights]:
            nonlocal start
            while start < len(rows):
                block = reader.read(rows[start : start + BLOCK_NUMBERS // _MIN_TERMS], max_weights=BLOCK_NUMBERS)
                start += block.shape[0]
                yield self.pruning.apply(block)

        weights = self.queries.store.read(encoded_corpus.encode_queries(queries, self.queries, CarriedSeconds()))
        return count_terms(weights, read_blocks())

    def search(self, queries: Queries, k: int) -> Run:
        """Find at most k hits a query, which share terms with it, by falling score, equal scores in corpus order."""
        if k < 1:
            raise BadInput(f"k is {k}; it must be at least 1.")
        weights = self.queries.store.read(encoded_corpus.encode_queries(queries, self.queries, self.carried))
        hits = search(weights, self.documents.open_reader(), self.encoded.rows, k, pruning=self.pruning)
        return {
            query_id: dict(zip(self.encoded.doc_ids.read(documents.tolist()), scores.tolist(), strict=True))
            for query_id, (scores, documents) in zip(queries, hits, strict=True)
        }


def search(
    queries: Weights,
    documents: WeightReader,
    rows: npt.NDArray[np.uint32],
    k: int,
    *,
    block_numbers: int = BLOCK_NUMBERS,
    pruning: Pruning = WHOLE,
) -> list[tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]:
    """Find for each query at most k scores above 0 and their documents, by falling score; equal scores by document.

    rows are the rows of the documents in the store; a document is an index into them.
    """
    n, vocabulary = queries.shape
    if not n:
        return []
    by_term = queries.T.tocsr()
    step = max(1, block_numbers // max(n, _MIN_TERMS))
    best = np.empty((n, 0), np.uint64)
    start = 0
    while start < len(rows):
        block = pruning.apply(documents.read(rows[start : start + step], max_weights=block_numbers))
        # Documents may have terms beyond those of the queries, or fewer.
        block.resize(block.shape[0], vocabulary)
        end = start + block.shape[0]
        scores = (block @ by_term).toarray()
        # The bits of non-negative floats sort as the numbers do. With the document after them no two keys are equal, so
        # the best k do not depend on the blocks.
        keys = scores.view(np.uint32).astype(np.uint64) << np.uint64(32)
        keys |= _MAX_DOCUMENT - np.arange(start, end, dtype=np.uint64)[:, None]
        best = np.concatenate([best, keys.T], axis=1)
        if best.shape[1] > k:
            best = np.partition(best, -k, axis=1)[:, -k:]
        start = end
    best = np.sort(best, axis=1)[:, ::-1]
    scores = (best >> np.uint64(32)).astype(np.uint32).view(np.float32)
    numbers = (_MAX_DOCUMENT - (best & _MAX_DOCUMENT)).astype(np.int64)
    return [(row[row > 0], chosen[row > 0]) for row, chosen in zip(scores, numbers, strict=True)]


def from_stage(stage: Stage, language: str, engine: str) -> SparseSystem:
    """Make the sparse system of a stage, whatever the language and engine are."""
    name = only_argument(stage, "model", DEFAULT_MODEL) if stage.args else DEFAULT_MODEL
    options = Options(stage, OPTIONS)
    model = models.find("sparse", name, options)
    runtime = options.word("runtime", "", ("", *RUNTIMES)) or model.runtimes[0]
    if runtime not in model.runtimes:
        raise BadInput(f"{name} is run by {', '.join(model.runtimes)}, not by {runtime}.")
    make: MakeEncoder = pkgutil.resolve_name(RUNTIMES[runtime])
    pruning = Pruning(top=options.whole("top", 0, least=0), share=options.number("prune", 0.0))
    if pruning.share > 1:
        raise BadInput(f"{stage.name} needs prune to be a share of a document's greatest weight, from 0 to 1.")
    return SparseSystem(name=str(Spec((stage,))), model=model, encoder=make(model=model), pruning=pruning)
