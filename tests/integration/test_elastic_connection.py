"""What stands at an address, and the one line for each thing that it may be instead of a working server."""

from __future__ import annotations

import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval.elasticsearch import connection
from rusbeir.retrieval.elasticsearch.diagnose import Diagnosis, examine
from tests.support.elastic_answers import answering
from tests.support.tls_proxy import tls_proxy

KEY = "c2VjcmV0LWlkOnNlY3JldC1rZXk="
AWS = {"ES_AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}
CREDENTIALS = ("ES_API_KEY", "ES_USER", "ES_PASSWORD", "ES_CA_CERTS", "ES_AWS_REGION")


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch):
    for name in CREDENTIALS:
        monkeypatch.delenv(name, raising=False)


SEVEN = {"version": {"number": "7.17.28", "build_flavor": "default"}, "tagline": "You Know, for Search"}
OLD = {"version": {"number": "1.3.20", "distribution": "opensearch"}}
ANSWERS = [
    # status, document, product that the header names, parts of the line
    (200, SEVEN, "Elasticsearch", ["is Elasticsearch 7.17.28", "8.x and 9.x", "Upgrade"]),
    (200, OLD, "", ["is OpenSearch 1.3.20", "2.x and 3.x", "Upgrade"]),
    (200, {"hello": "world"}, "", ["is not Elasticsearch, nor OpenSearch", "Check the URL"]),
    (200, SEVEN, "", ["is not Elasticsearch, nor OpenSearch"]),
    (401, {"error": {"reason": "missing authentication"}}, "Elasticsearch", ["(401)", "set ES_API_KEY"]),
    (429, {"error": {"reason": "circuit breaker"}}, "Elasticsearch", ["too busy", "circuit breaker"]),
]


@pytest.mark.parametrize(("status", "document", "product", "parts"), ANSWERS)
def test_what_may_answer(status, document, product, parts):
    with answering(status, document, product) as url, pytest.raises(BackendError) as error:
        _ = connection.connect(url).version
    assert all(part in str(error.value) for part in parts), str(error.value)
    assert "\n" not in str(error.value)


MISTAKEN = [
    # engine, what is there, line
    ("elasticsearch", ({"version": {"number": "3.1.0", "distribution": "opensearch"}}, ""),
     "is OpenSearch, not Elasticsearch. Use engine=opensearch."),
    ("opensearch", ({"version": {"number": "8.18.0"}}, "Elasticsearch"),
     "is Elasticsearch, not OpenSearch. Use engine=elasticsearch."),
]  # fmt: skip


@pytest.mark.parametrize(("engine", "there", "line"), MISTAKEN)
def test_another_product_than_was_asked_for(engine, there, line):
    with answering(200, *there) as url, pytest.raises(BackendError) as error:
        _ = connection.connect(url, engine).release
    assert str(error.value) == f"{url} {line}"


@pytest.mark.parametrize(
    ("variables", "quoted"),
    [
        ({"ES_API_KEY": KEY}, KEY),
        ({"ES_USER": "elastic", "ES_PASSWORD": "changeme"}, "ZWxhc3RpYzpjaGFuZ2VtZQ=="),
        ({"ES_USER": "elastic", "ES_PASSWORD": "changeme"}, "changeme"),
        ({**AWS, "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI"}, "wJalrXUtnFEMI"),
        ({**AWS, "AWS_SESSION_TOKEN": "FwoGZXIvYXdz"}, "FwoGZXIvYXdz"),
    ],
)
def test_credentials_that_a_gateway_quotes_are_hidden(variables, quoted, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    document = {"error": {"reason": f"bad header 'Authorization: {quoted}'"}}
    with answering(400, document, "Elasticsearch") as url, pytest.raises(BackendError) as error:
        connection.connect(url).ask("GET", "/x")
    assert "Authorization: [hidden]" in str(error.value)
    assert quoted not in str(error.value)


ADDRESSES = [
    ("127.0.0.1:9200", "is not the URL of a server"),
    ("ftp://127.0.0.1", "is not the URL of a server"),
    ("http://elastic:changeme@127.0.0.1:9200", "holds credentials"),
    ("http://127.0.0.1:9200,", "is not the URL of a server"),
    ("http://127.0.0.1:99999", "is not the URL of a server"),
    ("http://127.0.0.1:abc", "is not the URL of a server"),
    ("http://127.0.0.1:0", "is not the URL of a server"),
    ("http://[::1", "is not the URL of a server"),
    ("http://[::1%25eth0]:9200", "is not the URL of a server"),
    ("http://a b", "is not the URL of a server"),
    ("http://a..b", "is not the URL of a server"),
    ("http://elastic:changeme@127.0.0.1:abc", "holds credentials"),
    ("ftp://elastic:changeme@127.0.0.1", "holds credentials"),
]


@pytest.mark.parametrize(("address", "part"), ADDRESSES)
def test_addresses(address, part):
    with pytest.raises(BadInput, match=part) as error:
        connection.connect(address)
    assert "changeme" not in str(error.value)


ACCEPTED = [
    # as it is written, as it is used
    ("http://[::1]:9", "http://[::1]:9"),
    ("https://[2001:db8::1]/es/", "https://[2001:db8::1]:443/es"),
    ("http://es_1.example.", "http://es_1.example.:80"),
    ("http://127.0.0.1:9201, http://поиск.рф:9202", "http://127.0.0.1:9201,http://поиск.рф:9202"),
]


@pytest.mark.parametrize(("written", "address"), ACCEPTED)
def test_addresses_that_are_accepted(written, address):
    assert connection.connect(written).address == address


def test_ipv6():
    with pytest.raises(BackendError, match=r"No Elasticsearch answers at http://\[::1\]:9 "):
        _ = connection.connect("http://[::1]:9").version


def test_patience_begins_with_the_first_failure(monkeypatch):
    monkeypatch.setattr(connection, "RETRY_SECONDS", 0.2)
    calls = []

    def long_work() -> str:
        calls.append(time.sleep(0.3))
        if len(calls) == 1:
            raise connection.Unavailable("a hiccup at its end")
        return "done"

    assert connection.retry(long_work) == "done"


def test_patience_ends(monkeypatch):
    monkeypatch.setattr(connection, "RETRY_SECONDS", 0.2)

    calls = []

    def work() -> None:
        calls.append("work")
        raise connection.Unavailable("away")

    with pytest.raises(connection.Unavailable, match="away"):
        connection.retry(work)
    assert len(calls) > 1, "not before it was tried again"


def test_where_nothing_answers(monkeypatch):
    monkeypatch.setenv("RUSBEIR_ES_URL", "http://127.0.0.1:9")
    with pytest.raises(BackendError, match=r"No Elasticsearch answers at http://127\.0\.0\.1:9 .*docker compose up -d"):
        _ = connection.connect().version


TROUBLE = [
    # key, expired, CA given, scheme, parts
    ("d3Jvbmc6d3Jvbmc=", False, True, "https", ["(401)", "ES_API_KEY is wrong or expired"]),
    ("", False, True, "https", ["(401)", "set ES_API_KEY"]),
    (KEY, True, True, "https", ["certificate has expired", "Renew it"]),
    (KEY, False, False, "https", ["an unknown CA", "ES_CA_CERTS"]),
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
            _ = connection.connect(url.replace("https", scheme)).version
    assert all(part in str(error.value) for part in parts), str(error.value)


def test_tls_to_a_server_that_speaks_none(elasticsearch):
    with pytest.raises(BackendError, match=r"uses plain HTTP\. Write http://"):
        _ = connection.connect(elasticsearch.url.replace("http", "https")).version


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
        findings = {finding.what: finding for finding in examine(server)}
    assert findings["reachable"].status == "good"
    assert findings["version"].status == "unknown"
    assert findings["health"].status == "good"


def test_doctor_finds_a_good_server(elasticsearch):
    findings = {finding.what: finding for finding in examine(connection.connect(elasticsearch.url))}
    assert {"reachable", "version", "health", "disk", "analyzers"} <= findings.keys()
    assert findings["version"].found == f"Elasticsearch 8.18.0; elastic-transport {version('elastic-transport')}"
    assert findings["analyzers"].status == "good"
    assert all(finding.remedy for finding in findings.values() if finding.status != "good")


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


HEALTHY = {
    "version": {"number": "8.18.0"},
    "status": "green",
    "number_of_data_nodes": 1,
    "license": {"type": "basic", "status": "active"},
    "nodes": {},
    "index": {"rusbeir-*": {"manage": True}},
}


def examined(answer: dict) -> dict[str, Diagnosis]:
    """One answer for every page stands for clusters that cannot be brought into that state here."""
    with answering(200, HEALTHY | answer) as url:
        return {finding.what: finding for finding in examine(connection.connect(url))}


@pytest.mark.parametrize(("answer", "what", "status", "remedy"), FLAWS)
def test_doctor_finds_flaws(answer, what, status, remedy):
    findings = examined(answer)
    assert findings[what].status == status
    assert remedy in findings[what].remedy


GB, DISK = 1024**3, "cluster.routing.allocation.disk."
DEFAULTS = {
    "watermark.low": "85%", "watermark.low.max_headroom": "200GB",
    "watermark.high": "90%", "watermark.high.max_headroom": "150GB",
    "watermark.flood_stage": "95%", "watermark.flood_stage.max_headroom": "100GB",
}  # fmt: skip
ABSOLUTE = {"watermark.low": "5gb", "watermark.high": "3gb", "watermark.flood_stage": "1gb"}
ABSOLUTE |= dict.fromkeys([f"{name}.max_headroom" for name in ABSOLUTE], "-1")
WATERMARKS = [
    # defaults, persistent, size and free GB, status, part of the remedy, why
    (DEFAULTS, {}, 1_000, 160, "good", "", "more than 15 % is free"),
    (DEFAULTS, {}, 1_000, 140, "warning", "from 85 % on it takes no new replicas, from 90 % on", "less is"),
    (DEFAULTS, {}, 10_000, 250, "good", "", "2.5 %, but more than the headroom"),
    (DEFAULTS, {}, 10_000, 160, "warning", "from 98 % on it takes no new replicas, from 98.5 % on", "less than that"),
    (DEFAULTS, {}, 10_000, 90, "bad", "from 99 % on (the flood-stage", "less than the headroom of the flood stage"),
    (ABSOLUTE, {}, 500, 6, "good", "", "absolute sizes mean free space"),
    (ABSOLUTE, {}, 500, 4, "warning", "from 99 % on it takes no new replicas, from 99.4 % on", "likewise"),
    (ABSOLUTE, {}, 500, 0.9, "bad", "from 99.8 % on", "likewise"),
    (ABSOLUTE, {}, 4, 3.9, "warning", "from 0 % on it takes no new replicas", "larger than the disk"),
    (DEFAULTS, {"watermark.low": "0.5"}, 100, 40, "warning", "from 50 % on", "a ratio, and set by somebody"),
    (ABSOLUTE, dict.fromkeys(ABSOLUTE, "1.5tb"), 2048, 1000, "bad", "from 25 % on", "a fraction of a unit"),
    (DEFAULTS, {"threshold_enabled": "false"}, 100, 3, "warning", "watermarks are off", "nothing is made read-only"),
    (DEFAULTS, {"threshold_enabled": "false"}, 100, 20, "good", "", "no trouble yet"),
    ({}, {}, 10_000, 250, "bad", "from 95 % on", "the server does not say"),
]


@pytest.mark.parametrize(("defaults", "persistent", "size", "free", "status", "remedy", "why"), WATERMARKS)
def test_doctor_measures_disks_by_the_servers_watermarks(defaults, persistent, size, free, status, remedy, why):
    levels = {"defaults": defaults, "persistent": persistent}
    answers = {
        level: {f"{DISK}{name}": value for name, value in settings.items()} for level, settings in levels.items()
    }
    total = {"available_in_bytes": int(free * GB), "total_in_bytes": size * GB}
    finding = examined({"nodes": {"a": {"name": "a", "fs": {"total": total}}}, **answers})["disk"]
    assert finding.status == status, why
    assert remedy in finding.remedy


@pytest.mark.parametrize("stats", [{}, {"fs": {}}, {"fs": {"total": {"total_in_bytes": 0, "available_in_bytes": 0}}}])
def test_doctor_where_a_node_does_not_tell_of_its_disk(stats):
    finding = examined({"nodes": {"a": {"name": "a", **stats}}})["disk"]
    assert (finding.status, finding.found) == ("unknown", "a does not say how full it is")


@pytest.mark.parametrize("node", ["elasticsearch", "elasticsearch_9"])
def test_doctor_reads_the_watermarks_of_a_server(request, node):
    server = connection.connect(request.getfixturevalue(node).url)
    low = {f"{DISK}watermark.{name}": value for name, value in {"low": "0.0001", "high": "98%"}.items()}
    server.ask("PUT", "/_cluster/settings", {"persistent": {**low, f"{DISK}watermark.flood_stage": "99%"}})
    try:
        finding = {finding.what: finding for finding in examine(server)}["disk"]
    finally:
        server.ask("PUT", "/_cluster/settings", {"persistent": {f"{DISK}*": None}})
    # These nodes run without watermarks.
    assert (finding.status, "watermarks are off" in finding.remedy) == ("warning", True)


def test_doctor_where_nothing_answers():
    (finding,) = examine(connection.connect("http://127.0.0.1:9"))
    assert (finding.what, finding.status) == ("reachable", "bad")
    assert "RUSBEIR_ES_URL" in finding.remedy


def test_a_ca_file_that_is_not_there(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("ES_CA_CERTS", str(tmp_path / "none.pem"))
    with pytest.raises(BadInput, match=r"ES_CA_CERTS names .*none\.pem"):
        connection.connect("https://127.0.0.1:9200")
