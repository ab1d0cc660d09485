"""The segments of a port whose repair would give most back, by the side that costs the score."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from rusbeir import __version__
from rusbeir.audit.port_checks.aligned import AlignedPort, Record, open_port
from rusbeir.audit.port_checks.report import SEGMENTS
from rusbeir.audit.port_checks.retrieval_round_trip import BACK, FOLDER, narrow_to_split
from rusbeir.audit.published_ports.published import align
from rusbeir.audit.score_differences.attribution import Repairs, attribute
from rusbeir.datasets import QA, REPORT, Sample, is_published, load, read_json, read_jsonl, write_audit_command
from rusbeir.errors import BadInput
from rusbeir.experiment import search
from rusbeir.retrieval import check_names
from rusbeir.storage import atomic_file
from rusbeir.types import Corpus, Dataset, Doc, MemoryCorpus, Progress, silent

FILE = "retry-segments.jsonl"
"""The file in qa/ of the port that `rusbeir port` takes to translate these segments again."""
MOST_VARIED = 200
"""Documents whose segments are repaired one by one; the gain of the others is divided equally."""
_WORDS = re.compile(r"\b(bm25|sparse)\b")
"""Systems that compare words, which texts in two languages do not share."""
_BACK_SHAPE = {"kind": str, "id": str, "back": str}


class RepairableSegment(NamedTuple):
    """A segment, and what a good translation of it alone would give back of the mean measure, as estimated."""

    kind: str
    """"document" or "query"."""
    id: str
    field: str
    segment: int
    """Its number in the field, from 1."""
    gain: float
    source: str
    translation: str


@dataclass(frozen=True, kw_only=True)
class Sides:
    """An original and its port, reduced to the documents, queries and judgements that both have."""

    port: AlignedPort
    original: Dataset
    translated: Dataset

    def translated_back(self, system: str, progress: Progress) -> Dataset:
        """The port translated back. Raises BadInput, with the remedy, where there is none, or the port has changed."""
        # A dataset that is named has no folder of its own.
        folder = self.port.folder if self.port.source_option is not None else Path("FOLDER")
        command = write_audit_command("check", folder, "--back-translator", "NAME", source=self.port.source_option)
        path = folder / QA / FOLDER / BACK
        if not path.is_dir():
            raise BadInput(
                f"{system} compares words, so it needs the port translated back, and {self.port.dataset.card.name} has "
                f"no back-translation. Run `{command}`."
            )
        report = read_json(
            folder / QA / REPORT, {"fingerprint": str, "round_trip": (dict, type(None))}, f"Run `{command}`."
        )
        if report["fingerprint"] != self.port.dataset.fingerprint:
            raise BadInput(
                f"{folder} has changed since it was translated back. Run `{command}` again; only new texts are sent."
            )
        if not report["round_trip"]:
            raise BadInput(f"{folder} was last checked without a back-translation. Run `{command}`.")
        back = load(path, progress=progress)
        return replace(
            back,
            corpus=_take(back, self.original.corpus),
            queries={query_id: back.queries[query_id] for query_id in self.original.queries},
            qrels=self.original.qrels,
        )


def attribute_port(
    original: str,
    port: str,
    systems: Sequence[str],
    *,
    measure: str = "nDCG@10",
    seed: int = 0,
    out: str | Path | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Measure which side of a port costs each system its score, and which segments to repair first.

    Args:
        original: Name or path of the dataset that was translated.
        port: Name or path of its translation.
        systems: The systems; those that compare words are measured on the port translated back.
        measure: The measure, by its name in ir-measures.
        seed: Seed of the resamples.
        out: The file of the segments; by default in qa/ of the port's folder, unless `rusbeir publish` wrote it.
        progress: Receives what is being done.

    Returns:
        The `attributions`, one for each system, and the `segments`, largest gain first (docs/validity.md).

    Raises:
        BadInput: The datasets have no common ids, or the port lacks the back-translation that a system needs.
    """
    names = [str(check_names(system)) for system in systems]
    sides = open_sides(original, port, progress)
    rows: list[dict[str, Any]] = []
    gains: dict[tuple[str, str, str, int], float] = {}
    translated = {name: sides.translated_back(name, progress) for name in names if _WORDS.search(name)}
    repairs: dict[str, Repairs] = {}
    for name in names:
        attribution, repairs[name] = attribute(
            sides.original, translated.get(name, sides.translated), name, measure=measure, seed=seed, progress=progress
        )
        rows.append(
            {**asdict(attribution), "translated_back": name in translated, "conclusion": attribution.conclusion}
        )
    keys = {("document", doc_id) for gained in repairs.values() for doc_id in gained.documents}
    keys |= {("query", query_id) for gained in repairs.values() for query_id in gained.queries}
    records = {key: record for record in sides.port.records() if (key := (record.kind, record.record_id)) in keys}
    backs = _read_backs(sides.port, keys) if translated else {}
    for name, gained in repairs.items():
        dataset = translated.get(name, sides.translated)
        texts = {key: _Text.cut(record, backs[key] if name in translated else None) for key, record in records.items()}
        for segment, gain in divide_gains(gained, texts, dataset, name, progress):
            gains[segment] = gains.get(segment, 0.0) + gain / len(names)
    segments = sorted(_describe(gains, records), key=lambda segment: (-segment.gain, segment))
    path = Path(out) if out is not None else None
    if path is None and Path(port).is_dir() and not is_published(Path(port)):
        path = Path(port) / QA / FILE
    if path is not None:
        with atomic_file(path) as file:
            file.writelines(orjson.dumps(segment._asdict()) + b"\n" for segment in segments)
    return {
        "version": __version__,
        "original": sides.original.card.name,
        "port": sides.translated.card.name,
        "language": sides.translated.card.language,
        "attributions": rows,
        "segments": [segment._asdict() for segment in segments],
        "file": str(path) if path is not None else None,
    }


def open_sides(original: str, port: str, progress: Progress = silent) -> Sides:
    """Open an original and its port, reduced to what both have. Raises BadInput where that is nothing."""
    if Path(port).is_dir():
        aligned = open_port(port, source=original, progress=progress)
    else:
        aligned = align(original, port, None, None, None, None, progress)
    narrow = narrow_to_split(aligned)
    source, ported = narrow.source, narrow.dataset
    ids = {doc.doc_id for doc in source.corpus}
    shared = ids & {doc.doc_id for doc in ported.corpus}
    judged = {
        query_id: {doc_id: grade for doc_id, grade in grades.items() if doc_id in shared}
        for query_id, grades in ported.qrels.items()
        if query_id in source.queries
    }
    qrels = {query_id: grades for query_id, grades in judged.items() if any(grade > 0 for grade in grades.values())}
    if not qrels:
        raise BadInput(
            f"{original} and {port} share no query with a relevant document: {len(shared):,} of {len(ids):,} document "
            f"ids are in both. Name the dataset from which {port} was made."
        )
    both = [
        replace(
            side,
            corpus=side.corpus if len(side.corpus) == len(shared) else Sample(side.corpus, frozenset(shared)),
            queries={query_id: side.queries[query_id] for query_id in qrels},
            qrels=qrels,
        )
        for side in (source, ported)
    ]
    return Sides(port=aligned, original=both[0], translated=both[1])


class _Text(NamedTuple):
    """A record as a system reads it: its segments in the translation, or translated back."""

    fields: Mapping[str, list[tuple[str, bool]]]
    """field -> its parts, and whether each is a segment."""
    sources: Mapping[str, list[str]]
    """field -> the segments of the original."""

    @classmethod
    def cut(cls, record: Record, back: Sequence[str] | None) -> _Text:
        answers = iter(back if back is not None else [part.translation for part in record.segments])
        fields = {
            field.name: [(next(answers), True) if part.sent else (part.translation, False) for part in field.parts]
            for field in record.fields
        }
        return cls(fields, {field.name: [part.source for part in field.parts if part.sent] for field in record.fields})

    @property
    def segments(self) -> list[tuple[str, int]]:
        """(field, number) of each segment."""
        return [(name, number) for name, sources in self.sources.items() for number in range(1, len(sources) + 1)]

    def repair(self, field: str, number: int) -> dict[str, str]:
        """Return field -> text, with that segment as it is in the original; number 0 repairs none."""
        texts = {}
        for name, parts in self.fields.items():
            numbers = iter(range(1, len(parts) + 1))
            texts[name] = "".join(
                self.sources[name][number - 1] if sent and next(numbers) == number and name == field else text
                for text, sent in parts
            )
        return texts


def divide_gains(
    repairs: Repairs, texts: Mapping[tuple[str, str], _Text], dataset: Dataset, system: str, progress: Progress
) -> Iterator[tuple[tuple[str, str, str, int], float]]:
    """Yield the kind, id, field and number of each segment, and its gain.

    The gain of a document is divided by how much each of its segments alone, as it is in the original, raises the score
    of the document for the queries that it costs something; the least useful segment gets nothing.
    """
    for query_id, gain in repairs.queries.items():
        if text := texts.get(("query", query_id)):
            yield from (((("query", query_id, *segment), gain / len(text.segments))) for segment in text.segments)
    known = {doc_id: text for doc_id in repairs.documents if (text := texts.get(("document", doc_id)))}
    totals = {doc_id: sum(repairs.documents[doc_id].values()) for doc_id in known}
    largest = sorted(
        (doc_id for doc_id in known if len(known[doc_id].segments) > 1), key=lambda doc_id: (-totals[doc_id], doc_id)
    )
    shares = _weigh_segments(
        {doc_id: known[doc_id] for doc_id in largest[:MOST_VARIED]}, repairs, dataset, system, progress
    )
    for doc_id, text in known.items():
        weights = shares.get(doc_id, [])
        if not sum(weights):
            weights = [1.0] * len(text.segments)
        for segment, weight in zip(text.segments, weights, strict=True):
            yield ("document", doc_id, *segment), totals[doc_id] * weight / sum(weights)


def _weigh_segments(
    texts: Mapping[str, _Text], repairs: Repairs, dataset: Dataset, system: str, progress: Progress
) -> dict[str, list[float]]:
    """doc_id -> a weight for each of its segments; 0 for all of them where the system finds none of its variants."""
    if not texts:
        return {}
    variants: list[Doc] = []
    ids: dict[str, list[str]] = {}
    for doc_id, text in texts.items():
        doc = dataset.corpus[doc_id]
        ids[doc_id] = [str(len(variants) + number) for number in range(len(text.segments))]
        for variant_id, segment in zip(ids[doc_id], text.segments, strict=True):
            repaired = {"title": doc.title, "text": doc.text, **text.repair(*segment)}
            variants.append(Doc(variant_id, repaired["text"], repaired["title"]))
    losing_ids = {query_id for doc_id in texts for query_id in repairs.documents[doc_id]}
    queries = {query_id: dataset.queries[query_id] for query_id in dataset.queries if query_id in losing_ids}
    small = replace(dataset, corpus=MemoryCorpus(variants))
    run = search(small, system, queries, k=len(variants), progress=progress)
    weights = {}
    for doc_id, names in ids.items():
        weights[doc_id] = [0.0] * len(names)
        for query_id, gain in repairs.documents[doc_id].items():
            hits = run[query_id]
            variant_scores = [hits[name] for name in names if name in hits]
            # What is not found has no word of the query.
            lowest = (
                min(variant_scores, default=0.0) if len(variant_scores) == len(names) else min([0.0, *variant_scores])
            )
            for number, name in enumerate(names):
                weights[doc_id][number] += max(gain, 0.0) * (hits.get(name, lowest) - lowest)
    return weights


def _take(dataset: Dataset, other: Iterable[Doc]) -> Corpus:
    doc_ids = frozenset(doc.doc_id for doc in other)
    return dataset.corpus if len(dataset.corpus) == len(doc_ids) else Sample(dataset.corpus, doc_ids)


def _read_backs(port: AlignedPort, keys: set[tuple[str, str]]) -> dict[tuple[str, str], list[str]]:
    """Read the back-translations of the segments of these records, in order."""
    backs: dict[tuple[str, str], list[str]] = {key: [] for key in keys}
    again = f"Run `{port.write_audit_command('check', '--back-translator', 'NAME')}` again."
    for row in read_jsonl(port.folder / QA / SEGMENTS, _BACK_SHAPE, again):
        if (key := (row["kind"], row["id"])) in backs:
            backs[key].append(row["back"])
    return backs


def _describe(
    gains: Mapping[tuple[str, str, str, int], float], records: Mapping[tuple[str, str], Record]
) -> Iterator[RepairableSegment]:
    for (kind, record_id, name, number), gain in gains.items():
        field = next(field for field in records[kind, record_id].fields if field.name == name)
        part = [part for part in field.parts if part.sent][number - 1]
        if gain > 0:
            yield RepairableSegment(kind, record_id, name, number, gain, part.source, part.translation)
