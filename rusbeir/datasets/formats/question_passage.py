"""A table of questions and their passages as a retrieval dataset, as MTEB makes one of Belebele and PublicHealthQA.

A document is a passage, a query a question, each once; their ids are C0, C1, … and Q0, Q1, … in the order in which
they first stand. A question is judged by the passages that it stands with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rusbeir.datasets.fetching.hub import find_parts
from rusbeir.datasets.formats.hub_layout import layout_of
from rusbeir.datasets.formats.records import Complain, Judgement, Place, Query
from rusbeir.datasets.formats.source import Request
from rusbeir.datasets.formats.tables import Column, records_in
from rusbeir.errors import BadInput
from rusbeir.types import Doc


def open_pairs(request: Request) -> PairsSource:
    """The table of options["pairs"], a pattern, or of the configuration options["view"].

    Its columns are options["question"] and options["passage"].
    """
    files = find_parts(layout_of(request.path), ["pairs"], request.split, request.options).get("pairs", [])
    if not files:
        raise BadInput(f"{request.path}: no table {request.options.get('pairs') or request.view} in it.")
    return PairsSource(
        files=tuple(request.path / file for file in files),
        split=request.split or "test",
        question=request.options["question"],
        passage=request.options["passage"],
    )


@dataclass(frozen=True, kw_only=True)
class PairsSource:
    """A Source of such a table; the texts of a few thousand pairs are held in memory."""

    files: tuple[Path, ...]
    split: str
    question: str
    passage: str
    id_suffixes: tuple[str, ...] = ("",)

    @property
    def plain_corpus(self) -> Path | None:
        return None

    @property
    def corpus_files(self) -> tuple[Path, ...]:
        return self.files

    @property
    def recipe(self) -> str:
        return f"pairs|{self.passage}"

    def documents(self, complain: Complain) -> Iterator[tuple[Place, Doc]]:
        seen: set[str] = set()
        for place, _, passage in self._pairs(complain):
            if passage not in seen:
                yield place, Doc(f"C{len(seen)}", passage)
                seen.add(passage)

    def queries(self, complain: Complain) -> Iterator[tuple[Place, Query]]:
        seen: set[str] = set()
        for place, question, _ in self._pairs(complain):
            if question not in seen:
                yield place, Query(f"Q{len(seen)}", question)
                seen.add(question)

    def judgements(self, complain: Complain) -> Iterator[tuple[Place, Judgement]]:
        questions: dict[str, int] = {}
        passages: dict[str, int] = {}
        seen: set[tuple[int, int]] = set()
        for place, question, passage in self._pairs(complain):
            pair = questions.setdefault(question, len(questions)), passages.setdefault(passage, len(passages))
            if pair not in seen:
                yield place, Judgement(f"Q{pair[0]}", f"C{pair[1]}", 1)
                seen.add(pair)

    def _pairs(self, complain: Complain) -> Iterator[tuple[Place, str, str]]:
        columns = (Column("question", (self.question,)), Column("passage", (self.passage,)))
        for place, record in records_in(self.files, columns, complain):
            question, passage = record.get(self.question), record.get(self.passage)
            # PublicHealthQA has rows with half a pair; they are left out there too.
            if isinstance(question, str) and isinstance(passage, str):
                yield place, question, passage
