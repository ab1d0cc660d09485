"""A dataset by its name or its path, whatever format it is in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from rusbeir.datasets.card import CARD, read_card
from rusbeir.datasets.checksums import key_of, sha256_of
from rusbeir.datasets.corpus import JsonlCorpus, open_corpus
from rusbeir.datasets.fetching.fetch import fetch_row
from rusbeir.datasets.formats.records import Place, document_line, refuse
from rusbeir.datasets.formats.source import Request, Source, WholeSource
from rusbeir.datasets.formats.table import FORMATS, format_of
from rusbeir.datasets.formats.trec import collect
from rusbeir.datasets.registry import Row, find, unknown_dataset
from rusbeir.errors import BadInput
from rusbeir.storage import atomic_file, cache_folder
from rusbeir.types import Card, Dataset, Doc, Progress, Qrels, silent

_REPORT_EVERY = 10_000
_COPY = 2
"""Raised when copies are made otherwise, so that those of an older version are left alone."""


def load(
    name_or_path: str | Path,
    *,
    language: str | None = None,
    split: str | None = None,
    progress: Progress = silent,
) -> Dataset:
    """The dataset of a registered name or alias, or at a path, which may end in a view: squad.json/sentences.

    A path's language and split come from its card.json, else from the arguments; the only split there is
    need not be named. Raises UnknownName, or BadInput with file and line.

    >>> load("xquad/ru").corpus["0-0"].text[1:15]  # doctest: +SKIP
    'Защита Пэнтерс'
    """
    opened = open_source(name_or_path, language=language, split=split, progress=progress)
    corpus = _open_documents(opened.source, opened.ignore_titles, progress)
    qrels = collect(opened.source.judgements(refuse))
    queries = _judged_queries(opened.source, qrels)
    return Dataset(corpus=corpus, queries=queries, qrels=qrels, card=Card(**opened.known))


def query_metadata(
    name_or_path: str | Path, *, language: str | None = None, split: str | None = None, progress: Progress = silent
) -> dict[str, dict[str, Any]]:
    """query id -> the keys of its record besides _id and text, of the queries that have any; as load.

    What documents have besides, their corpus tells: JsonlCorpus.whole.
    """
    source = open_source(name_or_path, language=language, split=split, progress=progress).source
    if not isinstance(source, WholeSource):
        return {}
    return {query.query_id: besides for _, query, besides in source.whole_queries(refuse) if besides}


def _open_documents(source: Source, ignore_titles: bool, progress: Progress) -> JsonlCorpus:
    def locate(row: int) -> Place:
        place, _ = next(islice(source.documents(refuse), row, None))
        return place

    path = source.plain_corpus or _copied(source, progress)
    return open_corpus(path, ignore_titles=ignore_titles, locate=locate, progress=progress)


def _copied(source: Source, progress: Progress) -> Path:
    """The documents as a JSONL file in the cache, made on first use."""
    key = key_of(_COPY, source.recipe, *map(sha256_of, source.corpus_files))
    path = cache_folder() / "copies" / f"{key}.jsonl"
    if path.is_file():
        return path
    with atomic_file(path) as file:
        for n, (doc, besides) in enumerate(_whole_documents(source), 1):
            file.write(document_line(doc, besides))
            if n % _REPORT_EVERY == 0:
                progress("copying documents", n, None)
    return path


def _whole_documents(source: Source) -> Iterator[tuple[Doc, dict[str, Any]]]:
    if isinstance(source, WholeSource):
        return ((doc, besides) for _, doc, besides in source.whole_documents(refuse))
    return ((doc, {}) for _, doc in source.documents(refuse))


def _judged_queries(source: Source, qrels: Qrels) -> dict[str, str]:
    queries: dict[str, str] = {}
    file = ""
    for place, query in source.queries(refuse):
        file = place.file
        if query.query_id not in qrels:
            continue
        if query.query_id in queries:
            refuse("repeat", place, f"the query id {query.query_id!r} stands a second time; ids must be unique")
        queries[query.query_id] = query.text
    file = file or str(source.corpus_files[0])
    if not queries:
        raise BadInput(f"{file}: none of its queries is judged in the split {source.split!r}.")
    missing = [query_id for query_id in qrels if query_id not in queries]
    if missing:
        n = len(missing)
        raise BadInput(f"{file}: {n} judged queries of the split have no text, such as {missing[0]!r}.")
    return queries


COUNTS = ("n_docs", "n_queries", "n_qrels")
_PATH_ENDINGS = (".zip", ".json", ".json.gz", ".jsonl")


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A dataset whose files are found and whose content has not been read."""

    source: Source
    known: Mapping[str, Any]
    """The fields of its Card."""
    expected: Mapping[str, Any]
    """What the row or the card promises: counts by the names in COUNTS, a fingerprint; any may be missing."""

    @property
    def ignore_titles(self) -> bool:
        return bool(self.known["ignore_titles"])


def open_source(name_or_path: str | Path, *, language: str | None, split: str | None, progress: Progress) -> Opened:
    """The source behind a registered name or a path. Raises UnknownName or BadInput where there is none."""
    name = str(name_or_path)
    row = find(name) if isinstance(name_or_path, str) else None
    if row is not None:
        return _open_row(row, language, split, progress)
    path, view = _path_and_view(name)
    if path is not None:
        return _open_path(path, view, language, split)
    if isinstance(name_or_path, Path) or name.startswith((".", "/", "~")) or name.endswith(_PATH_ENDINGS):
        raise BadInput(f"No file or folder {name}.")
    raise unknown_dataset(name)


def _open_row(row: Row, language: str | None, split: str | None, progress: Progress) -> Opened:
    _agree(row.name, "language", row.language, language)
    _agree(row.name, "split", row.split, split)
    path, *also = fetch_row(row, progress)
    request = Request(path=path, also=tuple(also), language=row.language, split=row.split, options=row.options)
    source = FORMATS[row.format].open(request)
    fields = ("name", "language", "split", "licence", "source", "revision", "ignore_titles")
    known = {key: getattr(row, key) for key in fields}
    known["revision"] = row.revision or " ".join(entry for entry in row.hub if "@" in entry)
    known["self_suffixes"] = source.id_suffixes if row.self_retrieval else ()
    return Opened(source=source, known=known, expected={key: getattr(row, key) for key in COUNTS if getattr(row, key)})


def _open_path(path: Path, view: str | None, language: str | None, split: str | None) -> Opened:
    kind = format_of(path)
    card = read_card(path)
    _agree(f"{path / CARD}", "language", card.get("language"), language)
    _agree(f"{path / CARD}", "split", card.get("split"), split)
    language = card.get("language") or language
    if not language:
        raise BadInput(f"{path} has no card.json that names its language: name it with --lang, as --lang ru.")
    options = {"view": view} if view else {}
    split = card.get("split") or split
    source = kind.open(Request(path=path, language=language, split=split, options=options))
    name = card.get("name") or path.resolve().name.split(".")[0]
    known: dict[str, Any] = {key: card[key] for key in ("licence", "source", "revision", "provenance") if key in card}
    known["name"] = f"{name}/{view}" if view else name
    known["language"] = language
    known["split"] = source.split
    known["ignore_titles"] = card.get("ignore_titles", kind.ignore_titles)
    known["self_suffixes"] = tuple(card.get("self_suffixes", ()))
    expected = {} if view else {key: card[key] for key in (*COUNTS, "fingerprint") if key in card}
    return Opened(source=source, known=known, expected=expected)


def _path_and_view(name: str) -> tuple[Path | None, str | None]:
    try:
        path = Path(name).expanduser()
        holder = path.parent
        is_view = len(path.parts) > 1 and holder.exists() and not _is_claimed(path) and _is_claimed(holder)
        if is_view and not path.is_file():
            return holder, path.name
        if path.exists():
            return path, None
    except (OSError, RuntimeError):
        # A name that no file can have: too long, in a folder closed to us, below the home of nobody.
        return None, None
    return None, None


def _is_claimed(path: Path) -> bool:
    return any(kind.claims(path) for kind in FORMATS.values())


def _agree(where: str, key: str, own: str | None, asked: str | None) -> None:
    if own and asked and own != asked:
        option = "--lang" if key == "language" else "--split"
        raise BadInput(f"{where} says that the {key} is {own!r}, not {asked!r}: leave {option} out.")
