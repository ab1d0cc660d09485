"""An Elasticsearch whose answers have another shape than they should: one line, whatever the place and the value."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
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
from rusbeir.retrieval.elasticsearch.server_index import ServerSystem
from rusbeir.retrieval.elasticsearch.template import read_template
from rusbeir.retrieval.elasticsearch.vectors import VectorSearcher
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.lexical.engines import IndexKey
from tests.support import shop

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


def opensearch_of(version: str) -> Server:
    """An OpenSearch whose root may not be read; its nodes say that version, or may not be read where it is empty."""

    def perform(method: str, path: str, **_: Any) -> tuple[ApiResponseMeta, Any]:
        known = path.startswith("/_nodes/_local?") and version
        body = {"nodes": {"n": {"version": version}}} if known else {"error": {"reason": "no permissions"}}
        return ApiResponseMeta(200 if known else 403, "1.1", HttpHeaders(), 0.1, NodeConfig("http", "x", 80)), body

    transport = SimpleNamespace(perform_request=perform)
    return Server(urls=("http://x",), transport=transport, credentials=read_credentials())


@pytest.mark.parametrize(("version", "similarity"), [("2.19.0", "BM25"), ("3.1.0", "LegacyBM25")])
def test_a_version_that_the_root_may_not_say_is_that_of_the_nodes(version, similarity):
    server = opensearch_of(version)
    assert server.release == f"opensearch-{version[:-2]}"
    assert mappings.body_of(Bm25(), server)["settings"]["similarity"]["bm25"]["type"] == similarity


def test_an_opensearch_of_unknown_version_gets_no_index():
    server = opensearch_of("")
    assert server.release == "opensearch"
    with pytest.raises(BackendError, match="does not say its version, and BM25 has another factor in OpenSearch 2"):
        mappings.body_of(Bm25(), server)


def own_index(tmp_path: Path, reply: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> ServerSystem:
    """A system that searches an index of a user on a server with those replies."""
    monkeypatch.setattr(connection, "connect", lambda _: server_of(reply))
    template = read_template(shop.write_search(tmp_path))
    return ServerSystem(name="server", address="", index="products", template=template)


def hits_of(*scores: float | None) -> dict[str, Any]:
    hits = [{"_id": f"d{row}", "_score": score} for row, score in enumerate(scores)]
    return {"responses": [{"status": 200, "timed_out": False, "_shards": WHOLE, "hits": {"hits": hits}}]}


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ((3.5, 2.0, 2.0), [3.5, 2.0, 2.0]),
        ((None, None), [2.0, 1.0]),
        ((1.0, 9.0, 2.0), [3.0, 2.0, 1.0]),  # sorted by a field, then by the score
        ((5.0, None, 1.0), [3.0, 2.0, 1.0]),
    ],
)
def test_the_order_of_an_own_index_is_the_servers(tmp_path, monkeypatch, scores, expected):
    system = own_index(tmp_path, lambda _: hits_of(*scores), monkeypatch)
    hits = system.search({"q": "a"}, 3)["q"]
    assert list(hits.items()) == [(f"d{row}", score) for row, score in enumerate(expected)]


def test_an_own_index_whose_node_is_lost_is_searched_again(tmp_path, monkeypatch):
    error = {"type": "x", "reason": "y", "root_cause": [{"type": "node_disconnected_exception", "reason": "[n2]"}]}
    replies = iter([{"responses": [{"status": 500, "error": error}]}, hits_of(1.0)])
    system = own_index(tmp_path, lambda _: next(replies), monkeypatch)
    assert system.search({"q": "a"}, 3) == {"q": {"d0": 1.0}}


def test_a_wait_is_announced(caplog, monkeypatch):
    monkeypatch.setattr(connection, "RETRY_SECONDS", 0)

    def fail() -> None:
        raise connection.Unavailable("http://x is too busy.")

    with pytest.raises(connection.Unavailable):
        connection.retry(fail)
    assert [record.getMessage() for record in caplog.records] == ["http://x is too busy. Asking again for up to 0 s."]
