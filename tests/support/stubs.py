"""An analyzer that splits at white space, and a corpus in memory, for tests of engines alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from rusbeir.retrieval.lexical import engines, index
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.lexical.index import LexicalRetriever
from rusbeir.types import Doc, Progress, silent


class Words:
    signature = "words"

    def analyze(self, text: str) -> list[str]:
        return text.split()

    def analyze_lines(self, texts: Iterable[str], *, processes: int | None = None) -> Iterator[str]:
        return (" ".join(text.split()) for text in texts)


class Docs(list[Doc]):
    """Documents as a Corpus."""

    def __getitem__(self, doc_id):
        for doc in self:
            if doc.doc_id == doc_id:
                return doc
        raise KeyError(doc_id)


def recipe(engine: str, bm25: Bm25, folder: Path, fingerprint: str = "f") -> engines.IndexKey:
    """The signature contains the folder, because a server keeps one index per key as well."""
    chosen = engines.load(engine)
    return engines.IndexKey(
        signature=f"{bm25.signature}|{chosen.signature(bm25)}|words|{folder}", fingerprint=fingerprint
    )


def build(
    folder: Path, docs: Iterable[Doc], engine: str = "tantivy", bm25: Bm25 | None = None, progress: Progress = silent
) -> None:
    bm25 = bm25 or Bm25()
    index.build(folder, recipe(engine, bm25, folder), Docs(docs), Words(), engines.load(engine), bm25, progress)


def open_built(folder: Path, engine: str = "tantivy", bm25: Bm25 | None = None) -> LexicalRetriever:
    bm25 = bm25 or Bm25()
    retriever, _ = index.open_index(folder, recipe(engine, bm25, folder), Words(), engines.load(engine), bm25)
    return retriever


def retriever(folder: Path, docs: Iterable[Doc], engine: str = "tantivy", bm25: Bm25 | None = None) -> LexicalRetriever:
    build(folder, docs, engine, bm25)
    return open_built(folder, engine, bm25)
