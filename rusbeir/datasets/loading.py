"""A dataset by its name or its path, in any format."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple, TypeAlias

from rusbeir.datasets.corpus import JsonlCorpus, open_corpus
from rusbeir.datasets.fetching.fetch import fetch_entry
from rusbeir.datasets.formats.files import checksum_of
from rusbeir.datasets.formats.reader import (
    FORMATS,
    DatasetReader,
    OpensSplits,
    ReadRequest,
    call_format,
    find_format,
)
from rusbeir.datasets.formats.records import Extra, Place, collect, document_line, refuse
from rusbeir.datasets.registry import RegistryEntry, find_entry, get_entry, read_registry
from rusbeir.errors import BadInput, option
from rusbeir.languages import parse_language, read_language_tag
from rusbeir.storage import atomic_file, cache_folder
from rusbeir.text import digest
from rusbeir.types import Card, Dataset, Progress, Qrels, silent

COUNTS = ("n_docs", "n_queries", "n_qrels")
Expected: TypeAlias = Mapping[str, Any]
"""What an entry or a card says of the content: counts by the names in COUNTS, a fingerprint, judged; all optional."""

ALL_SPLITS = "all"
"""The split that stands for all of a dataset."""

_REPORT_EVERY = 10_000
_COPY_VERSION = "2"
"""Raised when copies change, so that those of an older version are not used."""
_PATH_ENDINGS = (".zip", ".json", ".json.gz", ".jsonl")


def load(
    name_or_path: str | Path,
    *,
    language: str | None = None,
    split: str | None = None,
    judged: bool = True,
    download: bool = True,
    accept_difference: bool = False,
    progress: Progress = silent,
) -> Dataset:
    """The dataset of a registered name or alias, or at a path, which may end in a view: squad.json/sentences.

    A path's language comes from its card.json, else from the argument; its split from the argument, else from the card,
    and may be omitted if there is only one. The split "all" joins the queries and judgements of all splits. With
    download=False nothing is fetched. A registered dataset whose counts differ from those registered is refused, or
    with accept_difference renamed: "mini/ru (differs)". One whose judgements are not published is refused, or with
    judged=False loaded with all its queries and without qrels, for systems to be run on. Raises UnknownName, or
    BadInput with file and line, or with what to put where.

    >>> load("xquad/ru").corpus["0-0"].text[1:15]  # doctest: +SKIP
    'Защита Пэнтерс'
    """
    return load_splits(
        name_or_path,
        language=language,
        split=split,
        judged=judged,
        download=download,
        accept_difference=accept_difference,
        progress=progress,
    ).dataset


class Judgements(NamedTuple):
    """The judgements of a dataset, and what its card says of hits that are the query itself."""

    qrels: Qrels
    self_suffixes: tuple[str, ...] = ()


def load_qrels(
    name_or_path: str | Path, *, language: str | None = None, split: str | None = None, progress: Progress = silent
) -> Qrels:
    """The judgements of a dataset alone: its documents are not read. The arguments are those of `load`.

    >>> load_qrels("mini/ru")["q1"]  # doctest: +SKIP
    {'d1': 2}
    """
    return load_judgements(name_or_path, language=language, split=split, progress=progress).qrels


def load_judgements(
    name_or_path: str | Path, *, language: str | None = None, split: str | None = None, progress: Progress = silent
) -> Judgements:
    """Load the judgements as load_qrels does, with the suffixes of the dataset's card."""
    places: Sequence[tuple[str | Path, str | None]] = [(name_or_path, split)]
    if split == ALL_SPLITS:
        places = find_splits(name_or_path, split, ()) or [(name_or_path, None)]
    joined: dict[str, Mapping[str, int]] = {}
    suffixes: tuple[str, ...] = ()
    for path, part in places:
        reader, card, _ = open_reader(path, language=language, split=part, judged=True, progress=progress)
        suffixes = card.self_suffixes
        for query_id, grades in collect(reader.judgements(refuse)).items():
            joined[query_id] = {**joined.get(query_id, {}), **grades}
    return Judgements(joined, suffixes)


class LoadedSplits(NamedTuple):
    """A dataset with the judgements of each of its splits."""

    dataset: Dataset
    """It has the queries and judgements of all these splits; its card's split is ALL_SPLITS where they are several."""
    qrels: dict[str, Qrels]
    """split -> its judgements."""
    metadata: dict[str, Extra]
    """query id -> the extra keys of its record, for queries that have any; documents: JsonlCorpus.whole."""
    id_suffixes: tuple[str, ...] = ("",)
    """What the format adds to ids: several if a document has several copies."""


def take_split(dataset: Dataset, split: str, qrels: Qrels) -> Dataset:
    """The dataset with the queries that these judgements of one split judge."""
    queries = {query_id: dataset.queries[query_id] for query_id in qrels}
    return dataclasses.replace(
        dataset, queries=queries, qrels=qrels, card=dataclasses.replace(dataset.card, split=split)
    )


def load_splits(
    name_or_path: str | Path,
    *,
    language: str | None = None,
    split: str | None = None,
    also: Collection[str] = (),
    all_queries: bool = False,
    judged: bool = True,
    download: bool = True,
    accept_difference: bool = False,
    finishing: bool = False,
    progress: Progress = silent,
) -> LoadedSplits:
    """The dataset, as `load`, and its splits: the one asked for and, of `also`, those that the dataset has.

    The splits of a registered dataset that has a name for each, such as beir/scifact, can be loaded together as well.
    Queries are in the order of their file. With all_queries, those that no split judges are among them. finishing is
    for who has just replaced the files of a folder, and reads them for its card.
    """
    registered = isinstance(name_or_path, str) and find_entry(name_or_path) is not None
    places: Sequence[tuple[str | Path, str | None]] = [(name_or_path, None if split == ALL_SPLITS else split)]
    if not registered and (split == ALL_SPLITS or (split and also)):
        places = find_splits(name_or_path, split, also) or places
    opened: list[tuple[DatasetReader, Card, Expected]] = []
    for path, part in places:
        if part and opened and opened[0][0].split != part and isinstance(first := opened[0][0], OpensSplits):
            opened.append((first.open_split(part), opened[0][1], {}))
            continue
        opened.append(
            open_reader(
                path, language=language, split=part, judged=judged, download=download, finishing=finishing,
                progress=progress,
            )
        )  # fmt: skip
    reader, card, _ = opened[0]
    if any((one.corpus_files, one.recipe) != (reader.corpus_files, reader.recipe) for one, *_ in opened):
        names = ", ".join(one.split for one, *_ in opened)
        one_of = option("split")
        raise BadInput(f"{name_or_path} has the splits {names}, of different documents: choose one with {one_of}.")
    corpus = _open_documents(reader, card.ignore_titles, progress)
    splits: dict[str, Qrels] = {one.split: collect(one.judgements(refuse)) for one, *_ in opened}
    qrels: Qrels = next(iter(splits.values()))
    if len(splits) > 1:
        joined: dict[str, Mapping[str, int]] = {}
        for of_split in splits.values():
            joined.update({query_id: {**joined.get(query_id, {}), **of_split[query_id]} for query_id in of_split})
        qrels = joined
    if len(splits) > 1:
        name = card.name if places[0][0] == name_or_path else str(name_or_path)
        card = dataclasses.replace(card, name=name, split=ALL_SPLITS)
    unjudged = {one.split for one, _, expected in opened if not expected.get("judged", True)}
    queries: dict[str, str] = {}
    n_queries: dict[str, int] = {}
    metadata: dict[str, Extra] = {}
    file = str(reader.corpus_files[0])
    for one, *_ in opened:
        if queries and not all_queries and not unjudged and qrels.keys() <= queries.keys():
            break  # All splits have the same file of queries.
        seen = set()
        for place, query, extra in one.queries(refuse):
            file = place.file
            if query.query_id not in qrels and not all_queries and one.split not in unjudged:
                continue
            if query.query_id in seen:
                refuse("repeat", place, f"the query id {query.query_id!r} is repeated; ids must be unique")
            seen.add(query.query_id)
            queries.setdefault(query.query_id, query.text)
            if extra:
                metadata.setdefault(query.query_id, extra)
        n_queries[one.split] = len(seen)
    if queries.keys().isdisjoint(qrels) and not unjudged:
        raise BadInput(f"{file}: none of its queries is judged in the split {', '.join(splits)!r}.")
    if missing := [query_id for query_id in qrels if query_id not in queries]:
        raise BadInput(f"{file}: {len(missing)} judged queries of the split have no text, such as {missing[0]!r}.")
    if registered or places[0][0] != name_or_path:
        differences: list[str] = []
        for one, _, expected in opened:
            of_split = splits[one.split]
            n_asked = n_queries[one.split] if one.split in unjudged else len(of_split)
            counts = zip(COUNTS, (len(corpus), n_asked, sum(map(len, of_split.values()))), strict=True)
            differences += [f"{key} is {n:,}, not {expected[key]:,}" for key, n in counts if expected.get(key, n) != n]
        marked = f"{card.name} (differs)"
        if differences and not accept_difference:
            raise BadInput(
                f"This is not the registered {card.name}: {'; '.join(differences)}. Replace its files, or accept it as "
                f"{marked!r}: {option('accept_difference', True)}."
            )
        card = dataclasses.replace(card, name=marked) if differences else card
    dataset = Dataset(corpus=corpus, queries=queries, qrels=qrels, card=card)
    return LoadedSplits(dataset, splits, metadata, reader.id_suffixes)


def find_splits(name_or_path: str | Path, split: str, also: Collection[str]) -> list[tuple[str | Path, str | None]]:
    """What to open, with its split, for each split asked for; [] for one alone and for a split that is not known."""
    path, view = split_view(str(name_or_path))
    known: dict[str, tuple[str | Path, str | None]] = {}
    if path is not None:
        kind = find_format(path)
        names = call_format(kind, kind.splits, path, path, view) if kind and kind.splits else ()
        known = {name: (name_or_path, name) for name in names}
    elif isinstance(name_or_path, str):
        entries = [entry for entry in read_registry().values() if entry.name == f"{name_or_path}/{entry.split}"]
        known = {entry.split: (entry.name, None) for entry in entries}
    if split not in (ALL_SPLITS, *known):
        return []
    return [place for name, place in known.items() if split in (ALL_SPLITS, name) or name in also]


def _open_documents(reader: DatasetReader, ignore_titles: bool, progress: Progress) -> JsonlCorpus:
    """The corpus in place, or as a JSONL file in the cache, made on first use."""

    def locate(row: int) -> Place:
        place, *_ = next(islice(reader.documents(refuse), row, None))
        return place

    path = reader.plain_corpus
    if path is None:
        key = digest(_COPY_VERSION, reader.recipe, *map(checksum_of, reader.corpus_files))
        path = cache_folder() / "copies" / f"{key}.jsonl"
        if not path.is_file():
            with atomic_file(path) as file:
                for n, (_, doc, extra) in enumerate(reader.documents(refuse), 1):
                    file.write(document_line(doc, extra))
                    if n % _REPORT_EVERY == 0:
                        progress("copying documents", n, None)
    return open_corpus(path, ignore_titles=ignore_titles, locate=locate, progress=progress)


def open_reader(
    name_or_path: str | Path,
    *,
    language: str | None,
    split: str | None,
    judged: bool = False,
    download: bool = True,
    finishing: bool = False,
    progress: Progress,
) -> tuple[DatasetReader, Card, Expected]:
    """The reader of a registered name or a path, its card, and what its content should be.

    Files are found or fetched; content is not read. Raises UnknownName or BadInput if there is nothing to read, and
    where judgements are needed (judged) that are not published, before anything is fetched.
    """
    name = str(name_or_path)
    language = language and parse_language(language)
    if isinstance(name_or_path, str) and (entry := find_entry(name)):
        if judged and not entry.judged:
            raise BadInput(
                f"{entry.name}: its judgements are not published, so nothing can be measured on it. "
                "`rusbeir airbench run` writes the result files that AIR-Bench scores."
            )
        return _open_entry(entry, language, split, download, progress)
    path, view = split_view(name)
    if path is not None:
        return _open_path(path, view, language, split, finishing)
    if isinstance(name_or_path, Path) or name.startswith((".", "/", "~")) or name.endswith(_PATH_ENDINGS):
        raise BadInput(f"No file or folder {name}.")
    return _open_entry(get_entry(name), language, split, download, progress)


def _open_entry(
    entry: RegistryEntry, language: str | None, split: str | None, download: bool, progress: Progress
) -> tuple[DatasetReader, Card, Expected]:
    for what, known, asked in (("language", entry.language, language), ("split", entry.split, split)):
        if asked:
            _refuse_conflict(entry.name, what, known, asked)
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
    counts = {key: getattr(entry, key) for key in COUNTS if getattr(entry, key)}
    return reader, card, counts | ({} if entry.judged else {"judged": False})


def _open_path(
    path: Path, view: str | None, language: str | None, split: str | None, finishing: bool
) -> tuple[DatasetReader, Card, Expected]:
    from rusbeir.datasets.formats.beir import CARD, read_card, read_unfinished

    if not finishing and (unfinished := read_unfinished(path)):
        raise BadInput(
            f"{path} is not whole: {unfinished['command']} was stopped while it replaced the files. Run it again as it "
            "was given."
        )
    kind = find_format(path)
    if kind is None:
        raise BadInput(
            f"{path} is not a dataset: expected a folder or a zip with corpus.jsonl (or corpus/<source>.jsonl), "
            "queries.jsonl and qrels/<split>.tsv, a folder as on the Hugging Face hub (such as corpus*.parquet), "
            "or a SQuAD .json."
        )
    known = read_card(path)
    _refuse_conflict(f"{path / CARD}", "language", known.get("language"), language)
    language = known.get("language") or language
    if language and not language.islower():
        language = read_language_tag(language)
    if not language:
        raise BadInput(
            f"{path} has no card.json that names its language. Name it with {option('language', 'TAG')}, such as en "
            "or ru."
        )
    options = {"view": view} if view else {}
    own = known.get("split")
    if own == ALL_SPLITS and kind.splits and ALL_SPLITS not in call_format(kind, kind.splits, path, path, view):
        own = None  # Earlier versions published several splits under this name.
    request = ReadRequest(path=path, language=language, split=split or own, view=view, options=options)
    reader: DatasetReader = call_format(kind, kind.open, path, request)
    # A name in another encoding than UTF-8 could not be written to a row.
    name = known.get("name") or os.fsencode(path.resolve().name.split(".")[0]).decode("utf-8", "replace")
    card = Card(
        name=f"{name}/{view}" if view else name,
        language=language,
        split=reader.split,
        ignore_titles=known.get("ignore_titles", kind.ignore_titles),
        self_suffixes=tuple(known.get("self_suffixes", reader.id_suffixes if known.get("self_retrieval") else ())),
        query_language=asked_in if (asked_in := known.get("query_language", "")) != language else "",
        **{
            key: known[key]
            for key in ("licence", "source", "revision", "provenance", "author", "citation")
            if key in known
        },
    )
    told = () if view else (*COUNTS, "fingerprint") if reader.split == known.get("split", reader.split) else COUNTS[:1]
    return reader, card, {key: known[key] for key in told if key in known}


def split_view(name: str) -> tuple[Path | None, str | None]:
    """The path and the view that follows it, if any; None if there is no such path."""
    try:
        path = Path(name).expanduser()
        may_be_view = not path.is_file() and len(path.parts) > 1 and path.parent.exists()
        if may_be_view and find_format(path) is None and find_format(path.parent) is not None:
            return path.parent, path.name
        return (path, None) if path.exists() else (None, None)
    except (OSError, RuntimeError):
        # Not a possible path: too long, in a folder without permission, or under a home directory that does not exist.
        return None, None


def _refuse_conflict(where: str, what: str, known: str | None, asked: str | None) -> None:
    # A region narrows a language down; it does not contradict it.
    same = (asked, asked.partition("-")[0]) if asked and what == "language" else (asked,)
    if known and asked and known not in same:
        raise BadInput(f"{where} says that the {what} is {known!r}, not {asked!r}: omit {option(what)}.")
