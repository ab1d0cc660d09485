"""A dataset that is published, and the files that describe it to machines: croissant.json and CITATION.cff."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rusbeir import __version__
from rusbeir.errors import require
from rusbeir.languages import english_name
from rusbeir.publishing.evidence import Evidence
from rusbeir.publishing.tables import CORPUS, QUERIES, find_nano_split, name_qrels_table
from rusbeir.text import one_line
from rusbeir.types import Card

_TERMS = (
    "citeAs", "column", "equivalentProperty", "extract", "field", "fileObject", "fileProperty", "fileSet", "format",
    "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex",
    "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform",
)  # fmt: skip
_CROISSANT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _TERMS},
}
"""The JSON-LD context that Croissant 1.0 prescribes."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """A dataset with what is said about it."""

    card: Card
    evidence: Evidence
    counts: Mapping[str, int]
    """n_docs, n_queries."""
    splits: Mapping[str, int]
    """split -> judgements."""
    fingerprint: str
    """The fingerprint of all splits together."""
    split_fingerprint: str
    """The fingerprint of its own split alone."""
    permission: bool
    """Whether the owners' permission was claimed, which the licence alone does not give."""

    @property
    def name(self) -> str:
        return one_line(self.card.name)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the documents, then that of the queries where it is another."""
        of_documents = self.card.languages or (self.card.language,)
        return tuple(dict.fromkeys([*of_documents, self.card.query_language or of_documents[0]]))

    @property
    def title(self) -> str:
        return f"{self.name} ({self._describe_own_languages()})"

    def _describe_own_languages(self) -> str:
        if self.card.languages:
            return ", ".join(map(english_name, self.card.languages))
        return _describe_languages(self.card.language, self.card.asked_in)

    @property
    def origin(self) -> Mapping[str, Any]:
        """The card's entry on the dataset that this one was made of; {} for an original."""
        origin = self.card.provenance.get("source")
        return origin if isinstance(origin, dict) else {}

    @property
    def licence(self) -> str:
        return self.card.licence or str(self.origin.get("licence") or "not stated")

    @property
    def author(self) -> str:
        """The author of the dataset that this one was made of, or of an original."""
        return one_line(self.origin.get("author") or self.card.author)

    @property
    def citation(self) -> str:
        return str(self.origin.get("citation") or self.card.citation)

    @property
    def split(self) -> str:
        """The split that is measured."""
        return self.card.split if self.card.split in self.splits else next(iter(self.splits))

    @property
    def nano_split(self) -> str | None:
        """The split of NanoBEIR's layout; None where the name has none."""
        return find_nano_split(self.card.name)

    @property
    def description(self) -> str:
        """The dataset and what it was made of, in a sentence or two."""
        origin = self.origin
        how = {
            "port": "translated by a machine from",
            "rewrite": "with documents that a language model rewrote, made of",
            "queries": "with queries that a language model wrote, made of the documents of",
            "qc": "whose judgements a language model and several rankers checked, made of",
            "nano": "a small version of",
        }.get(self.evidence.made_by)
        if self.card.query_language:
            text = f"A cross-lingual retrieval benchmark: {self._describe_own_languages()}"
        else:
            text = f"A retrieval benchmark in {self._describe_own_languages()}"
        if how and origin:
            language = str(origin.get("language", "und"))
            languages = _describe_languages(language, str(origin.get("query_language") or language))
            text += f", {how} {one_line(origin.get('name'))} ({languages})"
        if self.evidence.whole_made_by == "port" and self.evidence.made_by == "nano":
            text += ", which was translated by a machine"
        translators = self.card.provenance.get("translators") or ()
        if self.evidence.made_by == "port" and translators:
            text += f" by {', '.join(one_line(row.get('name')) for row in translators)}"
        return f"{text}. Published with rusbeir {__version__}."


def _describe_languages(documents: str, queries: str) -> str:
    if documents == queries:
        return english_name(documents)
    return f"documents in {english_name(documents)}, queries in {english_name(queries)}"


def write_citation(published: Published, folder: Path) -> None:
    """Write CITATION.cff, which cites the dataset that this one was made of."""
    yaml = require("yaml", "Publishing", "hf")
    origin = published.origin
    reference = {
        "type": "data",
        "title": one_line(origin.get("name")),
        "authors": [{"name": published.author or f"The authors of {one_line(origin.get('name'))}"}],
    }
    if str(origin.get("source", "")).startswith("http"):
        reference["url"] = origin["source"]
    if published.citation:
        reference["notes"] = published.citation
    made_by = published.author if published.author and not origin else f"The publishers of {published.name}"
    citation = {
        "cff-version": "1.2.0",
        "message": "If you use this dataset, cite it and the dataset that it was made of.",
        "type": "dataset",
        "title": published.title,
        "authors": [{"name": made_by}],
        **({"references": [reference]} if origin else {}),
    }
    (folder / "CITATION.cff").write_text(
        yaml.safe_dump(citation, allow_unicode=True, sort_keys=False), encoding="utf-8"
    )


def write_croissant(published: Published, folder: Path) -> None:
    """Write croissant.json (Croissant 1.0), with the sha256 of each Parquet file."""
    tables = {
        "corpus": (CORPUS, ("_id", "title", "text")),
        "queries": (QUERIES, ("_id", "text")),
        **{
            f"qrels-{split}": (name_qrels_table(split), ("query-id", "corpus-id", "score"))
            for split in published.splits
        },
    }
    document = {
        "@context": _CROISSANT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": published.name,
        "description": published.description,
        "license": published.licence,
        **({"citeAs": published.citation} if published.citation else {}),
        "inLanguage": published.languages[0] if len(published.languages) == 1 else list(published.languages),
        "version": "1.0.0",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name,
                "contentUrl": name,
                "encodingFormat": "application/x-parquet",
                "sha256": _hash_file(folder / name),
            }
            for name, _ in tables.values()
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": table,
                "name": table,
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": f"{table}/{column}",
                        "name": column,
                        "dataType": "sc:Integer" if column == "score" else "sc:Text",
                        "source": {"fileObject": {"@id": name}, "extract": {"column": column}},
                    }
                    for column in columns
                ],
            }
            for table, (name, columns) in tables.items()
        ],
    }
    (folder / "croissant.json").write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
