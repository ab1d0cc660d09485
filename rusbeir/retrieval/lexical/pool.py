"""`bm25(query=…,stats=…,merge=…)` on a pool: documents of several languages, each analysed in its own."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from operator import itemgetter
from typing import Literal, TypeAlias, cast, get_args

from rusbeir import __version__
from rusbeir.analysis import Analyzer, empty_warning, find_language
from rusbeir.errors import BadInput
from rusbeir.retrieval.fusion import RRF_K, scale_hits
from rusbeir.retrieval.lexical import bm25
from rusbeir.retrieval.lexical.bm25 import ANALYSIS_OPTIONS, POOL_OPTIONS, Bm25System
from rusbeir.retrieval.lexical.index import LexicalRetriever, LineAnalyzer
from rusbeir.retrieval.lexical.shared_words import MarkingAnalyzer, cut_shared
from rusbeir.retrieval.spec import Options, Stage
from rusbeir.retrieval.system import DEFAULTS, Prepared, RunSettings
from rusbeir.types import MULTILINGUAL, Corpus, Doc, Queries, Run, count_languages, query_language

logger = logging.getLogger(__name__)

Query = Literal["own", "all"]
Stats = Literal["language", "pool"]
Merge = Literal["score", "rank", "minmax", "zscore"]

UNKNOWN = "und"
"""The tag of documents in none of the pool's languages: ISO 639's code for that."""
_SCALES: Mapping[str, str] = {"rank": "rrf", "minmax": "minmax", "zscore": "zscore"}

Terms: TypeAlias = Mapping[str, Mapping[str, list[str]]]
"""Language -> query_id -> the terms with which the query searches the documents of that language."""


@dataclass(frozen=True, kw_only=True)
class PoolSystem:
    """BM25 on documents of several languages, which are analysed each by the recipe of its language.

    With query=own a query searches the documents of its own language with all its words, and those of the others with
    the words that languages share (cut_shared); with query=all it searches all documents with all its words, analysed
    in each language. With stats=language, the documents of each language are a collection of their own, with an index
    of their own; hits are merged by their scores, or by their ranks or normalised scores in their language. With
    stats=pool, all documents are one collection, and terms are marked with their language.
    """

    name: str
    parts: Mapping[str, Bm25System]
    """Language -> BM25 in it, in the order in which the pool names its languages; UNKNOWN is the last."""
    query: Query
    stats: Stats
    merge: Merge
    engine: str

    @property
    def signature(self) -> str:
        systems = [self._pooled] if self.stats == "pool" else [self.parts[language] for language in self.languages]
        merge = f"|merge:{self.merge}" if self.stats == "language" else ""
        signatures = "]+[".join(system.signature for system in systems)
        return f"bm25-pool|query:{self.query}|stats:{self.stats}{merge}|v:{__version__}|of:[{signatures}]"

    @property
    def languages(self) -> list[str]:
        return [language for language in self.parts if language != UNKNOWN]

    @property
    def analyzers(self) -> Mapping[str, LineAnalyzer]:
        """Language -> the analyzer of its documents, and of queries to them."""
        analyzers = {language: part.analyzer for language, part in self.parts.items()}
        if self.stats == "language":
            return analyzers
        return {tag: MarkingAnalyzer(language=tag, analyzer=analyzer) for tag, analyzer in analyzers.items()}

    @property
    def _pooled(self) -> Bm25System:
        """BM25 on all documents as one collection, with fields for grams where any language has them."""
        first = max(self.parts.values(), key=lambda part: part.bm25.gram_weight)
        return replace(first, analyzer=_PoolAnalyzer(analyzers=self.analyzers))

    def prepare(self, corpus: Corpus, fingerprint: str, settings: RunSettings = DEFAULTS) -> Prepared:
        """Open the index of each language that has documents, or of the pool, and build what is missing.

        Warn of documents in none of the languages.
        """
        counts = self._count(corpus)
        if self.stats == "pool":
            view = _Documents(corpus=corpus, counts=counts)
            prepared = [self._pooled.prepare(view, fingerprint, settings)]
        else:
            prepared = [
                self.parts[tag].prepare(_Documents(corpus=corpus, counts=counts, chosen=tag), f"{fingerprint}/{tag}",
                                        settings)
                for tag in counts
            ]  # fmt: skip
        retrievers = [cast(LexicalRetriever, part.retriever) for part in prepared]
        analyzers = {tag: analyzer for tag, analyzer in self.analyzers.items() if tag in counts}
        return Prepared(
            retriever=PoolRetriever(system=self, analyzers=analyzers, retrievers=retrievers),
            path=prepared[0].path,
            analyse_seconds=sum(part.analyse_seconds for part in prepared),
            index_seconds=sum(part.index_seconds for part in prepared),
            index_bytes=sum(part.index_bytes for part in prepared),
            reused=all(part.reused for part in prepared),
        )

    def _count(self, corpus: Corpus) -> dict[str, int]:
        """Count the documents of each language that has any, those of no language of the pool under UNKNOWN."""
        counted = Counter[str]()
        strange = Counter[str]()
        for language, count in count_languages(corpus).items():
            counted[language if language in self.parts else UNKNOWN] += count
            if language not in self.languages:
                strange[language or "no language"] += count
        if strange:
            logger.warning(
                "%s of %s documents are in none of the languages of the pool (%s): they are cut into words as Unicode "
                "says.", f"{strange.total():,}", f"{counted.total():,}", ", ".join(strange),
            )  # fmt: skip
        return {language: counted[language] for language in self.parts if counted[language]}


@dataclass(frozen=True, kw_only=True)
class PoolRetriever:
    """Answers queries from the indexes of a pool."""

    system: PoolSystem
    analyzers: Mapping[str, LineAnalyzer]
    """The analyzers of the languages that have documents."""
    retrievers: Sequence[LexicalRetriever]
    """A retriever for each of these languages, or one for all."""

    @property
    def signature(self) -> str:
        return self.system.signature

    @cached_property
    def _chains(self) -> Mapping[str, object]:
        """What keeps the lexicons of all languages in memory between searches."""
        analyzers = {tag: self.system.parts[tag].analyzer for tag in self.analyzers}
        return {tag: analyzer.load() if isinstance(analyzer, Analyzer) else None for tag, analyzer in analyzers.items()}

    def search(self, queries: Queries, k: int) -> Run:
        """Find at most k hits per query by falling score; equal scores in the order of languages, then of the corpus.

        Warn of queries in languages that the pool lacks, of queries that name no language, and of those without terms.
        """
        terms = self._analyze(queries)
        with_terms = {query_id for by_query in terms.values() for query_id, line in by_query.items() if line}
        n_empty = len(queries) - len(with_terms)
        if n_empty and (warning := empty_warning("queries", n_empty, len(queries))):
            logger.warning("%s", warning)
        if self.system.stats == "pool":
            return self.retrievers[0].search_terms(_join_terms(queries, terms), k)
        hits: dict[str, list[Mapping[str, float]]] = {query_id: [] for query_id in queries}
        for retriever, by_query in zip(self.retrievers, terms.values(), strict=True):
            for query_id, part in retriever.search_terms(by_query, k).items():
                if part:
                    hits[query_id].append(part)
        return {query_id: self._merge(parts, k) for query_id, parts in hits.items()}

    def _analyze(self, queries: Queries) -> Terms:
        """Analyse the queries in the languages of the documents."""
        asked_in = {query_id: query_language(queries, query_id, "") for query_id in queries}
        _warn_of_languages(asked_in.values(), self.system)
        elsewhere = {
            query_id: text
            if self.system.query == "all" or not asked_in[query_id]
            else cut_shared(text, asked_in[query_id])
            for query_id, text in queries.items()
        }
        elsewhere = {query_id: text for query_id, text in elsewhere.items() if text}
        in_language: dict[str, list[str]] = {}
        for query_id, tag in asked_in.items():
            in_language.setdefault(tag, []).append(query_id)
        terms: dict[str, dict[str, list[str]]] = {}
        for tag in self._chains:
            texts = {**elsewhere, **{query_id: queries[query_id] for query_id in in_language.get(tag, ())}}
            lines = self.analyzers[tag].analyze_lines(texts.values())
            terms[tag] = {query_id: line.split() for query_id, line in zip(texts, lines, strict=True)}
        return terms

    def _merge(self, hits: Sequence[Mapping[str, float]], k: int) -> dict[str, float]:
        if self.system.merge != "score":
            hits = [scale_hits(part, _SCALES[self.system.merge], RRF_K) for part in hits]
        if len(hits) == 1:
            return dict(hits[0])
        merged = {doc_id: score for part in hits for doc_id, score in part.items()}
        return dict(sorted(merged.items(), key=itemgetter(1), reverse=True)[:k])


def _join_terms(queries: Queries, terms: Terms) -> dict[str, list[str]]:
    """Join the terms of each query; one that several languages share counts as often as in one of them."""
    joined: dict[str, list[str]] = {}
    for query_id in queries:
        counts = Counter[str]()
        for by_query in terms.values():
            counts |= Counter(by_query.get(query_id, ()))
        joined[query_id] = list(counts.elements())
    return joined


def _warn_of_languages(languages: Iterable[str], system: PoolSystem) -> None:
    """Warn of queries that name no language, and of those in a language that the pool lacks."""
    counts = Counter(languages)
    if system.query == "own" and counts[""]:
        logger.warning(
            "%s of %s queries name no language: they are analysed in each language of the pool.",
            f"{counts['']:,}", f"{counts.total():,}",
        )  # fmt: skip
    if lacking := {tag: n for tag, n in counts.items() if tag and tag not in system.parts}:
        effect = "only words that languages share, such as numbers and names," if system.query == "own" else "words"
        logger.warning(
            "%s of %s queries are in languages that the pool lacks (%s): %s can find documents.",
            f"{sum(lacking.values()):,}", f"{counts.total():,}", ", ".join(lacking), effect,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Documents:
    """The documents of a pool, language by language, or those of one language alone."""

    corpus: Corpus
    counts: Mapping[str, int]
    chosen: str = ""

    def __len__(self) -> int:
        return self.counts[self.chosen] if self.chosen else sum(self.counts.values())

    def __iter__(self) -> Iterator[Doc]:
        for tag in [self.chosen] if self.chosen else self.counts:
            if tag == UNKNOWN:
                languages = self.counts.keys() - {UNKNOWN}
                yield from (doc._replace(language=tag) for doc in self.corpus if doc.language not in languages)
            else:
                # The documents after the last one of the language are not read.
                yield from islice((doc for doc in self.corpus if doc.language == tag), self.counts[tag])

    def __getitem__(self, doc_id: str) -> Doc:
        return self.corpus[doc_id]


@dataclass(frozen=True, kw_only=True)
class _PoolAnalyzer:
    """The analyzers of a pool; a text whose language is not known is analysed in each."""

    analyzers: Mapping[str, LineAnalyzer]

    @property
    def signature(self) -> str:
        known = (analyzer.signature for tag, analyzer in self.analyzers.items() if tag != UNKNOWN)
        return f"langs:[{']+['.join(known)}]"

    def of_language(self, language: str) -> LineAnalyzer:
        return self.analyzers[language]

    def analyze(self, text: str) -> list[str]:
        return [term for analyzer in self.analyzers.values() for term in analyzer.analyze(text)]

    def analyze_lines(self, texts: Iterable[str], *, processes: int | None = None) -> Iterator[str]:
        return (" ".join(self.analyze(text)) for text in texts)


def from_stage(stage: Stage, languages: Sequence[str], engine: str) -> PoolSystem:
    """Make the BM25 of a stage for a pool in these languages: `bm25(query=all,stats=pool)`, `bm25(merge=rank)`.

    Raises BadInput where no language is named.
    """
    if not languages:
        raise BadInput(
            f'The card says {MULTILINGUAL!r} and not which languages: add "languages", such as ["ru", "en"].'
        )
    options = Options(stage, (*bm25.OPTIONS, *POOL_OPTIONS))
    query = options.word("query", get_args(Query)[0], get_args(Query))
    stats = options.word("stats", get_args(Stats)[0], get_args(Stats))
    merge = options.word("merge", get_args(Merge)[0], get_args(Merge))
    if stats == "pool":
        options.refuse(("merge",), "with stats=pool, where all documents are searched at once")
    plain = replace(stage, options=tuple(pair for pair in stage.options if pair[0] not in POOL_OPTIONS))
    parts = {tag: bm25.from_stage(plain, find_language(tag), engine) for tag in languages}
    if stats == "pool" and any(part.bm25.server_language for part in parts.values()):
        raise BadInput(
            f"{stage} leaves the analysis to the server, which has statistics of each language: omit stats=."
        )
    analysis = ("profile", *ANALYSIS_OPTIONS)
    fallback = (*(pair for pair in plain.options if pair[0] not in analysis), ("profile", "unicode"))
    parts[UNKNOWN] = bm25.from_stage(replace(plain, options=fallback), UNKNOWN, engine)
    return PoolSystem(
        name=str(stage), parts=parts, query=cast(Query, query), stats=cast(Stats, stats), merge=cast(Merge, merge),
        engine=next(iter(parts.values())).engine,
    )  # fmt: skip
