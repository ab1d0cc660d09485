"""BEIR's layout and Cocktail's: corpora in JSONL, queries.jsonl and qrels/<split>.tsv, in a folder or a zip, gz or not.

BEIR has one corpus.jsonl. Its option `within` is a folder of an archive of several datasets, such as CQADupStack's.

Cocktail has several corpora over the same ids, corpus/<source>.jsonl. Views: `human`, `llm` (the one other corpus),
the name of any corpus, and `mixed`, in which every document has one copy from each source, its id ends in -<source>,
and every copy is judged as the document is.

card.json describes a dataset that rusbeir wrote.
"""

from __future__ import annotations

import dataclasses
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from rusbeir.datasets.formats.files import PACKED, Bundle, Folder, Zip
from rusbeir.datasets.formats.reader import ReadRequest
from rusbeir.datasets.formats.records import (
    Complain,
    Extra,
    Judgement,
    Place,
    Query,
    find_misfit,
    parse_json,
    read_documents,
    read_json,
    read_queries,
)
from rusbeir.datasets.formats.trec import read_judgements
from rusbeir.errors import BadInput, option, unknown
from rusbeir.types import Card, Doc, needs_judgements

CARD = "card.json"
UNFINISHED = "unfinished.json"
"""A file of a folder whose files are being replaced: the command, and the card before. There is no card meanwhile."""
SPANS = "qa/spans.tsv"
"""Where a test set that `rusbeir synth queries` made says which part of its document answers a query."""
_CARD = {
    **{
        f"{key}?": str
        for key in (
            "name",
            "language",
            "query_language",
            "split",
            "fingerprint",
            "licence",
            "source",
            "revision",
            "author",
            "citation",
        )
    },
    "languages?": [str],
    **{f"{key}?": int for key in ("n_docs", "n_queries", "n_qrels")},
    "ignore_titles?": bool,
    "self_suffixes?": [str],
    "self_retrieval?": bool,
    "provenance?": {
        "source?": ({"name?": str, "language?": str, "fingerprint?": str, "licence?": str, "source?": str}, str),
        "sources?": [{"name": str, "language": str, "fingerprint": str, "licence?": str, "source?": str}],
        "settings?": {str: str},
        "translators?": [{"signature": str, "corpus?": str}],
        "views?": {"source": str, "port": str},
    },
}
_DOCUMENTS = (".jsonl", *(f".jsonl{ending}" for ending in PACKED))
_JUDGEMENTS = (".tsv", *(f".tsv{ending}" for ending in PACKED))
_HUMAN = "human"
_MIXED = "mixed"


def is_beir(path: Path) -> bool:
    """Recognise a folder or a zip that holds corpus.jsonl."""
    bundle = open_bundle(path)
    return bundle is not None and _find_file(bundle, "corpus.jsonl") is not None


def is_cocktail(path: Path) -> bool:
    """Recognise a folder or a zip that holds corpus/human.jsonl or another corpus/<source>.jsonl."""
    bundle = open_bundle(path)
    return bundle is not None and bool(_cocktail_corpora(bundle))


def open_beir(request: ReadRequest) -> BeirReader:
    """Open the dataset at the path. Raises BadInput if a part of it is missing."""
    within = request.options.get("within", "")
    bundle = open_bundle(request.path, within)
    corpus = bundle and _find_file(bundle, "corpus.jsonl")
    if not bundle or not corpus:
        raise BadInput(f"{request.path} has no corpus.jsonl; see BEIR's layout in the docs.")
    if request.view is not None:
        raise unknown("view", request.view, [])
    return _open_bundled(request, bundle, {"": corpus}, recipe=f"{within}/{corpus}" if within else corpus)


def open_cocktail(request: ReadRequest) -> BeirReader:
    """Open the view asked for, else `mixed`. Raises BadInput for a missing part, UnknownName for another view."""
    bundle = open_bundle(request.path)
    corpora = _cocktail_corpora(bundle) if bundle else {}
    if not bundle or not corpora:
        raise BadInput(f"{request.path} has no corpus/<source>.jsonl; see Cocktail's layout in the docs.")
    view = request.view or _MIXED
    views = {source: {"": file} for source, file in corpora.items()}
    if len(others := [source for source in corpora if source != _HUMAN]) == 1:
        views["llm"] = views[others[0]]
    views[_MIXED] = {f"-{source}": file for source, file in corpora.items()}
    if view not in views:
        raise unknown("view", view, views)
    recipe = "|".join((_MIXED if view == _MIXED else "", *views[view].values()))
    return _open_bundled(request, bundle, views[view], recipe=recipe)


@dataclass(frozen=True, kw_only=True)
class BeirReader:
    """Reads either layout: each corpus adds a suffix to its ids, "" for a lone corpus."""

    bundle: Bundle
    corpora: Mapping[str, str]
    """suffix -> file."""
    qrels: str
    """The file of judgements; "" where there is none, and none is needed."""
    split: str
    splits: Mapping[str, str]
    """split -> its file of judgements, of all of them."""
    recipe: str
    id_suffixes: tuple[str, ...]
    corpus_files: tuple[Path, ...]
    plain_corpus: Path | None

    def documents(self, complain: Complain) -> Iterator[tuple[Place, Doc, Extra]]:
        for suffix, file in self.corpora.items():
            with self.bundle.open(file) as lines:
                for location, doc, extra in read_documents(lines, f"{self.bundle.label}{file}", complain):
                    yield location, doc._replace(doc_id=doc.doc_id + suffix) if suffix else doc, extra

    def queries(self, complain: Complain) -> Iterator[tuple[Place, Query, Extra]]:
        name = _find_file(self.bundle, "queries.jsonl")
        if name is None and not self.qrels:
            return
        if name is None:
            raise BadInput(f"{self.bundle.label}queries.jsonl does not exist; a dataset needs queries.")
        with self.bundle.open(name) as lines:
            yield from read_queries(lines, f"{self.bundle.label}{name}", complain)

    def judgements(self, complain: Complain) -> Iterator[tuple[Place, Judgement]]:
        if not self.qrels:
            return
        with self.bundle.open(self.qrels) as lines:
            for location, judgement in read_judgements(lines, f"{self.bundle.label}{self.qrels}", complain):
                for suffix in self.id_suffixes:
                    yield location, judgement._replace(doc_id=judgement.doc_id + suffix) if suffix else judgement

    def open_split(self, split: str) -> BeirReader:
        return dataclasses.replace(self, split=split, qrels=self.splits[split])


def _open_bundled(request: ReadRequest, bundle: Bundle, corpora: Mapping[str, str], *, recipe: str) -> BeirReader:
    splits = list_splits(request.path, request.view, request.options.get("within", ""))
    if not splits and request.judged:
        raise needs_judgements(str(request.path))
    if request.split is None and len(splits) > 1:
        raise BadInput(f"{request.path} has the splits {', '.join(splits)}: choose one with {option('split')}.")
    split = request.split or next(iter(splits), "test")
    if splits and split not in splits:
        raise unknown("split", split, splits)
    folder = bundle.path if isinstance(bundle, Folder) else None
    paths = tuple(folder / file for file in corpora.values()) if folder else (request.path,)
    plain = folder and tuple(corpora) == ("",) and not paths[0].name.endswith(PACKED)
    return BeirReader(
        bundle=bundle,
        corpora=corpora,
        qrels=splits.get(split, ""),
        split=split,
        splits=splits,
        recipe=recipe,
        id_suffixes=tuple(corpora),
        corpus_files=paths,
        plain_corpus=paths[0] if plain else None,
    )


def list_splits(path: Path, view: str | None, within: str = "") -> dict[str, str]:
    """List the splits at the path, which are those of every view: split -> its file of judgements."""
    bundle = open_bundle(path, within)
    files = (PurePosixPath(name) for name in sorted(bundle.names if bundle else ()))
    return {
        file.name.split(".tsv")[0]: str(file)
        for file in files
        if str(file.parent) == "qrels" and file.name.endswith(_JUDGEMENTS)
    }


def open_bundle(path: Path, within: str = "") -> Bundle | None:
    """Open the files below a folder or in a zip, or in a folder of that; None for anything else."""
    if path.is_dir():
        return Folder(path / within)
    return Zip(path, within) if path.is_file() and (path.suffix == ".zip" or zipfile.is_zipfile(path)) else None


def _find_file(bundle: Bundle, name: str) -> str | None:
    """Find the name, plain or packed, that the bundle has; None if it has neither."""
    return next((name + ending for ending in ("", *PACKED) if name + ending in bundle.names), None)


def _cocktail_corpora(bundle: Bundle) -> dict[str, str]:
    """Return source -> file, `human` first."""
    files = [name for name in bundle.names if str(PurePosixPath(name).parent) == "corpus" and name.endswith(_DOCUMENTS)]
    by_source = {PurePosixPath(name).name.rpartition(".jsonl")[0]: name for name in files}
    return {source: by_source[source] for source in sorted(by_source, key=lambda s: (s != _HUMAN, s))}


def read_last_card(folder: Path) -> dict[str, Any]:
    """Read the keys of a folder's card, or of the one that it had before what replaces its files was stopped."""
    unfinished = read_unfinished(folder)
    return unfinished["card"] if unfinished else read_card(folder)


def read_unfinished(folder: Path) -> dict[str, Any] | None:
    """Read the verbs of the command that was stopped while it replaced the files of a folder, and the card before.

    None for a folder that is whole. Raises BadInput for a damaged note.
    """
    path = folder / UNFINISHED
    if not path.is_file() or (folder / CARD).exists():
        return None
    note: dict[str, Any] = read_json(path, {"verbs": [str], "card": _CARD}, "Choose another folder.")
    return note


def read_card(path: Path) -> dict[str, Any]:
    """Read the keys of card.json in that folder or zip; {} if it has none. Raises BadInput for another shape."""
    bundle = open_bundle(path)
    if bundle is None or CARD not in bundle.names:
        return {}
    with bundle.open(CARD) as file:
        data = file.read()
    where = f"{bundle.label}{CARD}"
    card = parse_json(data, where)
    if misfit := find_misfit(card, _CARD):
        raise BadInput(f"{where}: not a card ({misfit}). Correct it or remove it; docs/json.md describes its keys.")
    known: dict[str, Any] = card
    return known


def describe_source(card: Card, fingerprints: str | Mapping[str, str]) -> dict[str, Any]:
    """Describe the dataset that another was made of, for the provenance in that one's card.

    fingerprints: that of the dataset, or those of its splits.
    """
    splits = {} if isinstance(fingerprints, str) else dict(fingerprints)
    return {
        "name": card.name,
        "language": card.language,
        "fingerprint": fingerprints
        if isinstance(fingerprints, str)
        else splits.get("test") or next(iter(splits.values())),
        **({"splits": splits} if splits else {}),
        "licence": card.licence or "not stated",
        "source": card.source,
        "revision": card.revision,
        **({"query_language": card.query_language} if card.query_language else {}),
        **({"author": card.author} if card.author else {}),
        **({"citation": card.citation} if card.citation else {}),
        "provenance": dict(card.provenance),
    }


def card_bytes(card: Card, fingerprint: str, **counts: int) -> bytes:
    """Write card.json: what the card says, with the fingerprint and the counts of the content."""
    about = dataclasses.asdict(card)
    for key in ("languages", "query_language", "author", "citation"):
        if not about[key]:
            del about[key]
    keys = [key for key in ("name", "language", "languages", "query_language", "split") if key in about]
    first: dict[str, Any] = {key: about.pop(key) for key in keys}
    described = {**first, "fingerprint": fingerprint, **about, **counts}
    return (json.dumps(described, ensure_ascii=False, indent=2) + "\n").encode()
