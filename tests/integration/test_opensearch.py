"""OpenSearch, 2 and 3: the scores of the embedded engine, nothing lost, the same diagnosis and the same credentials.

The contract of engines (tests/retrieval/test_lexical.py) is tested on OpenSearch 3, too.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rusbeir.datasets import load
from rusbeir.errors import BackendError
from rusbeir.experiment import bench
from rusbeir.retrieval import resolve
from rusbeir.retrieval.elasticsearch import connection, indexes, vectors
from rusbeir.retrieval.elasticsearch.diagnose import examine
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.lexical.engines import IndexKey
from tests.support import killed_load
from tests.support.elastic_answers import agree
from tests.support.killing import kill_eight_times
from tests.support.stubs import build, open_built, recipe, retriever
from tests.support.tls_proxy import tls_proxy

DEPTH = 100
KEY = "c2VjcmV0LWlkOnNlY3JldC1rZXk="
COMPARED = [
    ("xquad/ru", "bm25(profile=rusbeir-paper)"),
    ("cocktail/nfcorpus/human", "bm25(profile=es-best_fields)"),
    ("mini/ru", "bm25(profile=blend)"),
]


@pytest.mark.parametrize(("name", "system"), COMPARED)
@pytest.mark.usefixtures("shared_data")
def test_scores_are_those_of_the_embedded_engine(opensearch, name, system):
    dataset = load(name)
    runs = []
    for engine in ("tantivy", f"opensearch@{opensearch.url}"):
        ready = resolve(system, language=dataset.card.language, engine=engine).prepare(
            dataset.corpus, dataset.fingerprint
        )
        runs.append(ready.retriever.search(dataset.queries, DEPTH))
    embedded, server = runs
    compared = sum(agree(dict(embedded[query_id]), dict(server[query_id])) for query_id in dataset.queries)
    assert compared > 20 * len(dataset.queries), "queries have many hits"


@pytest.mark.usefixtures("shared_data")
def test_the_papers_figure_on_opensearch_2(opensearch_2, tmp_path):
    """Its BM25 has the factor k1 + 1 under the old name."""
    engine = f"opensearch@{opensearch_2.url}"
    row = bench("xquad/ru", "bm25(profile=rusbeir-paper)", engine=engine, out=tmp_path)
    for name, value in {"nDCG@10": 95.86, "AP@10": 94.73, "R@10": 99.24}.items():
        assert 100 * row["measures"][name] == pytest.approx(value, abs=0.01)
    assert row["engine"] == "opensearch"
    assert "opensearch-2.19|len:lucene" in row["signature"]


def test_a_killed_load_goes_on_where_it_stood(opensearch, tmp_path, monkeypatch):
    monkeypatch.setenv("RUSBEIR_ES_URL", opensearch.url)
    folder, counter = tmp_path / "index", tmp_path / "counter"
    counter.touch()
    kill_eight_times(killed_load.__name__, [folder, counter, "opensearch"], counter)
    server, docs = connection.connect(), list(killed_load.documents())
    name = recipe("opensearch", Bm25(), folder).name("rusbeir-bm25")
    assert indexes.find(server, name).published is False
    build(folder, docs, "opensearch")
    stats = server.ask("GET", f"/{name}/_stats/docs")["_all"]["primaries"]["docs"]
    assert (stats["count"], stats["deleted"]) == (killed_load.DOCUMENTS, 0)
    queries = {str(number): f"w{number} w{3 * number} w{number + 700}" for number in range(50)}
    embedded = retriever(tmp_path / "tantivy", docs, "tantivy").search(queries, DEPTH)
    run = open_built(folder, "opensearch").search(queries, DEPTH)
    assert sum(agree(dict(embedded[query]), dict(run[query])) for query in queries) > 50 * len(queries)


@pytest.mark.parametrize("node", ["opensearch", "opensearch_2"])
def test_doctor_finds_a_good_server(request, node):
    findings = {finding.what: finding for finding in examine(connection.connect(request.getfixturevalue(node).url))}
    assert {"reachable", "version", "licence", "health", "disk", "analyzers"} <= findings.keys()
    release = {"opensearch": "OpenSearch 3.1.0", "opensearch_2": "OpenSearch 2.19.0"}[node]
    assert findings["version"].found.startswith(f"{release}; elastic-transport ")
    assert all(findings[what].status == "good" for what in ("version", "licence", "analyzers"))
    assert all(finding.remedy for finding in findings.values() if finding.status != "good")


def test_vectors_need_a_plugin(opensearch):
    """Those of OpenSearch 2, which has it, are in test_elastic_vectors.py."""
    server, key = connection.connect(opensearch.url, "opensearch"), IndexKey(signature="bm25|x", fingerprint="f")
    with pytest.raises(BackendError, match=r"lacks the k-NN plugin.*leave out index=es-hnsw"):
        vectors.build(server, key, [("d", ("a",))], [np.eye(1, 4, dtype=np.float32)], Bm25(), 4, "hnsw")


def test_tls_and_a_root_that_may_not_be_read(opensearch, tmp_path: Path, monkeypatch):
    """A gateway before it asks for a key, and forbids to ask what it is: it is what the engine says."""
    monkeypatch.setenv("ES_API_KEY", KEY)
    monkeypatch.setenv("ES_CA_CERTS", str(tmp_path / "ca.pem"))
    with tls_proxy(opensearch.url, tmp_path, key=KEY, closed="/") as url:
        row = bench("mini/ru", engine=f"opensearch@{url}", out=tmp_path / "results")
        assert "|opensearch-3.1|len:lucene|" in row["signature"], "its nodes say it"
        assert row["measures"]["nDCG@10"] > 0.5
