"""Queries that are documents of their own corpus, as in BEIR's ArguAna and Quora."""

from __future__ import annotations

from rusbeir.types import Dataset, Doc

REMEDY = (
    "They find themselves first. BEIR's evaluation leaves such hits out; "
    'to do so here, put "self_retrieval": true into the dataset\'s card.json.'
)


def find_self_queries(dataset: Dataset) -> list[str]:
    """List the queries whose own document may be a hit; none where the card says that such hits are left out."""
    if dataset.card.self_suffixes:
        return []
    return [query_id for query_id, text in dataset.queries.items() if _is_document(dataset, query_id, text)]


def repeats_query(doc: Doc, query: str) -> bool:
    """Whether a document with the id of a query is that query: its text, with the title or without, but for spaces."""
    words = query.split()
    return words == doc.text.split() or words == f"{doc.title} {doc.text}".split()


def _is_document(dataset: Dataset, query_id: str, text: str) -> bool:
    try:
        return repeats_query(dataset.corpus[query_id], text)
    except KeyError:
        return False
