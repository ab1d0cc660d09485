"""A port aligned with its source: each text with its translation, in the segments that were translated."""

from __future__ import annotations

import contextlib
import pickle
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from rusbeir.datasets import load
from rusbeir.datasets.formats.beir import read_card
from rusbeir.datasets.registry import find_entry
from rusbeir.errors import BadInput, UnknownName
from rusbeir.jobs import Journal
from rusbeir.storage import cannot_write, refuse_links
from rusbeir.text import batched
from rusbeir.translation.port.fields import FIELDS, sample_documents
from rusbeir.translation.port.folder import JOURNAL, LAYOUT, apply_cuts, read_cuts, read_source_path
from rusbeir.translation.port.plan import Plan, read_entries
from rusbeir.translation.segments.segment import Piece
from rusbeir.types import Dataset, Doc, Progress, silent

QA = "qa"
"""The folder of a port in which the audit writes."""
BATCH_RECORDS = 100
_LINE = re.compile(r"[^\n]+|\n+")
_LETTER = re.compile(r"[^\W\d_]")
_SAMPLE = re.compile(r"(\d{1,18}) \(seed (-?\d{1,18})\)", re.ASCII)


class Part(NamedTuple):
    """A piece of a text and the corresponding piece of its translation."""

    source: str
    translation: str
    sent: bool
    """Whether it was translated: a segment. Other pieces (line breaks, markers) are the same on both sides."""


class Field(NamedTuple):
    """A title, a text or a query in both languages."""

    name: str
    parts: tuple[Part, ...]

    @property
    def source(self) -> str:
        return "".join([part.source for part in self.parts])

    @property
    def translation(self) -> str:
        return "".join([part.translation for part in self.parts])


class Record(NamedTuple):
    """A document or a query in both languages."""

    kind: str
    """"document" or "query"."""
    record_id: str
    fields: tuple[Field, ...]

    @property
    def segments(self) -> list[Part]:
        """The parts of all fields that were translated."""
        return [part for field in self.fields for part in field.parts if part.sent]


@dataclass(frozen=True, kw_only=True)
class AlignedPort:
    """A ported dataset and its source, which has no more documents than were ported."""

    folder: Path
    source: Dataset
    dataset: Dataset
    settings: dict[str, str]

    @property
    def languages(self) -> tuple[str, str]:
        """The languages of the source and of the translation."""
        return self.source.card.language, self.dataset.card.language

    def records(self) -> Iterator[Record]:
        """Documents in the order of the source, then queries; those that are not in the port are left out.

        Texts are cut as the journal of the port says while it matches them, else into lines, else not at all.
        """
        path, layout = self.folder / JOURNAL, self.folder / LAYOUT
        with contextlib.ExitStack() as stack:
            segmenter = None
            if path.exists() and layout.exists():
                journal = stack.enter_context(Journal.open(path, {}))
                if entries := read_entries(journal.get_meta("translators") or "[]"):
                    plan = Plan(language=self.source.card.language, glossary=None, entries=entries)
                    segmenter = _Segmenter(journal, plan, layout, read_cuts(layout))
            for page in batched(self.texts(), BATCH_RECORDS):
                texts = [source for _, _, fields in page for _, source, _ in fields]
                cuts: Iterator[Sequence[Part]] = iter(segmenter.cut(texts) if segmenter else [()] * len(texts))
                for kind, record_id, fields in page:
                    aligned = [(name, source, translation, next(cuts)) for name, source, translation in fields]
                    ported = tuple(
                        Field(name, _align(source, translation, parts))
                        for name, source, translation, parts in aligned
                        if translation is not None
                    )
                    if ported or not fields:
                        yield Record(kind, record_id, ported)

    def texts(self) -> Iterator[tuple[str, str, list[tuple[str, str, str | None]]]]:
        """(kind, id, [(field, source, translation or None)]), one source text for each line of the layout file.

        None stands for the texts of documents and queries that are not in the port.
        """
        names = self.settings.get("fields", ",".join(FIELDS)).split(",")
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
            pairs = [pair for pair in pairs if pair[1] and pair[0] in names]
            if pairs or other is not None:
                yield "document", doc.doc_id, pairs
        if "query" in names:
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
) -> AlignedPort:
    """Open the port in a folder. source is the dataset that was translated, needed where the port does not name it.

    A source without a card has the language that the port's card names. language and split describe the port, needed
    where it has no card. Raises BadInput for a folder that is not a port, for one that contains symbolic links, and for
    a source from which the port was not made.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise BadInput(f"{folder} is not a folder. Give the folder of a port.")
    refuse_links(folder)
    provenance = read_card(folder).get("provenance", {})
    origin: dict[str, Any] = found if isinstance(found := provenance.get("source"), dict) else {}
    recorded = read_source_path(folder)
    if not (source or recorded or origin.get("name")):
        raise BadInput(f"{folder} is not a port: no card.json in it names a source. Give the source with --source.")
    dataset = load(folder, language=language, split=split, progress=progress)
    place = source or recorded or origin["name"]
    try:
        original = load(
            place, language=_find_language(place, origin.get("language")), split=dataset.card.split, progress=progress
        )
    except (BadInput, UnknownName) as error:
        if source is None and recorded is not None:
            raise BadInput(
                f"{folder} is a port of {recorded.name!r}, but its source cannot be read: {error} "
                "Give the source with --source."
            ) from error
        if source is not None or not isinstance(error, UnknownName):
            raise
        raise BadInput(
            f"{folder} is a port of {origin['name']!r}, but there is no dataset of that name here. "
            "Give the source with --source."
        ) from error
    if origin.get("fingerprint", original.fingerprint) != original.fingerprint:
        raise BadInput(
            f"{folder} was not made from {place}: its card records the source fingerprint "
            f"{origin['fingerprint'][:12]}…, this dataset has {original.fingerprint[:12]}…. "
            "Give the right source with --source."
        )
    settings = provenance.get("settings", {})
    if found := _SAMPLE.fullmatch(settings.get("sample", "all")):
        original = sample_documents(original, int(found[1]), int(found[2]))
    if not original.queries.keys() & dataset.queries.keys():
        raise BadInput(f"{folder} is not a port of {original.card.name}: they have no query id in common.")
    return AlignedPort(folder=folder, source=original, dataset=dataset, settings=settings)


def _find_language(place: str | Path, recorded: str | None) -> str | None:
    """The language with which to load a source: the recorded one, unless its card or its registry entry names one."""
    path = Path(place).expanduser()
    if (isinstance(place, str) and find_entry(place)) or read_card(path).get("language"):
        return None
    if not recorded and path.exists():
        raise BadInput(
            f"{place} has no card.json that names its language, and the card of the port does not name it either. "
            'Put a card.json with its language into the source, such as {"language": "en"}.'
        )
    return recorded


@dataclass
class _Segmenter:
    """Cuts texts as the port cut them, until its layout file does not match them any more."""

    journal: Journal
    plan: Plan
    layout: Path
    cuts: Iterator[list[int]] | None

    def cut(self, texts: Sequence[str]) -> list[list[Part]]:
        """The parts of each text, with the translations in the journal; [] for each where the layout does not match."""
        if self.cuts is None:
            return [[] for _ in texts]
        try:
            cuts = list(apply_cuts(self.cuts, texts, self.layout))
        except BadInput:
            self.cuts = None
            return [[] for _ in texts]
        sent = list(dict.fromkeys(text for pieces in cuts for text, is_sent in pieces if is_sent))
        joined = self.plan.joined(self.journal, [[Piece(text, True)] for text in sent], keep=True)
        answers = dict(zip(sent, joined, strict=True))
        return [
            [Part(text, (answers[text] or "") if is_sent else text, is_sent) for text, is_sent in pieces]
            for pieces in cuts
        ]


def _align(source: str, translation: str, parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts where they make up the translation, else pairs of lines, else the two texts as one pair."""
    if parts and "".join([part.translation for part in parts]) == translation:
        return tuple(parts)
    lines, others = _LINE.findall(source), _LINE.findall(translation)
    if [line.isspace() for line in lines] != [line.isspace() for line in others]:
        lines, others = [source], [translation]
    return tuple(Part(*pair, bool(_LETTER.search(pair[0]))) for pair in zip(lines, others, strict=True))


@dataclass(frozen=True)
class RecordFile:
    """The records of a port, read once and kept in a file, from which all later steps read them."""

    file: IO[bytes]
    end: int
    n_segments: int

    def batches(self) -> Iterator[list[Record]]:
        """The records in lists of BATCH_RECORDS; several readers do not disturb one another."""
        place = 0
        while place < self.end:
            self.file.seek(place)
            batch = pickle.load(self.file)
            place = self.file.tell()
            yield batch

    def pairs(self) -> Iterator[tuple[str, str]]:
        """(source, translation) of each segment."""
        for batch in self.batches():
            for record in batch:
                for part in record.segments:
                    yield part.source, part.translation


@contextlib.contextmanager
def keep_records(records: Iterable[Record], folder: Path, progress: Progress) -> Iterator[RecordFile]:
    """Read the records into a temporary file in the folder.

    The file has no name: it is gone at the end of the block, and when the process is killed. Raises BackendError where
    it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (a block around the rest follows)
    except OSError as error:
        raise cannot_write(folder, error) from error
    with file:
        n_segments = 0
        for batch in batched(records, BATCH_RECORDS):
            try:
                pickle.dump(batch, file, pickle.HIGHEST_PROTOCOL)
                file.flush()
            except OSError as error:
                raise cannot_write(folder, error) from error
            n_segments += sum(len(record.segments) for record in batch)
            progress("read segments", n_segments, None)
        yield RecordFile(file, file.tell(), n_segments)
