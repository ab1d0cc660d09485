"""The documents that queries are made from: opened with or without queries of their own, and drawn."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rusbeir.datasets import ALL_SPLITS, load, open_corpus
from rusbeir.errors import BadInput, option
from rusbeir.languages import read_language_tag
from rusbeir.synthesis.likeness import count_words
from rusbeir.synthesis.queries.passages import ChunkedCorpus
from rusbeir.synthesis.selection import MAX_WORDS, MIN_WORDS
from rusbeir.types import Card, Corpus, Dataset, Progress

MIN_WORDS_OF_THIRDS = 30
"""The fewest words of a document whose thirds are asked about."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Documents, and what is known of where they are from."""

    corpus: Corpus
    """Those of the new test set: the source's, or their chunks."""
    card: Card
    fingerprint: str
    """The fingerprint of the source's documents."""


def open_source(source: str | Path | Dataset, kind: str, *, language: str | None, progress: Progress) -> Source:
    """Open the documents of a dataset, of a folder with a corpus.jsonl alone, or of a .jsonl file.

    Raises what `load` raises, and BadInput without a language.
    """
    path = None if isinstance(source, Dataset) else Path(source).expanduser()
    bare = path / "corpus.jsonl" if path and path.is_dir() else path
    if isinstance(source, Dataset):
        dataset = source
    elif bare and bare.suffix == ".jsonl" and bare.is_file() and not bare.with_name("queries.jsonl").is_file():
        if not language:
            raise BadInput(f"{source} does not name its language. Name it with {option('language', 'ru')}.")
        # A folder is called by its own name, a file by the file's.
        name = (path or bare).resolve().name.removesuffix(".jsonl")
        card = Card(name=name, language=read_language_tag(language), split="test")
        dataset = Dataset(corpus=open_corpus(bare, progress=progress), queries={}, qrels={}, card=card)
    else:
        dataset = load(source, language=language, split=ALL_SPLITS, progress=progress)
    dataset.refuse_spaced_ids()
    documents = replace(dataset, queries={}, qrels={})
    corpus = ChunkedCorpus(dataset.corpus, dataset.card.language) if kind == "long-doc" else dataset.corpus
    return Source(corpus=corpus, card=dataset.card, fingerprint=documents.fingerprint)


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """The documents that queries are made from."""

    doc_ids: tuple[str, ...]
    """The documents in the order in which they are drawn: those of a smaller number come first."""
    total: int
    unsuitable: int
    """Documents that are too short or too long."""


def draw_documents(source: Source, kind: str, n: int, seed: int, progress: Progress) -> Drawn:
    """Draw n documents of a suitable length, or fewer. Raises BadInput where there is none."""
    least = MIN_WORDS_OF_THIRDS if kind == "position" else MIN_WORDS
    total = unsuitable = 0

    def suitable() -> Iterator[tuple[bytes, str]]:
        nonlocal total, unsuitable
        for total, doc in enumerate(source.corpus, 1):
            if least <= count_words(doc.text) <= MAX_WORDS:
                yield hashlib.sha256(f"{seed}\0{doc.doc_id}".encode()).digest(), doc.doc_id
            else:
                unsuitable += 1
            progress("count words", total, None)

    doc_ids = tuple(doc_id for _, doc_id in heapq.nsmallest(n, suitable()))
    if not doc_ids:
        raise BadInput(
            f"{source.card.name} has no document of {least} to {MAX_WORDS:,} words, so there is nothing to ask about. "
            f"Longer documents are cut by {option('kind', 'long-doc')}."
        )
    return Drawn(doc_ids=doc_ids, total=total, unsuitable=unsuitable)
