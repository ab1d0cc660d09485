"""The texts of a dataset that are translated, and the records that contain them."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rusbeir.datasets.corpus import JsonlCorpus
from rusbeir.datasets.loading import load_splits
from rusbeir.datasets.opening import ALL_SPLITS
from rusbeir.errors import BadInput, option
from rusbeir.types import MULTILINGUAL, Corpus, Dataset, Doc, Progress, Qrels, select_queries, silent

FIELDS = ("title", "text", "query")

Whole = tuple[Doc, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Material:
    """A dataset, what is translated of it, and what is copied unchanged."""

    dataset: Dataset
    """The dataset with the queries of all its splits, and with all judgements that are to be written."""
    splits: Mapping[str, Qrels]
    """split -> its judgements."""
    fields: tuple[str, ...] = FIELDS
    query_metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """query id -> the keys of its record other than _id and text."""

    @property
    def language(self) -> str:
        """The language that is translated. Raises BadInput where the fields are in two."""
        card = self.dataset.card
        if card.language == MULTILINGUAL:
            raise BadInput(f"{card.name} is in several languages: translate the datasets that it was made of.")
        if not card.query_language:
            return card.language
        spoken = {card.asked_in if name == "query" else card.language for name in self.fields}
        if len(spoken) > 1:
            raise BadInput(
                f"{card.name} has documents in {card.language!r} and queries in {card.asked_in!r}: translate one of "
                f"them, with {option('fields', 'title,text')} or {option('fields', 'query')}."
            )
        return spoken.pop()

    def reduce_to(self, dataset: Dataset) -> Material:
        """Reduce the material to a part of its dataset: splits have the judgements that are left, and empty ones go."""
        splits: dict[str, dict[str, dict[str, int]]] = {}
        for split, qrels in self.splits.items():
            for query_id, grades in qrels.items():
                left = dataset.qrels.get(query_id, {})
                if judged := {doc_id: grade for doc_id, grade in grades.items() if doc_id in left}:
                    splits.setdefault(split, {})[query_id] = judged
        return replace(self, dataset=dataset, splits=splits)

    def document_texts(self, docs: Iterable[Doc]) -> Iterator[str]:
        """Yield the texts to translate of documents, the title first; those without any character are left out."""
        for doc in docs:
            if doc.title and "title" in self.fields:
                yield doc.title
            if doc.text and "text" in self.fields:
                yield doc.text

    def query_texts(self) -> list[str]:
        """Return the texts to translate of the queries."""
        return [text for text in self.dataset.queries.values() if text] if "query" in self.fields else []

    def all_texts(self) -> Iterator[str]:
        """Yield the texts to translate, those of documents first."""
        yield from self.document_texts(self.dataset.corpus)
        yield from self.query_texts()

    def with_texts(self, doc: Doc, translations: Iterator[str]) -> Doc:
        """Return the document with the next translations in the places of its texts, as document_texts gives them."""
        title = next(translations) if doc.title and "title" in self.fields else doc.title
        text = next(translations) if doc.text and "text" in self.fields else doc.text
        # What is translated is in the language of the port's card, whatever the record named.
        return Doc(doc.doc_id, text, title)


def load_material(
    dataset: str | Path | Dataset,
    *,
    language: str | None = None,
    split: str | None = None,
    also: Collection[str] = (),
    all_queries: bool = False,
    fields: Sequence[str] = FIELDS,
    progress: Progress = silent,
) -> Material:
    """Load the dataset with what a port needs of it: its splits, the fields to translate, the metadata of its queries.

    split None means all of them; `also` names others that are wanted as far as the dataset has them.
    """
    names = [name.strip() for name in fields if name.strip()]
    choices = f"choose from {', '.join(FIELDS)}, separated by commas."
    if wrong := [name for name in names if name not in FIELDS]:
        raise BadInput(f"{option('fields', ','.join(fields))}: no field {wrong[0]!r}; {choices}")
    if not names:
        raise BadInput(f"{option('fields', repr(','.join(fields)))} names no field; {choices}")
    metadata: Mapping[str, Mapping[str, Any]] = {}
    if isinstance(dataset, Dataset):
        splits: Mapping[str, Qrels] = {dataset.card.split: dataset.qrels}
    else:
        dataset, splits, metadata, _ = load_splits(
            dataset,
            language=language,
            split=split or ALL_SPLITS,
            also=also,
            all_queries=all_queries,
            progress=progress,
        )
    # As bench does: better now than when all is translated.
    dataset.refuse_spaced_ids()
    chosen = tuple(name for name in FIELDS if name in names)
    return Material(dataset=dataset, splits=splits, fields=chosen, query_metadata=metadata)


def whole_documents(corpus: Corpus) -> Iterator[Whole]:
    """Return the documents, each with the further keys of its record; {} where the corpus does not know them."""
    if isinstance(corpus, JsonlCorpus | Sample):
        return corpus.whole()
    return ((doc, {}) for doc in corpus)


def sample_documents(dataset: Dataset, n: int, seed: int) -> Dataset:
    """Sample the dataset with n documents, as draw_documents and take_documents choose them.

    Where more than n are judged, n of those are drawn. Raises BadInput where no judged query would be left.
    """
    if n < 1:
        raise BadInput(f"{option('sample', n)}: take at least 1 document.")
    doc_ids = draw_documents(dataset.corpus, dataset.qrels, n, seed)
    sample = take_documents(dataset, doc_ids)
    if not sample.qrels:
        raise BadInput(f"{option('sample', n)} leaves no query with a relevant document; take more documents.")
    return sample


def draw_documents(docs: Iterable[Doc], qrels: Qrels, n: int, seed: int) -> frozenset[str]:
    """Draw the ids of n of the documents: judged ones first, then others, drawn by the seed."""
    judged = {doc_id for grades in qrels.values() for doc_id in grades}

    def draw(doc: Doc) -> tuple[bool, bytes]:
        return doc.doc_id not in judged, hashlib.sha256(f"{seed}\0{doc.doc_id}".encode()).digest()

    return frozenset(doc_id for _, doc_id in heapq.nsmallest(n, ((draw(doc), doc.doc_id) for doc in docs)))


def take_documents(dataset: Dataset, doc_ids: frozenset[str]) -> Dataset:
    """Take the dataset with the documents of these ids, in corpus order.

    Judgements of documents left out go, and with them the queries that keep no relevant document; queries without any
    judgement stay.
    """
    left = {
        query_id: {doc_id: grade for doc_id, grade in grades.items() if doc_id in doc_ids}
        for query_id, grades in dataset.qrels.items()
    }
    qrels = {query_id: grades for query_id, grades in left.items() if any(grade > 0 for grade in grades.values())}
    query_ids = (query_id for query_id in dataset.queries if query_id in qrels or query_id not in left)
    queries = select_queries(dataset.queries, query_ids)
    return replace(dataset, corpus=Sample(dataset.corpus, doc_ids), queries=queries, qrels=qrels)


@dataclass(frozen=True)
class Sample:
    """Some documents of a corpus, in its order."""

    corpus: Corpus
    doc_ids: frozenset[str]

    def __iter__(self) -> Iterator[Doc]:
        return (doc for doc in self.corpus if doc.doc_id in self.doc_ids)

    def __len__(self) -> int:
        return len(self.doc_ids)

    def __getitem__(self, doc_id: str) -> Doc:
        if doc_id not in self.doc_ids:
            raise KeyError(doc_id)
        return self.corpus[doc_id]

    def whole(self) -> Iterator[Whole]:
        """Return the documents, each with the further keys of its record."""
        return (pair for pair in whole_documents(self.corpus) if pair[0].doc_id in self.doc_ids)
