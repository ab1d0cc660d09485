"""The losses of a port against its source: ids, judgements and queries; and how long its texts are.

Memory holds hashes of ids and numbers, never the texts.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rusbeir.audit.port_checks.aligned import AlignedPort
from rusbeir.audit.port_checks.measurement import RecordFile
from rusbeir.audit.port_checks.segment_checks import LengthFinder, usual_lengths
from rusbeir.audit.port_checks.tally import EXAMPLES, SHOWN
from rusbeir.datasets import FIELDS, hash_id
from rusbeir.evaluation import Units, cluster_queries, detectable_deviations
from rusbeir.types import Corpus, Progress, Qrels

Hashes = NDArray[np.uint64]

_REPORT_EVERY = 10_000


def compare_ids(port: AlignedPort, progress: Progress) -> dict[str, Any]:
    """Ids lost and added, of documents and of queries, and judgements of documents that the port lacks."""
    source, ported = _hash_ids(port.source.corpus, progress), _hash_ids(port.dataset.corpus, progress)
    lost = np.flatnonzero(~np.isin(source, ported))
    added = np.flatnonzero(~np.isin(ported, source))
    there = np.sort(ported)
    queries = port.source.queries.keys(), port.dataset.queries.keys()
    missing = {
        query_id: [doc_id for doc_id in grades if not _contains(there, doc_id)]
        for query_id, grades in port.dataset.qrels.items()
    }
    dropped = _drop_queries(port, there)
    return {
        "documents": {
            "source": len(source),
            "port": len(ported),
            "lost": len(lost),
            "added": len(added),
            "lost_ids": _ids_at(port.source.corpus, lost),
            "added_ids": _ids_at(port.dataset.corpus, added),
        },
        "queries": {
            "source": len(queries[0]),
            "port": len(queries[1]),
            "lost": len(queries[0] - queries[1]),
            "added": len(queries[1] - queries[0]),
            "lost_ids": [query_id for query_id in queries[0] if query_id not in queries[1]][:SHOWN],
            "added_ids": [query_id for query_id in queries[1] if query_id not in queries[0]][:SHOWN],
        },
        "judgements": {
            "source": sum(map(len, port.source.qrels.values())),
            "port": sum(map(len, port.dataset.qrels.values())),
            "missing": sum(map(len, missing.values())),
            "missing_ids": list(dict.fromkeys(doc_id for ids in missing.values() for doc_id in ids))[:SHOWN],
        },
        "dropped": dropped,
    }


def _drop_queries(port: AlignedPort, there: Hashes) -> dict[str, Any]:
    """The queries with a relevant document in the source that the port cannot be measured with, and what that costs.

    The minimum detectable effect is that of a paired test over independent clusters of queries, in standard deviations
    of their differences, which no run is needed for; their ratio supposes that the queries kept are like those dropped.
    """

    def is_relevant(qrels: Qrels, query_id: str) -> bool:
        return any(grade > 0 for grade in qrels.get(query_id, {}).values())

    answerable = [query_id for query_id in port.source.qrels if is_relevant(port.source.qrels, query_id)]
    reasons: dict[str, str] = {}
    for query_id in answerable:
        grades = port.dataset.qrels.get(query_id, {})
        if query_id not in port.dataset.queries:
            reasons[query_id] = "lost"
        elif not any(grade > 0 and _contains(there, doc_id) for doc_id, grade in grades.items()):
            reasons[query_id] = "no relevant document is left"
    n, left = len(answerable), len(answerable) - len(reasons)
    clusters = cluster_queries(port.source)
    units = [
        Units.from_clusters(ids, clusters)
        for ids in (answerable, [query_id for query_id in answerable if query_id not in reasons])
    ]
    before, after = (detectable_deviations(part.n_clusters) for part in units)
    return {
        "source": n,
        "kept": left,
        "n_clusters": {"source": units[0].n_clusters, "port": units[1].n_clusters},
        "lost": sum(reason == "lost" for reason in reasons.values()),
        "without_relevant": sum(reason != "lost" for reason in reasons.values()),
        "ids": reasons,
        "detectable": {"source": _finite(before), "port": _finite(after)},
        "detectable_ratio": _finite(after / before),
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _hash_ids(corpus: Corpus, progress: Progress) -> Hashes:
    hashes = array("Q")
    for n, doc in enumerate(corpus, 1):
        hashes.append(hash_id(doc.doc_id))
        if n % _REPORT_EVERY == 0:
            progress("compare ids", n, len(corpus))
    return np.frombuffer(hashes, dtype=np.uint64)


def _contains(ordered: Hashes, doc_id: str) -> bool:
    target = np.uint64(hash_id(doc_id))
    row = int(np.searchsorted(ordered, target))
    return row < len(ordered) and bool(ordered[row] == target)


def _ids_at(corpus: Corpus, rows: NDArray[np.intp]) -> list[str]:
    """Return the ids of the first of these rows, which are in order."""
    chosen = set(rows[:SHOWN].tolist())
    if not chosen:
        return []
    return [doc.doc_id for n, doc in enumerate(islice(corpus, max(chosen) + 1)) if n in chosen]


def measure_lengths(records: RecordFile) -> dict[str, Any]:
    """Measure how long translations of each field are, in characters of the source: median, percentiles, outliers."""
    by_field = {}
    for name in FIELDS:
        ratios = array("f", (len(translation) / len(source) for _, source, translation in _pairs(records, name)))
        if not ratios:
            continue
        low, median, high = np.quantile(np.frombuffer(ratios, dtype=np.float32), [0.05, 0.5, 0.95]).tolist()
        bounds = usual_lengths((source, translation) for _, source, translation in _pairs(records, name))
        finder, outliers = LengthFinder(bounds), 0
        # A heap of those furthest from the median.
        worst: list[tuple[float, int, dict[str, Any]]] = []
        for record_id, source, translation in _pairs(records, name):
            if finder.find(source, translation) is not None:
                outliers += 1
                ratio = len(translation) / len(source)
                row = {"id": record_id, "ratio": ratio, "source": source, "translation": translation}
                heapq.heappush(worst, (abs(math.log(ratio / median)), outliers, row))
                if len(worst) > EXAMPLES:
                    heapq.heappop(worst)
        by_field[name] = {
            "n": len(ratios),
            "p5": low,
            "median": median,
            "p95": high,
            "usual": [bounds.low, bounds.high] if bounds else None,
            "outliers": outliers,
            "examples": [row for _, _, row in sorted(worst, reverse=True)],
        }
    return by_field


def _pairs(records: RecordFile, name: str) -> Iterator[tuple[str, str, str]]:
    """Yield (id, source, translation) of a field, where both sides have a text."""
    for batch in records.batches():
        for record in batch:
            for field in record.fields:
                if field.name == name and field.source and (translation := field.translation).strip():
                    yield record.record_id, field.source, translation
