"""A pool of two small collections that say the same, in Russian and in English."""

from __future__ import annotations

from rusbeir.datasets import load
from rusbeir.types import MULTILINGUAL, Card, Corpus, Dataset, Doc, MemoryCorpus, MultilingualQueries

LANGUAGES = ("ru", "en")


def documents(language: str) -> list[Doc]:
    """The documents of the small collection in a language, with ids of the pool."""
    return [
        doc._replace(doc_id=f"{language}-{doc.doc_id}", language=language) for doc in load(f"mini/{language}").corpus
    ]


def queries(language: str) -> dict[str, str]:
    return {f"{language}-{query_id}": text for query_id, text in load(f"mini/{language}").queries.items()}


def make_pool(*, corpus: Corpus | None = None, split: str = "test") -> Dataset:
    """The pool; a document is relevant in both languages."""
    texts = {language: queries(language) for language in LANGUAGES}
    qrels = {
        f"{asked}-{query_id}": {
            f"{language}-{doc_id}": grade for language in LANGUAGES for doc_id, grade in grades.items()
        }
        for asked in LANGUAGES
        for query_id, grades in load("mini/ru").qrels.items()
    }
    return Dataset(
        corpus=corpus or MemoryCorpus(doc for language in LANGUAGES for doc in documents(language)),
        queries=MultilingualQueries(
            {query_id: text for by_id in texts.values() for query_id, text in by_id.items()},
            {query_id: language for language, by_id in texts.items() for query_id in by_id},
        ),
        qrels=qrels,
        card=Card(name="mini/pool", language=MULTILINGUAL, languages=LANGUAGES, split=split),
    )
