"""A port aligned with its source: each text with its translation, in the segments that were translated."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from rusbeir.datasets import (
    FIELDS,
    LoadedSplits,
    find_entry,
    load_audited,
    load_splits,
    read_card,
    sample_documents,
    take_split,
    write_audit_command,
)
from rusbeir.errors import BadInput, UnknownName, option, unknown
from rusbeir.jobs import JOURNAL, WORK, Journal
from rusbeir.storage import refuse_links
from rusbeir.text import batched, digest
from rusbeir.translation import LAYOUT, QUERY_LAYOUT, Piece, Plan, apply_cuts, read_cuts, read_entries, read_source_path
from rusbeir.types import Dataset, Doc, Progress, Qrels, silent

BATCH_RECORDS = 100
_KIND = itemgetter(0)
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

    @property
    def segment_names(self) -> list[tuple[str, int]]:
        """The field of each segment, and its number there, from 1."""
        return [
            (field.name, number)
            for field in self.fields
            for number in range(1, 1 + sum(part.sent for part in field.parts))
        ]


Texts: TypeAlias = tuple[str, str, list[tuple[str, str, str | None]]]
"""Kind, id, and for each field its name, its source and its translation; None where it is not in the port."""


@dataclass(frozen=True, kw_only=True)
class AlignedPort:
    """A ported dataset and its source, reduced to the documents that were ported, with the queries of all splits."""

    folder: Path
    """The folder of the port; for a port that others made, the folder in which its audit is written."""
    source: Dataset
    dataset: Dataset
    splits: dict[str, Qrels]
    """split -> its judgements in the port."""
    split: str
    """The split on which retrieval is measured."""
    settings: dict[str, str]
    origin: str | Path
    """The name or the path of the source."""
    source_option: str | Path | None = None
    """The source as the user named it, which the next command needs as well; None where the port names it."""

    def write_audit_command(self, verb: str, *options: str) -> str:
        """Write a command about this port that can be pasted, with its source where it was named."""
        return write_audit_command(verb, self.folder, *options, source=self.source_option)

    @property
    def languages(self) -> tuple[str, str]:
        """The languages of the source and of the translation."""
        if self.settings.get("fields") == "query":
            return self.source.card.asked_in, self.dataset.card.asked_in
        return self.source.card.language, self.dataset.card.language

    def records(self) -> Iterator[Record]:
        """Yield the documents in the order of the source, then the queries; what is not in the port is left out.

        Texts are cut as the journal of the port says while it matches them, else into lines, else not at all.
        """
        pages = chain.from_iterable(batched(group, BATCH_RECORDS) for _, group in groupby(self.texts(), _KIND))
        with _open_segmenter(self.folder / WORK, self.languages[0]) as segmenter:
            for page in pages:
                texts = [source for _, _, fields in page for _, source, _ in fields]
                known = segmenter.cut(page[0][0], texts) if segmenter else None
                yield from _align_page(page, iter(known or [[]] * len(texts)))

    def texts(self) -> Iterator[Texts]:
        """Yield the texts of all documents, then of all queries, in the order of the layouts."""
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
    """Open the port in a folder, aligned with its source.

    Args:
        folder: The port.
        source: The dataset that was translated, where the port does not name it. A source without a card has the
            language that the port's card names.
        language: The language of a port without a card.
        split: The split on which retrieval is measured; by default `test`, else the first.
        progress: Receives what is being done.

    Returns:
        The port. Its texts are read when they are asked for.

    Raises:
        BadInput: The folder is not a port, contains symbolic links, or was not made from that source.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise BadInput(f"{folder} is not a folder. Give the folder of a port.")
    refuse_links(folder)
    provenance = read_card(folder).get("provenance", {})
    stated = provenance.get("source")
    stated = stated if isinstance(stated, dict) else {}
    recorded = read_source_path(folder)
    if not (source or recorded or stated.get("name")):
        raise BadInput(
            f"{folder} is not a port: no card.json in it names a source. Give the source with {option('source')}."
        )
    port = load_audited(folder, language=language, progress=progress)
    dataset = port.dataset
    if split is None:
        split = "test" if "test" in port.qrels else next(iter(port.qrels))
    elif split not in port.qrels:
        raise unknown("split", split, port.qrels)
    # A rewriting has its source in the same folder.
    views: dict[str, str] = provenance.get("views", {})
    name_or_path = source or (folder / views["source"] if views else recorded or stated["name"])
    try:
        original = load_splits(
            name_or_path,
            language=_find_language(name_or_path, stated.get("language")),
            split=split,
            also=port.qrels,
            all_queries=dataset.queries.keys() > dataset.qrels.keys(),
            progress=progress,
        )
    except (BadInput, UnknownName) as error:
        if source is not None or (recorded is None and not isinstance(error, UnknownName)):
            raise
        raise BadInput(
            f"{folder} is a port of {recorded.name if recorded else stated['name']!r}, but "
            + (f"its source cannot be read: {error} " if recorded else "there is no dataset of that name here. ")
            + f"Give the source with {option('source')}."
        ) from error
    if not views:
        _refuse_other_source(folder, name_or_path, original, stated)
    settings = provenance.get("settings", {})
    whole = original.dataset
    if sampled := _SAMPLE.fullmatch(settings.get("sample", "all")):
        whole = sample_documents(whole, int(sampled[1]), int(sampled[2]))
    if not whole.queries.keys() & dataset.queries.keys():
        raise BadInput(f"{folder} is not a port of {whole.card.name}: they have no query id in common.")
    return AlignedPort(
        folder=folder, source=whole, dataset=dataset, splits=port.qrels, split=split, settings=settings,
        origin=name_or_path, source_option=source,
    )  # fmt: skip


def _find_language(source: str | Path, recorded: str | None) -> str | None:
    """The language with which to load a source: the recorded one, unless its card or its registry entry names one."""
    path = Path(source).expanduser()
    if (isinstance(source, str) and find_entry(source)) or read_card(path).get("language"):
        return None
    if not recorded and path.exists():
        raise BadInput(
            f"{source} has no card.json that names its language, and the card of the port does not name it either. "
            'Put a card.json with its language into the source, such as {"language": "en"}.'
        )
    return recorded


def _refuse_other_source(folder: Path, source: str | Path, original: LoadedSplits, stated: Mapping[str, Any]) -> None:
    """Raise BadInput unless the source has the content that the port's card states of it."""
    expected = stated.get("splits") or {name: stated.get("fingerprint", "") for name in original.qrels}
    if not (isinstance(expected, dict) and all(isinstance(fingerprint, str) for fingerprint in expected.values())):
        raise BadInput(f"{folder / 'card.json'}: provenance.source.splits is not an object of strings. Restore it.")
    for name, qrels in original.qrels.items():
        actual = take_split(original.dataset, name, qrels).fingerprint
        if expected.get(name) not in (None, "", actual):
            raise BadInput(
                f"{folder} was not made from {source}: its card records the source fingerprint "
                f"{expected[name][:12]}… of the split {name!r}, this dataset has {actual[:12]}…. Give the right source "
                f"with {option('source')}."
            )


@contextlib.contextmanager
def _open_segmenter(work: Path, language: str) -> Iterator[_Segmenter | None]:
    """Open what cuts texts as the journal in the folder does; None where there is no journal of a port."""
    if not ((work / JOURNAL).exists() and (work / LAYOUT).exists()):
        yield None
        return
    with Journal.open(work / JOURNAL, {}) as journal:
        entries = read_entries(journal)
        plan = Plan(language=language, glossary=None, entries=entries)
        yield _Segmenter(journal, plan, work, read_cuts(work / LAYOUT)) if entries else None


@dataclass
class _Segmenter:
    """Cuts texts as the port cut them, until its layout file does not match them any more."""

    journal: Journal
    plan: Plan
    work: Path
    documents: Iterator[tuple[str, list[int]]]
    queries: dict[str, list[int]] | None = None
    usable: bool = True

    def cut(self, kind: str, texts: Sequence[str]) -> list[list[Part]] | None:
        """Cut each text into its parts, with the translations in the journal; None where the layout does not match."""
        if not self.usable:
            return None
        path = self.work / (LAYOUT if kind == "document" else QUERY_LAYOUT)
        try:
            if kind == "document":
                lines = (lengths for _, lengths in self.documents)
            else:
                self.queries = self.queries or dict(read_cuts(path))
                lines = (self.queries.get(digest(text), []) for text in texts)
            cuts = list(apply_cuts(lines, texts, path))
        except BadInput:
            self.usable = False
            return None
        sent = list(dict.fromkeys(text for pieces in cuts for text, is_sent in pieces if is_sent))
        joined = self.plan.joined(self.journal, [[Piece(text, True)] for text in sent], keep=True)
        answers = dict(zip(sent, joined, strict=True))
        return [
            [Part(text, (answers[text] or "") if is_sent else text, is_sent) for text, is_sent in pieces]
            for pieces in cuts
        ]


def _align_page(page: Sequence[Texts], cuts: Iterator[Sequence[Part]]) -> Iterator[Record]:
    """Yield the records that are in the port; cuts are the known parts of each text of the page, in order."""
    for kind, record_id, fields in page:
        aligned = [(name, source, translation, next(cuts)) for name, source, translation in fields]
        ported = tuple(
            Field(name, _align(source, translation, parts))
            for name, source, translation, parts in aligned
            if translation is not None
        )
        if ported or not fields:
            yield Record(kind, record_id, ported)


def _align(source: str, translation: str, parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return the parts where they make up the translation, else pairs of lines, else the two texts as one pair."""
    if parts and "".join([part.translation for part in parts]) == translation:
        return tuple(parts)
    lines, others = _LINE.findall(source), _LINE.findall(translation)
    if [line.isspace() for line in lines] != [line.isspace() for line in others]:
        lines, others = [source], [translation]
    return tuple(Part(*pair, bool(_LETTER.search(pair[0]))) for pair in zip(lines, others, strict=True))
