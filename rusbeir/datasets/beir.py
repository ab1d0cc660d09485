"""BEIR's layout: corpus.jsonl, queries.jsonl and qrels/<split>.tsv, in a folder or a zip, gz or not.

The option within is a folder in it, for archives of several datasets, such as CQADupStack's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rusbeir.datasets.files import Bundle, Folder
from rusbeir.datasets.layout import bundle_of, choose_split, either, judgements_in, queries_in, whole_queries_in
from rusbeir.datasets.records import Complain, Judgement, Place, Query, read_whole_documents
from rusbeir.datasets.source import Request
from rusbeir.errors import BadInput, unknown
from rusbeir.types import Doc


def is_beir(path: Path) -> bool:
    """True for a folder or a zip that holds corpus.jsonl."""
    bundle = bundle_of(path)
    return bundle is not None and either(bundle, "corpus.jsonl") is not None


def open_beir(request: Request) -> BeirSource:
    """The dataset at the path. Raises BadInput where a part of it is missing."""
    within = request.options.get("within", "")
    bundle = bundle_of(request.path, within)
    corpus = bundle and either(bundle, "corpus.jsonl")
    if not bundle or not corpus:
        raise BadInput(f"{request.path}: no corpus.jsonl in it; see BEIR's layout in the docs.")
    if request.view is not None:
        raise unknown("view", request.view, [])
    return BeirSource(request.path, bundle, corpus, choose_split(request.path, bundle, request.split), within)


@dataclass(frozen=True)
class BeirSource:
    """A Source of BEIR's layout."""

    path: Path
    bundle: Bundle
    corpus: str
    split: str
    within: str = ""
    id_suffixes: tuple[str, ...] = ("",)

    @property
    def plain_corpus(self) -> Path | None:
        plain = isinstance(self.bundle, Folder) and not self.corpus.endswith(".gz")
        return self.path / self.within / self.corpus if plain else None

    @property
    def corpus_files(self) -> tuple[Path, ...]:
        return (self.path / self.within / self.corpus if isinstance(self.bundle, Folder) else self.path,)

    @property
    def recipe(self) -> str:
        return f"{self.within}/{self.corpus}" if self.within else self.corpus

    def documents(self, complain: Complain) -> Iterator[tuple[Place, Doc]]:
        return ((place, doc) for place, doc, _ in self.whole_documents(complain))

    def queries(self, complain: Complain) -> Iterator[tuple[Place, Query]]:
        return queries_in(self.bundle, complain)

    def whole_documents(self, complain: Complain) -> Iterator[tuple[Place, Doc, dict[str, Any]]]:
        with self.bundle.open(self.corpus) as lines:
            yield from read_whole_documents(lines, f"{self.bundle.label}{self.corpus}", complain)

    def whole_queries(self, complain: Complain) -> Iterator[tuple[Place, Query, dict[str, Any]]]:
        return whole_queries_in(self.bundle, complain)

    def judgements(self, complain: Complain) -> Iterator[tuple[Place, Judgement]]:
        return judgements_in(self.bundle, self.split, complain)
