"""`… >> rerank(MODEL,depth=100)` as a system: the hits of another one, sorted anew."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from rusbeir import __version__
from rusbeir.errors import BadInput
from rusbeir.retrieval import models, user_code
from rusbeir.retrieval.rerank.reranker import ReportsTruncation, ReportsUnjudged, Reranker, Scored
from rusbeir.retrieval.rerank.score_cache import ScoreCache
from rusbeir.retrieval.resolve import PYTHON
from rusbeir.retrieval.spec import Options, Stage, only_argument
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings, System
from rusbeir.storage import cache_folder
from rusbeir.types import Corpus, Doc, Progress, Queries, Retriever, Run

logger = logging.getLogger(__name__)

LAYERWISE = "flagembedding-layerwise"

RUNTIMES = {
    "cross-encoder": "rusbeir.retrieval.rerank.cross_encoder:make",
    "flagembedding": "rusbeir.retrieval.rerank.flagembedding:make_plain",
    "flagembedding-llm": "rusbeir.retrieval.rerank.flagembedding:make_llm",
    LAYERWISE: "rusbeir.retrieval.rerank.flagembedding:make_layerwise",
    "bge-m3-sparse": "rusbeir.retrieval.bge_m3:make_sparse_reranker",
    "bge-m3-multivector": "rusbeir.retrieval.bge_m3:make_multivector_reranker",
    "llm": "rusbeir.retrieval.rerank.llm:make_yes_no",
    "llm-list": "rusbeir.retrieval.rerank.llm:make_listwise",
}
"""Name -> "module:function" that makes the reranker of a Model, imported on use."""

ENDPOINTS = ("llm", "llm-list")
"""Runtimes that know models by names of their own."""

MakeReranker: TypeAlias = Callable[[models.Model], Reranker]

DEPTH = 100
SETTINGS = ("like", "revision", "max_tokens")
"""What rerankers read of a model's settings."""


@dataclass(frozen=True, kw_only=True)
class RerankSystem:
    """The best hits of a source, sorted by a reranker; what is beyond the depth is left out."""

    name: str
    model: str
    """The reranker's name in messages."""
    source: System
    reranker: Reranker
    depth: int

    @property
    def engine(self) -> str:
        return self.source.engine

    @property
    def signature(self) -> str:
        return f"rerank|{self.reranker.signature}|depth:{self.depth}|v:{__version__}|of:[{self.source.signature}]"

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """The source on that corpus, with the scores that are kept of this reranker."""
        prepared = self.source.prepare(corpus, fingerprint, settings)
        folder = user_code.folder_name("scores", self.reranker.signature)
        retriever = _RerankRetriever(
            system=replace(self, reranker=settings.metered(self.reranker)),
            retriever=prepared.retriever,
            corpus=corpus,
            scores=ScoreCache(cache_folder() / "scores" / f"{folder}.sqlite"),
            progress=settings.progress,
        )
        return replace(prepared, retriever=retriever)


@dataclass(frozen=True, kw_only=True)
class _RerankRetriever:
    system: RerankSystem
    retriever: Retriever
    corpus: Corpus
    scores: ScoreCache
    progress: Progress

    @property
    def signature(self) -> str:
        return self.system.signature

    def search(self, queries: Queries, k: int) -> Run:
        """At most k hits a query, and at most as many as the depth; equal scores keep the source's order."""
        run = self.retriever.search(queries, self.system.depth)
        found = {}
        pairs = truncated = unjudged = 0
        try:
            for query_id, query in queries.items():
                hits = run[query_id]
                scored = self._scored(query, list(hits))
                order = sorted(zip(hits, scored.scores, strict=True), key=lambda hit: -hit[1])
                found[query_id] = dict(order[:k])
                pairs += len(hits)
                truncated += scored.truncated
                unjudged += scored.unjudged
                self.progress("rerank", len(found), len(queries))
        finally:
            # A run that goes on after a stop finds its answers kept, and has nothing left to report of them.
            self._report(pairs, truncated, unjudged)
        return found

    def _report(self, pairs: int, truncated: int, unjudged: int) -> None:
        reranker = self.system.reranker
        if truncated and isinstance(reranker, ReportsTruncation):
            logger.warning(
                "%d of %d pairs (%.2f %%) are longer than %s reads at once: %s.",
                truncated,
                pairs,
                100 * truncated / pairs,
                self.system.model,
                reranker.truncation,
            )
        if unjudged and isinstance(reranker, ReportsUnjudged):
            logger.warning("%s %s", self.system.model, reranker.unjudged(unjudged))

    def _scored(self, query: str, doc_ids: Sequence[str]) -> Scored:
        texts = [_text(self.corpus[doc_id]) for doc_id in doc_ids]
        return self.scores.of(self.system.reranker, query, texts, self.system.name) if texts else Scored([], 0)


def from_stage(stage: Stage, source: System) -> RerankSystem:
    """The reranking of a stage: `rerank(bge-reranker-v2-m3,depth=100)`, `rerank(python:package.module.factory)`."""
    name = only_argument(stage, "model", "bge-reranker-v2-m3")
    if name.startswith(PYTHON):
        options = Options(stage, ("depth",), others=True)
        reranker = user_code.load_reranker(name, options.others)
    else:
        options = Options(stage, ("depth", "runtime", "layer", *SETTINGS))
        asked = options.word("runtime", "", ("", *RUNTIMES))
        model = models.find("rerank", name, options, any_name=asked in ENDPOINTS)
        runtime = asked or model.runtimes[0]
        if model.layer and runtime != LAYERWISE:
            raise BadInput(f"layer= is for the runtime {LAYERWISE}; {name} is run by {runtime}.")
        module, attribute = RUNTIMES[runtime].split(":")
        make: MakeReranker = getattr(importlib.import_module(module), attribute)
        reranker = make(model)
    return _over(stage, source, name, reranker, options.whole("depth", DEPTH))


def from_own_stage(stage: Stage, source: System) -> RerankSystem:
    """`… >> python:package.module.factory(option=value)`: the options go to the factory, but for depth."""
    options = Options(stage, ("depth",), others=True)
    if stage.args:
        raise BadInput(f"{stage.name} takes options only, such as depth=50, not {stage.args[0]!s}.")
    return _over(
        stage, source, stage.name, user_code.load_reranker(stage.name, options.others), options.whole("depth", DEPTH)
    )


def _over(stage: Stage, source: System, model: str, reranker: Reranker, depth: int) -> RerankSystem:
    name = f"{source.name} >> {stage}"
    return RerankSystem(name=name, model=model, source=source, reranker=reranker, depth=depth)


def _text(doc: Doc) -> str:
    """Title and text as RusBEIR hands them to its reranker."""
    return f"{doc.title} {doc.text}" if doc.title else doc.text
