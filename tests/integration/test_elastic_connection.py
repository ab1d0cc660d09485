"""What stands at an address, and the one line for each thing that it may be instead of a working server."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import local_server
import orjson
import pytest
from tls_proxy import tls_proxy

from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval.lexical.elastic import connection
from rusbeir.retrieval.lexical.elastic.doctor import examine

KEY = "c2VjcmV0LWlkOnNlY3JldC1rZXk="
CREDENTIALS = ("ES_API_KEY", "ES_USER", "ES_PASSWORD", "ES_CA_CERTS")


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch):
    for name in CREDENTIALS:
        monkeypatch.delenv(name, raising=False)


@contextlib.contextmanager
def answering(status: int, document: object, product: str = "Elasticsearch") -> Iterator[str]:
    """A server that answers everything so: for what cannot be run here. Yields its address."""

    class Answering(local_server.Handler):
        def do_GET(self) -> None:
            self.body()
            headers = {"Content-Type": "application/json"} | ({"X-Elastic-Product": product} if product else {})
            self.answer(status, headers, orjson.dumps(document))

        do_POST = do_GET

    with local_server.serving(Answering) as url:
        yield url


SEVEN = {"version": {"number": "7.17.28", "build_flavor": "default"}, "tagline": "You Know, for Search"}
ANSWERS = [
    # status, document, product, parts of the line
    (200, SEVEN, "Elasticsearch", ["is Elasticsearch 7.17.28", "8.x and 9.x", "Upgrade"]),
    (200, {"version": {"number": "2.19.0", "distribution": "opensearch"}}, "", ["is not Elasticsearch"]),
    (200, {"hello": "world"}, "", ["is not Elasticsearch", "Check the URL"]),
    (401, {"error": {"reason": "missing authentication"}}, "Elasticsearch", ["(401)", "set ES_API_KEY"]),
    (429, {"error": {"reason": "circuit breaker"}}, "Elasticsearch", ["too busy", "circuit breaker"]),
]


@pytest.mark.parametrize(("status", "document", "product", "parts"), ANSWERS)
def test_what_may_answer(status, document, product, parts):
    with answering(status, document, product) as url, pytest.raises(BackendError) as error:
        _ = connection.connect(url).info
    assert all(part in str(error.value) for part in parts), str(error.value)
    assert "\n" not in str(error.value)


ADDRESSES = [
    ("127.0.0.1:9200", "is not the URL of a server"),
    ("ftp://127.0.0.1", "is not the URL of a server"),
    ("http://elastic:changeme@127.0.0.1:9200", "holds credentials"),
    ("http://127.0.0.1:9200,", "is not the URL of a server"),
]


@pytest.mark.parametrize(("address", "part"), ADDRESSES)
def test_addresses(address, part):
    with pytest.raises(BadInput, match=part) as error:
        connection.connect(address)
    assert "changeme" not in str(error.value)


def test_where_nothing_answers(monkeypatch):
    monkeypatch.setenv("RUSBEIR_ES_URL", "http://127.0.0.1:9")
    with pytest.raises(BackendError, match=r"No Elasticsearch answers at http://127\.0\.0\.1:9 .*docker compose up -d"):
        _ = connection.connect().info


TROUBLE = [
    # key, expired, CA given, scheme, parts
    ("d3Jvbmc6d3Jvbmc=", False, True, "https", ["(401)", "ES_API_KEY is wrong or expired"]),
    ("", False, True, "https", ["(401)", "set ES_API_KEY"]),
    (KEY, True, True, "https", ["certificate has expired", "Renew it"]),
    (KEY, False, False, "https", ["CA unknown here", "ES_CA_CERTS"]),
    (KEY, False, True, "http", ["No Elasticsearch answers", "https://"]),
]


@pytest.mark.parametrize(("key", "expired", "ca", "scheme", "parts"), TROUBLE)
def test_a_secured_server(elasticsearch, tmp_path, monkeypatch, key, expired, ca, scheme, parts):
    with tls_proxy(elasticsearch.url, tmp_path, key=KEY, expired=expired) as url:
        if key:
            monkeypatch.setenv("ES_API_KEY", key)
        if ca:
            monkeypatch.setenv("ES_CA_CERTS", str(tmp_path / "ca.pem"))
        with pytest.raises(BackendError) as error:
            _ = connection.connect(url.replace("https", scheme)).info
    assert all(part in str(error.value) for part in parts), str(error.value)


def test_tls_to_a_server_that_speaks_none(elasticsearch):
    with pytest.raises(BackendError, match=r"speaks plain HTTP\. Write http://"):
        _ = connection.connect(elasticsearch.url.replace("http", "https")).info


LOGGED = """
import logging
logging.basicConfig(level=logging.DEBUG)
from elastic_transport import debug_logging
debug_logging()
from rusbeir.experiment import bench
row = bench("mini/ru", engine="elasticsearch", force=True)
print(row["measures"]["nDCG@10"] > 0.5)
"""


def test_a_key_lets_in_and_is_never_logged(elasticsearch, tmp_path, monkeypatch):
    with tls_proxy(elasticsearch.url, tmp_path, key=KEY) as url:
        monkeypatch.setenv("ES_API_KEY", KEY)
        monkeypatch.setenv("ES_CA_CERTS", str(tmp_path / "ca.pem"))
        monkeypatch.setenv("RUSBEIR_ES_URL", url)
        monkeypatch.setenv("RUSBEIR_CACHE", str(tmp_path / "cache"))
        done = subprocess.run([sys.executable, "-c", LOGGED], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("True\n"), done.stderr[-2000:]
    assert "_bulk" in done.stderr, "the log does tell of requests"
    assert KEY not in done.stderr + done.stdout
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written
    assert not any(KEY.encode() in path.read_bytes() for path in written)


def test_the_root_may_be_closed(elasticsearch, tmp_path, monkeypatch):
    monkeypatch.setenv("ES_API_KEY", KEY)
    monkeypatch.setenv("ES_CA_CERTS", str(tmp_path / "ca.pem"))
    with tls_proxy(elasticsearch.url, tmp_path, key=KEY, closed="/") as url:
        server = connection.connect(url)
        assert server.version == ""
        found = {finding.what: finding for finding in examine(server)}
    assert found["reachable"].status == "good"
    assert found["version"].status == "unknown"
    assert found["health"].status == "good"


def test_doctor_finds_a_good_server(elasticsearch):
    found = {finding.what: finding for finding in examine(connection.connect(elasticsearch.url))}
    assert {"reachable", "version", "health", "disk", "analyzers"} <= found.keys()
    assert found["version"].found == "server 8.18.0, client 8.19.3"
    assert found["analyzers"].status == "good"
    assert all(finding.remedy for finding in found.values() if finding.status != "good")


FLAWS = [
    # what of the answer, the finding that it spoils, its status, part of the remedy
    ({"status": "red", "number_of_data_nodes": 2}, "health", "bad", "missing nodes"),
    ({"status": "yellow", "number_of_data_nodes": 2}, "health", "warning", "replicas"),
    ({"license": {"type": "platinum", "status": "expired"}}, "licence", "warning", "Renew"),
    ({"index": {"rusbeir-*": {"manage": False, "read": True}}}, "rights", "bad", "manage"),
    ({"nodes": {"a": {"name": "a", "fs": {"total": {"available_in_bytes": 3, "total_in_bytes": 100}}}}}, "disk", "bad",
     "flood-stage"),
    ({"nodes": {"a": {"name": "a", "fs": {"total": {"available_in_bytes": 12, "total_in_bytes": 100}}}}}, "disk",
     "warning", "from 85 % on"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "what", "status", "remedy"), FLAWS)
def test_doctor_finds_flaws(answer, what, status, remedy):
    """One answer for every page stands for clusters that cannot be brought into that state here."""
    healthy = {
        "version": {"number": "8.18.0"},
        "status": "green",
        "number_of_data_nodes": 1,
        "license": {"type": "basic", "status": "active"},
        "nodes": {},
        "index": {"rusbeir-*": {"manage": True}},
    }
    with answering(200, healthy | answer) as url:
        found = {finding.what: finding for finding in examine(connection.connect(url))}
    assert found[what].status == status
    assert remedy in found[what].remedy


def test_doctor_where_nothing_answers():
    (finding,) = examine(connection.connect("http://127.0.0.1:9"))
    assert (finding.what, finding.status) == ("reachable", "bad")
    assert "--es-url" in finding.remedy


def test_a_ca_file_that_is_not_there(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("ES_CA_CERTS", str(tmp_path / "none.pem"))
    with pytest.raises(BadInput, match=r"ES_CA_CERTS names .*none\.pem"):
        connection.connect("https://127.0.0.1:9200")
