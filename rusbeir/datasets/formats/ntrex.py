"""NTREX-128 as an inverse cloze: whether sentences of a news document find the document that the others make up.

A file has one line for each sentence, and the lines of all languages are aligned. The 1st, 3rd, 5th … line of a
document, joined by spaces, are the document; each of the others is a query, for which that document is relevant. Ids
are those of NTREX's DOCUMENT_IDS.tsv; that of a query has the number of its line in the document, too: bbc.381790-2.
They are equal in all languages, so that the datasets are parallel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from rusbeir.datasets.formats.files import open_file
from rusbeir.datasets.formats.reader import ReadRequest
from rusbeir.datasets.formats.records import Complain, Extra, Judgement, Place, Query, not_utf8, refuse
from rusbeir.datasets.registry import FOLDER
from rusbeir.errors import BadInput
from rusbeir.types import Doc

DOCUMENTS = FOLDER / "ntrex-documents.tsv"
"""The documents in their order, each with the number of its lines."""
_PREFIX = "newstest2019-"


def is_ntrex(path: Path) -> bool:
    """Recognise a file that is named as those of NTREX are: newstest2019-ref.kaz.txt."""
    return path.is_file() and path.name.startswith(_PREFIX) and path.name.endswith(".txt")


def open_ntrex(request: ReadRequest) -> NtrexReader:
    """Open the inverse cloze of one language; the split is only a name, `test` by default."""
    return NtrexReader(path=request.path, split=request.split or "test", corpus_files=(request.path,))


class _Sentence(NamedTuple):
    location: Place
    doc_id: str
    number: int
    """Counted in the document, from 1: documents have the odd ones, queries are the even ones."""
    text: str


@dataclass(frozen=True, kw_only=True)
class NtrexReader:
    """Reads one file of NTREX."""

    path: Path
    split: str
    corpus_files: tuple[Path, ...]
    recipe: str = "inverse-cloze"
    id_suffixes: tuple[str, ...] = ("",)
    plain_corpus: None = None

    def documents(self, complain: Complain) -> Iterator[tuple[Place, Doc, Extra]]:
        sentences = iter(self._sentences)
        for doc_id, n_lines in _read_documents():
            of_document = list(islice(sentences, n_lines))
            for sentence in of_document:
                if not sentence.text:
                    complain("empty", sentence.location, f"line {sentence.number} of document {doc_id!r} is empty")
            text = " ".join(sentence.text for sentence in of_document if sentence.number % 2 and sentence.text)
            yield of_document[0].location, Doc(doc_id, text), {}

    def queries(self, complain: Complain) -> Iterator[tuple[Place, Query, Extra]]:
        for sentence in self._queries():
            yield sentence.location, Query(f"{sentence.doc_id}-{sentence.number}", sentence.text), {}

    def judgements(self, complain: Complain) -> Iterator[tuple[Place, Judgement]]:
        for sentence in self._queries():
            yield sentence.location, Judgement(f"{sentence.doc_id}-{sentence.number}", sentence.doc_id, 1)

    def _queries(self) -> Iterator[_Sentence]:
        return (sentence for sentence in self._sentences if sentence.number % 2 == 0 and sentence.text)

    @cached_property
    def _sentences(self) -> list[_Sentence]:
        with open_file(self.path) as file:
            lines = file.read().removesuffix(b"\n").split(b"\n")
        for row, line in enumerate(lines, 1):
            if problem := not_utf8(Place(str(self.path), row), line):
                refuse(*problem)
        sentences = [(doc_id, number) for doc_id, n in _read_documents() for number in range(1, n + 1)]
        if len(lines) != len(sentences):
            raise BadInput(
                f"{self.path} has {len(lines):,} lines, not {len(sentences):,}: NTREX's files are aligned line by "
                "line, so one is missing or too many. Fetch the file again."
            )
        return [
            _Sentence(Place(str(self.path), row), doc_id, number, line.decode().strip())
            for row, ((doc_id, number), line) in enumerate(zip(sentences, lines, strict=True), 1)
        ]


def _read_documents() -> list[tuple[str, int]]:
    rows = (line.split("\t") for line in DOCUMENTS.read_text(encoding="utf-8").splitlines())
    return [(doc_id, int(n)) for doc_id, n in rows]
