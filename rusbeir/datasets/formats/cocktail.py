"""Cocktail's layout: several corpora over the same ids, corpus/<source>.jsonl, with BEIR's queries and qrels.

Views: `human`, `llm` (the one other corpus), the name of any corpus, and `mixed`, in which every document has
one copy from each source, its id ends in -<source>, and every copy is judged as the document is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from rusbeir.datasets.formats.beir import bundle_of, choose_split, judgements_in, queries_in, whole_queries_in
from rusbeir.datasets.formats.files import Bundle, Folder
from rusbeir.datasets.formats.records import Complain, Judgement, Place, Query, read_whole_documents
from rusbeir.datasets.formats.source import Request
from rusbeir.errors import BadInput, unknown
from rusbeir.types import Doc

_HUMAN = "human"
_MIXED = "mixed"


def is_cocktail(path: Path) -> bool:
    """True for a folder or a zip that holds corpus/human.jsonl or another corpus/<source>.jsonl."""
    bundle = bundle_of(path)
    return bundle is not None and bool(_corpora(bundle))


def open_cocktail(request: Request) -> CocktailSource:
    """The view asked for, else `mixed`. Raises BadInput for a missing part, UnknownName for another view."""
    bundle = bundle_of(request.path)
    corpora = _corpora(bundle) if bundle else {}
    if not bundle or not corpora:
        raise BadInput(f"{request.path}: no corpus/<source>.jsonl in it; see Cocktail's layout in the docs.")
    view = request.view or _MIXED
    others = [source for source in corpora if source != _HUMAN]
    views = {source: (source,) for source in corpora} | {_MIXED: tuple(corpora)}
    if len(others) == 1:
        views["llm"] = (others[0],)
    if view not in views:
        raise unknown("view", view, views)
    return CocktailSource(
        path=request.path,
        bundle=bundle,
        corpora={source: corpora[source] for source in views[view]},
        split=choose_split(request.path, bundle, request.split),
        mixed=view == _MIXED,
    )


@dataclass(frozen=True, kw_only=True)
class CocktailSource:
    """A Source of Cocktail's layout: source -> file of the corpora that the view is made of."""

    path: Path
    bundle: Bundle
    corpora: dict[str, str]
    split: str
    mixed: bool

    @property
    def id_suffixes(self) -> tuple[str, ...]:
        return tuple(f"-{source}" for source in self.corpora) if self.mixed else ("",)

    @property
    def plain_corpus(self) -> Path | None:
        (file, *more) = self.corpora.values()
        plain = isinstance(self.bundle, Folder) and not self.mixed and not more and not file.endswith(".gz")
        return self.path / file if plain else None

    @property
    def corpus_files(self) -> tuple[Path, ...]:
        if isinstance(self.bundle, Folder):
            return tuple(self.path / file for file in self.corpora.values())
        return (self.path,)

    @property
    def recipe(self) -> str:
        return "|".join((_MIXED if self.mixed else "", *self.corpora.values()))

    def documents(self, complain: Complain) -> Iterator[tuple[Place, Doc]]:
        return ((place, doc) for place, doc, _ in self.whole_documents(complain))

    def queries(self, complain: Complain) -> Iterator[tuple[Place, Query]]:
        return queries_in(self.bundle, complain)

    def whole_documents(self, complain: Complain) -> Iterator[tuple[Place, Doc, dict[str, Any]]]:
        for suffix, file in zip(self.id_suffixes, self.corpora.values(), strict=True):
            with self.bundle.open(file) as lines:
                for place, doc, besides in read_whole_documents(lines, f"{self.bundle.label}{file}", complain):
                    yield place, doc._replace(doc_id=doc.doc_id + suffix) if suffix else doc, besides

    def whole_queries(self, complain: Complain) -> Iterator[tuple[Place, Query, dict[str, Any]]]:
        return whole_queries_in(self.bundle, complain)

    def judgements(self, complain: Complain) -> Iterator[tuple[Place, Judgement]]:
        for place, judgement in judgements_in(self.bundle, self.split, complain):
            for suffix in self.id_suffixes:
                yield place, judgement._replace(doc_id=judgement.doc_id + suffix) if suffix else judgement


def _corpora(bundle: Bundle) -> dict[str, str]:
    files = [
        name
        for name in bundle.names
        if str(PurePosixPath(name).parent) == "corpus" and name.endswith((".jsonl", ".jsonl.gz"))
    ]
    by_source = {PurePosixPath(name).name.rpartition(".jsonl")[0]: name for name in files}
    return {source: by_source[source] for source in sorted(by_source, key=lambda s: (s != _HUMAN, s))}
