"""The parts of a pool by language: a run and its judgements for each language of queries and of documents.

A pool holds documents of several languages in one index. How well a system serves the queries of one language is
measured on its ranking of all documents. How well it finds the documents of one language is measured on the ranking
that is left when all others are taken out, as if the results were filtered by language: so the part does not depend on
which language the system prefers, which `rusbeir.diagnostics` measures on its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, TypeVar

from rusbeir.errors import BadInput
from rusbeir.types import Dataset, Qrels, Run, query_language

Value = TypeVar("Value")


class LanguagePart(NamedTuple):
    """The queries in one language, and what is judged and was found of the documents in one language."""

    query_language: str
    language: str
    """The language of the documents; that of the card where the part has all of them."""
    qrels: Qrels
    run: Run


def label_queries(dataset: Dataset) -> dict[str, str]:
    """Return the language of each judged query."""
    return {query_id: query_language(dataset.queries, query_id, dataset.card.asked_in) for query_id in dataset.qrels}


def label_documents(dataset: Dataset, doc_ids: Collection[str]) -> dict[str, str]:
    """Return the language of each of these documents that the corpus holds."""
    return {doc.doc_id: doc.language or dataset.card.language for doc in dataset.corpus if doc.doc_id in doc_ids}


def split_by_query(dataset: Dataset, run: Run) -> Iterator[LanguagePart]:
    """Yield the part of each language of queries, with all documents, in the order of the tags."""
    for asked_in, query_ids in _group(label_queries(dataset)).items():
        yield LanguagePart(
            asked_in,
            dataset.card.language,
            {query_id: dataset.qrels[query_id] for query_id in query_ids},
            {query_id: run.get(query_id, {}) for query_id in query_ids},
        )


def split_by_pair(dataset: Dataset, run: Run) -> Iterator[LanguagePart]:
    """Yield the part of each language of queries and each of documents, in the order of the tags.

    A part has the queries with a relevant document in its language, and there is none without such queries. Raises
    BadInput for a dataset whose documents are in one language.
    """
    judged = {doc_id for grades in dataset.qrels.values() for doc_id in grades}
    languages = label_documents(dataset, judged.union(*run.values()))
    if len(spoken := sorted(set(languages.values()))) < 2:
        raise BadInput(
            f"{dataset.card.name} is not a pool: its documents are in {spoken[0] if spoken else 'no language'} alone. "
            "`rusbeir datasets pool` joins datasets of several languages."
        )
    for asked_in, query_ids in _group(label_queries(dataset)).items():
        grades = {query_id: _separate(dataset.qrels[query_id], languages) for query_id in query_ids}
        hits = {query_id: _separate(run.get(query_id, {}), languages) for query_id in query_ids}
        for language in spoken:
            qrels = {
                query_id: by_language[language]
                for query_id, by_language in grades.items()
                if any(grade > 0 for grade in by_language.get(language, {}).values())
            }
            if qrels:
                run_in = {query_id: hits[query_id].get(language, {}) for query_id in qrels}
                yield LanguagePart(asked_in, language, qrels, run_in)


def _group(languages: Mapping[str, str]) -> dict[str, list[str]]:
    """List the queries of each language, the languages in the order of their tags."""
    groups: dict[str, list[str]] = {language: [] for language in sorted(set(languages.values()))}
    for query_id, language in languages.items():
        groups[language].append(query_id)
    return groups


def _separate(values: Mapping[str, Value], languages: Mapping[str, str]) -> dict[str, dict[str, Value]]:
    """Separate the values of documents by the documents' languages; those that the corpus lacks are left out."""
    separate: dict[str, dict[str, Value]] = {}
    for doc_id, value in values.items():
        if doc_id in languages:
            separate.setdefault(languages[doc_id], {})[doc_id] = value
    return separate
