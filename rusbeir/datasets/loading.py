"""Load a dataset by its name or its path, in any format."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

from rusbeir.datasets.columns import Columns, read_columns
from rusbeir.datasets.corpus import JsonlCorpus, build_index, open_corpus
from rusbeir.datasets.formats.files import checksum_of
from rusbeir.datasets.formats.reader import DatasetReader, OpensSplits
from rusbeir.datasets.formats.records import ID_RULE, Extra, Place, collect, record_line, refuse
from rusbeir.datasets.opening import ALL_SPLITS, COUNTS, Opened, SplitSource, find_splits, open_reader
from rusbeir.datasets.registry import find_entry
from rusbeir.errors import BadInput, option
from rusbeir.storage import atomic_file, cache_folder
from rusbeir.text import digest, has_control, shorten
from rusbeir.types import MULTILINGUAL, Card, Dataset, Doc, MultilingualQueries, Progress, Qrels, silent

_REPORT_EVERY = 10_000
_COPY_VERSION = "3"
"""Raised when copies change, so that those of an older version are not used."""


def load(
    name_or_path: str | Path,
    *,
    language: str | None = None,
    split: str | None = None,
    judged: bool = True,
    download: bool = True,
    accept_difference: bool = False,
    columns: str | Mapping[str, str | Sequence[str]] | None = None,
    progress: Progress = silent,
) -> Dataset:
    """Load a dataset by its registered name or alias, or from a path.

    Args:
        name_or_path: A name that `rusbeir datasets` lists, or a folder, zip or file; a path may end in a view, as
            squad.json/sentences does.
        language: The BCP 47 tag of the documents, for a path whose card.json does not name it. Several, as in "ru,en",
            are those of a dataset in several languages: a document or a query that does not name its own ("lang") has
            the one of these that is detected.
        split: The split; by default the card's, or the only one. "all" joins the queries and judgements of all.
        judged: Whether judgements are needed. With False, documents alone are enough: a dataset without judgements is
            loaded with the queries that it has and without qrels, for systems to be run on.
        download: Whether files that are not on this machine may be fetched.
        accept_difference: Whether a registered dataset whose counts differ from the registered ones is loaded under
            another name, "mini/ru (differs)", instead of being refused.
        columns: The columns of tables that are not recognised by their names: {"id": "sku", "text": ["name",
            "description"]} or "id=sku,text=name+description". Several are joined. Queries have query_id and query,
            judgements query_id, doc_id and grade.
        progress: Called with the stage, what is done and what there is to do, such as `rusbeir.show_progress`.

    Returns:
        The dataset. Its documents stay on disk and are streamed; queries and qrels are in memory.

    Raises:
        UnknownName: No dataset, view or split has that name.
        BadInput: The content or the call is wrong. The message names file and line, or says what to put where.
        BackendError: A download, a disk or a cache failed.

    Examples:
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
        columns=read_columns(columns) if columns else {},
        progress=progress,
    ).dataset


class Judgements(NamedTuple):
    """The judgements of a dataset, and what its card says of hits that are the query itself."""

    qrels: Qrels
    self_suffixes: tuple[str, ...] = ()


def load_qrels(
    name_or_path: str | Path, *, language: str | None = None, split: str | None = None, progress: Progress = silent
) -> Qrels:
    """Load the judgements of a dataset alone; its documents are not read.

    Args:
        name_or_path: The dataset, as for `load`.
        language: The language of a path whose card does not name it.
        split: The split, as for `load`.
        progress: Called while files are fetched.

    Returns:
        query_id -> {doc_id: grade}.

    Raises:
        UnknownName: No dataset or split has that name.
        BadInput: The content or the call is wrong, or the judgements are not published.

    Examples:
        >>> load_qrels("mini/ru")["q1"]  # doctest: +SKIP
        {'d1': 2}
    """
    return load_judgements(name_or_path, language=language, split=split, progress=progress).qrels


def load_judgements(
    name_or_path: str | Path, *, language: str | None = None, split: str | None = None, progress: Progress = silent
) -> Judgements:
    """Load the judgements as load_qrels does, with the suffixes of the dataset's card."""
    sources = [SplitSource(name_or_path, split)]
    if split == ALL_SPLITS:
        sources = find_splits(name_or_path, split, ()) or [SplitSource(name_or_path, None)]
    opened = [
        open_reader(path, language=language, split=part, judged=True, progress=progress) for path, part in sources
    ]
    qrels = _join_qrels(collect(split_opened.reader.judgements(refuse)) for split_opened in opened)
    return Judgements(qrels, opened[-1].card.self_suffixes)


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
    """Take the queries of a dataset that these judgements of one split judge."""
    queries = {query_id: dataset.queries[query_id] for query_id in qrels}
    if isinstance(dataset.queries, MultilingualQueries):
        queries = MultilingualQueries(queries, dataset.queries.languages)
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
    columns: Columns | None = None,
    progress: Progress = silent,
) -> LoadedSplits:
    """Load a dataset, as `load` does, with its splits: the one asked for and, of `also`, those that it has.

    The splits of a registered dataset that has a name for each, such as beir/scifact, can be loaded together as well.
    Queries are in the order of their file. With all_queries, those that no split judges are among them.
    """
    registered = isinstance(name_or_path, str) and find_entry(name_or_path) is not None
    sources = [SplitSource(name_or_path, None if split == ALL_SPLITS else split)]
    if not registered and (split == ALL_SPLITS or (split and also)):
        sources = find_splits(name_or_path, split, also) or sources
    opened: list[Opened] = []
    for path, part in sources:
        if part and opened and opened[0].reader.split != part and isinstance(first := opened[0].reader, OpensSplits):
            opened.append(Opened(first.open_split(part), opened[0].card, {}))
        else:
            opened.append(
                open_reader(
                    path, language=language, split=part, judged=judged, download=download, columns=columns,
                    progress=progress,
                )
            )  # fmt: skip
    if len(opened) > 1:
        _refuse_other_documents(name_or_path, [split_opened.reader for split_opened in opened])
    loaded = _read_splits(opened, all_queries, judged, progress)
    card = loaded.dataset.card
    if len(loaded.qrels) > 1:
        name = card.name if sources[0].name_or_path == name_or_path else str(name_or_path)
        card = dataclasses.replace(card, name=name, split=ALL_SPLITS)
    if registered or sources[0].name_or_path != name_or_path:
        card = _compare_counts(card, loaded, opened, accept_difference)
    return loaded._replace(dataset=dataclasses.replace(loaded.dataset, card=card))


def read_dataset(reader: DatasetReader, card: Card, progress: Progress = silent) -> Dataset:
    """Read the dataset of an open reader under that card."""
    return _read_splits([Opened(reader, card, {})], False, True, progress).dataset


def _refuse_other_documents(name_or_path: str | Path, readers: Sequence[DatasetReader]) -> None:
    if len({(reader.corpus_files, reader.recipe) for reader in readers}) > 1:
        names = ", ".join(reader.split for reader in readers)
        remedy = option("split")
        raise BadInput(f"{name_or_path} has the splits {names}, of different documents: choose one with {remedy}.")


def _read_splits(opened: Sequence[Opened], all_queries: bool, judged: bool, progress: Progress) -> LoadedSplits:
    """Read the splits of a dataset, all of the same documents, under the card of the first."""
    reader, card, _ = opened[0]
    corpus = open_documents(reader, card.ignore_titles, progress)
    splits: dict[str, Qrels] = {entry.reader.split: collect(entry.reader.judgements(refuse)) for entry in opened}
    qrels = next(iter(splits.values())) if len(splits) == 1 else _join_qrels(splits.values())
    unjudged = {split for split, split_qrels in splits.items() if not (judged or split_qrels)}
    queries: dict[str, str] = {}
    languages: dict[str, str] = {}
    metadata: dict[str, Extra] = {}
    file = str(next(iter(reader.corpus_files), card.name))
    for split_reader, _, _ in opened:
        if queries and not all_queries and not unjudged and qrels.keys() <= queries.keys():
            break  # All splits have the same file of queries.
        seen = set()
        for location, query, extra in split_reader.queries(refuse):
            file = location.file
            if query.query_id not in qrels and not all_queries and split_reader.split not in unjudged:
                continue
            if query.query_id in seen:
                refuse("repeat", location, f"the query id {query.query_id!r} is repeated; ids must be unique")
            seen.add(query.query_id)
            queries.setdefault(query.query_id, query.text)
            if query.language:
                languages.setdefault(query.query_id, query.language)
            if extra:
                metadata.setdefault(query.query_id, extra)
    if queries.keys().isdisjoint(qrels) and not unjudged:
        raise BadInput(f"{file}: none of its queries is judged in the split {', '.join(splits)!r}.")
    if missing := [query_id for query_id in qrels if query_id not in queries]:
        raise BadInput(f"{file}: {len(missing)} judged queries of the split have no text, such as {missing[0]!r}.")
    if languages:
        queries = MultilingualQueries(queries, languages)
    dataset = Dataset(corpus=corpus, queries=queries, qrels=qrels, card=card)
    if card.language == MULTILINGUAL or corpus.languages.keys() - {"", card.language}:
        dataset = resolve_name("rusbeir.datasets:name_languages")(dataset)
    return LoadedSplits(dataset, splits, metadata, reader.id_suffixes)


def _join_qrels(splits: Iterable[Qrels]) -> Qrels:
    """Join the judgements of several splits together."""
    joined: dict[str, Mapping[str, int]] = {}
    for qrels in splits:
        joined.update({query_id: {**joined.get(query_id, {}), **grades} for query_id, grades in qrels.items()})
    return joined


def _compare_counts(card: Card, loaded: LoadedSplits, opened: Sequence[Opened], accept_difference: bool) -> Card:
    """Mark the card where the content of a registered dataset differs from the registered one and that is accepted.

    Raises BadInput where it is not accepted.
    """
    differences: list[str] = []
    for reader, _, expected in opened:
        qrels = loaded.qrels[reader.split]
        n_queries = len(qrels) if expected.get("judged", True) else sum(1 for _ in reader.queries(refuse))
        counts = zip(COUNTS, (len(loaded.dataset.corpus), n_queries, sum(map(len, qrels.values()))), strict=True)
        differences += [f"{key} is {n:,}, not {expected[key]:,}" for key, n in counts if expected.get(key, n) != n]
    marked = f"{card.name} (differs)"
    if differences and not accept_difference:
        raise BadInput(
            f"This is not the registered {card.name}: {'; '.join(differences)}. Replace its files, or accept it as "
            f"{marked!r}: {option('accept_difference', True)}."
        )
    return dataclasses.replace(card, name=marked) if differences else card


def open_documents(reader: DatasetReader, ignore_titles: bool, progress: Progress = silent) -> JsonlCorpus:
    """Open the corpus in place, or as a JSONL file in the cache, made on first use."""

    def locate(row: int) -> Place:
        location, *_ = next(islice(reader.documents(refuse), row, None))
        return location

    path = reader.plain_corpus
    if path is None:
        key = digest(_COPY_VERSION, reader.recipe, *map(checksum_of, reader.corpus_files))
        path = cache_folder() / "copies" / f"{key}.jsonl"
        if not path.is_file():
            # Indexed as they are written, documents need not be read again.
            with closing(_copy_documents(reader, path, progress)) as documents:
                build_index(path, documents, ignore_titles=ignore_titles, locate=locate, progress=progress)
    return open_corpus(path, ignore_titles=ignore_titles, locate=locate, progress=progress)


def _copy_documents(reader: DatasetReader, path: Path, progress: Progress) -> Generator[tuple[Doc, int], None, None]:
    """Yield the documents and where their lines end in a JSONL file, which appears at the path after the last."""
    end = 0
    with atomic_file(path) as file:
        for n, (location, doc, extra) in enumerate(reader.documents(refuse), 1):
            strings = all(isinstance(part, str) for part in doc)
            if not strings or not doc.doc_id.strip() or has_control(doc.doc_id):
                problem = f"{shorten(repr(doc))} has parts that are not strings, or not an id that is {ID_RULE}"
                refuse("document", location, problem)
            end += file.write(record_line(doc, extra))
            yield doc, end
            if n % _REPORT_EVERY == 0:
                progress("copying documents", n, None)
