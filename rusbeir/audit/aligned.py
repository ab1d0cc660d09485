"""A port beside what it was made of: each text with its translation, in the segments that were translated."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from rusbeir.datasets import load
from rusbeir.datasets.card import read_card
from rusbeir.errors import BadInput, UnknownName
from rusbeir.jobs import Journal
from rusbeir.translation.port.fields import FIELDS, Material, sample_documents
from rusbeir.translation.port.folder import JOURNAL, LAYOUT, apply_cuts, read_cuts
from rusbeir.translation.port.output import paged
from rusbeir.translation.port.plan import Plan, read_entries
from rusbeir.translation.segments.segment import Piece
from rusbeir.types import Dataset, Doc, Progress, silent

PAGE_RECORDS = 200
_LINE = re.compile(r"[^\n]+|\n+")
_LETTER = re.compile(r"[^\W\d_]")
_SAMPLE = re.compile(r"(\d+) \(seed (-?\d+)\)")


class Part(NamedTuple):
    """A piece of a text and what stands for it in the translation."""

    source: str
    translation: str
    sent: bool
    """Whether it was translated: a segment. What was not (line breaks, markers) is the same on both sides."""


class Field(NamedTuple):
    """A title, a text or a query in both languages."""

    name: str
    source: str
    translation: str
    parts: tuple[Part, ...]
    """Their sources joined are the source, their translations the translation."""

    @property
    def segments(self) -> list[Part]:
        """The parts that were translated."""
        return [part for part in self.parts if part.sent]


class Record(NamedTuple):
    """A document or a query in both languages."""

    kind: str
    """"document" or "query"."""
    record_id: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, kw_only=True)
class Port:
    """A dataset, and the one that it was translated from. The source has no more documents than were ported."""

    folder: Path
    source: Dataset
    dataset: Dataset
    settings: dict[str, str]

    @property
    def languages(self) -> tuple[str, str]:
        """Of the source and of the translation."""
        return self.source.card.language, self.dataset.card.language

    def records(self) -> Iterator[Record]:
        """Documents in the source's order, then queries; those that the port does not hold are left out.

        Segments are those of the port's journal where it still fits, else lines, else whole texts.
        """
        with _segmenter(self) as segmenter:
            for page in paged(self.texts(), PAGE_RECORDS):
                yield from segmenter.cut(page)

    def texts(self) -> Iterator[tuple[str, str, list[tuple[str, str, str | None]]]]:
        """(kind, id, [(field, source, translation or None)]), a text of each that the journal's layout knows.

        None stands for the texts of documents and queries that the port does not hold.
        """
        material = Material(dataset=self.source, fields=tuple(self.settings.get("fields", ",".join(FIELDS)).split(",")))
        ported = iter(self.dataset.corpus)
        upcoming = next(ported, None)
        for doc in self.source.corpus:
            other: Doc | None = None
            if upcoming is not None and upcoming.doc_id == doc.doc_id:
                other, upcoming = upcoming, next(ported, None)
            else:
                with contextlib.suppress(KeyError):
                    other = self.dataset.corpus[doc.doc_id]
            pairs = [("title", doc.title, other and other.title), ("text", doc.text, other and other.text)]
            pairs = [pair for pair in pairs if pair[1] and pair[0] in material.fields]
            if pairs or other is not None:
                yield "document", doc.doc_id, pairs
        if "query" in material.fields:
            for query_id, text in self.source.queries.items():
                if text:
                    yield "query", query_id, [("query", text, self.dataset.queries.get(query_id))]


def open_port(
    folder: str | Path,
    *,
    source: str | Path | None = None,
    language: str | None = None,
    split: str | None = None,
    progress: Progress = silent,
) -> Port:
    """The port in that folder. source is what it was translated from, where its card does not name it.

    language and split are the folder's own, where it has no card. Raises BadInput for a folder that is no port, and
    where the source is another one than the port was made of.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise BadInput(f"{folder} is no folder; name the folder of a port.")
    provenance = read_card(folder).get("provenance", {})
    origin: dict[str, Any] = provenance.get("source", {}) if isinstance(provenance.get("source"), dict) else {}
    if source is None and not origin.get("name"):
        raise BadInput(f"{folder} is no port: no card.json in it names a source. Name the source with --source.")
    dataset = load(folder, language=language, split=split, progress=progress)
    try:
        original = load(source or origin["name"], split=dataset.card.split, progress=progress)
    except UnknownName as error:
        if source is not None:
            raise
        raise BadInput(
            f"{folder} is a port of {origin['name']!r}, which has no such name here: give --source."
        ) from error
    if origin.get("fingerprint", original.fingerprint) != original.fingerprint:
        raise BadInput(
            f"{source or origin['name']} is not what {folder} was made of: its fingerprint is "
            f"{original.fingerprint[:12]}…, and the port's card says {origin['fingerprint'][:12]}…."
        )
    settings = provenance.get("settings", {})
    if found := _SAMPLE.fullmatch(settings.get("sample", "all")):
        original = sample_documents(original, int(found[1]), int(found[2]))
    if not original.queries.keys() & dataset.queries.keys():
        raise BadInput(f"{folder} and {original.card.name} have no query in common: it is no port of it.")
    return Port(folder=folder, source=original, dataset=dataset, settings=settings)


@contextlib.contextmanager
def _segmenter(port: Port) -> Iterator[_Segmenter]:
    path, lengths = port.folder / JOURNAL, port.folder / LAYOUT
    if not path.exists() or not lengths.exists():
        yield _Segmenter(port, None, None)
        return
    with Journal.open(path, {}) as journal:
        yield _Segmenter(port, journal, read_cuts(lengths))


@dataclass
class _Segmenter:
    """Cuts texts as the port cut them, or by lines from where its journal does not fit them any more."""

    port: Port
    journal: Journal | None
    lengths: Iterator[list[int]] | None

    def __post_init__(self) -> None:
        stored = self.journal.get_meta("translators") if self.journal else None
        entries = read_entries(stored) if stored else ()
        self.plan = Plan(language=self.port.source.card.language, glossary=None, entries=entries)

    def cut(self, page: Sequence[tuple[str, str, list[tuple[str, str, str | None]]]]) -> Iterator[Record]:
        texts = [source for _, _, fields in page for _, source, _ in fields]
        cuts = self._cuts(texts)
        sent = list(dict.fromkeys(text for pieces in cuts for text, is_sent in pieces if is_sent))
        answers: dict[str, str | None] = {}
        if self.journal is not None and sent:
            joined = self.plan.joined(self.journal, [[Piece(text, True)] for text in sent], keep=True)
            answers = dict(zip(sent, joined, strict=True))
        rest = iter(cuts)
        for kind, record_id, fields in page:
            made = []
            for name, source, translation in fields:
                pieces = next(rest)
                if translation is not None:
                    made.append(Field(name, source, translation, _parts(source, translation, pieces, answers)))
            if made or not fields:
                yield Record(kind, record_id, tuple(made))

    def _cuts(self, texts: Sequence[str]) -> list[list[Piece]]:
        if self.lengths is not None:
            try:
                return list(apply_cuts(self.lengths, texts, self.port.folder / LAYOUT))
            except BadInput:
                self.lengths = None
        return [[] for _ in texts]


def _parts(source: str, translation: str, pieces: Sequence[Piece], answers: dict[str, str | None]) -> tuple[Part, ...]:
    parts = [Part(text, (answers.get(text) or "") if sent else text, sent) for text, sent in pieces]
    if parts and "".join([part.translation for part in parts]) == translation:
        return tuple(parts)
    lines, others = _LINE.findall(source), _LINE.findall(translation)
    if [line.isspace() for line in lines] != [line.isspace() for line in others]:
        lines, others = [source], [translation]
    return tuple(Part(*pair, bool(_LETTER.search(pair[0]))) for pair in zip(lines, others, strict=True))


def segments(records: Iterator[Record]) -> Iterator[Part]:
    """The segments of the records, in order."""
    return chain.from_iterable(field.segments for record in records for field in record.fields)
