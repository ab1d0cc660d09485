"""Queries against an index of ours on a server."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval.elasticsearch import connection
from rusbeir.retrieval.elasticsearch.connection import Server, Unavailable
from rusbeir.retrieval.elasticsearch.mappings import MAX_TERM_CHARS, ROW, WINDOW
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.lexical.engines import Hits

_HITS_A_REQUEST = 50_000
_QUERIES_A_REQUEST = 128
_HITS_A_PAGE = 10_000
_TERMS_A_PART = 1_000
"""Servers take at least 1,024 clauses unless somebody has lowered that; those of 512 MB take 8,192."""
_WANTED = (
    "responses.status,responses.error,responses.timed_out,responses._shards.failed,"
    "responses._shards.total,responses._shards.successful,responses.hits.hits.sort"
)
_TYPES = {"best_fields": "best_fields", "sum": "most_fields"}


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
        if k > WINDOW:
            raise BadInput(f"An index on Elasticsearch gives at most {WINDOW:,} hits a query, not {k:,}. Lower -k.")
        bodies = [{**self._query(terms), **SHAPE, "size": k} for terms in queries]
        try:
            found = answers(self.server, self.index, bodies, max(1, min(_QUERIES_A_REQUEST, _HITS_A_REQUEST // k)))
        except TooManyTerms:
            if len(queries) == 1:
                return [self._in_parts(queries[0], k)]
            return [hits for terms in queries for hits in self.search([terms], k)]
        return [hits_of(answer) for answer in found]

    def _in_parts(self, terms: Sequence[str], k: int) -> Hits:
        """The hits of a query with more terms than the server takes at once: asked in parts and added up here.

        Exact, since every document of every part is fetched; slow, and hardly ever needed.
        """
        ordered = sorted(terms)
        parts = [ordered[start : start + _TERMS_A_PART] for start in range(0, len(ordered), _TERMS_A_PART)]
        by_field: list[dict[int, float]] = [defaultdict(float) for _ in self.bm25.field_names]
        for name, sums in zip(self.bm25.field_names, by_field, strict=True):
            for part in parts:
                for rows, scores in self._every(name, part):
                    for row, score in zip(rows, scores, strict=True):
                        sums[row] += score
        total = dict(by_field[0])
        tie = self.bm25.tie_breaker if self.bm25.fields == "best_fields" else 1.0
        for other in by_field[1:]:
            for row in total.keys() | other.keys():
                scored = sorted((total.get(row, 0.0), other.get(row, 0.0)))
                total[row] = scored[1] + tie * scored[0]
        best = heapq.nsmallest(k, total.items(), key=lambda hit: (-hit[1], hit[0]))
        return [row for row, _ in best], [float(score) for _, score in best]

    def _every(self, field: str, terms: Sequence[str]) -> Iterator[Hits]:
        """All documents of the terms in one field, a page at a time."""
        query = {"match": {field: {"query": _line(terms)}}}
        body: dict[str, Any] = {"query": query, **SHAPE, "size": _HITS_A_PAGE}
        while True:
            rows, scores = hits_of(answers(self.server, self.index, [body], 1)[0])
            yield rows, scores
            if len(rows) < _HITS_A_PAGE:
                return
            body["search_after"] = [scores[-1], rows[-1]]

    def _query(self, terms: Sequence[str]) -> dict[str, Any]:
        line = _line(terms)
        if self.bm25.fields == "flat":
            return {"query": {"match": {"text": {"query": line}}}}
        query: dict[str, Any] = {
            "query": line,
            "fields": list(self.bm25.field_names),
            "type": _TYPES[self.bm25.fields],
        }
        if self.bm25.fields == "best_fields":
            query["tie_breaker"] = self.bm25.tie_breaker
        return {"query": {"multi_match": query}}


def _line(terms: Sequence[str]) -> str:
    return " ".join([term[:MAX_TERM_CHARS] for term in terms])


SHAPE: Mapping[str, Any] = {
    "sort": [{"_score": "desc"}, {ROW: "asc"}],
    "track_total_hits": False,
    "_source": False,
    "stored_fields": "_none_",
}
"""Equal scores come by row; of a hit nothing but score and row is sent, both in its sort values."""


def answers(server: Server, index: str, bodies: Sequence[Mapping[str, Any]], batch: int) -> list[dict[str, Any]]:
    """The answer to each search, in order, by msearch; only whole ones.

    A search that failed for want of a node or of time is asked again; BackendError where that does not help.
    """
    found: dict[int, dict[str, Any]] = {}

    def ask_missing() -> None:
        missing = [place for place in range(len(bodies)) if place not in found]
        trouble: BackendError | None = None
        for start in range(0, len(missing), batch):
            places = missing[start : start + batch]
            for place, answer in zip(places, _msearch(server, index, [bodies[p] for p in places]), strict=True):
                trouble_here = _trouble(server, answer)
                if trouble_here is None:
                    found[place] = answer
                elif not isinstance(trouble_here, Unavailable):
                    raise trouble_here
                trouble = trouble or trouble_here
        if trouble is not None:
            raise trouble

    connection.patiently(ask_missing)
    return [found[place] for place in range(len(bodies))]


def hits_of(answer: Mapping[str, Any]) -> Hits:
    """Rows and scores of an answer whose hits were sorted by score and row."""
    pairs = [hit["sort"] for hit in answer.get("hits", {}).get("hits", ())]
    return [row for _, row in pairs], [float(score) for score, _ in pairs]


def _msearch(server: Server, index: str, bodies: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    header = orjson.dumps(
        {"index": index, "search_type": "dfs_query_then_fetch", "allow_partial_search_results": False}
    )
    lines = b"".join(header + b"\n" + orjson.dumps(body) + b"\n" for body in bodies)
    answer = server.ask("POST", f"/_msearch?filter_path={_WANTED}", lines, content="ndjson")
    responses: list[dict[str, Any]] = answer["responses"]
    if len(responses) != len(bodies):
        raise BackendError(f"{server.address} answered {len(responses)} of {len(bodies)} searches.")
    return responses


def _trouble(server: Server, answer: Mapping[str, Any]) -> BackendError | None:
    """Why this is no whole answer; None where it is one."""
    reason = connection.reason_of(answer)
    if "error" in answer:
        if "maxClauseCount" in reason or "too many clauses" in reason:
            return TooManyTerms(
                f"{server.address} refuses even {_TERMS_A_PART} terms at once ({reason}). "
                "Raise indices.query.bool.max_clause_count on its nodes."
            )
        passing = answer.get("status") in connection.BUSY
        kind = Unavailable if passing else BackendError
        return kind(f"{server.address} could not search ({answer.get('status')}): {reason}")
    shards = answer.get("_shards", {})
    if answer.get("timed_out") or shards.get("failed") or shards.get("successful") != shards.get("total"):
        return Unavailable(
            f"{server.address} answered from {shards.get('successful')} of {shards.get('total')} shards"
            f"{', out of time' if answer.get('timed_out') else ''}; such an answer is not counted."
        )
    return None
