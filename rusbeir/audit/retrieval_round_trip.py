"""What translation costs retrieval: BM25 on the source, on the port, and on the port translated back."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from rusbeir.audit.aligned import Port
from rusbeir.audit.segment_checks import Measured
from rusbeir.datasets import load, write_beir
from rusbeir.errors import UnknownName
from rusbeir.experiment import bench
from rusbeir.storage import atomic_file
from rusbeir.types import Dataset, Doc, Progress

FOLDER = "round-trip"
PER_QUERY = "queries.jsonl"
MEASURE = "nDCG@10"
SYSTEM = "bm25"
_QUARTILES = ("lowest", "second", "third", "highest")
_WORST = 20


@dataclass(kw_only=True)
class Trip:
    """The three datasets, and chrF of the queries and of the documents that are relevant to one."""

    port: Port
    folder: Path
    original: Dataset
    back: Dataset
    query_chrf: Mapping[str, float]
    doc_chrf: Mapping[str, float]

    def measured(self, progress: Progress) -> dict[str, Any]:
        """nDCG@10 on the three, by quartile of chrF, and the queries that lost most; each query's in a file."""
        sets = {"source": self.original, "port": self.port.dataset, "back": self.back}
        values: dict[str, dict[str, float]] = {}
        rows: dict[str, dict[str, Any]] = {}
        for name, dataset in sets.items():
            try:
                row = bench(dataset, SYSTEM, measures=(MEASURE,), out=self.folder / "results", progress=progress)
            except UnknownName as error:
                # A language that has no analyzer yet.
                rows[name] = {"skipped": str(error)}
                continue
            rows[name] = {MEASURE: row["measures"][MEASURE], "signature": row["signature"]}
            per_query = orjson.loads(Path(row["per_query"]).read_bytes())
            values[name] = {query_id: found[MEASURE] for query_id, found in per_query.items()}
        asked = [query_id for query_id in values["source"] if query_id in self.query_chrf]
        table: list[dict[str, Any]] = [
            {
                "query_id": query_id,
                "query": self.original.queries[query_id],
                "translation": self.port.dataset.queries[query_id],
                "back_translation": self.back.queries[query_id],
                "chrF": round(self.query_chrf[query_id], 2),
                "documents_chrF": self._documents_chrf(query_id),
                **{name: found.get(query_id) for name, found in values.items()},
            }
            for query_id in asked
        ]
        with atomic_file(self.folder / PER_QUERY) as file:
            file.writelines(orjson.dumps(row) + b"\n" for row in table)
        kept = rows["back"][MEASURE] / rows["source"][MEASURE] if rows["source"][MEASURE] else None
        lost = sorted(table, key=lambda row: (row["back"] - row["source"], row["query_id"]))
        return {
            "system": SYSTEM,
            "measure": MEASURE,
            "n_queries": len(values["source"]),
            "rows": rows,
            "kept": kept,
            "quartiles": {
                "of the query": _quartiles(table, "chrF", values),
                "of its relevant documents": _quartiles(table, "documents_chrF", values),
            },
            "lost": [row for row in lost[:_WORST] if row["back"] < row["source"]],
        }

    def _documents_chrf(self, query_id: str) -> float | None:
        """The mean over the query's relevant documents; None where none has a chrF."""
        grades = self.original.qrels[query_id]
        scores = [self.doc_chrf[doc_id] for doc_id, grade in grades.items() if grade > 0 and doc_id in self.doc_chrf]
        return round(sum(scores) / len(scores), 2) if scores else None


def back_corpus(port: Port, qa: Path, measured: Iterable[Measured], progress: Progress) -> Trip:
    """Write the port translated back, and the source as far as it was ported, as datasets below qa."""
    folder = qa / FOLDER
    for name in ("back", "source"):
        shutil.rmtree(folder / name, ignore_errors=True)
    relevant = {doc_id for grades in port.dataset.qrels.values() for doc_id, grade in grades.items() if grade > 0}
    passing = _Passing(port, iter(measured), relevant)
    card = replace(port.source.card, name=f"{port.dataset.card.name}@{port.source.card.language}", provenance={})
    dataset = replace(port.dataset, corpus=passing, queries=passing.queries, card=card)
    write_beir(dataset, folder / "back")
    back = load(folder / "back", progress=progress)
    ported = port.dataset
    original = port.source
    whole = len(original.corpus) == len(ported.corpus) and original.qrels == ported.qrels
    if not whole or port.settings.get("sample", "all") != "all":
        kept = _Kept(port, back)
        queries = {query_id: original.queries[query_id] for query_id in ported.queries}
        write_beir(replace(original, corpus=kept, queries=queries, qrels=ported.qrels), folder / "source")
        original = load(folder / "source", progress=progress)
    return Trip(
        port=port,
        folder=folder,
        original=original,
        back=back,
        query_chrf=passing.query_chrf,
        doc_chrf=passing.doc_chrf,
    )


@dataclass
class _Passing:
    """The back-translated documents as a corpus that is read once, as they are measured; then the queries."""

    port: Port
    measured: Iterator[Measured]
    relevant: set[str]
    queries: dict[str, str] = field(init=False)
    query_chrf: dict[str, float] = field(default_factory=dict)
    doc_chrf: dict[str, float] = field(default_factory=dict)
    n_docs: int = 0

    def __post_init__(self) -> None:
        self.queries = dict(self.port.source.queries)

    def __iter__(self) -> Iterator[Doc]:
        # Queries come after all documents, and are read to the end before anyone asks for them.
        for one in self.measured:
            texts = dict(one.back)
            if one.kind == "query":
                self.queries[one.record_id] = texts["query"]
                self.query_chrf[one.record_id] = one.scores[0]
                continue
            if one.record_id in self.relevant and one.scores:
                self.doc_chrf[one.record_id] = one.scores[0]
            if len(texts) < 2:
                original = self.port.source.corpus[one.record_id]
                texts = {"title": original.title, "text": original.text, **texts}
            self.n_docs += 1
            yield Doc(one.record_id, texts["text"], texts["title"])
        for query_id in [query_id for query_id in self.queries if query_id not in self.port.dataset.queries]:
            del self.queries[query_id]

    def __len__(self) -> int:
        return self.n_docs

    def __getitem__(self, doc_id: str) -> Doc:
        raise KeyError(doc_id)


@dataclass(frozen=True)
class _Kept:
    """The source's documents that the port holds."""

    port: Port
    back: Dataset

    def __iter__(self) -> Iterator[Doc]:
        return (self.port.source.corpus[doc.doc_id] for doc in self.back.corpus)

    def __len__(self) -> int:
        return len(self.back.corpus)

    def __getitem__(self, doc_id: str) -> Doc:
        return self.port.source.corpus[doc_id]


def _quartiles(
    table: list[dict[str, Any]], key: str, values: Mapping[str, Mapping[str, float]]
) -> list[dict[str, Any]]:
    """Queries by quarters of that score, the lowest first: how many, its range, and the mean measure on each set."""
    known = sorted((row for row in table if row[key] is not None), key=lambda row: (row[key], row["query_id"]))
    quarters = []
    for name, part in zip(_QUARTILES, np.array_split(np.arange(len(known)), 4), strict=True):
        rows = [known[i] for i in part.tolist()]
        if rows:
            means = {other: sum(row[other] for row in rows) / len(rows) for other in values}
            quarters.append({"quarter": name, "n": len(rows), "from": rows[0][key], "to": rows[-1][key], **means})
    return quarters
