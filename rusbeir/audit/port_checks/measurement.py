"""The records of a port measured: their flags, their back-translations, and chrF of these against the source."""

from __future__ import annotations

import contextlib
import pickle
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import orjson

from rusbeir.audit.port_checks import scores
from rusbeir.audit.port_checks.aligned import BATCH_RECORDS, Part, Record
from rusbeir.audit.port_checks.ngrams import Ints
from rusbeir.audit.port_checks.segment_checks import CheckedSegment, Finder, find_flags
from rusbeir.jobs import Journal
from rusbeir.processes import cpu_count, in_order
from rusbeir.storage import cannot_write
from rusbeir.text import batched
from rusbeir.translation import Flag, Plan, Segment
from rusbeir.types import Progress

if TYPE_CHECKING:
    from rusbeir.audit.quality_estimation.estimators import NamedQuality
    from rusbeir.cluster import Workers


@dataclass(kw_only=True)
class BackTranslations:
    """The back-translations of segments, in a journal that is open."""

    journal: Journal
    plan: Plan
    n_missing: int = 0
    """How many texts have been asked for that have no back-translation."""

    def add_to(self, records: Sequence[Record]) -> list[RecordTask]:
        """Pair records with their back-translations; a segment without one, or without a letter, stays as it is."""
        texts = [part.translation for record in records for part in record.segments]
        answers = self.plan.translated(self.journal, texts)
        missing = [text for text, answer in zip(texts, answers, strict=True) if answer is None]
        self.n_missing += len(missing)
        originals = iter(self.plan.translated(self.journal, missing, keep=True))
        back = iter([(next(originals) if answer is None else answer) or "" for answer in answers])
        return [RecordTask(record, list(islice(back, len(record.segments))), {}) for record in records]


class RecordTask(NamedTuple):
    """A record, and what is known of its segments, in their order."""

    record: Record
    back: Sequence[str] | None
    """Their back-translations; None where there is no back-translator."""
    quality: Mapping[str, Sequence[float | None]]
    """The scores of each quality estimation, by its name."""


class Measured(NamedTuple):
    """The findings about a record."""

    kind: str
    record_id: str
    row: bytes
    """A line of qa/texts.jsonl."""
    segment_rows: list[bytes]
    """Lines of qa/segments.jsonl."""
    flags: list[tuple[str, ...]]
    """The names of each segment's flags."""
    scores: list[float]
    """chrF of the whole text; [] where there is no back-translation."""
    counts: Ints
    """The n-gram counts of the whole text."""
    segment_scores: list[float]
    segment_counts: Ints
    """The n-gram counts of all segments together."""
    back: tuple[tuple[str, str], ...]
    """The name of each field, and its back-translation."""
    quality: Mapping[str, tuple[float | None, Sequence[float | None]]]
    """The scores of each quality estimation: of the whole text, and of its segments."""


def measure(
    records: RecordFile,
    back: BackTranslations | None,
    measurer: Measurer,
    processes: int | None,
    progress: Progress,
    workers: Workers | None = None,
    quality: Sequence[NamedQuality] = (),
) -> Iterator[Measured]:
    """Measure all records in that many processes (None: one for each core), or on the workers of a cluster.

    Results come in the order of the records.
    """
    done = 0
    tasks = (
        _add_quality(back.add_to(batch) if back else [RecordTask(record, None, {}) for record in batch], quality)
        for batch in records.batches()
    )
    if workers is not None:
        batches = workers.deploy(partial(_same, measurer)).in_order("__call__", tasks)
    else:
        batches = in_order(measurer, tasks, processes or cpu_count())
    for batch in batches:
        yield from batch
        done += sum(len(result.flags) for result in batch)
        progress("check segments", done, records.n_segments)


def _add_quality(tasks: Sequence[RecordTask], quality: Sequence[NamedQuality]) -> list[RecordTask]:
    """Return the tasks with the scores of their segments."""
    scores = {name: source.add_to([task.record for task in tasks]) for name, source in quality}
    return [
        task._replace(quality={name: rows[n] for name, rows in scores.items()}) if scores else task
        for n, task in enumerate(tasks)
    ]


@dataclass(frozen=True)
class Measurer:
    """Measures records; it is sent to worker processes."""

    languages: tuple[str, str]
    finders: Mapping[str, Finder]

    def __call__(self, tasks: Sequence[RecordTask]) -> list[Measured]:
        segments = [
            CheckedSegment(Segment(part.source, part.translation, *self.languages), back)
            for record, backs, _ in tasks
            for part, back in zip(record.segments, repeat(None) if backs is None else backs, strict=False)
        ]
        flags = iter(find_flags(self.finders, segments))
        return [_measure(task, list(islice(flags, len(task.record.segments)))) for task in tasks]


def _same(measurer: Measurer) -> Measurer:
    """Rebuild it on a worker from its pickle."""
    return measurer


def _measure(task: RecordTask, flags: Sequence[Sequence[Flag]]) -> Measured:
    record, back, scores = task
    text = "\n".join(field.source for field in record.fields)
    row: dict[str, Any] = {
        "kind": record.kind,
        "id": record.record_id,
        "chars": len(text),
        "translation_chars": sum(len(field.translation) for field in record.fields),
        "flags": sorted({flag.name for flag in chain.from_iterable(flags)}),
    }
    named = zip(record.segment_names, record.segments, flags, strict=True)
    rows = [_segment_row(record, *parts) for parts in named]
    quality = {name: (_average(record, values), values) for name, values in scores.items()}
    if quality:
        row["qe"] = {name: average for name, (average, _) in quality.items()}
        for number, segment_row in enumerate(rows):
            segment_row["qe"] = {name: values[number] for name, values in scores.items()}
    rest = iter(back or ())
    fields = () if back is None else tuple((field.name, _join(field.parts, rest)) for field in record.fields)
    whole = _Scores.compute(["\n".join([answer for _, answer in fields])] * bool(fields), [text] * bool(fields))
    each = _Scores.compute(back or (), [part.source for part in record.segments] if back is not None else [])
    whole.add_to([row])
    each.add_to(rows)
    for segment_row, answer in zip(rows, back or (), strict=False):
        segment_row["back"] = answer
    return Measured(
        kind=record.kind,
        record_id=record.record_id,
        row=_dump(row),
        segment_rows=[*map(_dump, rows)],
        flags=[tuple(flag.name for flag in segment_flags) for segment_flags in flags],
        scores=whole.chrf,
        counts=whole.counts,
        segment_scores=each.chrf,
        segment_counts=each.counts,
        back=fields,
        quality=quality,
    )


def _average(record: Record, scores: Sequence[float | None]) -> float | None:
    """Return the mean over segments, each weighted by its length; None where no segment has a score."""
    weighted = [
        (len(part.source), score) for part, score in zip(record.segments, scores, strict=True) if score is not None
    ]
    n_chars = sum(chars for chars, _ in weighted)
    return sum(chars * score for chars, score in weighted) / n_chars if n_chars else None


class _Scores(NamedTuple):
    """chrF and chrF++ of some texts, and the sum of their counts."""

    chrf: list[float]
    plus: list[float]
    counts: Ints

    @classmethod
    def compute(cls, backs: Sequence[str], sources: Sequence[str]) -> _Scores:
        counts = scores.count_chrf(backs, sources, words=True)
        plain, plus = scores.chrf(counts[:, : 3 * scores.CHARS]), scores.chrf(counts)
        return cls(plain.tolist(), plus.tolist(), counts.sum(axis=0))

    def add_to(self, rows: Iterable[dict[str, Any]]) -> None:
        """Write each text's scores into its row."""
        for row, plain, plus in zip(rows, self.chrf, self.plus, strict=False):
            row |= {"chrF": round(plain, 2), "chrF++": round(plus, 2)}


def _join(parts: Iterable[Part], answers: Iterator[str]) -> str:
    return "".join([next(answers) if part.sent else part.source for part in parts])


def _segment_row(record: Record, name: tuple[str, int], part: Part, flags: Sequence[Flag]) -> dict[str, Any]:
    """Return the row of a segment; name is that of its field, and its number there, from 1."""
    return {
        "kind": record.kind,
        "id": record.record_id,
        "field": name[0],
        "segment": name[1],
        "source": part.source,
        "translation": part.translation,
        "flags": {flag.name: flag.detail for flag in flags},
    }


def _dump(row: dict[str, Any]) -> bytes:
    return orjson.dumps(row) + b"\n"


@dataclass(frozen=True)
class RecordFile:
    """The records of a port, read once and kept in a file, from which all later steps read them."""

    file: IO[bytes]
    end: int
    n_segments: int

    def batches(self) -> Iterator[list[Record]]:
        """Yield the records in lists of BATCH_RECORDS; several readers do not disturb one another."""
        offset = 0
        while offset < self.end:
            self.file.seek(offset)
            batch = pickle.load(self.file)
            offset = self.file.tell()
            yield batch

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield (source, translation) of each segment."""
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
