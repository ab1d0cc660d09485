"""Write a dataset's folder in BEIR's layout, so that a reader finds the old dataset, the new one, or a refusal."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple

import orjson

from rusbeir.datasets.formats.beir import CARD, UNFINISHED, card_bytes, read_last_card
from rusbeir.datasets.formats.records import Extra, Query, record_line
from rusbeir.datasets.writing import name_qrels_file, qrels_lines
from rusbeir.errors import BadInput
from rusbeir.storage import atomic_file, atomic_folder
from rusbeir.types import Card, Dataset, Doc, MultilingualQueries, Qrels, canonical_line, fingerprint, query_language

_NOTHING: Extra = MappingProxyType({})


class Content(NamedTuple):
    """The content of a dataset as a card describes it, under the names that card.json has."""

    fingerprint: str
    n_docs: int
    n_queries: int
    n_qrels: int


def describe_content(dataset: Dataset) -> Content:
    """Describe the content of this dataset for a card."""
    n_qrels = sum(map(len, dataset.qrels.values()))
    return Content(dataset.fingerprint, len(dataset.corpus), len(dataset.queries), n_qrels)


@dataclass(kw_only=True)
class FolderWriter:
    """The files of a dataset's folder while they are written; their content is hashed and counted meanwhile."""

    folder: Path
    create: Callable[[Path], AbstractContextManager[IO[bytes]]]
    """Opens a file of the folder, which is new."""
    stack: ExitStack
    """Closes the files."""
    files: dict[str, IO[bytes]] = field(default_factory=dict, init=False)
    """Name -> file, of those that are open."""
    _digest: Any = field(default_factory=hashlib.sha256, init=False)
    _n_docs: int = field(default=0, init=False)
    _queries: dict[str, str] = field(default_factory=dict, init=False)
    _languages: dict[str, str] = field(default_factory=dict, init=False)
    _qrels: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict, init=False)

    def open(self, name: str) -> IO[bytes]:
        """Open the file of that name in the folder, which is new when it is first opened."""
        if name not in self.files:
            self.files[name] = self.stack.enter_context(self.create(self.folder / name))
        return self.files[name]

    def add_document(self, doc: Doc, extra: Extra = _NOTHING) -> None:
        """Write a document, with further keys of its record."""
        self._digest.update(canonical_line(doc.doc_id, doc.title, doc.text, language=doc.language))
        self._n_docs += 1
        self.open("corpus.jsonl").write(record_line(doc, extra))

    def add_query(self, query_id: str, text: str, extra: Extra = _NOTHING, language: str = "") -> None:
        """Write a query, with further keys of its record, and its language where it is another than the card's."""
        self._queries[query_id] = text
        if language:
            self._languages[query_id] = language
        self.open("queries.jsonl").write(record_line(Query(query_id, text, language), extra))

    def add_judgements(self, split: str, qrels: Qrels) -> None:
        """Write judgements of a split. Raises BadInput for an id that a tsv cannot hold."""
        lines = qrels_lines(qrels, header=split not in self._qrels)
        judged = self._qrels.setdefault(split, {})
        judged.update({query_id: dict(grades) for query_id, grades in qrels.items()})
        self.open(name_qrels_file(split)).writelines(lines)

    def content(self, split: str) -> Content:
        """Describe what was written for the card of this split; all queries where nothing is judged."""
        qrels = self._qrels.get(split, {})
        texts = {query_id: self._queries[query_id] for query_id in qrels} if self._qrels else self._queries
        queries = MultilingualQueries(texts, self._languages) if self._languages else texts
        sha256 = fingerprint(self._digest.hexdigest(), queries, qrels)
        return Content(sha256, self._n_docs, len(queries), sum(map(len, qrels.values())))


def write_beir(dataset: Dataset, folder: str | Path) -> None:
    """Write a dataset as a new folder in BEIR's layout, which appears when it is complete.

    Args:
        dataset: The dataset to write.
        folder: Where corpus.jsonl, queries.jsonl, qrels/<split>.tsv and card.json go.

    Raises:
        BadInput: The folder exists and is not empty, or an id cannot be written to a tsv.
        BackendError: The folder cannot be written.

    Examples:
        >>> write_beir(load("xquad/ru"), "xquad-ru")  # doctest: +SKIP
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} exists already. Remove it or choose another folder.")
    split = dataset.card.split
    name_qrels_file(split)
    with atomic_folder(folder) as new, ExitStack() as stack:

        def create(path: Path) -> IO[bytes]:
            path.parent.mkdir(exist_ok=True)
            return path.open("wb")

        writer = FolderWriter(folder=new, create=create, stack=stack)
        for doc in dataset.corpus:
            writer.add_document(doc)
        for query_id, text in dataset.queries.items():
            writer.add_query(query_id, text, language=query_language(dataset.queries, query_id, ""))
        if dataset.qrels:
            writer.add_judgements(split, dataset.qrels)
        content = writer.content(split)
        writer.open(CARD).write(card_bytes(dataset.card, **content._asdict()))


@contextmanager
def replace_dataset(folder: Path, *verbs: str) -> Iterator[FolderWriter]:
    """Write the files of a dataset's folder; they appear once all are complete, and `write_card` follows.

    Killed at any moment, the folder is what it was, or has no card but a note of the command that these verbs name, and
    is refused by `load` until the command has run again.
    """
    with ExitStack() as stack:
        writer = FolderWriter(folder=folder, create=atomic_file, stack=stack)
        yield writer
        # A disk that is full has to be noticed before anything is replaced.
        for file in writer.files.values():
            file.flush()
            os.fsync(file.fileno())
        has_card = any((folder / name).exists() for name in (CARD, UNFINISHED))
        with atomic_file(folder / UNFINISHED) as note:
            note.write(orjson.dumps({"verbs": verbs, "card": read_last_card(folder) if has_card else {}}))
        (folder / CARD).unlink(missing_ok=True)


def write_card(folder: Path, card: Card, content: Content) -> None:
    """Write the card of a folder whose files were replaced, which is whole from then on."""
    with atomic_file(folder / CARD) as file:
        file.write(card_bytes(card, **content._asdict()))
    (folder / UNFINISHED).unlink(missing_ok=True)
