"""Embeddings on a real Elasticsearch: the hits of exact search, loaded once, and what is missed is said."""

from __future__ import annotations

import numpy as np
import pytest

from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval import resolve
from rusbeir.retrieval.dense.system import DenseSystem
from rusbeir.retrieval.elasticsearch import indexes, vectors
from rusbeir.retrieval.models.settings import Model
from tests.support.toy_encoder import Toy, documents

DOCS = documents(1_500)
QUERIES = {doc.doc_id: doc.text for doc in list(DOCS)[:30]}


def system(url: str = "", index: str = "exact", **options) -> DenseSystem:
    toy = Toy()
    server = vectors.connect(f"elasticsearch@{url}", index) if url else None
    model = Model(name="toy", separator=" ")
    return DenseSystem(name="dense(toy)", model=model, encoder=toy, index=index, server=server, **options)


def search(dense: DenseSystem, k: int = 20):
    return dense.prepare(DOCS, "f").retriever.search(QUERIES, k)


@pytest.mark.parametrize("node", ["elasticsearch", "elasticsearch_9"])
@pytest.mark.parametrize("options", [{}, {"dtype": "float16"}, {"chunk": 4, "stride": 2}])
def test_flat_is_exact(request, fresh_cache, caplog, node, options):
    url = request.getfixturevalue(node).url
    exactly, on_server = search(system(**options)), search(system(url, "es-flat", **options))
    tolerance = 2e-3 if options.get("dtype") else 1e-5
    for query, hits in exactly.items():
        assert list(on_server[query].values()) == pytest.approx(list(hits.values()), abs=tolerance)
        # Documents of equal scores may stand for each other at the cut.
        last = min(hits.values()) + tolerance
        assert {doc_id for doc_id, score in hits.items() if score > last} <= set(on_server[query])
    assert "of es-flat against exact search is" in caplog.text


@pytest.mark.parametrize(("index", "least"), [("es-hnsw", 0.9), ("es-int8_hnsw", 0.8)])
def test_graphs_say_what_they_miss_and_are_loaded_once(elasticsearch, fresh_cache, caplog, index, least):
    graph = system(elasticsearch.url, index)
    assert graph.engine == "elasticsearch"
    assert f"|{index}:100|elasticsearch-8.18|" in graph.signature
    first = search(graph)
    recall = float(caplog.text.split("exact search is ")[1].split()[0].rstrip("."))
    assert recall >= least
    exactly = search(system())
    shared = np.mean([len(set(first[query]) & set(exactly[query])) / 20 for query in QUERIES])
    assert shared == pytest.approx(recall, abs=0.1), "equal scores may stand for each other"
    before = indexes.list_indexes(graph.server)
    again = system(elasticsearch.url, index)
    assert search(again) == first
    assert again.encoder.calls == []
    assert indexes.list_indexes(graph.server) == before


def test_an_index_that_lost_documents_is_not_searched(elasticsearch, fresh_cache):
    damaged = system(elasticsearch.url, "es-flat")
    search(damaged)
    name = next(row["name"] for row in indexes.list_indexes(damaged.server) if row["signature"] == damaged.signature)
    damaged.server.ask("PUT", f"/{indexes.index_of(name)}/_settings", {"index.blocks.write": None})
    damaged.server.ask("DELETE", f"/{indexes.index_of(name)}/_doc/7?refresh=true")
    with pytest.raises(BackendError, match=r"1,499 documents instead of 1,500.*rusbeir es drop"):
        search(damaged)
    indexes.drop(damaged.server, name)
    assert len(search(damaged)) == len(QUERIES)


@pytest.mark.parametrize("engine", ["auto", "tantivy"])
def test_an_index_on_a_server_needs_one(engine):
    with pytest.raises(BadInput, match="index=es-hnsw is on a server: add engine=elasticsearch"):
        resolve("dense(multilingual-e5-small,index=es-hnsw)", language="ru", engine=engine)
