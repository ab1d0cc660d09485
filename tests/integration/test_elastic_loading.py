"""Loading, resuming and refusing: nothing is lost, and nothing of others is touched."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import orjson
import pytest

from rusbeir.errors import BackendError, BadInput, UnknownName
from rusbeir.retrieval.elasticsearch import bulk, connection, indexes, mappings
from rusbeir.retrieval.elasticsearch.connection import Server
from rusbeir.retrieval.elasticsearch.engine import ElasticSearcher
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.types import Doc
from tests.support import killed_load
from tests.support.elastic_answers import agree, answering
from tests.support.flaky_bulk import Trouble, flaky_bulk
from tests.support.killing import kill_eight_times
from tests.support.stubs import build, open_built, recipe, retriever

DOCS = [Doc(f"d{number}", f"w{number} w{number % 7} shared", f"t{number % 3}") for number in range(2_500)]
ENGINE = "elasticsearch"


@pytest.fixture
def server(elasticsearch) -> Server:
    return connection.connect(elasticsearch.url)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(connection, "RETRY_SECONDS", 1)


def begin(server: Server, name: str, folder: Path, body: dict | None = None) -> indexes.ServerIndex:
    """The index of a load that has begun."""
    return indexes.create(server, name, recipe(ENGINE, Bm25(), folder), body or mappings.client_body(Bm25()))


def name_of(folder: Path) -> str:
    """As the engine names the index of that folder's recipe."""
    return recipe(ENGINE, Bm25(), folder).name("rusbeir-bm25")


def sources(count: int) -> list[tuple[str, dict[str, object]]]:
    return [
        (doc.doc_id, {"doc_id": doc.doc_id, "row": row, "text": f"{doc.title} {doc.text}"})
        for row, doc in enumerate(DOCS[:count])
    ]


def loaded(server: Server, index: str) -> tuple[int, int]:
    """The documents of an index, and how many more were deleted or replaced."""
    docs = server.ask("GET", f"/{index}/_stats/docs")["_all"]["primaries"]["docs"]
    return docs["count"], docs["deleted"]


@pytest.mark.usefixtures("shared_data")
def test_elasticsearch_9(elasticsearch_9, tmp_path):
    from rusbeir.experiment import bench

    engine = f"{ENGINE}@{elasticsearch_9.url}"
    row = bench("xquad/ru", "bm25(profile=rusbeir-paper)", engine=engine, out=tmp_path)
    assert 100 * row["measures"]["nDCG@10"] == pytest.approx(95.86, abs=0.01)
    assert "elasticsearch-9.1|len:lucene" in row["signature"]


def test_requests_are_halved_until_the_server_takes_them(elasticsearch_9, tmp_path):
    docs = [Doc(f"d{number}", f"t{number} {'x' * 900} {'y' * 2000}") for number in range(900)]
    loaded = retriever(tmp_path / "index", docs, f"{ENGINE}@{elasticsearch_9.url}")
    assert list(loaded.search({"q": "t899"}, 3)["q"]) == ["d899"]


def test_a_document_over_the_limit_is_named(elasticsearch_9, tmp_path):
    docs = [Doc("small", "a b"), Doc("large", "many words " * 150_000)]
    with pytest.raises(BackendError, match=r"Document 'large' makes a request of 1,6.*http\.max_content_length"):
        build(tmp_path / "index", docs, f"{ENGINE}@{elasticsearch_9.url}")
    assert not (tmp_path / "index").exists()


def test_ids_may_be_long(server, tmp_path):
    """The server's own ids are row numbers: what would not fit there needs not to."""
    docs = [Doc("ы" * 600, "a b"), Doc("x", "b")]
    assert list(retriever(tmp_path / "index", docs, ENGINE).search({"q": "a"}, 3)["q"]) == ["ы" * 600]


def test_a_load_goes_on_where_it_stood(server, tmp_path):
    folder = tmp_path / "index"
    held = begin(server, name_of(folder), folder)
    bulk.load(server, held.index, sources(2_000))
    assert indexes.find(server, held.name).published is False
    build(folder, DOCS, ENGINE)
    stats = server.ask("GET", f"/{held.name}/_stats/indexing")["_all"]["primaries"]["indexing"]
    assert stats["index_total"] == 2_500, "2,000 of them in the first load, 500 in the second"
    assert next(iter(open_built(folder, ENGINE).search({"q": "w2400 t0"}, 3)["q"])) == "d2400"


def test_sending_twice_leaves_one(server, tmp_path):
    """And no trace in the statistics: scores of a load that was repeated are those of one that was not."""
    folder = tmp_path / "index"
    held = begin(server, name_of(folder), folder)
    bulk.load(server, held.index, sources(900))
    build(folder, DOCS, ENGINE)
    assert loaded(server, held.name) == (len(DOCS), 0)
    queries = {str(number): f"w{number} shared t1" for number in range(20)}
    once = retriever(tmp_path / "once", DOCS, ENGINE).search(queries, 50)
    assert open_built(folder, ENGINE).search(queries, 50) == once


@pytest.mark.parametrize("trouble", get_args(Trouble))
def test_spoiled_requests_are_sent_again(elasticsearch, tmp_path, trouble):
    """Every document arrives once, whatever of the first sending was taken."""
    server, folder = connection.connect(elasticsearch.url), tmp_path / "index"
    with flaky_bulk(elasticsearch.url, trouble) as (url, spoiled):
        build(folder, DOCS, f"{ENGINE}@{url}")
    assert len(spoiled) == 3, "each block was sent in vain once"
    assert loaded(server, name_of(folder)) == (len(DOCS), 0)
    queries = {str(number): f"w{number} shared t1" for number in range(20)}
    once = retriever(tmp_path / "once", DOCS, ENGINE).search(queries, 50)
    assert open_built(folder, ENGINE).search(queries, 50) == once


def test_a_killed_load_goes_on_where_it_stood(server, tmp_path):
    """Killed again and again, it is in the end as the embedded engine has it."""
    folder, counter = tmp_path / "index", tmp_path / "counter"
    counter.touch()
    kill_eight_times(killed_load.__name__, [folder, counter, ENGINE], counter)
    held = indexes.find(server, name_of(folder))
    assert held.published is False
    server.ask("POST", f"/{held.index}/_refresh")
    arrived, _ = loaded(server, held.index)
    assert 0 < arrived < killed_load.DOCUMENTS
    docs = list(killed_load.documents())
    build(folder, docs, ENGINE)
    assert loaded(server, held.name) == (killed_load.DOCUMENTS, 0)
    queries = {str(number): f"w{number} w{3 * number} w{number + 700}" for number in range(50)}
    embedded = retriever(tmp_path / "tantivy", docs, "tantivy").search(queries, 100)
    run = open_built(folder, ENGINE).search(queries, 100)
    assert sum(agree(dict(embedded[query]), dict(run[query])) for query in queries) > 50 * len(queries)


def test_nobody_finds_an_unfinished_index(server, tmp_path):
    folder = tmp_path / "index"
    held = begin(server, name_of(folder), folder)
    bulk.load(server, held.index, sources(100))
    assert server.ask("GET", f"/{held.name}/_count", allow=(404,)) is None


def test_a_built_index_is_shared_with_other_machines(server, tmp_path, monkeypatch):
    """Another cache, the same recipe: nothing is sent again."""
    folder = tmp_path / "index"
    build(folder, DOCS, ENGINE)
    folder.rename(tmp_path / "of another machine")
    build(folder, DOCS, ENGINE)
    stats = server.ask("GET", f"/{name_of(folder)}/_stats/indexing")["_all"]["primaries"]["indexing"]
    assert stats["index_total"] == len(DOCS)


def test_a_read_only_index(server, tmp_path):
    """What the flood-stage watermark does; the load goes on when it is lifted."""
    folder = tmp_path / "index"
    held = begin(server, name_of(folder), folder)
    block = {"index.blocks.read_only_allow_delete": True}
    server.ask("PUT", f"/{held.index}/_settings", block)
    with pytest.raises(BackendError, match=r"made the index read-only.*Free disk space.*same command then resumes"):
        build(folder, DOCS, ENGINE)
    server.ask("PUT", f"/{held.index}/_settings", {"index.blocks.read_only_allow_delete": None})
    build(folder, DOCS, ENGINE)
    assert open_built(folder, ENGINE).search({"q": "w7"}, 1)["q"]


TAKEN = [
    # what has the name, part of the line
    ("{name}", {}, "has {name} as an index that rusbeir did not make. It is left alone"),
    ("{name}-1", {}, "has an index {name}-1 that rusbeir did not make. It is left alone"),
    ("others", {"aliases": {"{name}": {}}}, "has {name} as an alias of others that rusbeir did not make"),
]


@pytest.mark.parametrize(("index", "body", "line"), TAKEN)
def test_a_name_that_others_have(server, tmp_path, index, body, line):
    name = name_of(tmp_path / "index")
    index = index.format(name=name)
    body = orjson.loads(orjson.dumps(body).replace(b"{name}", name.encode()))
    server.ask("PUT", f"/{index}", body)
    server.ask("PUT", f"/{index}/_doc/1?refresh=true", {"text": "theirs"})
    with pytest.raises(BackendError) as error:
        build(tmp_path / "index", DOCS, ENGINE)
    assert line.format(name=name) in str(error.value)
    assert server.ask("GET", f"/{index}/_doc/1")["_source"] == {"text": "theirs"}
    assert server.ask("GET", f"/{index}/_count")["count"] == 1
    server.ask("DELETE", f"/{index}")


def test_a_name_of_ours_with_another_recipe(server, tmp_path):
    begin(server, name_of(tmp_path / "index"), tmp_path / "another")
    with pytest.raises(BackendError, match=r"has signature .*another, not .*index\. It is left alone; rename it"):
        build(tmp_path / "index", DOCS, ENGINE)


def test_a_mapping_that_does_not_fit(server, tmp_path):
    folder = tmp_path / "index"
    body = mappings.client_body(Bm25())
    body["mappings"]["properties"]["text"] = {"type": "integer"}
    begin(server, name_of(folder), folder, body)
    with pytest.raises(BackendError, match=r"refuses document 'd0' \(400\): .*w0 w0 shared"):
        build(folder, DOCS, ENGINE)


def test_drop_removes_only_what_is_ours(server, tmp_path):
    build(tmp_path / "index", DOCS, ENGINE)
    name = name_of(tmp_path / "index")
    server.ask("PUT", "/rusbeir-like-1", {})
    assert name in [row["name"] for row in indexes.list_indexes(server)]
    for other in ("rusbeir-like", "rusbeir-like-1", "somebodys", "*", "rusbeir-*"):
        with pytest.raises(UnknownName):
            indexes.drop(server, other)
    indexes.drop(server, name)
    assert name not in [row["name"] for row in indexes.list_indexes(server)]
    assert server.ask("GET", "/rusbeir-like-1") is not None
    server.ask("DELETE", "/rusbeir-like-1")


def test_a_clone_is_not_what_it_was_cloned_from(server, tmp_path):
    """It has the _meta of ours, and may have a name such as ours; it is somebody's."""
    build(tmp_path / "index", DOCS[:10], ENGINE)
    index = indexes.index_of(name_of(tmp_path / "index"))
    server.ask("PUT", f"/{index}/_settings", {"index.blocks.write": True})
    server.ask("POST", f"/{index}/_clone/rusbeir-mycopy")
    server.ask("POST", f"/{index}/_clone/rusbeir-mycopy-1")
    try:
        assert "rusbeir-mycopy" not in [row["name"] for row in indexes.list_indexes(server)]
        for name in ("rusbeir-mycopy", "rusbeir-mycopy-1"):
            with pytest.raises(UnknownName):
                indexes.drop(server, name)
        assert server.ask("GET", "/rusbeir-mycopy,rusbeir-mycopy-1").keys() == {"rusbeir-mycopy", "rusbeir-mycopy-1"}
    finally:
        server.ask("DELETE", "/rusbeir-mycopy,rusbeir-mycopy-1")


@pytest.mark.parametrize("meta", ["text", ["signature", "fingerprint"], {"signature": "s"}, 1])
def test_what_others_call_rusbeir(server, tmp_path, meta):
    build(tmp_path / "index", DOCS[:10], ENGINE)
    server.ask("PUT", "/rusbeir-odd-1", {"mappings": {"_meta": {"rusbeir": meta}}})
    try:
        assert "rusbeir-odd" not in [row["name"] for row in indexes.list_indexes(server)]
        with pytest.raises(UnknownName):
            indexes.drop(server, "rusbeir-odd")
        indexes.drop(server, name_of(tmp_path / "index"))
    finally:
        server.ask("DELETE", "/rusbeir-odd-1")


def test_drop_removes_all_or_none(server, tmp_path):
    names = [name_of(tmp_path / part) for part in "ab"]
    for part in "ab":
        build(tmp_path / part, DOCS[:10], ENGINE)
    with pytest.raises(UnknownName, match="rusbeir-wrong"):
        indexes.drop(server, *names, "rusbeir-wrong")
    assert set(names) <= {row["name"] for row in indexes.list_indexes(server)}
    indexes.drop(server, *names, names[0], f"{names[1]}-1")
    assert not set(names) & {row["name"] for row in indexes.list_indexes(server)}


def test_a_dropped_index_is_built_again(elasticsearch, tmp_path, monkeypatch):
    from rusbeir.datasets import load
    from rusbeir.retrieval import resolve

    monkeypatch.setenv("RUSBEIR_CACHE", str(tmp_path))
    dataset = load("mini/ru")
    system = resolve("bm25", language="ru", engine=f"{ENGINE}@{elasticsearch.url}")
    ready = system.prepare(dataset.corpus, dataset.fingerprint)
    run = ready.retriever.search(dataset.queries, 10)
    again = system.prepare(dataset.corpus, dataset.fingerprint)
    assert (ready.reused, again.reused) == (False, True)
    server = connection.connect(elasticsearch.url)
    indexes.drop(server, orjson.loads((ready.path / "elasticsearch.json").read_bytes())["name"])
    anew = system.prepare(dataset.corpus, dataset.fingerprint)
    assert anew.reused is False
    assert anew.retriever.search(dataset.queries, 10) == run
    (ready.path / "elasticsearch.json").write_bytes(b"{")
    mended = system.prepare(dataset.corpus, dataset.fingerprint)
    assert mended.retriever.search(dataset.queries, 10) == run, "what lies on this machine can be made again"


def test_documents_that_went_missing(server, tmp_path):
    build(tmp_path / "index", DOCS, ENGINE)
    name = name_of(tmp_path / "index")
    server.ask("PUT", f"/{name}-1/_settings", {"index.blocks.write": None})
    server.ask("DELETE", f"/{name}-1/_doc/7?refresh=true")
    with pytest.raises(BackendError, match=rf"has 2,499 documents instead of 2,500\. Remove it .*es drop {name}"):
        open_built(tmp_path / "index", ENGINE)


def test_nobody_replaces_a_document_of_a_published_index(server, tmp_path):
    build(tmp_path / "index", DOCS, ENGINE)
    with pytest.raises(BackendError, match="published the index"):
        server.ask("PUT", f"/{name_of(tmp_path / 'index')}-1/_doc/7", {"doc_id": "d7", "row": 7, "text": "other"})


def test_an_index_removed_while_it_is_loaded_is_not_made_again(server, tmp_path):
    held = begin(server, name_of(tmp_path / "index"), tmp_path / "index")

    def documents():
        yield from sources(1_500)
        server.ask("DELETE", f"/{held.index}")
        yield from (("more", fields) for _, fields in sources(2_500)[1_500:])

    with pytest.raises(BackendError, match=rf"lost the index {held.index} while it was loaded.*same command again"):
        bulk.load(server, held.index, documents())
    assert server.ask("GET", f"/{held.index}", allow=(404,)) is None
    build(tmp_path / "index", DOCS, ENGINE)
    assert loaded(server, held.name) == (len(DOCS), 0)


def test_a_closed_index_is_listed_and_can_be_removed(server, tmp_path):
    build(tmp_path / "index", DOCS[:10], ENGINE)
    name = name_of(tmp_path / "index")
    server.ask("POST", f"/{name}-1/_close")
    with pytest.raises(BackendError, match=rf"has closed the index {name}-1\. Open it: POST /{name}-1/_open"):
        open_built(tmp_path / "index", ENGINE)
    (row,) = [row for row in indexes.list_indexes(server) if row["name"] == name]
    assert (row["closed"], row["documents"]) == (True, None)
    indexes.drop(server, name)
    assert server.ask("GET", f"/{name}-1", allow=(404,)) is None


WHOLE = {"total": 3, "successful": 3, "failed": 0}
ANSWERS = [
    # one search's answer, part of the line
    ({"status": 200, "timed_out": True, "_shards": WHOLE, "hits": {"hits": []}}, "out of time"),
    ({"status": 200, "timed_out": False, "_shards": WHOLE | {"failed": 1}, "hits": {"hits": []}}, "not counted"),
    ({"status": 200, "timed_out": False, "_shards": WHOLE | {"successful": 2}, "hits": {"hits": []}}, "2 of 3 shards"),
    ({"status": 503, "error": {"type": "search_phase_execution_exception", "reason": "no shard"}}, "(503): no shard"),
    (
        {"status": 400, "error": {"type": "too_many_nested_clauses", "reason": "maxClauseCount is 1024"}},
        "refuses even 1000 terms",
    ),
    ({"status": 404, "error": {"type": "index_not_found_exception", "reason": "no such index"}}, "no such index"),
]


@pytest.mark.parametrize(("answer", "line"), ANSWERS)
@pytest.mark.usefixtures("impatient")
def test_a_partial_answer_is_none(answer, line):
    with answering(200, {"responses": [answer]}) as url:
        searcher = ElasticSearcher(server=connection.connect(url), index="i", bm25=Bm25())
        with pytest.raises(BackendError) as error:
            searcher.search([["a"]], 10)
    assert line in str(error.value)


@pytest.mark.parametrize("bm25", [Bm25(), Bm25(fields="best_fields"), Bm25(fields="sum")], ids=lambda bm25: bm25.fields)
def test_more_terms_than_the_server_takes(server, tmp_path, bm25):
    """Tens of thousands; the embedded engine says what the hits are."""
    docs = [Doc(f"d{n}", f"t{n} t{n + 1} t{n % 7}", f"t{n + 2}" if n % 3 else "") for n in range(12_000)]
    query = {"q": " ".join(f"t{n} t{n % 50}" for n in range(10_000)), "short": "t5 t6"}
    exact = retriever(tmp_path / "tantivy", docs, "tantivy", bm25).search(query, 5_000)
    run = retriever(tmp_path / "index", docs, ENGINE, bm25).search(query, 5_000)
    for name, hits in exact.items():
        assert list(run[name].values()) == pytest.approx(list(hits.values()), rel=1e-5)
        apart = [doc_id for doc_id in hits if run[name].get(doc_id, 0) != pytest.approx(hits[doc_id], rel=1e-5)]
        last = min(hits.values())
        assert all(hits[doc_id] == pytest.approx(last, rel=1e-5) for doc_id in apart), "only ties at the cut-off"


def test_as_deep_as_documented(server, tmp_path):
    docs = [Doc(f"d{number}", "same" if number % 2 else "same other") for number in range(101_500)]
    retrieve = retriever(tmp_path / "index", docs, ENGINE)
    hits = retrieve.search({"q": "same"}, 100_000)["q"]
    assert list(hits) == [f"d{n}" for n in range(1, 101_500, 2)] + [f"d{n}" for n in range(0, 101_500, 2)][:49_250]
    with pytest.raises(BadInput, match=r"at most 101,000 hits per query, not 101,500\. Lower -k"):
        retrieve.search({"q": "same"}, 200_000)
