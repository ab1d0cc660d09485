"""SQuAD's JSON as a retrieval dataset, at several granularities over the same queries.

Views: `paragraphs`, `sentences`, and `windows-<k>`, in which a document is k consecutive sentences; `candidates`, the
sentences that the file itself lists ("sentences", "sentence_breaks"), as LAReQA's XQuAD-R does. The id of
a document is <article>-<paragraph>, and -<sentence> (of a window: its first), by index, so that ids are equal across
languages but for sentences. Relevant is the paragraph or the sentence in which the first answer of the query starts, or
every window that holds that sentence.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from rusbeir.datasets.formats.files import name_unpacked, open_file
from rusbeir.datasets.formats.reader import ReadRequest
from rusbeir.datasets.formats.records import (
    Complain,
    Extra,
    Judgement,
    Place,
    Query,
    Span,
    count_tokens,
    find_misfit,
    parse_json,
)
from rusbeir.errors import BadInput, unknown
from rusbeir.sentences import sentence_spans, splitter_signature
from rusbeir.text import has_control, shorten
from rusbeir.types import Doc

_CANDIDATES = "candidates"


def is_squad(path: Path) -> bool:
    """Recognise a .json file, packed or not."""
    return path.is_file() and name_unpacked(path).endswith(".json")


def open_squad(request: ReadRequest) -> SquadReader:
    """Open the view asked for, else `paragraphs`; the split is only a name, `test` by default."""
    view = request.view or "paragraphs"
    kind, _, k = view.partition("-")
    if view in {"paragraphs", "sentences", _CANDIDATES}:
        size = 0 if view == "paragraphs" else 1
    elif kind == "windows" and k.isdecimal() and int(k) > 0:
        size = int(k)
    else:
        raise unknown("view", view, ["paragraphs", "sentences", "windows-3", _CANDIDATES])
    splitter = splitter_signature(request.language) if size and view != _CANDIDATES else ""
    return SquadReader(
        path=request.path,
        language=request.language,
        split=request.split or "test",
        sentences_per_doc=size,
        candidates=view == _CANDIDATES,
        recipe=f"{view}|{request.language}|{splitter}",
        corpus_files=(request.path,),
    )


def _ignore(kind: str, location: Place, message: str) -> None:
    """Ignore the problems of a stream that another stream reports already."""


class _Sentence(NamedTuple):
    """A sentence, and the characters of its paragraph that it is."""

    start: int
    end: int
    text: str


class _Paragraph(NamedTuple):
    location: Place
    prefix: str
    text: str
    questions: list[Any]
    sentences: Sequence[_Sentence] = ()
    """Those that documents are made of; () where they are not asked for."""


@dataclass(frozen=True, kw_only=True)
class SquadReader:
    """Reads SQuAD's JSON. sentences_per_doc is 0 if a document is a whole paragraph."""

    path: Path
    language: str
    split: str
    sentences_per_doc: int
    candidates: bool
    """Whether sentences are those that the file lists."""
    recipe: str
    corpus_files: tuple[Path, ...]
    id_suffixes: tuple[str, ...] = ("",)
    plain_corpus: None = None

    def documents(self, complain: Complain) -> Iterator[tuple[Place, Doc, Extra]]:
        for paragraph in self._paragraphs(complain, cut=self.sentences_per_doc > 0):
            if not self.sentences_per_doc:
                yield paragraph.location, Doc(paragraph.prefix, paragraph.text), {}
                continue
            sentences = paragraph.sentences
            for first in _find_window_starts(len(sentences), self.sentences_per_doc):
                last = sentences[first : first + self.sentences_per_doc][-1]
                start = sentences[first].start
                text = last.text if last.start == start else paragraph.text[start : last.end]
                yield paragraph.location, Doc(f"{paragraph.prefix}-{first}", text), {}

    def queries(self, complain: Complain) -> Iterator[tuple[Place, Query, Extra]]:
        for paragraph in self._paragraphs(_ignore):
            for location, question in _read_questions(paragraph, complain):
                yield location, Query(question["id"], question["question"]), {}

    def judgements(self, complain: Complain) -> Iterator[tuple[Place, Judgement]]:
        for paragraph in self._paragraphs(_ignore, cut=self.sentences_per_doc > 0):
            sentences = paragraph.sentences
            for location, question in _read_questions(paragraph, _ignore):
                if not self.sentences_per_doc:
                    yield location, Judgement(question["id"], paragraph.prefix, 1)
                    continue
                # An answer that starts between two sentences belongs to the second.
                start = question["answers"][0]["answer_start"]
                sentence = min(bisect_right(sentences, start, key=lambda part: part.end), len(sentences) - 1)
                for first in _find_window_starts(len(sentences), self.sentences_per_doc):
                    if first <= sentence < first + self.sentences_per_doc:
                        yield location, Judgement(question["id"], f"{paragraph.prefix}-{first}", 1)

    def spans(self, complain: Complain) -> Iterator[tuple[Place, Span]]:
        """Yield the first answers in their paragraphs; none where documents are parts of paragraphs."""
        for paragraph in () if self.sentences_per_doc else self._paragraphs(_ignore):
            chars, tokens = len(paragraph.text), count_tokens(paragraph.text)
            for location, question in _read_questions(paragraph, _ignore):
                answer = question["answers"][0]
                start, text = answer["answer_start"], answer.get("text")
                if isinstance(text, str) and start + len(text) <= chars:
                    yield location, Span(question["id"], start, start + len(text), chars, tokens, paragraph.prefix)
                else:
                    complain("span", location, f"its answer {shorten(repr(text), 60)} does not end in the paragraph")

    def _paragraphs(self, complain: Complain, *, cut: bool = False) -> Iterator[_Paragraph]:
        for a, article in enumerate(self._articles):
            paragraphs = article.get("paragraphs") if isinstance(article, dict) else None
            if not isinstance(paragraphs, list):
                complain("article", Place(str(self.path), within=f"article {a}"), 'it has no list "paragraphs"')
                continue
            for p, paragraph in enumerate(paragraphs):
                location = Place(str(self.path), within=f"article {a}, paragraph {p}")
                if not isinstance(paragraph, dict) or not isinstance(paragraph.get("context"), str):
                    complain("paragraph", location, 'it has no string "context"')
                elif not isinstance(paragraph.get("qas"), list):
                    complain("paragraph", location, 'it has no list "qas"')
                elif (sentences := self._cut(paragraph) if cut else ()) is None:
                    complain("paragraph", location, 'it has no lists "sentences" and "sentence_breaks" of equal length')
                else:
                    yield _Paragraph(location, f"{a}-{p}", paragraph["context"], paragraph["qas"], sentences)

    def _cut(self, paragraph: dict[str, Any]) -> Sequence[_Sentence] | None:
        """Cut a paragraph into the sentences that documents are made of; None where it does not list candidates."""
        text = paragraph["context"]
        if not self.candidates:
            return [_Sentence(start, end, text[start:end]) for start, end in sentence_spans(text, self.language)]
        if find_misfit(paragraph, {"sentences": [str], "sentence_breaks": [[int]]}):
            return None
        texts, breaks = paragraph["sentences"], paragraph["sentence_breaks"]
        if not texts or len(texts) != len(breaks) or any(len(ends) != 2 for ends in breaks):
            return None
        return [_Sentence(start, end, text) for (start, end), text in zip(breaks, texts, strict=True)]

    @cached_property
    def _articles(self) -> list[Any]:
        with open_file(self.path) as file:
            top = parse_json(file.read(), str(self.path))
        articles = top.get("data") if isinstance(top, dict) else None
        if not isinstance(articles, list):
            raise BadInput(f'{self.path} has no list "data"; it is not in SQuAD\'s format.')
        return articles


def _find_window_starts(n_sentences: int, size: int) -> range:
    """Find the first sentences of the windows; one window if there are fewer sentences than its size."""
    return range(max(n_sentences - size + 1, min(n_sentences, 1)))


def _read_questions(paragraph: _Paragraph, complain: Complain) -> Iterator[tuple[Place, dict[str, Any]]]:
    for number, question in enumerate(paragraph.questions):
        location = paragraph.location._replace(within=f"{paragraph.location.within}, question {number}")
        members = question if isinstance(question, dict) else {}
        query_id, text, answers = (members.get(key) for key in ("id", "question", "answers"))
        answer = answers[0] if isinstance(answers, list) and answers else None
        start = answer.get("answer_start") if isinstance(answer, dict) else None
        if not isinstance(question, dict):
            problem = "it is not an object"
        elif not isinstance(query_id, str) or not query_id.strip():
            problem = 'it has no string "id"'
        elif not isinstance(text, str):
            problem = 'it has no string "question"'
        elif has_control(query_id):
            problem = f"its id {shorten(repr(query_id))} has a control character"
        elif not isinstance(answer, dict):
            problem = 'it has no list "answers" with an answer in it'
        elif not isinstance(start, int) or isinstance(start, bool) or not 0 <= start < max(len(paragraph.text), 1):
            problem = f"its answer_start {start!r} is not in the paragraph"
        else:
            yield location, question
            continue
        complain("question", location, problem)
