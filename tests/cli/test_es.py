"""`rusbeir es` and `--es-url`, against a node, and what they say where there is none."""

from __future__ import annotations

import json

import pytest


def test_from_bench_to_drop(rusbeir, elasticsearch, beir, monkeypatch, fresh_cache):
    monkeypatch.delenv("RUSBEIR_ES_URL")
    url = ["--es-url", elasticsearch.url]
    before = {row["name"] for row in json.loads(rusbeir("es", "list", *url, "--json").out)}
    done = rusbeir("bench", beir, *url, "--json")
    assert done.code == 0, done.err
    (row,) = json.loads(done.out)["rows"]
    assert (row["engine"], row["n_docs"]) == ("elasticsearch", 3)
    assert row["bytes"]["index"] > 1000
    found = rusbeir("search", beir, "кошка", *url, "--json")
    assert [hit["doc_id"] for hit in json.loads(found.out)["hits"]] == ["d1"]
    indexed = json.loads(rusbeir("index", beir, *url, "--json").out)
    assert indexed["engine"] == "elasticsearch"
    rows = json.loads(rusbeir("es", "list", *url, "--json").out)
    (mine,) = [row for row in rows if row["name"] not in before]
    assert (mine["documents"], mine["published"]) == (3, True)
    assert "|lang:ru|" in mine["signature"]
    assert mine["name"] in rusbeir("es", "list", *url).out
    wrong = rusbeir("es", "drop", mine["name"], "rusbeir-wrong", *url)
    assert (wrong.code, "removed" in wrong.err) == (2, False)
    assert json.loads(rusbeir("es", "drop", mine["name"], *url, "--json").out) == {"removed": [mine["name"]]}
    assert {row["name"] for row in json.loads(rusbeir("es", "list", *url, "--json").out)} == before


def test_opensearch_from_bench_to_drop(rusbeir, opensearch, fresh_cache):
    url = ["--es-url", opensearch.url]
    done = rusbeir("bench", "mini/ru", "--engine", "opensearch", *url, "--json")
    assert done.code == 0, done.err
    names = [row["name"] for row in json.loads(rusbeir("es", "list", *url, "--json").out) if row["documents"] == 125]
    assert names
    assert json.loads(rusbeir("es", "drop", *names, *url, "--json").out) == {"removed": names}
    other = rusbeir("bench", "mini/ru", *url)
    line = f"{opensearch.url} is OpenSearch, not Elasticsearch. Use --engine opensearch."
    assert (other.code, line in other.err) == (1, True)


def test_tune(rusbeir, elasticsearch, beir, monkeypatch, fresh_cache):
    monkeypatch.delenv("RUSBEIR_ES_URL")
    (beir / "card.json").write_text('{"name": "small", "language": "ru", "split": "dev"}', encoding="utf-8")
    (beir / "qrels" / "test.tsv").rename(beir / "qrels" / "dev.tsv")
    arguments = ["tune", beir, "--system", "minmax(bm25(profile=raw),bm25)", "--folds", "2", "--json", "--es-url"]
    there = rusbeir(*arguments, elasticsearch.url)
    assert there.code == 0, there.err
    assert json.loads(there.out)["system"].startswith("minmax(")
    nowhere = rusbeir(*arguments, "http://127.0.0.1:9")
    assert (nowhere.code, "No Elasticsearch answers at http://127.0.0.1:9" in nowhere.err) == (1, True)


def test_doctor(rusbeir, elasticsearch):
    done = rusbeir("es", "doctor", "--es-url", elasticsearch.url, "--json")
    assert done.code == 0
    assert {"reachable", "version", "health"} <= {finding["what"] for finding in json.loads(done.out)}
    assert "Elasticsearch 8.18.0" in rusbeir("es", "doctor", "--es-url", elasticsearch.url).out


def test_mappings(rusbeir):
    server = json.loads(rusbeir("languages", "mapping", "en").out)
    assert server["mappings"]["properties"]["text"]["analyzer"] == "english"
    client = json.loads(rusbeir("languages", "mapping", "en", "--client", "--profile", "anserini-flat").out)
    assert client["settings"]["similarity"]["bm25"]["k1"] == 0.9
    assert json.loads(rusbeir("es", "mapping", "--lang", "en").out) == server
    plugin = json.loads(rusbeir("es", "mapping", "--lang", "ja", "--plugin").out)
    assert plugin["mappings"]["properties"]["text"]["analyzer"] == "kuromoji"


NOWHERE = ["--es-url", "http://127.0.0.1:9"]
WRONG = [
    # arguments, code, parts of the line
    (["bench", "{beir}", *NOWHERE], 1, ["No Elasticsearch answers at http://127.0.0.1:9", "--es-url"]),
    (["es", "list", *NOWHERE], 1, ["No Elasticsearch answers"]),
    (["es", "drop", "x", *NOWHERE], 1, ["No Elasticsearch answers"]),
    (
        ["bench", "{beir}", "--es-url", "localhost:9200"],
        2,
        ["'localhost:9200' is not the URL", "http://127.0.0.1:9200"],
    ),
    (["bench", "{beir}", "--es-url", "http://u:secret@h"], 2, ["holds credentials", "ES_API_KEY"]),
    (["bench", "{beir}", "--engine", "tantivy", *NOWHERE], 2, ["tantivy runs on this machine and has no address"]),
    (
        ["bench", "{beir}", "--engine", "tantivy", "--system", "bm25(profile=server)"],
        2,
        ["Use --engine auto, elasticsearch or opensearch"],
    ),
    (["languages", "mapping", "tlh"], 2, ["No language 'tlh'"]),
    (["es", "mapping", "--lang", "ru", "--plugin"], 2, ["No plugin for the language 'ru'", "ja, ko, pl"]),
    (["es", "mapping", "--lang", "ja", "--plugin", "--client"], 2, ["--client is for rusbeir's terms, --plugin for"]),
    (["bench", "{beir}", "--engine", "opensearch", *NOWHERE], 1, ["No OpenSearch answers at http://127.0.0.1:9"]),
]


@pytest.mark.parametrize(("arguments", "code", "parts"), WRONG, ids=lambda value: str(value)[:50])
def test_wrong_calls(rusbeir, beir, arguments, code, parts):
    done = rusbeir(*(argument.replace("{beir}", str(beir)) for argument in arguments))
    assert done.code == code
    last = done.err.strip().splitlines()[-1]
    assert all(part in last for part in parts), last
    assert "Traceback" not in done.err
    assert "secret" not in done.err


def test_doctor_where_nothing_is(rusbeir):
    done = rusbeir("es", "doctor", *NOWHERE)
    assert done.code == 1
    assert "No Elasticsearch answers" in done.out
