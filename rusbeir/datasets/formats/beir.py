"""BEIR's layout: corpus.jsonl, queries.jsonl and qrels/<split>.tsv, in a folder or a zip, gz or not.

The option within is a folder in it, for archives of several datasets, such as CQADupStack's.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from rusbeir.datasets.formats.files import Bundle, Folder, Zip
from rusbeir.datasets.formats.records import Complain, Judgement, Place, Query, read_whole_documents, read_whole_queries
from rusbeir.datasets.formats.source import Request
from rusbeir.datasets.formats.trec import read_judgements
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


def bundle_of(path: Path, within: str = "") -> Bundle | None:
    """The files below a folder or in a zip, or in a folder of that; None for anything else."""
    if path.is_dir():
        return Folder(path / within)
    return Zip(path, within) if path.is_file() and (path.suffix == ".zip" or zipfile.is_zipfile(path)) else None


def either(bundle: Bundle, name: str) -> str | None:
    """The name, plain or with .gz, that the bundle has; None where it has neither."""
    return next((found for found in (name, f"{name}.gz") if found in bundle.names), None)


def splits_of(bundle: Bundle) -> dict[str, str]:
    """split -> file of its qrels, sorted by split."""
    files = (PurePosixPath(name) for name in sorted(bundle.names))
    return {
        file.name.split(".tsv")[0]: str(file)
        for file in files
        if str(file.parent) == "qrels" and file.name.endswith((".tsv", ".tsv.gz"))
    }


def choose_split(path: Path, bundle: Bundle, split: str | None) -> str:
    """The split asked for, else the only one. Raises UnknownName or BadInput, listing those there are."""
    splits = splits_of(bundle)
    if not splits:
        raise BadInput(f"{path}: no qrels/<split>.tsv in it; a dataset needs judgements.")
    if split is None:
        if len(splits) > 1:
            raise BadInput(f"{path} has the splits {', '.join(splits)}: choose one with --split.")
        return next(iter(splits))
    if split not in splits:
        raise unknown("split", split, splits)
    return split


def queries_in(bundle: Bundle, complain: Complain) -> Iterator[tuple[Place, Query]]:
    """The queries of queries.jsonl or queries.jsonl.gz."""
    return ((place, query) for place, query, _ in whole_queries_in(bundle, complain))


def whole_queries_in(bundle: Bundle, complain: Complain) -> Iterator[tuple[Place, Query, dict[str, Any]]]:
    """The same, each with the keys that its record has besides."""
    name = either(bundle, "queries.jsonl")
    if name is None:
        raise BadInput(f"{bundle.label}queries.jsonl does not exist; a dataset needs queries.")
    with bundle.open(name) as lines:
        yield from read_whole_queries(lines, f"{bundle.label}{name}", complain)


def judgements_in(bundle: Bundle, split: str, complain: Complain) -> Iterator[tuple[Place, Judgement]]:
    """The judgements of that split, which must exist."""
    name = splits_of(bundle)[split]
    with bundle.open(name) as lines:
        yield from read_judgements(lines, f"{bundle.label}{name}", complain)
