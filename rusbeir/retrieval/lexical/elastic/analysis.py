"""How a server analyses a language by itself, for people whose queries reach it without our code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rusbeir.analysis import languages, stopwords
from rusbeir.errors import unknown

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
OWN = "language"
"""The name of an analyzer that we define because the server has none."""


def analyzer_of(language: str) -> tuple[str, dict[str, Any]]:
    """The name of the analyzer, and the settings that define it; {} where the server has it anyway.

    Else: words, in lower case, without our stop words, stemmed as analyzers/<language>.toml stems them.
    """
    if language in STOCK:
        return STOCK[language], {}
    known = languages()
    if language not in known:
        raise unknown("language", language, {*STOCK, *known}, listing="rusbeir languages")
    recipe = known[language].profiles["snowball"]
    filters: dict[str, Any] = {"stop_words": {"type": "stop", "stopwords": sorted(stopwords.words(recipe.stop))}}
    names = ["lowercase", "stop_words"]
    kind, _, algorithm = recipe.stemmer.partition(":")
    if kind == "snowball":
        filters["stem"] = {"type": "stemmer", "language": algorithm}
        names.append("stem")
    return OWN, {
        "filter": filters,
        "analyzer": {OWN: {"type": "custom", "tokenizer": "standard", "filter": names}},
    }


@dataclass(frozen=True)
class ServerAnalyzer:
    """Leaves texts as they are, for the server to analyse."""

    language: str

    @property
    def signature(self) -> str:
        return f"lang:{self.language}|server:{analyzer_of(self.language)[0]}"

    def analyze(self, text: str) -> list[str]:
        return text.split()

    def analyze_lines(self, texts: Iterable[str], *, processes: int | None = None) -> Iterator[str]:
        return (" ".join(text.split()) for text in texts)
