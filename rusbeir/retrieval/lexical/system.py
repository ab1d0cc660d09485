"""`bm25(…)` as a system: which analyzer and engine it takes, and where its index is."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass, replace

from rusbeir import __version__
from rusbeir.analysis import Analyzer, empty_warning, read_language
from rusbeir.errors import UnknownName, unknown
from rusbeir.retrieval.lexical import bm25, engines, index
from rusbeir.retrieval.lexical.index import LineAnalyzer
from rusbeir.retrieval.spec import Stage
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings
from rusbeir.storage import cache_folder
from rusbeir.types import Corpus

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Bm25System:
    """BM25 in one language on one engine."""

    name: str
    bm25: bm25.Bm25
    analyzer: LineAnalyzer
    chosen: engines.LexicalEngine
    note: str | None
    """Why `auto` took this engine, where it could not take its first choice."""

    @property
    def engine(self) -> str:
        return self.chosen.name

    @property
    def signature(self) -> str:
        parts = (self.bm25.signature, self.chosen.signature(self.bm25), self.analyzer.signature, f"v:{__version__}")
        return "|".join(parts)

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """The opened index of that corpus in the cache, built there first where it is missing."""
        if self.note:
            logger.warning("%s", self.note)
        key = engines.IndexKey(signature=self.signature, fingerprint=fingerprint)
        folder = cache_folder() / "indexes" / key.name(self.name)
        remote = self.chosen if isinstance(self.chosen, engines.RemoteEngine) else None
        reused = folder.exists() and (remote is None or remote.is_loaded(folder))
        if not reused:
            # The folder may name an index that the server no longer has.
            shutil.rmtree(folder, ignore_errors=True)
            index.build(folder, key, corpus, self.analyzer, self.chosen, self.bm25, settings.progress)
        logger.debug("the index %s is %s", folder, "reused" if reused else "new")
        retriever, built = index.open_index(folder, key, self.analyzer, self.chosen, self.bm25)
        if warning := empty_warning("documents", built.empty_documents, built.documents):
            logger.warning("%s", warning)
        return Prepared(
            retriever=retriever,
            path=folder,
            analyse_seconds=built.analyse_seconds,
            index_seconds=built.index_seconds,
            index_bytes=built.bytes,
            reused=reused,
        )


def from_stage(stage: Stage, language: str, engine: str) -> Bm25System:
    """The BM25 system of a stage."""
    settings = bm25.from_stage(stage, language=language)
    analyzer: LineAnalyzer
    if settings.server_language:
        from rusbeir.retrieval.elasticsearch.mappings import ServerAnalyzer

        analyzer = ServerAnalyzer(settings.server_language)
    else:
        try:
            analyzer = Analyzer(language, settings.analysis)
        except UnknownName:
            known = read_language(language).profiles
            names = [name for name in (*bm25.profiles(), *known) if name != settings.analysis]
            raise unknown("profile", settings.analysis, names) from None
        if analyzer.recipe.terms != "both":
            settings = replace(settings, gram_weight=0.0)
        elif "gram_weight" not in dict(stage.options):
            settings = replace(settings, gram_weight=bm25.DEFAULT_GRAM_WEIGHT)
    chosen, note = engines.choose(engine, settings)
    return Bm25System(name=str(stage), bm25=settings, analyzer=analyzer, chosen=chosen, note=note)
