"""Datasets as they lie on the Hugging Face hub, in a fetched repository or in any folder like one.

Understood are the layouts of BEIR (configurations corpus and queries, judgements in a repository of their own, such
as nfcorpus-qrels beside nfcorpus), MTEB (also of several languages: view `ru`), MIRACL, mMARCO and AIR-Bench, and
plain files: corpus*.parquet, queries*.parquet and qrels/*.parquet. hub_layout.py says by what a part is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from rusbeir.datasets.fetching.hub import find_parts
from rusbeir.datasets.formats import tables
from rusbeir.datasets.formats.files import open_file
from rusbeir.datasets.formats.hub_layout import complain_of_missing_shards, layout_of
from rusbeir.datasets.formats.records import Complain, Judgement, Place, Query
from rusbeir.datasets.formats.source import Request
from rusbeir.errors import BadInput, unknown
from rusbeir.types import Doc

_ROLES = ("corpus", "queries", "qrels")


def is_hub(path: Path) -> bool:
    """True for a folder whose README.md has configurations, or with parquet or arrow files for a corpus.

    Not for one in BEIR's own layout with such a README.md.
    """
    if not path.is_dir() or next(path.glob("qrels/*.tsv*"), None):
        return False
    readme = path / "README.md"
    if readme.is_file() and "\nconfigs:" in readme.read_text(encoding="utf-8", errors="replace")[:100_000]:
        return True
    return any(next(path.glob(pattern), None) for pattern in ("corpus*.parquet", "corpus/*.parquet", "corpus*.arrow"))


def open_hub(request: Request) -> HubSource:
    """The dataset in the folders. Raises BadInput or UnknownName for a part or a split that is not there."""
    roots = (request.path, *(request.also or _beside(request)))
    split = request.split or _only_split(roots, request)
    parts: dict[str, tuple[Path, ...]] = {}
    for root in roots:
        missing = [role for role in _ROLES if role not in parts]
        found = find_parts(layout_of(root), missing, split, request.options)
        for role, files in found.items():
            complain_of_missing_shards(root, files)
            parts[role] = tuple(root / file for file in files)
    for role in _ROLES:
        if role not in parts:
            where = ", ".join(map(str, roots))
            of = f" of {request.view!r}" if request.view else ""
            raise BadInput(f"{where}: no files of its {role}{of}; see the layouts of the hub in the docs.")
    return HubSource(split=split, parts=parts)


@dataclass(frozen=True, kw_only=True)
class HubSource:
    """A Source of some tables: corpus, queries and qrels -> their files."""

    split: str
    parts: Mapping[str, tuple[Path, ...]]
    id_suffixes: tuple[str, ...] = ("",)

    @property
    def plain_corpus(self) -> Path | None:
        (file, *more) = self.corpus_files
        return file if not more and file.suffix == ".jsonl" and _has_our_keys(file) else None

    @property
    def corpus_files(self) -> tuple[Path, ...]:
        return self.parts["corpus"]

    @property
    def recipe(self) -> str:
        return "tables"

    def documents(self, complain: Complain) -> Iterator[tuple[Place, Doc]]:
        return tables.documents_in(self.parts["corpus"], complain)

    def queries(self, complain: Complain) -> Iterator[tuple[Place, Query]]:
        return tables.queries_in(self.parts["queries"], complain)

    def judgements(self, complain: Complain) -> Iterator[tuple[Place, Judgement]]:
        return tables.judgements_in(self.parts["qrels"], complain)


def _beside(request: Request) -> tuple[Path, ...]:
    """Where BEIR and AIR-Bench put the judgements of that folder: a folder beside it."""
    path = request.path.resolve()
    names = (f"{path.name}-qrels", f"qrels-{path.name}-{request.split or 'dev'}")
    return tuple(path.parent / name for name in names if (path.parent / name).is_dir())


def _only_split(roots: tuple[Path, ...], request: Request) -> str:
    found = (layout_of(root).by_split("qrels", request.view) for root in roots)
    splits = next((list(by_split) for by_split in found if by_split), [])
    if len(splits) == 1:
        return splits[0]
    if not splits and request.view:
        raise unknown("view", request.view, [])
    if not splits:
        raise BadInput(f"{request.path}: no judgements in it; expected qrels/<split>.parquet, .tsv or .jsonl.")
    raise BadInput(f"{request.path} has the splits {', '.join(sorted(splits))}: choose one with --split.")


def _has_our_keys(file: Path) -> bool:
    with open_file(file) as lines:
        first = next((line for line in lines if not line.isspace()), b"{}")
    try:
        return {"_id", "text"} <= set(orjson.loads(first).keys())
    except (orjson.JSONDecodeError, AttributeError):
        return True  # The reader of corpora says what is wrong with it.
