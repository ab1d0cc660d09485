"""`bm25(…)` as a system: which analyzer and engine it takes, and where its index is."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass, replace

from rusbeir import __version__
from rusbeir.analysis import Analyzer, empty_warning, language_files, read_language
from rusbeir.errors import UnknownName, unknown
from rusbeir.retrieval import spec
from rusbeir.retrieval.lexical import bm25, engines, index
from rusbeir.retrieval.lexical.index import LineAnalyzer
from rusbeir.retrieval.spec import Stage
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings
from rusbeir.storage import cache_folder
from rusbeir.types import Corpus
from rusbeir.user_sources import PYTHON

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
    analyzer = _make_analyzer(stage, settings, language)
    if not isinstance(analyzer, Analyzer) or analyzer.recipe.terms != "both":
        settings = replace(settings, gram_weight=0.0)
    elif "gram_weight" not in dict(stage.options):
        settings = replace(settings, gram_weight=bm25.DEFAULT_GRAM_WEIGHT)
    chosen, note = engines.choose(engine, settings)
    return Bm25System(name=str(stage), bm25=settings, analyzer=analyzer, chosen=chosen, note=note)


def _make_analyzer(stage: Stage, settings: bm25.Bm25, language: str) -> LineAnalyzer:
    """Make the analyzer that a stage asks for: a profile's, the server's, or one of the user's own."""
    options = spec.Options(stage, [name for name, _ in stage.options])
    name = options.word("analyzer", "")
    files = {key: options.word(key, "") for key in ("stop", "synonyms") if key in options}
    if settings.server_language:
        options.refuse(bm25.ANALYSIS_OPTIONS, "with profile=server, where the server analyses")
        from rusbeir.retrieval.elasticsearch.mappings import ServerAnalyzer

        return ServerAnalyzer(settings.server_language)
    if name.startswith(PYTHON):
        options.refuse(("profile", "stop", "synonyms", "gram_weight"), f"with analyzer={name}, which makes all terms")
        from rusbeir.retrieval.user_code import load_analyzer

        return load_analyzer(name)
    profile = settings.analysis
    if name:
        options.refuse(("profile",), "with analyzer=")
        tag, colon, rest = name.partition(":")
        # analyzer=snowball is a profile of the language, analyzer=en and analyzer=en:snowball are another's.
        language, profile = (tag, rest or "default") if colon or tag in language_files() else (language, name)
    try:
        return Analyzer(language, profile, **files)
    except UnknownName:
        known = read_language(language).profiles
        if profile in known:
            raise
        available = [*({*bm25.profiles(), *known} - {profile})]
        raise unknown("profile", profile, available, owner=f"language {language!r}") from None
