"""The cost of translation for retrieval: BM25 on the source, on the port, and on the port translated back."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import IO, Any

import numpy as np
import orjson

from rusbeir.audit.port_checks.aligned import AlignedPort
from rusbeir.audit.port_checks.measurement import Measured
from rusbeir.datasets import (
    CARD,
    QA,
    Query,
    Sample,
    card_bytes,
    load,
    name_qrels_file,
    qrels_lines,
    record_line,
    take_split,
)
from rusbeir.errors import UnknownName
from rusbeir.evaluation import evaluate
from rusbeir.retrieval import RunSettings, resolve, search_without_self
from rusbeir.storage import atomic_file, atomic_folder
from rusbeir.types import Dataset, Doc, Progress, canonical_line, fingerprint

FOLDER = "round-trip"
BACK = "back"
"""The port translated back, in that folder."""
PER_QUERY = "queries.jsonl"
MEASURE = "nDCG@10"
SYSTEM = "bm25"
UNKNOWN_SYSTEM = "bm25(profile=unicode)"
"""The system for a language without an analyzer."""
DEPTH = 100
"""Hits for each query."""
MAX_LOST_QUERIES = 20
_QUARTERS = ("lowest", "second", "third", "highest")


@dataclass(kw_only=True)
class RoundTrip:
    """Retrieval on the source, the port, and the port translated back, which is written while it is measured."""

    port: AlignedPort
    corpus_file: IO[bytes]
    relevant: frozenset[str]
    """The documents that are relevant to a query."""
    queries: dict[str, str] = field(default_factory=dict)
    """The queries translated back."""
    query_chrf: dict[str, float] = field(default_factory=dict)
    doc_chrf: dict[str, float] = field(default_factory=dict)
    """chrF of the documents that are relevant to a query."""
    doc_ids: set[str] = field(default_factory=set)
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    """The digest of the canonical lines of the documents, for the fingerprint."""

    def add(self, result: Measured) -> None:
        """Add the next document or query, in the order of the port's records."""
        texts = dict(result.back)
        if result.kind == "query":
            self.queries[result.record_id] = texts["query"]
            self.query_chrf[result.record_id] = result.scores[0]
            return
        if result.record_id in self.relevant and result.scores:
            self.doc_chrf[result.record_id] = result.scores[0]
        if len(texts) < 2:
            original = self.port.source.corpus[result.record_id]
            texts = {"title": original.title, "text": original.text, **texts}
        self.doc_ids.add(result.record_id)
        self.digest.update(canonical_line(result.record_id, texts["title"], texts["text"]))
        self.corpus_file.write(record_line(Doc(result.record_id, texts["text"], texts["title"])))

    def measure(self, progress: Progress) -> dict[str, Any]:
        """Measure nDCG@10 on the three datasets, by quarters of chrF, and list the queries that lost most.

        All queries are written to a file.
        """
        folder = self.port.folder / QA / FOLDER
        back = load(folder / BACK, progress=progress)
        sets = {"source": self._original(), "port": self.port.dataset, "back": back}
        values: dict[str, dict[str, float]] = {}
        rows: dict[str, dict[str, Any]] = {}
        for name, dataset in sets.items():
            rows[name], values[name] = _search(dataset, progress)
        table: list[dict[str, Any]] = []
        for query_id in values["source"]:
            if query_id not in self.query_chrf:
                continue
            grades = self.port.dataset.qrels[query_id]
            relevant = [self.doc_chrf[name] for name, grade in grades.items() if grade > 0 and name in self.doc_chrf]
            table.append(
                {
                    "query_id": query_id,
                    "query": self.port.source.queries[query_id],
                    "translation": self.port.dataset.queries[query_id],
                    "back_translation": back.queries[query_id],
                    "chrF": round(self.query_chrf[query_id], 2),
                    "documents_chrF": round(sum(relevant) / len(relevant), 2) if relevant else None,
                    **{name: by_query.get(query_id) for name, by_query in values.items()},
                }
            )
        with atomic_file(folder / PER_QUERY) as file:
            file.writelines(orjson.dumps(row) + b"\n" for row in table)
        lost = sorted(table, key=lambda row: (row["back"] - row["source"], row["query_id"]))
        return {
            "system": SYSTEM,
            "measure": MEASURE,
            "n_queries": len(values["source"]),
            "rows": rows,
            "kept": rows["back"][MEASURE] / rows["source"][MEASURE] if rows["source"][MEASURE] else None,
            "quartiles": {
                "of the query": _by_quarter(table, "chrF", values),
                "of its relevant documents": _by_quarter(table, "documents_chrF", values),
            },
            "lost": [row for row in lost[:MAX_LOST_QUERIES] if row["back"] < row["source"]],
        }

    def _original(self) -> Dataset:
        """The source as far as it was ported: the documents and queries that the port has, with its judgements."""
        original, ported = self.port.source, self.port.dataset
        whole = len(original.corpus) == len(ported.corpus) and original.qrels == ported.qrels
        if whole and self.port.settings.get("sample", "all") == "all":
            return original
        corpus = Sample(original.corpus, frozenset(self.doc_ids))
        queries = {query_id: original.queries[query_id] for query_id in ported.queries}
        return replace(original, corpus=corpus, queries=queries, qrels=ported.qrels)


@contextlib.contextmanager
def open_round_trip(port: AlignedPort) -> Iterator[RoundTrip]:
    """Open a round trip, to which all measured records are added; qa/round-trip/back appears at the end."""
    port = narrow_to_split(port)
    source, ported = port.source, port.dataset
    folder = port.folder / QA / FOLDER / BACK
    shutil.rmtree(folder, ignore_errors=True)
    relevant = frozenset(doc_id for grades in ported.qrels.values() for doc_id, grade in grades.items() if grade > 0)
    with atomic_folder(folder) as new:
        with (new / "corpus.jsonl").open("wb") as file:
            trip = RoundTrip(port=port, corpus_file=file, relevant=relevant)
            yield trip
        left = [query_id for query_id in source.queries if query_id in ported.queries]
        queries = {query_id: trip.queries.get(query_id, source.queries[query_id]) for query_id in left}
        with (new / "queries.jsonl").open("wb") as file:
            file.writelines(record_line(Query(query_id, text)) for query_id, text in queries.items())
        (new / "qrels").mkdir()
        with (new / name_qrels_file(source.card.split)).open("wb") as file:
            file.writelines(qrels_lines(ported.qrels))
        card = replace(source.card, name=f"{ported.card.name}@{source.card.language}", provenance={})
        content = fingerprint(trip.digest.hexdigest(), queries, ported.qrels)
        n_qrels = sum(map(len, ported.qrels.values()))
        counts = {"n_docs": len(trip.doc_ids), "n_queries": len(queries), "n_qrels": n_qrels}
        (new / CARD).write_bytes(card_bytes(card, content, **counts))


def narrow_to_split(port: AlignedPort) -> AlignedPort:
    """Return the port and its source with the queries and judgements of the split on which retrieval is measured."""
    qrels = port.splits[port.split]
    known = {query_id: grades for query_id in qrels if (grades := port.source.qrels.get(query_id)) is not None}
    return replace(
        port,
        source=take_split(port.source, port.split, known),
        dataset=take_split(port.dataset, port.split, qrels),
    )


def _search(dataset: Dataset, progress: Progress) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the mean measure and the signature of BM25 on a dataset, and the measure of each query."""
    language, suffixes = dataset.card.language, dataset.card.self_suffixes
    try:
        system = resolve(SYSTEM, language=language, self_suffixes=suffixes)
    except UnknownName:
        system = resolve(UNKNOWN_SYSTEM, language=language, self_suffixes=suffixes)
    ready = system.prepare(dataset.corpus, dataset.fingerprint, RunSettings(progress=progress))
    run = search_without_self(ready.retriever, dataset.queries, DEPTH, suffixes)
    result = evaluate(dataset.qrels, run, [MEASURE])
    left_out = "|self:left-out" if suffixes else ""
    row = {MEASURE: result.measures[MEASURE], "signature": f"{system.signature}{left_out}|k:{DEPTH}"}
    return row, {query_id: measures[MEASURE] for query_id, measures in result.per_query.items()}


def _by_quarter(
    table: list[dict[str, Any]], key: str, values: Mapping[str, Mapping[str, float]]
) -> list[dict[str, Any]]:
    """Quarters of the queries by that score, lowest first: their number, range, and mean measure on each dataset."""
    known = sorted((row for row in table if row[key] is not None), key=lambda row: (row[key], row["query_id"]))
    quarters = []
    for name, part in zip(_QUARTERS, np.array_split(np.arange(len(known)), 4), strict=True):
        rows = [known[i] for i in part.tolist()]
        if rows:
            means = {other: sum(row[other] for row in rows) / len(rows) for other in values}
            quarters.append({"quarter": name, "n": len(rows), "from": rows[0][key], "to": rows[-1][key], **means})
    return quarters
