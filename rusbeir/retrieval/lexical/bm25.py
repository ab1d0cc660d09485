"""`bm25(…)`: parameters, fields and the analyzer, read from a spec; the engine, and where the index is."""

from __future__ import annotations

import logging
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from rusbeir import __version__
from rusbeir.analysis import Analyzer, empty_warning, language_files, read_language
from rusbeir.errors import BadInput, UnknownName, unknown
from rusbeir.retrieval.lexical import engines, index
from rusbeir.retrieval.lexical.index import LineAnalyzer
from rusbeir.retrieval.spec import Options, Stage, Value
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings
from rusbeir.storage import cache_folder
from rusbeir.types import Corpus
from rusbeir.user_sources import PYTHON

logger = logging.getLogger(__name__)

Fields = Literal["flat", "best_fields", "sum"]
Lengths = Literal["lucene", "exact"]

_CHOICES: dict[str, tuple[str, ...]] = {"fields": get_args(Fields), "lengths": get_args(Lengths)}
SERVER = "server"
"""The analysis of profiles that leave it to Elasticsearch."""
ANALYSIS_OPTIONS = ("analyzer", "stop", "synonyms", "tokens")
"""Options that say how texts are analysed: an analyzer, files of stop words and of synonyms, and a model's subwords."""
OPTIONS: tuple[str, ...] = (
    "profile",
    *ANALYSIS_OPTIONS,
    "k1",
    "b",
    "fields",
    "weights",
    "tie_breaker",
    "gram_weight",
    "lengths",
)
POOL_OPTIONS: tuple[str, ...] = ("query", "stats", "merge")
"""Further options on documents of several languages."""
GRAM_FIELD = "_grams"
"""Ends the name of the field that holds the grams of another."""
DEFAULT_GRAM_WEIGHT = 0.2


@dataclass(frozen=True, kw_only=True)
class Bm25:
    """BM25 as Lucene computes it, over title and text as one field or as two.

    With best_fields a document scores as its better field does, plus tie_breaker times the score of the other; with sum
    both are added. Where an analysis makes grams as well as words, the grams have fields of their own, and their score
    is multiplied by gram_weight. The score of each field is multiplied by its weight before that.
    """

    k1: float = 1.2
    b: float = 0.75
    fields: Fields = "flat"
    weights: tuple[float, ...] = ()
    """The factors of title and text; () where both are 1."""
    tie_breaker: float = 0.5
    gram_weight: float = 0.0
    """0 where there are no grams."""
    analysis: str = "default"
    """A profile of the language's analyzer; SERVER where the server analyses."""
    server_language: str = ""
    """The language in which Elasticsearch analyses by itself; empty where it gets rusbeir's terms."""
    lengths: Lengths | None = None
    """How lengths are kept: `lucene` in one byte (SmallFloat.intToByte4), or `exact`; None leaves it to the engine."""

    @property
    def parts(self) -> tuple[tuple[Mapping[str, float], float], ...]:
        """The fields that are scored together, each with the factor of its score, and the weight of what they score.

        First those of words, then those of grams.
        """
        names = ("text",) if self.fields == "flat" else ("title", "text")
        words = dict(zip(names, self.weights or (1.0, 1.0), strict=False))
        grams = {name + GRAM_FIELD: factor for name, factor in words.items()}
        return ((words, 1.0), (grams, self.gram_weight)) if self.gram_weight else ((words, 1.0),)

    @property
    def field_names(self) -> tuple[str, ...]:
        return tuple(name for fields, _ in self.parts for name in fields)

    @property
    def signature(self) -> str:
        fields: str = self.fields
        if fields == "best_fields":
            fields = f"best_fields:{self.tie_breaker}"
        weights = f"|weights:{':'.join(f'{weight:g}' for weight in self.weights)}" if self.weights else ""
        grams = f"|grams:{self.gram_weight}" if self.gram_weight else ""
        return f"bm25|k1:{self.k1}|b:{self.b}|fields:{fields}{weights}{grams}"


@dataclass(frozen=True, kw_only=True)
class Bm25System:
    """BM25 in one language on one engine."""

    name: str
    bm25: Bm25
    analyzer: LineAnalyzer
    engine: str
    """The name of the chosen engine."""
    chosen: engines.LexicalEngine
    note: str | None
    """Why `auto` took this engine, where it could not take its first choice."""

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
        if built.empty_documents and (warning := empty_warning("documents", built.empty_documents, built.documents)):
            logger.warning("%s", warning)
        return Prepared(
            retriever=retriever,
            path=folder,
            analyse_seconds=built.analyse_seconds,
            index_seconds=built.index_seconds,
            index_bytes=built.bytes,
            reused=reused,
        )


@cache
def profiles() -> Mapping[str, Mapping[str, Any]]:
    """Read profiles.toml: name -> settings."""
    return tomllib.loads((Path(__file__).parent / "profiles.toml").read_text(encoding="utf-8"))


def from_stage(stage: Stage, language: str, engine: str) -> Bm25System:
    """The BM25 system of a stage, for documents of one language."""
    if stage.options:
        options = Options(stage, (*OPTIONS, *POOL_OPTIONS))
        options.refuse(POOL_OPTIONS, f"where all documents are in one language, {language}")
    settings = read_bm25(stage, language=language)
    analyzer: LineAnalyzer
    if settings.server_language or any(name in ANALYSIS_OPTIONS for name, _ in stage.options):
        analyzer = _make_own_analyzer(stage, settings, language)
    else:
        analyzer = _make_analyzer(language, settings.analysis)
    if not isinstance(analyzer, Analyzer) or analyzer.recipe.terms != "both":
        settings = replace(settings, gram_weight=0.0)
    elif "gram_weight" not in dict(stage.options):
        settings = replace(settings, gram_weight=DEFAULT_GRAM_WEIGHT)
    chosen, note = engines.choose(engine, settings)
    if settings.server_language:
        analyzer = _leave_to_server(settings.server_language, chosen)
    return Bm25System(name=str(stage), bm25=settings, analyzer=analyzer, engine=chosen.name, chosen=chosen, note=note)


def read_bm25(stage: Stage, *, language: str) -> Bm25:
    """Read a stage as the BM25 of a language.

    A profile that profiles.toml lacks is assumed to be one of the language's analyzer, which checks it.

    >>> read_bm25(Stage("bm25", options=(("k1", 0.9),)), language="ru").k1
    0.9
    """
    if stage.args:
        raise BadInput(f"{stage.name} takes options only, such as k1=0.9, not {stage.args[0]!s}.")
    options = _read_options(stage) if stage.options else {}
    profile = str(options.pop("profile", "default"))
    settings = dict(profiles().get(profile, {"lengths": "lucene"} if profile.startswith("lucene-") else {}))
    analysis = settings.pop("analysis", profile)
    if isinstance(analysis, dict):
        analysis = analysis.get(language, analysis["other"])
    server_language = language if analysis == SERVER else ""
    bm25 = Bm25(analysis=analysis, server_language=server_language, **{**settings, **options})
    return _weigh_fields(bm25, stage) if "weights" in dict(stage.options) else bm25


def _read_options(stage: Stage) -> dict[str, Any]:
    """Read the options of a stage but for weights and ANALYSIS_OPTIONS; the profile is not checked."""
    Options(stage, OPTIONS)
    return {
        name: value if name == "profile" else _read_option(stage.name, name, value)
        for name, value in stage.options
        if name not in ("weights", *ANALYSIS_OPTIONS)
    }


def _weigh_fields(bm25: Bm25, stage: Stage) -> Bm25:
    """Give the fields the weights that the stage has for them."""
    if bm25.fields == "flat":
        raise BadInput(f"{stage.name} has one field with fields=flat: add fields=best_fields or fields=sum to weights.")
    weights = Options(stage, OPTIONS).weights("weights", 2, "title and one for text") or ()
    if 0.0 in weights:
        raise BadInput(f"{stage.name} needs weights above 0: without title or text a field has nothing to search.")
    return replace(bm25, weights=() if set(weights) == {1.0} else weights)


def _read_option(stage: str, name: str, value: Value) -> float | str:
    if choices := _CHOICES.get(name):
        if not isinstance(value, str) or value not in choices:
            raise BadInput(f"{stage} has no {name}={value!s}. Available: {', '.join(choices)}.")
        return value
    most = float("inf") if name == "k1" else 1.0
    if not isinstance(value, (int, float)) or not 0 <= value <= most:
        limits = "a number from 0 up" if name == "k1" else "a number from 0 to 1"
        raise BadInput(f"{stage} needs {name} to be {limits}, not {value!s}.")
    return float(value)


def _make_own_analyzer(stage: Stage, settings: Bm25, language: str) -> LineAnalyzer:
    """Make the analyzer that the options of a stage ask for: another profile's, the server's, or one of the user's."""
    options = Options(stage, [name for name, _ in stage.options])
    name = options.word("analyzer", "")
    files = {key: options.word(key, "") for key in ("stop", "synonyms", "tokens") if key in options}
    if settings.server_language:
        options.refuse(ANALYSIS_OPTIONS, "with profile=server, where the server analyses")
        return _leave_to_server(settings.server_language)
    if name.startswith(PYTHON):
        options.refuse(
            ("profile", "stop", "synonyms", "tokens", "gram_weight"), f"with analyzer={name}, which makes all terms"
        )
        from rusbeir.retrieval.user_code import load_analyzer

        return load_analyzer(name)
    if "tokens" in files:
        options.refuse(("profile", "analyzer", "gram_weight"), "with tokens=, which makes all terms")
    profile = settings.analysis
    if name:
        options.refuse(("profile",), "with analyzer=")
        tag, colon, rest = name.partition(":")
        # analyzer=snowball is a profile of the language, analyzer=en and analyzer=en:snowball are another's.
        language, profile = (tag, rest or "default") if colon or tag in language_files() else (language, name)
    return _make_analyzer(language, profile, **files)


def _leave_to_server(language: str, engine: engines.LexicalEngine | None = None) -> LineAnalyzer:
    from rusbeir.retrieval.elasticsearch.mappings import ServerAnalyzer

    return ServerAnalyzer(language, engine)


def _make_analyzer(language: str, profile: str, **files: str) -> Analyzer:
    """Make the analyzer of a profile. Raises UnknownName with the profiles that bm25 takes."""
    try:
        return Analyzer(language, profile, **files)
    except UnknownName:
        known = read_language(language).profiles
        if profile in known:
            raise
        available = [*({*profiles(), *known} - {profile})]
        listing = f"rusbeir languages {language}"
        owner = f"language {language!r}"
        raise unknown("profile", profile, available, owner=owner, listing=listing, n_listed=len(known)) from None
