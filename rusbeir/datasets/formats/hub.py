"""Datasets in the layouts of the Hugging Face hub, in a fetched repository or in any folder like one.

These are the layouts of BEIR (configurations corpus and queries, judgements in a separate repository, such as
nfcorpus-qrels for nfcorpus), MTEB (also of several languages: view `ru`), MIRACL, mMARCO, AIR-Bench and PosIR (a folder
for each language and domain: view `rus-Cyrl/aerospace`), and plain files: corpus*.parquet, queries*.parquet and
qrels/*.parquet. hub_layout.py tells how parts are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from rusbeir.datasets.columns import Columns
from rusbeir.datasets.formats import tables
from rusbeir.datasets.formats.files import open_file
from rusbeir.datasets.formats.hub_layout import READABLE, Layout, read_layout, refuse_missing_shards
from rusbeir.datasets.formats.reader import FORMATS, ReadRequest
from rusbeir.datasets.formats.records import Complain, Extra, Judgement, Place, Query, Span, parse_record
from rusbeir.errors import BadInput, option, unknown
from rusbeir.types import Doc, needs_judgements

_ROLES = FORMATS["hub"].parts
_TABLES = tuple(ending for ending in READABLE if not ending.startswith(".jsonl"))


def is_hub(path: Path) -> bool:
    """Recognise a folder whose README.md has configurations, or with parquet or arrow files for a corpus.

    Not for one in BEIR's own layout with such a README.md.
    """
    if not path.is_dir() or next(path.glob("qrels/*.tsv*"), None):
        return False
    names = [file.name for file in path.iterdir()]
    if any(name.startswith("corpus.") and name.endswith(READABLE) for name in names) and any(
        name.startswith(_ROLES) and name.endswith(_TABLES) for name in names
    ):
        return True
    readme = path / "README.md"
    if readme.is_file() and "\nconfigs:" in readme.read_text(encoding="utf-8", errors="replace")[:100_000]:
        return True
    return any(next(path.glob(pattern), None) for pattern in ("corpus*.parquet", "corpus/*.parquet", "corpus*.arrow"))


def open_hub(request: ReadRequest) -> HubReader:
    """Open the dataset in the folders. Raises BadInput or UnknownName for a part or a split that is not there."""
    roots = (request.path, *(request.also or _find_judgements(request.path, request.split)))
    layouts = {root: read_layout(root) for root in roots}
    split = request.split or _only_split(layouts, request)
    parts: dict[str, tuple[Path, ...]] = {}
    for root, layout in layouts.items():
        missing = [role for role in _ROLES if role not in parts]
        for role, files in layout.parts(missing, split, request.options).items():
            refuse_missing_shards(root, files)
            parts[role] = tuple(root / file for file in files)
    for role in _ROLES if request.judged else _ROLES[:1]:
        if role not in parts:
            where = ", ".join(map(str, roots))
            if role == "qrels" and (splits := _name_splits(layouts, request.view)):
                raise unknown("split", split, splits, owner=where)
            of_view = f" of {request.view!r}" if request.view else ""
            raise BadInput(
                f"{where}: the files of the {role}{of_view} are missing; see the layouts of the hub in the docs."
            )
    corpus, *more = parts["corpus"]
    return HubReader(
        split=split,
        corpus_files=parts["corpus"],
        queries_files=parts.get("queries", ()),
        qrels_files=parts.get("qrels", ()),
        plain_corpus=None if more else _find_plain(corpus, request),
        columns=request.columns,
    )


def is_table(path: Path) -> bool:
    """Recognise a file whose name has the ending of a table."""
    return path.is_file() and path.name.endswith(READABLE)


def open_table(request: ReadRequest) -> HubReader:
    """Open the documents of one table. Raises BadInput where judgements are needed."""
    if request.view is not None:
        raise unknown("view", request.view, [])
    if request.judged:
        raise needs_judgements(str(request.path))
    return HubReader(
        split=request.split or "test",
        corpus_files=(request.path,),
        queries_files=(),
        qrels_files=(),
        plain_corpus=_find_plain(request.path, request),
        columns=request.columns,
    )


@dataclass(frozen=True, kw_only=True)
class HubReader:
    """Reads a dataset from tables."""

    split: str
    corpus_files: tuple[Path, ...]
    queries_files: tuple[Path, ...]
    qrels_files: tuple[Path, ...]
    plain_corpus: Path | None
    columns: Columns
    id_suffixes: tuple[str, ...] = ("",)

    @property
    def recipe(self) -> str:
        named = {key: list(names) for key, names in self.columns.items() if key in ("id", "text", "title", "language")}
        return f"tables|{orjson.dumps(named, option=orjson.OPT_SORT_KEYS).decode()}" if named else "tables"

    def documents(self, complain: Complain) -> Iterator[tuple[Place, Doc, Extra]]:
        return (
            (location, doc, {}) for location, doc in tables.read_documents(self.corpus_files, complain, self.columns)
        )

    def queries(self, complain: Complain) -> Iterator[tuple[Place, Query, Extra]]:
        return (
            (location, query, {}) for location, query in tables.read_queries(self.queries_files, complain, self.columns)
        )

    def judgements(self, complain: Complain) -> Iterator[tuple[Place, Judgement]]:
        return tables.read_judgements(self.qrels_files, complain, self.columns)

    def spans(self, complain: Complain) -> Iterator[tuple[Place, Span]]:
        return tables.read_spans(self.queries_files, complain)


def list_splits(path: Path, view: str | None) -> list[str]:
    """List the names of the splits in the folder, or in the one with its judgements."""
    return _name_splits({root: read_layout(root) for root in (path, *_find_judgements(path, None))}, view)


def _name_splits(layouts: Mapping[Path, Layout], view: str | None) -> list[str]:
    splits_by_root = (layout.by_split("qrels", view) for layout in layouts.values())
    return next((sorted(by_split) for by_split in splits_by_root if by_split), [])


def _find_judgements(folder: Path, split: str | None) -> tuple[Path, ...]:
    """Find the sibling folder in which BEIR and AIR-Bench put the judgements of that folder."""
    path = folder.resolve()
    names = (f"{path.name}-qrels", f"qrels-{path.name}-{split or 'dev'}")
    return tuple(path.parent / name for name in names if (path.parent / name).is_dir())


def _only_split(layouts: Mapping[Path, Layout], request: ReadRequest) -> str:
    splits = _name_splits(layouts, request.view)
    if len(splits) == 1:
        return splits[0]
    if not splits and request.view:
        raise unknown("view", request.view, [])
    if not splits and not request.judged:
        return "test"
    if not splits:
        raise needs_judgements(str(request.path))
    raise BadInput(f"{request.path} has the splits {', '.join(splits)}: choose one with {option('split')}.")


def _find_plain(corpus: Path, request: ReadRequest) -> Path | None:
    """Find the corpus, if it is JSONL that can be used in place."""
    return corpus if corpus.suffix == ".jsonl" and not request.columns and _has_beir_keys(corpus) else None


def _has_beir_keys(file: Path) -> bool:
    with open_file(file) as lines:
        first = next((line for line in lines if not line.isspace()), b"{}")
    try:
        return {"_id", "text"} <= set(parse_record(first).keys())
    except (orjson.JSONDecodeError, AttributeError):
        return True  # open_corpus tells what is wrong with it.
