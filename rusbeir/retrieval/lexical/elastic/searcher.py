"""Queries against an index of ours on a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.lexical.elastic import connection
from rusbeir.retrieval.lexical.elastic.bodies import LONGEST_TERM_CHARS, ROW, WINDOW
from rusbeir.retrieval.lexical.elastic.connection import Server, Unavailable
from rusbeir.retrieval.lexical.engines import Hits

_HITS_A_REQUEST = 50_000
_QUERIES_A_REQUEST = 128
_WANTED = (
    "responses.status,responses.error,responses.timed_out,responses._shards.failed,"
    "responses._shards.total,responses._shards.successful,responses.hits.hits.sort"
)
_TYPES = {"best_fields": "best_fields", "sum": "most_fields"}


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
        found = answers(self.server, self.index, bodies, max(1, min(_QUERIES_A_REQUEST, _HITS_A_REQUEST // k)))
        return [hits_of(answer) for answer in found]

    def _query(self, terms: Sequence[str]) -> dict[str, Any]:
        line = " ".join([term[:LONGEST_TERM_CHARS] for term in terms])
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
        if "too_many" in connection.kind_of(answer) or "maxClauseCount" in reason:
            return BackendError(
                f"{server.address} refuses a query of so many terms ({reason}). "
                "Raise indices.query.bool.max_clause_count on its nodes, or give them more memory."
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
