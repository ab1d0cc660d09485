"""Settings and mappings of rusbeir's indexes, and of indexes of a user's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from rusbeir.analysis import language_files, read_language
from rusbeir.errors import BadInput, option, unknown
from rusbeir.retrieval.elasticsearch import connection
from rusbeir.retrieval.elasticsearch.connection import Server
from rusbeir.retrieval.lexical.bm25 import DEFAULT_GRAM_WEIGHT, Bm25, profiles
from rusbeir.retrieval.lexical.engines import Terms

ROW = "row"
"""The corpus row of a document: orders equal scores, and tells which documents have arrived."""
DOC_ID = "doc_id"
MAX_TERM_CHARS = 8_000
"""Terms are cut here, in documents and queries: Lucene holds at most 32,766 bytes a term."""
MAX_HITS = 100_000
MAX_WINDOW = MAX_HITS + 1_000
"""Hits an index gives at once; more than MAX_HITS for the query's own documents, which are dropped later."""


def client_body(bm25: Bm25) -> dict[str, Any]:
    """Make settings and mapping for terms that rusbeir's analyzer made: the server only splits at spaces."""
    return {
        "settings": {
            "analysis": {
                "tokenizer": {"terms": {"type": "whitespace", "max_token_length": 4 * MAX_TERM_CHARS}},
                "analyzer": {"terms": {"type": "custom", "tokenizer": "terms"}},
            },
            **_index_settings(bm25),
        },
        "mappings": mapping(bm25, "terms"),
    }


def body_of(bm25: Bm25, server: Server) -> dict[str, Any]:
    """Make settings and mapping of an index for that BM25, with what the server has for it."""
    language = bm25.server_language
    body = server_body(bm25, *analyzer_of(language, server)) if language else client_body(bm25)
    body["settings"]["similarity"]["bm25"]["type"] = server.similarity
    return body


def server_body(bm25: Bm25, analyzer: str, definition: Mapping[str, Any]) -> dict[str, Any]:
    """Make settings and mapping for text as it is: the server makes the terms, with positions for phrase queries."""
    settings = {**({"analysis": definition} if definition else {}), **_index_settings(bm25)}
    return {"settings": settings, "mappings": mapping(bm25, analyzer, {})}


def for_people(language: str, profile: str = "", *, client: bool = False, plugin: bool = False) -> dict[str, Any]:
    """Make settings and mapping for a user's own index, with fields title and text.

    With client the index is for terms that rusbeir makes; runs of characters, which begin with GRAM, have fields of
    their own. With plugin its analyzer is that of the official plugin for the language. A profile of BM25 sets k1, b.
    Raises UnknownName where neither side can analyse the language, or no plugin is for it.
    """
    if plugin and client:
        raise BadInput(
            f"{option('client', True)} is for rusbeir's terms, {option('plugin', True)} for a server's: take one."
        )
    if plugin and language not in PLUGINS:
        raise unknown("plugin for the language", language, PLUGINS)
    if profile and profile not in profiles():
        raise unknown("profile", profile, profiles())
    recipe = profiles().get(profile, {})
    bm25 = Bm25(fields="best_fields", **{name: recipe[name] for name in ("k1", "b") if name in recipe})
    if client and read_language(language).profiles["default"].terms == "both":
        bm25 = replace(bm25, gram_weight=DEFAULT_GRAM_WEIGHT)
    analyzer = (PLUGINS[language].analyzer, {}) if plugin else analyzer_of(language)
    body = client_body(bm25) if client else server_body(bm25, *analyzer)
    properties = body["mappings"]["properties"]
    return {**body, "mappings": {"properties": {name: properties[name] for name in bm25.field_names}}}


def mapping(bm25: Bm25, analyzer: str, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Map the fields of a BM25, and no others: a document of another shape is an error, not a new field."""
    text = {
        "type": "text",
        "analyzer": analyzer,
        "similarity": "bm25",
        **({"index_options": "freqs"} if options is None else options),
    }
    return {
        "dynamic": "strict",
        "_source": {"includes": [DOC_ID]},
        "properties": {
            DOC_ID: {"type": "keyword", "index": False, "doc_values": False},
            ROW: {"type": "integer", "index": False},
            **dict.fromkeys(bm25.field_names, text),
        },
    }


def source(row: int, bm25: Bm25, terms: Terms) -> tuple[str, dict[str, Any]]:
    """Make what is sent of a document, after its id, which is for messages; a field without terms is left out."""
    doc_id, lines = terms
    fields = {name: _cut(line) for name, line in zip(bm25.field_names, lines, strict=True) if line}
    return doc_id, {DOC_ID: doc_id, ROW: row, **fields}


def _cut(line: str) -> str:
    if len(line) <= MAX_TERM_CHARS:
        return line
    return " ".join([term[:MAX_TERM_CHARS] for term in line.split(" ")])


def _index_settings(bm25: Bm25) -> dict[str, Any]:
    return {
        "similarity": {"bm25": {"type": "BM25", "k1": bm25.k1, "b": bm25.b}},
        "max_result_window": MAX_WINDOW,
    }


STOCK = {
    "ar": "arabic", "bg": "bulgarian", "bn": "bengali", "ca": "catalan", "ckb": "sorani", "cs": "czech",
    "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "et": "estonian",
    "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish", "gl": "galician",
    "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "ja": "cjk",
    "ko": "cjk", "lt": "lithuanian", "lv": "latvian", "nl": "dutch", "no": "norwegian", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish", "th": "thai", "tr": "turkish",
    "zh": "cjk",
}  # fmt: skip
"""Language -> the analyzer that every Elasticsearch has for it."""
NOT_EVERYWHERE = ("serbian",)
"""Those that OpenSearch lacks."""


class Plugin(NamedTuple):
    """An official plugin, which both vendors have under the same name."""

    name: str
    analyzer: str
    """What it calls the analyzer that it brings."""


PLUGINS: Mapping[str, Plugin] = {
    "ja": Plugin("analysis-kuromoji", "kuromoji"),
    "ko": Plugin("analysis-nori", "nori"),
    "pl": Plugin("analysis-stempel", "polish"),
    "uk": Plugin("analysis-ukrainian", "ukrainian"),
    "yue": Plugin("analysis-icu", "icu_analyzer"),
    "zh": Plugin("analysis-smartcn", "smartcn"),
    "zh-Hant": Plugin("analysis-icu", "icu_analyzer"),
}
"""Language -> the plugin whose analyzer is better than the server's own; it is used where it is installed."""
LACKING_STEMMERS = ("czech", "esperanto", "nepali", "persian", "polish", "sesotho", "tamil", "yiddish")
"""Snowball algorithms that the server's stemmer filter does not have."""
OWN = "language"
"""The name of the analyzer that rusbeir defines for a language in which the server has none."""


def analyzer_of(language: str, server: Server | None = None) -> tuple[str, dict[str, Any]]:
    """Name the analyzer of a language, and make the settings that define it; {} where the server has it.

    A plugin's is taken where that server has it. Elsewhere it takes words in lower case without rusbeir's stop words,
    stemmed as analyzers/<language>.toml stems them where the server can.
    """
    if server and language in PLUGINS and _has(server, PLUGINS[language].analyzer):
        return PLUGINS[language].analyzer, {}
    stock = STOCK.get(language, "")
    if stock and (server is None or stock not in NOT_EVERYWHERE or _has(server, stock)):
        return stock, {}
    known = language_files()
    if language not in known:
        raise unknown("language", language, {*STOCK, *known}, listing="rusbeir languages")
    recipe = read_language(language).profiles["snowball"]
    filters: dict[str, Any] = {"stop_words": {"type": "stop", "stopwords": sorted(recipe.stop.words)}}
    names = ["lowercase", "stop_words"]
    kind, _, algorithm = recipe.stemmer.partition(":")
    if kind == "snowball" and algorithm not in LACKING_STEMMERS:
        filters["stem"] = {"type": "stemmer", "language": algorithm}
        names.append("stem")
    return OWN, {
        "filter": filters,
        "analyzer": {OWN: {"type": "custom", "tokenizer": "standard", "filter": names}},
    }


@cache
def _has(server: Server, analyzer: str) -> bool:
    """Return whether the server has an analyzer; it answers 400 for one that it lacks."""
    request = {"analyzer": analyzer, "text": "a"}
    return connection.retry(lambda: server.ask("POST", "/_analyze", request, allow=(400, 403))) is not None


@dataclass(frozen=True)
class ServerAnalyzer:
    """Leaves texts as they are, for the server to analyse."""

    language: str
    engine: object = None
    """The engine whose `server` that is."""

    @property
    def signature(self) -> str:
        name, _ = analyzer_of(self.language, getattr(self.engine, "server", None))
        return f"lang:{self.language}|server:{name}"

    def analyze(self, text: str) -> list[str]:
        return text.split()

    def analyze_lines(self, texts: Iterable[str], *, processes: int | None = None) -> Iterator[str]:
        return (" ".join(text.split()) for text in texts)
