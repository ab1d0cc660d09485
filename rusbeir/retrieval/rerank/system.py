"""`… >> rerank(MODEL,depth=100)` as a system: it scores the hits of another system again."""

from __future__ import annotations

import contextlib
import logging
import pkgutil
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from rusbeir import __version__
from rusbeir.costs import CarriedSeconds
from rusbeir.errors import BadInput
from rusbeir.retrieval import user_code
from rusbeir.retrieval.encoding.pools import WhileWanted, read_ahead
from rusbeir.retrieval.models import settings as models
from rusbeir.retrieval.models.files import find_family, is_folder
from rusbeir.retrieval.rerank.reranker import (
    ReportsTruncation,
    ReportsUnjudged,
    Reranker,
    ScoresPools,
    WaitsForBatches,
)
from rusbeir.retrieval.rerank.score_cache import PairPool, ScoreCache
from rusbeir.retrieval.spec import Options, Stage, only_argument
from rusbeir.retrieval.system import (
    DEFAULTS,
    Prepared,
    RunSettings,
    System,
    check_available,
    check_judgements,
    read_hit,
)
from rusbeir.text import batched
from rusbeir.types import Corpus, Progress, Qrels, Queries, Retriever, Run
from rusbeir.user_sources import PYTHON

logger = logging.getLogger(__name__)

LAYERWISE = "flagembedding-layerwise"

RUNTIMES = {
    "cross-encoder": "rusbeir.retrieval.rerank.cross_encoder:CrossEncoderReranker",
    "flagembedding": "rusbeir.retrieval.rerank.flagembedding:FlagReranker",
    "flagembedding-llm": "rusbeir.retrieval.rerank.flagembedding:make_llm",
    LAYERWISE: "rusbeir.retrieval.rerank.flagembedding:make_layerwise",
    "bge-m3-sparse": "rusbeir.retrieval.bge_m3:make_sparse_reranker",
    "bge-m3-multivector": "rusbeir.retrieval.bge_m3:make_multivector_reranker",
    models.LATE: "rusbeir.retrieval.late.sentence_transformers:make_reranker",
    "llm": "rusbeir.retrieval.rerank.llm:YesNoReranker",
    "llm-list": "rusbeir.retrieval.rerank.llm:ListReranker",
}
"""Name -> "module:function", imported on use and called with model=Model; it returns a Reranker."""

ENDPOINTS = ("llm", "llm-list")
"""Runtimes whose model names are those of an endpoint, not of models.toml."""

RUN_POOLS = ("cross-encoder", models.LATE, "bge-m3-sparse", "bge-m3-multivector")
"""The runtimes that read precision= and device=."""

MakeReranker: TypeAlias = Callable[..., Reranker]

DEPTH = 100
POOL_PAIRS = 16_384
"""The pairs of a query and a document that are sorted by length together."""
SETTINGS: tuple[str, ...] = ("like", "revision", "max_tokens", *models.RUNNING, *models.PRICES)
"""The settings of a model that rerankers read."""

HitTexts: TypeAlias = tuple[str, str, list[str]]
"""A query's id, its text, and the texts of its hits, as RusBEIR joins title and text for its reranker."""


@dataclass(frozen=True, kw_only=True)
class RerankSystem:
    """Scores the first `depth` hits of a source again with a reranker, and leaves out the others."""

    name: str
    model: str
    """The reranker's name in messages."""
    source: System
    reranker: Reranker
    depth: int

    @property
    def engine(self) -> str:
        return self.source.engine

    def check_available(self) -> None:
        check_available(self.source)
        check_available(self.reranker)

    def check_judgements(self, qrels: Qrels) -> None:
        check_judgements(self.source, qrels)

    @property
    def signature(self) -> str:
        return f"rerank|{self.reranker.signature}|depth:{self.depth}|v:{__version__}|of:[{self.source.signature}]"

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """Prepare the source on that corpus, and open this reranker's cached scores."""
        # A worker without the model is found before the source is indexed.
        reranker = settings.bind_reranker(self.reranker)
        prepared = self.source.prepare(corpus, fingerprint, settings)
        retriever = _RerankRetriever(
            system=replace(self, reranker=reranker),
            retriever=prepared.retriever,
            corpus=corpus,
            scores=ScoreCache.open(self.reranker),
            progress=settings.progress,
            carried=settings.carried,
        )
        return replace(prepared, retriever=retriever)


@dataclass(frozen=True, kw_only=True)
class _RerankRetriever:
    system: RerankSystem
    retriever: Retriever
    corpus: Corpus
    scores: ScoreCache
    progress: Progress
    carried: CarriedSeconds

    @property
    def signature(self) -> str:
        return self.system.signature

    def search_pool(self, queries: Queries) -> Run:
        """Return the hits that are scored again, in the source's order."""
        return self.retriever.search(queries, self.system.depth)

    def search(self, queries: Queries, k: int) -> Run:
        """Find at most k hits a query, and at most as many as the depth; equal scores keep the source's order."""
        run = self.search_pool(queries)
        started = time.perf_counter()
        reranker, name = self.system.reranker, self.system.name
        reranked: dict[str, dict[str, float]] = {}
        pairs = truncated = unjudged = 0
        try:
            with contextlib.closing(self._read_all(queries, run)) as read:
                for part in read:
                    for query_id, query, texts in part:
                        hits = run[query_id]
                        scores: list[float] = []
                        if hits:
                            scored = self.scores.score(reranker, query, texts, name)
                            scores = scored.scores
                            truncated += scored.truncated
                            unjudged += scored.unjudged
                        order = sorted(zip(hits, scores, strict=True), key=lambda hit: -hit[1])
                        reranked[query_id] = dict(order[:k])
                        pairs += len(hits)
                    self.progress("rerank", len(reranked), len(queries))
        finally:
            self.scores.settle(time.perf_counter() - started, self.carried)
            # A run resumed after a stop finds its answers in the cache, and has nothing left to report about them.
            self._report(pairs, truncated, unjudged)
        return reranked

    def _read_all(self, queries: Queries, run: Run) -> Generator[list[HitTexts], None, None]:
        """Yield some queries at a time; a reranker that scores the pairs of many queries together has done so."""
        lists = (
            (query_id, query, [read_hit(self.corpus, doc_id).full_text for doc_id in run[query_id]])
            for query_id, query in queries.items()
        )
        reranker = self.system.reranker
        if not isinstance(reranker, ScoresPools):
            yield from ([hits] for hits in lists)
            return

        pool_pairs = reranker.pool_pairs if isinstance(reranker, WaitsForBatches) else POOL_PAIRS

        def read(while_wanted: WhileWanted) -> Iterator[tuple[list[HitTexts], PairPool | None]]:
            for part in batched(lists, max(1, pool_pairs // self.system.depth)):
                pairs = ((query, texts) for _, query, texts in part)
                yield part, self.scores.tokenize(reranker, pairs, while_wanted)

        n_done = 0
        with contextlib.closing(read_ahead(read)) as ahead:
            for part, pool in ahead:
                if pool is not None:
                    report = partial(self._report_share, n_done, len(part), len(queries))
                    self.scores.fill(reranker, pool, self.system.name, report)
                yield part
                n_done += len(part)

    def _report_share(self, before: int, n_part: int, n_queries: int, done: float) -> None:
        self.progress("rerank", before + int(done * n_part), n_queries)

    def _report(self, pairs: int, truncated: int, unjudged: int) -> None:
        reranker, model = self.system.reranker, self.system.model
        if truncated and isinstance(reranker, ReportsTruncation):
            logger.warning(
                "%d of %d pairs (%.2f %%) are longer than %s reads at once: %s.",
                truncated, pairs, 100 * truncated / pairs, model, reranker.truncation,
            )  # fmt: skip
        if unjudged and isinstance(reranker, ReportsUnjudged):
            logger.warning("%s %s", model, reranker.describe_unjudged(unjudged))


def from_stage(stage: Stage, source: System) -> RerankSystem:
    """Make a stage's reranking: `rerank(bge-reranker-v2-m3,depth=100)`, `rerank(python:package.module.factory)`."""
    name = only_argument(stage, "model", "bge-reranker-v2-m3")
    if name.startswith(PYTHON):
        options = Options(stage, ("depth",), others=True)
        reranker = user_code.load_reranker(name, options.others)
    else:
        options = Options(stage, ("depth", "runtime", "layer", *SETTINGS))
        runtime = options.word("runtime", "", ("", *RUNTIMES))
        model = models.find("rerank", name, options, any_name=runtime in ENDPOINTS)
        if not runtime and is_folder(model) and find_family(model) == "late":
            runtime = models.LATE
        runtime = runtime or model.runtimes[0]
        if model.layer and runtime != LAYERWISE:
            raise BadInput(f"layer= is for the runtime {LAYERWISE}; {name} is run by {runtime}.")
        options.refuse(models.RUNNING if runtime not in RUN_POOLS else (), f"with runtime={runtime}")
        if runtime not in ENDPOINTS:
            options.refuse(models.PRICES, f"with runtime={runtime}")
        make: MakeReranker = pkgutil.resolve_name(RUNTIMES[runtime])
        reranker = make(model=model)
    return _rerank(stage, source, name, reranker, options)


def from_own_stage(stage: Stage, source: System) -> RerankSystem:
    """Make the reranking of a user's factory, which gets all options but depth."""
    options = Options(stage, ("depth",), others=True)
    if stage.args:
        raise BadInput(f"{stage.name} takes options only, such as depth=50, not {stage.args[0]!s}.")
    return _rerank(stage, source, stage.name, user_code.load_reranker(stage.name, options.others), options)


def _rerank(stage: Stage, source: System, model: str, reranker: Reranker, options: Options) -> RerankSystem:
    depth = options.whole("depth", DEPTH)
    return RerankSystem(name=f"{source.name} >> {stage}", model=model, source=source, reranker=reranker, depth=depth)
