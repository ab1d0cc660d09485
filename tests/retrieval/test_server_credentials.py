"""Credentials of servers: AWS's published signatures, and a signed request as it arrives."""

from __future__ import annotations

import hashlib
import re

import orjson
import pytest

from rusbeir.errors import BadInput
from rusbeir.retrieval.elasticsearch import connection
from rusbeir.retrieval.elasticsearch.credentials import Credentials, read_credentials
from tests.support import local_server

KEYS = {"region": "us-east-1", "key": "AKIDEXAMPLE", "secret": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
EXAMPLE = Credentials(**{**dict.fromkeys(Credentials.__dataclass_fields__, ""), **KEYS})
FORM = {"content-type": "application/x-www-form-urlencoded"}
SUITE = [
    # AWS's Signature Version 4 test suite: name, method, path, further headers, body, signature
    ("get-vanilla", "GET", "/", {}, b"", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
    ("post-vanilla", "POST", "/", {}, b"", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    ("get-vanilla-query-order-key-case", "GET", "/?Param2=value2&Param1=value1", {}, b"",
     "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
    ("get-utf8", "GET", "/ሴ", {}, b"", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
    ("get-header-value-trim", "GET", "/", {"my-header1": " value1", "my-header2": ' "a   b   c"'}, b"",
     "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
    ("post-x-www-form-urlencoded", "POST", "/", FORM, b"Param1=value1",
     "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "method", "path", "headers", "body", "signature"), SUITE)
def test_signatures_are_those_that_aws_published(name, method, path, headers, body, signature):
    headers = {"x-amz-date": "20150830T123600Z", **headers}
    signed = EXAMPLE.sign(method, f"https://example.amazonaws.com{path}", headers, body, "service")
    assert signed.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, ")
    assert signed.endswith(f"Signature={signature}"), name


def test_paths_are_encoded_once_more_and_queries_once():
    """As botocore 1.44 signs them for `es`."""
    url = "https://search-x.eu-central-1.es.amazonaws.com/rusbeir-a-1%2Cb/_bulk?require_alias=true&timeout=30s"
    headers = {
        "x-amz-date": "20150830T123600Z",
        "x-amz-content-sha256": hashlib.sha256(b'{"a":1}\n').hexdigest(),
        "x-amz-security-token": "tok",
    }
    signatures = {
        EXAMPLE.sign("POST", url + query, headers, b'{"a":1}\n', "es")[-64:]
        for query in ("&filter_path=items.*.status,items.*.error", "&filter_path=items.%2A.status%2Citems.%2A.error")
    }
    assert signatures == {"2309492d06dad8237f24992704d1ef1e5de2d25e8d9a481209a9f09561be1610"}


@pytest.fixture
def aws(monkeypatch):
    for name in ("ES_API_KEY", "ES_USER", "ES_PASSWORD", "ES_CA_CERTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ES_AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS["key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS["secret"])
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a token")


@pytest.mark.usefixtures("aws")
def test_what_arrives_is_what_was_signed():
    arrived = []

    class Domain(local_server.Handler):
        def do_POST(self) -> None:
            arrived.append((self.path, dict(self.headers), self.body()))
            self.answer(200, {"Content-Type": "application/json"}, orjson.dumps({"errors": False}))

        def do_GET(self) -> None:
            version = {"distribution": "opensearch", "number": "2.19.0"}
            self.answer(200, {"Content-Type": "application/json"}, orjson.dumps({"version": version}))

    path = "/rusbeir-a-load,b*/_bulk?filter_path=items.*.status,items.*.error&timeout=30s"
    with local_server.serving(Domain) as url:
        connection.connect(url, "opensearch").ask("POST", path, b'{"a":1}\n', content="ndjson")
    ((asked, sent, body),) = arrived
    headers = {name.lower(): value for name, value in sent.items()}
    names = re.search("SignedHeaders=([a-z0-9;-]+)", headers["authorization"])[1].split(";")
    assert names == ["host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"]
    signed = {name: headers[name] for name in names}
    signature = EXAMPLE.sign("POST", f"http://{signed.pop('host')}{asked}", signed, body, "es")
    assert headers["authorization"] == signature
    assert headers["x-amz-content-sha256"] == hashlib.sha256(body).hexdigest()
    assert headers["x-amz-security-token"] == "a token"


@pytest.mark.usefixtures("aws")
def test_a_domain_has_one_address():
    with pytest.raises(BadInput, match="ES_AWS_REGION signs requests for one address, and 2 are named"):
        connection.connect("https://a.example,https://b.example", "opensearch")


@pytest.mark.usefixtures("aws")
def test_serverless_collections_are_another_service():
    url = "https://x.us-east-1.aoss.amazonaws.com:443/a"
    assert "/us-east-1/aoss/aws4_request" in read_credentials().make_headers("GET", url, b"")["authorization"]


def test_credentials_are_not_printed():
    assert KEYS["secret"] not in repr(EXAMPLE)


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_a_region_needs_keys(monkeypatch, name):
    monkeypatch.setenv(name, "")
    with pytest.raises(BadInput, match="ES_AWS_REGION is set, so requests are signed: set AWS_ACCESS_KEY_ID and AWS_S"):
        connection.connect("https://a.example", "opensearch")


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n", " "])
def test_the_end_of_a_line_is_not_part_of_a_credential(monkeypatch, end):
    names = ("ES_API_KEY", "ES_USER", "ES_AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN")
    for name in names:
        monkeypatch.setenv(name, f"secret{end}")
    monkeypatch.setenv("ES_PASSWORD", "with spaces \r\n")
    known = read_credentials()
    assert {known.api_key, known.region, known.key, known.token, known.user.strip()} == {"secret"}
    assert known.password == "with spaces "


@pytest.mark.parametrize("name", ["ES_API_KEY", "ES_AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"])
@pytest.mark.parametrize("value", ["sec\rret", "sec\nret", "ключ", "sec\x1bret", "sec\xa0ret"])
def test_what_no_header_may_hold_is_refused_and_not_printed(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(BadInput) as caught:
        connection.connect("http://127.0.0.1:1")
    assert (
        str(caught.value)
        == f"{name} holds characters that cannot be sent in an HTTP header. Set it again without them."
    )


def test_a_denial_of_aws_is_quoted():
    assert connection.reason_of({"Message": "User: anonymous is not authorized"}) == "User: anonymous is not authorized"
