"""`server(index=…,body=…)`: an index that is on a server already, searched by a query of the user's own."""

from __future__ import annotations

import json

import pytest

import rusbeir
from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval import read_template, resolve
from rusbeir.types import Dataset
from tests.support import shop

INDEX = "products"


@pytest.fixture(scope="module")
def products(elasticsearch) -> str:
    """The address of a node that has the documents of mini/ru in an index of its own."""
    shop.fill(elasticsearch.url, INDEX, rusbeir.load("mini/ru").corpus)
    return str(elasticsearch.url)


def test_the_hits_are_those_of_the_server(products, tmp_path, caplog):
    body = shop.write_search(tmp_path)
    spec = f"server(index={INDEX},body={body})"
    (row,) = rusbeir.bench("mini/ru", [spec], engine=f"elasticsearch@{products}", out=tmp_path / "out", k=20)
    assert "products has 125 of 125 judged documents (100.0%), by _id." in caplog.text
    held = shop.ask("GET", f"{products}/{INDEX}/_settings")[INDEX]["settings"]["index"]
    for part in (f"uuid:{held['uuid']}", "docs:125", f"body:{read_template(body).digest}", "id:_id"):
        assert f"|{part}|" in f"|{row['signature']}|"
    run = rusbeir.read_run(row["run"])
    for query_id, text in list(rusbeir.load("mini/ru").queries.items())[:5]:
        search = json.dumps({**read_template(body).render(text), "size": 20}).encode()
        hits = shop.ask("POST", f"{products}/{INDEX}/_search", search)["hits"]["hits"]
        assert run[query_id] == pytest.approx({hit["_id"]: hit["_score"] for hit in hits}, rel=1e-6)
    # A field that has the ids gives the same, and so does a row that is reused.
    by_field = f'server(index={INDEX},body="{body}",id=sku)'
    (other,) = rusbeir.bench("mini/ru", [by_field], engine=f"elasticsearch@{products}", out=tmp_path / "out", k=20)
    assert other["measures"] == row["measures"]
    assert other["signature"] != row["signature"]


def test_a_body_that_sorts_by_a_field_keeps_its_order(products, tmp_path):
    body = shop.write_search(tmp_path, shop.SEARCH[:-1] + ', "sort": [{"sku": "desc"}]}')
    system = resolve(f"server(index={INDEX},body={body})", language="ru", engine=f"elasticsearch@{products}")
    data = rusbeir.load("mini/ru")
    hits = system.prepare(data.corpus, data.fingerprint).retriever.search({"q": "кошка собака"}, 5)["q"]
    assert list(hits) == sorted(hits, reverse=True)
    assert list(hits.values()) == [float(len(hits) - rank) for rank in range(len(hits))]


def test_queries_are_escaped(products, tmp_path):
    parts = '{"match": {"text": "{{ query }}"}}, {"match": {"title": {{#toJson}}query{{/toJson}}}}'
    body = shop.write_search(tmp_path, f'{{"query": {{"bool": {{"should": [{parts}]}}}}}}')
    text = 'кошка "\\" \n {{query}} {"a": 1}'
    should = read_template(body).render(text)["query"]["bool"]["should"]
    assert [next(iter(part["match"].values())) for part in should] == [text, text]
    system = resolve(f"server(index={INDEX},body={body})", language="ru", engine=f"elasticsearch@{products}")
    data = rusbeir.load("mini/ru")
    assert system.prepare(data.corpus, data.fingerprint).retriever.search({"q": text}, 5)["q"]


def test_an_index_of_other_documents_is_refused(products, tmp_path, caplog):
    body = shop.write_search(tmp_path)
    docs = [{"_id": f"x{number}", "text": "кошка"} for number in range(4)] + [{"_id": "animals-01", "text": "кошка"}]
    judged = {"q": {doc["_id"]: 1 for doc in docs}}
    other = Dataset.of(docs, {"q": "кошка"}, judged, language="ru", name="other")
    with pytest.raises(BadInput, match=r"products has 1 of 5 judged documents \(20\.0%\), by _id\. Is the id another"):
        rusbeir.bench(other, f"server(index={INDEX},body={body})", engine=f"elasticsearch@{products}", out=tmp_path)
    spec = f"server(index={INDEX},body={body},min_found=0.2)"
    (row,) = rusbeir.bench(other, [spec], engine=f"elasticsearch@{products}", out=tmp_path)
    assert "products has 1 of 5 judged documents (20.0%), by _id." in caplog.text
    assert row["n_queries"] == 1


@pytest.mark.parametrize(
    ("index", "more", "reason"),
    [
        ("nowhere", "", "has no index nowhere"),
        (INDEX, ",id=nothing", r"products has 0 of \d+ judged documents \(0\.0%\), by nothing"),
    ],
)
def test_what_the_server_does_not_have(products, tmp_path, index, more, reason):
    spec = f"server(index={index},body={shop.write_search(tmp_path)}{more})"
    with pytest.raises((BadInput, BackendError), match=reason):
        rusbeir.bench("mini/ru", [spec], engine=f"elasticsearch@{products}", out=tmp_path)


def test_a_search_that_the_server_refuses(products, tmp_path):
    body = shop.write_search(tmp_path, '{"query": {"matches": {"text": "{{query}}"}}}')
    system = resolve(f"server(index={INDEX},body={body})", language="ru", engine=f"elasticsearch@{products}")
    with pytest.raises(BackendError, match=r"unknown query \[matches\]"):
        system.prepare(rusbeir.load("mini/ru").corpus, "").retriever.search({"q": "a"}, 5)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"query": {"match_all": {}}}', "has no {{query}}, so every query would be the same search"),
        ('{"query": {"match": {"text": "{{text}}"}}}', "has no {{query}}"),
        ('{"query": {"match": {"text": "{{query}}"}}, "size": {{size}}}', "has the tag '{{size}}'"),
        ('{"query": {"match": {"text": {{query}}}}}', "is not JSON once a query is in it"),
        ('{"query": {"match": {"text": "{{#toJson}}query{{/toJson}}"}}}', "is not JSON once a query is in it"),
        ('["{{query}}"]', "is not an object"),
        ('{"from": 10, "query": {"match": {"text": "{{query}}"}}}', "begins its hits at `from`"),
    ],
)
def test_bodies_that_cannot_be_right(tmp_path, text, reason):
    with pytest.raises(BadInput) as caught:
        resolve(f"server(index=a,body={shop.write_search(tmp_path, text)})", language="ru")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "engine", "reason"),
    [
        ("server(index=a)", "auto", "server needs body="),
        ("server(a)", "auto", "server has options alone"),
        ("server(index=a,body=nothing.json)", "auto", "There is no file nothing.json"),
        ("server(index=a,body=nothing.json)", "tantivy", "the engine tantivy means nothing here"),
        ("server(index=a,body=b,min_found=2)", "auto", "min_found to be a share"),
        ("server(index=a,body=b,size=2)", "auto", "has no option 'size'. Available: index, body, id, min_found"),
    ],
)
def test_systems_that_cannot_be_right(spec, engine, reason):
    with pytest.raises(BadInput) as caught:
        resolve(spec, language="ru", engine=engine)
    assert reason in str(caught.value)
