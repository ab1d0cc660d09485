"""An Elasticsearch whose answers have another shape than they should: one line, whatever the place and the value."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from elastic_transport import ApiResponseMeta, HttpHeaders, NodeConfig

from rusbeir.errors import BackendError, UnknownName
from rusbeir.retrieval.elasticsearch import bulk, connection, indexes, mappings
from rusbeir.retrieval.elasticsearch.connection import Server
from rusbeir.retrieval.elasticsearch.credentials import read_credentials
from rusbeir.retrieval.elasticsearch.diagnose import examine
from rusbeir.retrieval.elasticsearch.engine import ElasticSearcher
from rusbeir.retrieval.elasticsearch.vectors import VectorSearcher
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.lexical.engines import IndexKey

KEY = IndexKey(signature="bm25|x", fingerprint="f")
NAME = KEY.name("rusbeir-bm25")
INDEX = indexes.index_of(NAME)
META = {"signature": KEY.signature, "fingerprint": KEY.fingerprint}
WHOLE = {"total": 1, "successful": 1, "failed": 0}
SEARCHED = {"status": 200, "timed_out": False, "_shards": WHOLE, "hits": {"hits": [{"sort": [0.9, 0]}]}}
PRIMARIES = {"primaries": {"docs": {"count": 2}, "store": {"size_in_bytes": 900}}}
FULL = {"total_in_bytes": 100, "available_in_bytes": 8}

RIGHT: dict[str, Any] = {
    # part of the path -> what Elasticsearch answers
    "/_license": {"license": {"type": "basic", "status": "active"}},
    "/_cluster/health": {"status": "green", "number_of_data_nodes": 1},
    "/_nodes/stats/fs": {"nodes": {"n": {"name": "n", "fs": {"total": FULL}}}},
    "/_cluster/settings": {"defaults": {"cluster.routing.allocation.disk.watermark.low": "85%"}},
    "/_has_privileges": {"index": {"rusbeir-*": {"manage": True, "read": False}}},
    "/_bulk": {"items": [{"create": {"status": 201}}, {"create": {"status": 409, "error": {"type": "exists"}}}]},
    "/_count": {"count": 2, "_shards": WHOLE},
    "/_stats": {"indices": {INDEX: PRIMARIES}, "_all": PRIMARIES},
    "/_search": {"aggregations": {"a": {"value": 1.0, "buckets": [{"key": 0.0, "doc_count": 2}]}}},
    "/_msearch": {"responses": [SEARCHED]},
    "/rusbeir-": {
        INDEX: {
            "aliases": {NAME: {}},
            "mappings": {"_meta": {"rusbeir": META}},
            "settings": {"index": {"uuid": "u", "verified_before_close": "true"}},
        }
    },
    "/": {"version": {"number": "8.18.0"}},
}
SOURCES = [("d0", {"row": 0}), ("d1", {"row": 1})]
WORK: dict[str, Callable[[Server], object]] = {
    "version": lambda server: server.release,
    "create": lambda server: indexes.create(server, NAME, KEY, mappings.client_body(Bm25())),
    "publish": lambda server: indexes.publish(server, indexes.create(server, NAME, KEY, mappings.client_body(Bm25()))),
    "list": indexes.list_indexes,
    "drop": lambda server: indexes.drop(server, NAME),
    "load": lambda server: bulk.load(server, INDEX, SOURCES),
    "search": lambda server: ElasticSearcher(server=server, index=NAME, bm25=Bm25()).search([["a"]], 3),
    "vectors": lambda server: VectorSearcher(server=server, index=NAME, dim=2).search(np.eye(1, 2), 3),
    "doctor": lambda server: list(examine(server)),
}
ODD = (
    None,
    [],
    {},
    "x",
    "9" * 9_000,
    -1,
    float("nan"),
    float("inf"),
    10**400,
    True,
    [1],
    {"a": 1},
    [[[]]],
    "\x1b[2J\n",
)


def spoilt(document: Any) -> Iterator[Any]:
    """The document with each value in it, and itself, replaced by each odd one, or left out."""
    yield from ODD
    for key in document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ():
        less = copy.copy(document)
        del less[key]
        yield less
        for value in spoilt(document[key]):
            changed = copy.copy(document)
            changed[key] = value
            yield changed


def answer(path: str) -> Any:
    return next(body for part, body in RIGHT.items() if part in path)


def server_of(reply: Callable[[str], Any]) -> Server:
    """A server that gives the reply to a path, which may come with a status other than 200."""

    def perform(method: str, path: str, **_: Any) -> tuple[ApiResponseMeta, Any]:
        body = reply(path)
        status, body = body if isinstance(body, tuple) else (200, body)
        headers = HttpHeaders({"x-elastic-product": "Elasticsearch"})
        return ApiResponseMeta(status, "1.1", headers, 0.1, NodeConfig("http", "x", 80)), body

    transport = SimpleNamespace(perform_request=perform)
    return Server(urls=("http://x",), transport=transport, credentials=read_credentials())


@pytest.mark.parametrize("work", WORK)
def test_right_answers_are_read(work):
    WORK[work](server_of(answer))


@pytest.mark.parametrize("work", WORK)
def test_any_other_answer_is_one_line(work, monkeypatch):
    monkeypatch.setattr(connection, "RETRY_SECONDS", 0)
    monkeypatch.setattr(connection.logger, "disabled", True)
    lines = []
    for right in RIGHT.values():
        for wrong in spoilt(right):

            def reply(path: str, wrong: Any = wrong, right: Any = right) -> Any:
                body = answer(path)
                return wrong if body is right else body

            try:
                lines.append("")
                WORK[work](server_of(reply))
            except (BackendError, UnknownName) as error:
                lines[-1] = str(error)
    assert len(lines) > 1_000
    assert any(lines) or work == "doctor"
    assert [line for line in lines if not line.isprintable() or len(line) > 1_000] == []


def test_a_full_disk_is_named_before_anything_is_sent():
    """A new index of which no node takes a shard; the request that waits for one ends with 408."""
    paths = []

    def reply(path: str) -> Any:
        paths.append(path)
        return (408, {"status": "red", "timed_out": True}) if "wait_for_status" in path else answer(path)

    with pytest.raises(BackendError, match=rf"no room for the index {INDEX}: n: 0.0 GB free, 92% used. Free space"):
        bulk.load(server_of(reply), INDEX, SOURCES)
    assert not any("_bulk" in path for path in paths)


@pytest.mark.parametrize("part", ["root_cause", "caused_by"])
def test_a_search_whose_node_is_lost_is_asked_again(part):
    """As OpenSearch answers, with 500."""
    cause = {"type": "node_disconnected_exception", "reason": "[n2] disconnected"}
    error = {"type": "search_phase_execution_exception", "reason": "Partial shards failure"}
    error |= {part: cause if part == "caused_by" else [cause]}
    replies = iter([{"status": 500, "error": error}, SEARCHED])
    server = server_of(lambda path: {"responses": [next(replies)]})
    ((rows, scores),) = ElasticSearcher(server=server, index=NAME, bm25=Bm25()).search([["a"]], 3)
    assert (rows, scores) == ([0], [0.9])


def test_a_wait_is_announced(caplog, monkeypatch):
    monkeypatch.setattr(connection, "RETRY_SECONDS", 0)

    def fail() -> None:
        raise connection.Unavailable("http://x is too busy.")

    with pytest.raises(connection.Unavailable):
        connection.retry(fail)
    assert [record.getMessage() for record in caplog.records] == ["http://x is too busy. Asking again for up to 0 s."]
