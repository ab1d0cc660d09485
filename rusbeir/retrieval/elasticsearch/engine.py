"""BM25 on a server, behind the same Protocol as the embedded engines, and queries to its indexes."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval.elasticsearch import bulk, connection, indexes, mappings
from rusbeir.retrieval.elasticsearch.connection import Server, Unavailable
from rusbeir.retrieval.elasticsearch.mappings import MAX_TERM_CHARS, MAX_WINDOW, ROW
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.lexical.engines import LUCENE_ONLY, Hits, IndexKey, Terms

_POINTER = "elasticsearch.json"
_MAX_HITS_PER_REQUEST = 50_000
_QUERIES_PER_REQUEST = 128
_HITS_PER_PAGE = 10_000
_TERMS_PER_PART = 1_000
"""Servers take at least 1,024 clauses unless configured for fewer; those with 512 MB take 8,192."""
_WANTED = (
    "responses.status,responses.error,responses.timed_out,responses._shards.failed,"
    "responses._shards.total,responses._shards.successful,responses.hits.hits.sort"
)
_TYPES = {"best_fields": "best_fields", "sum": "most_fields"}


@dataclass(frozen=True, kw_only=True)
class ElasticEngine:
    """The engine of a server: the folder names the index there and holds the ids by row."""

    address: str = ""
    """URLs of nodes separated by commas; RUSBEIR_ES_URL where empty."""
    name: str = connection.ELASTICSEARCH

    @property
    def server(self) -> Server:
        return connection.connect(self.address, self.name)

    def signature(self, bm25: Bm25) -> str:
        """Name the server's version, where it says: its Lucene computes the scores."""
        return f"{self.server.release}|len:lucene"

    def refusal(self, bm25: Bm25) -> str | None:
        return LUCENE_ONLY.format(self.name) if bm25.lengths == "exact" else None

    def load(self, folder: Path, rows: Iterator[Terms], bm25: Bm25, key: IndexKey) -> int:
        """Load the documents under the key's name, unless that index is there already; publish it at the end."""
        server = self.server
        name = key.name(f"{indexes.PREFIX}{key.signature.split('|')[0]}")
        held = indexes.create(server, name, key, mappings.body_of(bm25, server))
        if held.published:
            documents = sum(1 for _ in rows)
        else:
            documents = bulk.load(
                server, held.index, (mappings.source(row, bm25, terms) for row, terms in enumerate(rows))
            )
            indexes.publish(server, held)
        pointer = {"name": name, "uuid": held.uuid, "documents": documents}
        (folder / _POINTER).write_bytes(orjson.dumps(pointer))
        size: int | None = server.ask(
            "GET",
            f"/{held.index}/_stats/store",
            allow=(403,),
            read=lambda sizes: int(sizes["_all"]["primaries"]["store"]["size_in_bytes"]),
        )
        return size or 0

    def is_loaded(self, folder: Path) -> bool:
        try:
            pointer = _pointer(folder)
            name, uuid = pointer["name"], pointer["uuid"]
        except (OSError, ValueError, KeyError):
            return False
        held = indexes.find(self.server, name)
        return held is not None and held.published and held.uuid == uuid

    def open(self, folder: Path, bm25: Bm25) -> ElasticSearcher:
        """Open the index. Raises BackendError where it is gone or has lost documents."""
        server, pointer = self.server, _pointer(folder)
        name = pointer["name"]
        if not self.is_loaded(folder):
            raise BackendError(f"{server.address} no longer has the index {name}. Build it again.")
        indexes.check_count(server, name, pointer["documents"])
        return ElasticSearcher(server=server, index=name, bm25=bm25)


def opensearch(address: str = "") -> ElasticEngine:
    """Make the engine of an OpenSearch server, which takes the same requests."""
    return ElasticEngine(address=address, name=connection.OPENSEARCH)


def _pointer(folder: Path) -> dict[str, Any]:
    pointer: dict[str, Any] = orjson.loads((folder / _POINTER).read_bytes())
    return pointer


class TooManyTerms(BackendError):
    """A query has more clauses than the server takes."""


@dataclass(frozen=True, kw_only=True)
class ElasticSearcher:
    """An index on a server, searched by its alias."""

    server: Server
    index: str
    bm25: Bm25

    def search(self, queries: Sequence[Sequence[str]], k: int) -> list[Hits]:
        """Every query is answered by all shards in time, or BackendError is raised."""
        if k > MAX_WINDOW:
            raise BadInput(f"A server returns at most {MAX_WINDOW:,} hits per query, not {k:,}. Lower -k.")
        bodies = [{**self._build_query(terms), **SHAPE, "size": k} for terms in queries]
        try:
            return answers(
                self.server, self.index, bodies, max(1, min(_QUERIES_PER_REQUEST, _MAX_HITS_PER_REQUEST // k))
            )
        except TooManyTerms:
            if len(queries) == 1:
                return [self._search_in_parts(queries[0], k)]
            return [hits for terms in queries for hits in self.search([terms], k)]

    def _search_in_parts(self, terms: Sequence[str], k: int) -> Hits:
        """Search for parts of a query with more terms than the server takes at once, and add their scores up here.

        Exact, since every document of every part is fetched; slow, and hardly ever needed.
        """
        ordered = sorted(terms)
        parts = [ordered[start : start + _TERMS_PER_PART] for start in range(0, len(ordered), _TERMS_PER_PART)]
        tie = self.bm25.tie_breaker if self.bm25.fields == "best_fields" else 1.0
        total: dict[int, float] = defaultdict(float)
        for fields, weight in self.bm25.parts:
            by_row: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
            for number, (name, factor) in enumerate(fields.items()):
                for part in parts:
                    for rows, scores in self._fetch_all(name, part):
                        for row, score in zip(rows, scores, strict=True):
                            by_row[row][number] += factor * score
            for row, scored in by_row.items():
                total[row] += weight * (max(scored) + tie * (sum(scored) - max(scored)))
        best = heapq.nsmallest(k, total.items(), key=lambda hit: (-hit[1], hit[0]))
        return [row for row, _ in best], [float(score) for _, score in best]

    def _fetch_all(self, field: str, terms: Sequence[str]) -> Iterator[Hits]:
        """Fetch all documents that hold the terms in a field, a page at a time."""
        query = {"match": {field: {"query": _line(terms)}}}
        body: dict[str, Any] = {"query": query, **SHAPE, "size": _HITS_PER_PAGE}
        while True:
            rows, scores = answers(self.server, self.index, [body], 1)[0]
            yield rows, scores
            if len(rows) < _HITS_PER_PAGE:
                return
            body["search_after"] = [scores[-1], rows[-1]]

    def _build_query(self, terms: Sequence[str]) -> dict[str, Any]:
        parts = [self._build_part(_line(terms), fields, weight) for fields, weight in self.bm25.parts]
        return {"query": parts[0] if len(parts) == 1 else {"bool": {"should": parts}}}

    def _build_part(self, line: str, factors: Mapping[str, float], weight: float) -> dict[str, Any]:
        query: dict[str, Any] = {"query": line, **({} if weight == 1 else {"boost": weight})}
        if self.bm25.fields == "flat":
            return {"match": dict.fromkeys(factors, query)}
        fields = [f"{name}^{factor:g}" if self.bm25.weights else name for name, factor in factors.items()]
        query |= {"fields": fields, "type": _TYPES[self.bm25.fields]}
        if self.bm25.fields == "best_fields":
            query["tie_breaker"] = self.bm25.tie_breaker
        return {"multi_match": query}


def _line(terms: Sequence[str]) -> str:
    return " ".join([term[:MAX_TERM_CHARS] for term in terms])


SHAPE: Mapping[str, Any] = {
    "sort": [{"_score": "desc"}, {ROW: "asc"}],
    "track_total_hits": False,
    "_source": False,
    "stored_fields": "_none_",
}
"""Equal scores come by row; nothing but score and row is sent for a hit, both in its sort values."""


def answers(server: Server, index: str, bodies: Sequence[Mapping[str, Any]], batch: int) -> list[Hits]:
    """Search by msearch: the hits of each search, in order, from whole answers only.

    A search that failed for lack of a node or of time is repeated. Raises BackendError where that does not help.
    """
    hits: dict[int, Hits] = {}

    def ask_missing() -> None:
        missing = [number for number in range(len(bodies)) if number not in hits]
        trouble: BackendError | None = None
        for start in range(0, len(missing), batch):
            numbers = missing[start : start + batch]
            responses = _msearch(server, index, [bodies[number] for number in numbers])
            for number, answer in zip(numbers, responses, strict=True):
                if not isinstance(answer, BackendError):
                    hits[number] = answer
                elif isinstance(answer, Unavailable):
                    trouble = trouble or answer
                else:
                    raise answer
        if trouble is not None:
            raise trouble

    connection.retry(ask_missing)
    return [hits[number] for number in range(len(bodies))]


def _msearch(server: Server, index: str, bodies: Sequence[Mapping[str, Any]]) -> list[Hits | BackendError]:
    """Send the searches in one request: the hits of each, or why its answer is incomplete."""
    header = orjson.dumps(
        {"index": index, "search_type": "dfs_query_then_fetch", "allow_partial_search_results": False}
    )
    lines = b"".join(header + b"\n" + orjson.dumps(body) + b"\n" for body in bodies)

    def read(answer: Any) -> list[Hits | BackendError]:
        results = [_find_trouble(server, response) or _read_hits(response) for response in answer["responses"]]
        if len(results) != len(bodies):
            raise ValueError(f"{len(results)} answers to {len(bodies)} searches")
        return results

    responses: list[Hits | BackendError] = server.ask(
        "POST", f"/_msearch?filter_path={_WANTED}", lines, content="ndjson", read=read
    )
    return responses


def _read_hits(answer: Mapping[str, Any]) -> Hits:
    """Read the rows and scores of an answer whose hits were sorted by score and row."""
    pairs = [hit["sort"] for hit in answer.get("hits", {}).get("hits", ())]
    rows, scores = [row for _, row in pairs], [float(score) for score, _ in pairs]
    if not all(type(row) is int and row >= 0 for row in rows) or not all(map(math.isfinite, scores)):
        raise ValueError("a hit without a row or a score")
    return rows, scores


def _find_trouble(server: Server, answer: Mapping[str, Any]) -> BackendError | None:
    """Say why the answer is incomplete; None where it is complete."""
    reason = connection.reason_of(answer)
    if "error" in answer:
        if "maxClauseCount" in reason or "too many clauses" in reason:
            return TooManyTerms(
                f"{server.address} refuses even {_TERMS_PER_PART} terms at once ({reason}). "
                "Raise indices.query.bool.max_clause_count on its nodes."
            )
        kind = Unavailable if connection.is_passing(answer.get("status"), answer) else BackendError
        return kind(f"{server.address} could not search ({answer.get('status')}): {reason}")
    shards = {name: int(count) for name, count in answer.get("_shards", {}).items()}
    if answer.get("timed_out") or shards.get("failed") or shards.get("successful") != shards.get("total"):
        return Unavailable(
            f"{server.address} answered from {shards.get('successful')} of {shards.get('total')} shards"
            f"{', out of time' if answer.get('timed_out') else ''}; such an answer is not counted."
        )
    return None
