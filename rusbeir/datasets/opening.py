"""The reader of a dataset's files, which are fetched for a registered name, before any content is read."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple, TypeAlias

from rusbeir.datasets.columns import Columns
from rusbeir.datasets.fetching.download import NotAtHand, download
from rusbeir.datasets.fetching.hub import fetch_repositories
from rusbeir.datasets.formats.beir import CARD, read_card, read_unfinished
from rusbeir.datasets.formats.files import checksum_of, compute_checksum, verify_file
from rusbeir.datasets.formats.reader import FORMATS, DatasetReader, ReadRequest, call_format, find_format
from rusbeir.datasets.registry import IRDS, RegistryEntry, find_entry, get_entry, read_registry
from rusbeir.errors import BadInput, option
from rusbeir.languages import parse_language, read_language_tag
from rusbeir.storage import cache_folder
from rusbeir.text import write_command
from rusbeir.types import MULTILINGUAL, Card, Progress, silent

COUNTS = ("n_docs", "n_queries", "n_qrels")
Expected: TypeAlias = Mapping[str, Any]
"""What an entry or a card says of the content: counts by the names in COUNTS, a fingerprint, judged; all optional."""

ALL_SPLITS = "all"
"""The split that stands for all of a dataset."""

_PATH_ENDINGS = (".zip", ".json", ".json.gz", ".json.zst", ".jsonl")


class Opened(NamedTuple):
    """A dataset whose files are found and whose content is not read yet."""

    reader: DatasetReader
    card: Card
    expected: Expected


class SplitSource(NamedTuple):
    """The source of a split: a name or a path, and the split there; None for the only one."""

    name_or_path: str | Path
    split: str | None


def open_reader(
    name_or_path: str | Path,
    *,
    language: str | None,
    split: str | None,
    judged: bool = False,
    download: bool = True,
    columns: Columns | None = None,
    progress: Progress,
) -> Opened:
    """Open the reader of a registered name or a path, with its card and what its content should be.

    Files are found or fetched; content is not read. Raises UnknownName or BadInput if there is nothing to read, and
    where judgements are needed (judged) that are not published, before anything is fetched.
    """
    name = str(name_or_path)
    languages = tuple(map(parse_language, language.split(","))) if language and "," in language else ()
    language = MULTILINGUAL if languages else language and parse_language(language)
    if name.startswith(IRDS):
        return _open_irds(name, language, split, judged, download, languages)
    if isinstance(name_or_path, str) and (entry := find_entry(name)):
        if columns:
            raise BadInput(f"{entry.name} is registered, and its columns are known: omit {option('columns')}.")
        if judged and not entry.judged:
            raise BadInput(
                f"{entry.name}: its judgements are not published, so nothing can be measured on it. "
                "`rusbeir airbench run` writes the result files that AIR-Bench scores."
            )
        return _open_entry(entry, language, split, download, progress)
    path, view = split_view(name)
    if path is not None:
        return _open_path(
            path,
            ReadRequest(
                path=path,
                language=language or "",
                languages=languages,
                split=split,
                view=view,
                judged=judged,
                columns=columns or {},
            ),
        )
    if isinstance(name_or_path, Path) or name.startswith((".", "/", "~")) or name.endswith(_PATH_ENDINGS):
        raise BadInput(f"No file or folder {name}.")
    return _open_entry(get_entry(name), language, split, download, progress)


def _open_entry(
    entry: RegistryEntry, language: str | None, split: str | None, download: bool, progress: Progress
) -> Opened:
    for what, known, requested in (("language", entry.language, language), ("split", entry.split, split)):
        if requested:
            _refuse_conflict(entry.name, what, known, requested)
    counts = {key: getattr(entry, key) for key in COUNTS if getattr(entry, key)}
    if dataset_id := entry.options.get("id"):
        opened = _open_irds(f"{IRDS}{dataset_id}", language, split, entry.judged, download)
        card = dataclasses.replace(opened.card, name=entry.name, licence=entry.licence, source=entry.source)
        return opened._replace(card=card, expected=counts)
    path, *also = fetch_entry(entry, progress, allow_download=download)
    request = ReadRequest(
        path=path,
        language=entry.language,
        split=entry.split,
        view=entry.options.get("view"),
        also=tuple(also),
        options=entry.options,
        judged=entry.judged,
    )
    reader: DatasetReader = resolve_name(FORMATS[entry.format].open)(request)
    card = Card(
        name=entry.name,
        language=entry.language,
        split=entry.split,
        licence=entry.licence,
        source=entry.source,
        revision=entry.revision or " ".join(repository for repository in entry.hub if "@" in repository),
        ignore_titles=entry.ignore_titles,
        self_suffixes=reader.id_suffixes if entry.self_retrieval else (),
    )
    return Opened(reader, card, counts | ({} if entry.judged else {"judged": False}))


def _open_irds(
    name: str,
    language: str | None,
    split: str | None,
    judged: bool,
    download: bool,
    languages: tuple[str, ...] = (),
) -> Opened:
    """Open a dataset by its id in ir_datasets, whose reader is imported only now."""
    from rusbeir.datasets.formats import irds

    parsed = irds.parse_name(name)
    card = dataclasses.replace(irds.describe(parsed, language or ""), languages=languages)
    for what, known, requested in (("language", card.language, language), ("split", card.split, split)):
        _refuse_conflict(name, what, known, requested)
    path, *also = irds.fetch_documents(parsed.dataset_id, allow_download=download) or (Path(),)
    options = {"id": parsed.dataset_id, "query": "+".join(parsed.fields)}
    request = ReadRequest(path=path, language=card.language, also=tuple(also), judged=judged, options=options)
    return Opened(irds.open_irds(request), card, {})


def fetch(name: str, progress: Progress = silent) -> Path:
    """Find the file of that dataset, or download it (of several repositories: the first's folder).

    It is looked for in each folder of RUSBEIR_DATA, first at the entry's path (a repository at hub/<owner>/<name>),
    then, if its checksum is known, as any file of that name below it; then in the cache. Raises BadInput if a checksum
    differs, BackendError if a download fails, MissingExtra if the hub's library is needed.

    Examples:
        >>> fetch("xquad/ru").name  # doctest: +SKIP
        'xquad.ru.json'
    """
    return fetch_entry(get_entry(name), progress)[0]


def fetch_entry(entry: RegistryEntry, progress: Progress, *, allow_download: bool = True) -> tuple[Path, ...]:
    """Fetch the file of an entry, or the folders of its repositories. Raises NotAtHand if that is not allowed."""
    if entry.bundled:
        return (Path(__file__).parent / entry.bundled,)
    if dataset_id := entry.options.get("id"):
        function = resolve_name("rusbeir.datasets.formats.irds:fetch_documents")
        paths: tuple[Path, ...] = function(dataset_id, allow_download=allow_download)
        return paths or (Path(),)
    folders = [Path(part).expanduser() for part in os.environ.get("RUSBEIR_DATA", "").split(os.pathsep) if part]
    if entry.hub:
        return fetch_repositories(entry, folders, progress, allow_download=allow_download)
    for folder in folders:
        exact = folder / entry.path
        if exact.is_file():
            verify_file(exact, entry.name, entry.path, sha256=entry.sha256, md5=entry.md5)
            return (exact,)
        for other in sorted(folder.rglob(exact.name)) if entry.verified else []:
            kind, expected = ("sha256", entry.sha256) if entry.sha256 else ("md5", entry.md5)
            if other.is_file() and checksum_of(other, kind) == expected:
                return (other,)
    cached = cache_folder() / "downloads" / entry.path
    if cached.is_file():
        verify_file(cached, entry.name, entry.path, sha256=entry.sha256, md5=entry.md5)
    else:
        _download(entry, cached, progress, allow_download)
    return (cached,)


def _download(entry: RegistryEntry, target: Path, progress: Progress, allow_download: bool) -> None:
    expected = f" with sha256 {entry.sha256}" if entry.sha256 else f" with md5 {entry.md5}" if entry.md5 else ""
    remedy = f"put {entry.path}{expected} into a folder named in RUSBEIR_DATA"
    if not entry.url:
        raise NotAtHand(f"{entry.name} needs {entry.path}, whose address is not known ({entry.source}): {remedy}.")
    if not allow_download:
        raise NotAtHand(
            f"{entry.name} needs {entry.path}, which is not on this machine: `rusbeir datasets fetch {entry.name}`, "
            f"or {remedy}."
        )

    def check(part: Path) -> None:
        verify_file(part, entry.name, entry.path, sha256=entry.sha256, md5=entry.md5, checksum=compute_checksum)

    download(entry.url, target, check=check, remedy=remedy, progress=progress)


def _open_path(path: Path, request: ReadRequest) -> Opened:
    """Open what is at the path as it is requested, but for what the card decides."""
    view = request.view
    if unfinished := read_unfinished(path):
        raise BadInput(
            f"{path} is not whole: `{write_command(*unfinished['verbs'], '…', '--out', path)}` was stopped while it "
            "replaced the files. Run it again as it was given."
        )
    kind = find_format(path)
    if kind is None:
        raise BadInput(
            f"{path} is not a dataset: expected a folder or a zip with corpus.jsonl (or corpus/<source>.jsonl), "
            "queries.jsonl and qrels/<split>.tsv, a folder as on the Hugging Face hub (such as corpus*.parquet), "
            "a table of documents (.csv, .tsv, .jsonl or .parquet), or a SQuAD .json."
        )
    if request.columns and not kind.takes_columns:
        raise BadInput(f"{path} has no tables whose columns can be named: omit {option('columns')}.")
    known = read_card(path)
    language = _decide_language(path, known.get("language"), request.language)
    card_split = known.get("split")
    if card_split == ALL_SPLITS and kind.splits and ALL_SPLITS not in call_format(kind, kind.splits, path, path, view):
        card_split = None  # Earlier versions published several splits under this name.
    request = dataclasses.replace(
        request, language=language, split=request.split or card_split, options={"view": view} if view else {}
    )
    reader: DatasetReader = call_format(kind, kind.open, path, request)
    # A name in another encoding than UTF-8 could not be written to a row.
    name = known.get("name") or os.fsencode(path.resolve().name.split(".")[0]).decode("utf-8", "replace")
    card = Card(
        name=f"{name}/{view}" if view else name,
        language=language,
        split=reader.split,
        ignore_titles=known.get("ignore_titles", kind.ignore_titles),
        self_suffixes=tuple(known.get("self_suffixes", reader.id_suffixes if known.get("self_retrieval") else ())),
        languages=tuple(map(parse_language, known.get("languages", request.languages))),
        query_language=asked_in if (asked_in := known.get("query_language", "")) != language else "",
        **{
            key: known[key]
            for key in ("licence", "source", "revision", "provenance", "author", "citation")
            if key in known
        },
    )
    keys: Collection[str] = COUNTS[:1]
    if view:
        keys = ()
    elif reader.split == known.get("split", reader.split):
        keys = (*COUNTS, "fingerprint")
    return Opened(reader, card, {key: known[key] for key in keys if key in known})


def _decide_language(path: Path, known: str | None, requested: str) -> str:
    """Return the card's language, else the one that the caller names. Raises BadInput where there is none, or two."""
    _refuse_conflict(f"{path / CARD}", "language", known, requested)
    language = known or requested
    if not language:
        raise BadInput(
            f"{path} has no card.json that names its language. Name it with {option('language', 'TAG')}, such as en "
            "or ru."
        )
    return language if language.islower() else read_language_tag(language)


def _refuse_conflict(where: str, what: str, known: str | None, requested: str | None) -> None:
    # A region narrows a language down; it does not contradict it.
    same = (requested, requested.partition("-")[0]) if requested and what == "language" else (requested,)
    if known and requested and known not in same:
        raise BadInput(f"{where} says that the {what} is {known!r}, not {requested!r}: omit {option(what)}.")


def split_view(name: str) -> tuple[Path | None, str | None]:
    """Split a name into the path and the view that follows it, if any; None if there is no such path."""
    try:
        path = Path(name).expanduser()
        may_be_view = not path.is_file() and len(path.parts) > 1 and path.parent.exists()
        if may_be_view and find_format(path) is None and find_format(path.parent) is not None:
            return path.parent, path.name
        return (path, None) if path.exists() else (None, None)
    except (OSError, RuntimeError):
        # Not a possible path: too long, in a folder without permission, or under a home directory that does not exist.
        return None, None


def find_splits(name_or_path: str | Path, split: str, also: Collection[str]) -> list[SplitSource]:
    """Find the source of each split asked for; [] for one alone and for a split that is not known."""
    path, view = split_view(str(name_or_path))
    known: dict[str, SplitSource] = {}
    if path is not None:
        kind = find_format(path)
        names = call_format(kind, kind.splits, path, path, view) if kind and kind.splits else ()
        known = {name: SplitSource(name_or_path, name) for name in names}
    elif isinstance(name_or_path, str):
        entries = [entry for entry in read_registry().values() if entry.name == f"{name_or_path}/{entry.split}"]
        known = {entry.split: SplitSource(entry.name, None) for entry in entries}
    if split not in (ALL_SPLITS, *known):
        return []
    return [source for name, source in known.items() if split in (ALL_SPLITS, name) or name in also]
