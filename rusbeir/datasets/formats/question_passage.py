"""A table of questions and their passages as a retrieval dataset, as MTEB makes one of Belebele and PublicHealthQA.

A document is a passage and a query is a question, each once; their ids are C0, C1, … and Q0, Q1, … in order of first
appearance. The passages in the rows of a question are relevant to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rusbeir.datasets.columns import Column
from rusbeir.datasets.formats.hub_layout import read_layout
from rusbeir.datasets.formats.reader import ReadRequest
from rusbeir.datasets.formats.records import Complain, Extra, Judgement, Place, Query
from rusbeir.datasets.formats.tables import read_records
from rusbeir.errors import BadInput
from rusbeir.types import Doc


def open_pairs(request: ReadRequest) -> PairsReader:
    """Open the table of options["pairs"], a pattern, or of the configuration that the view names.

    Its columns are options["question"] and options["passage"].
    """
    files = read_layout(request.path).parts(["pairs"], request.split, request.options).get("pairs", [])
    if not files:
        raise BadInput(f"{request.path} has no table {request.options.get('pairs') or request.view}.")
    return PairsReader(
        corpus_files=tuple(request.path / file for file in files),
        recipe=f"pairs|{request.options['passage']}",
        split=request.split or "test",
        question=request.options["question"],
        passage=request.options["passage"],
    )


@dataclass(frozen=True, kw_only=True)
class PairsReader:
    """Reads such tables; the texts of a few thousand pairs are held in memory."""

    corpus_files: tuple[Path, ...]
    recipe: str
    split: str
    question: str
    passage: str
    id_suffixes: tuple[str, ...] = ("",)
    plain_corpus: None = None

    def documents(self, complain: Complain) -> Iterator[tuple[Place, Doc, Extra]]:
        seen: set[str] = set()
        for location, _, passage in self._pairs(complain):
            if passage not in seen:
                yield location, Doc(f"C{len(seen)}", passage), {}
                seen.add(passage)

    def queries(self, complain: Complain) -> Iterator[tuple[Place, Query, Extra]]:
        seen: set[str] = set()
        for location, question, _ in self._pairs(complain):
            if question not in seen:
                yield location, Query(f"Q{len(seen)}", question), {}
                seen.add(question)

    def judgements(self, complain: Complain) -> Iterator[tuple[Place, Judgement]]:
        questions: dict[str, int] = {}
        passages: dict[str, int] = {}
        seen: set[tuple[int, int]] = set()
        for location, question, passage in self._pairs(complain):
            pair = questions.setdefault(question, len(questions)), passages.setdefault(passage, len(passages))
            if pair not in seen:
                yield location, Judgement(f"Q{pair[0]}", f"C{pair[1]}", 1)
                seen.add(pair)

    def _pairs(self, complain: Complain) -> Iterator[tuple[Place, str, str]]:
        columns = (Column("question", (self.question,)), Column("passage", (self.passage,)))
        for location, record in read_records(self.corpus_files, columns, complain):
            question, passage = record.get(self.question), record.get(self.passage)
            # PublicHealthQA has rows with half a pair; MTEB leaves them out, too.
            if isinstance(question, str) and isinstance(passage, str):
                yield location, question, passage
