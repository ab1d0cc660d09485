"""The run of Elasticsearch and the run of the embedded engine are the same, query by query."""

from __future__ import annotations

import sys

import pytest

from rusbeir.datasets import load
from rusbeir.experiment import bench
from rusbeir.retrieval import resolve
from rusbeir.retrieval.run_cache import search_without_self
from rusbeir.types import Dataset, Doc, Run
from tests.support.elastic_answers import agree

DEPTH = 100

COMPARED = [
    # dataset, system, titles, why
    ("xquad/ru", "bm25(profile=rusbeir-paper)", "none", "the paper's baseline"),
    ("xquad/ru", "bm25(profile=rusbeir-paper)", "some", "best_fields where a third of the documents have no title"),
    ("xquad/en", "bm25(profile=es-best_fields)", "some", "another language"),
    ("xquad/es", "bm25(fields=sum)", "some", "both fields added"),
    ("xquad/de", "bm25", "some", "title and text in one field"),
    ("mini/ru", "bm25(profile=blend)", "some", "words and their grams"),
    ("cocktail/nfcorpus/human", "bm25(profile=es-best_fields)", "some", "long and short documents, rare words"),
    ("cocktail/nfcorpus/mixed", "bm25(profile=lucene-english)", "none", "thousands of near-copies, hence ties"),
]


class Titled:
    """A corpus in which two documents of three have the first words of their text as title."""

    def __init__(self, docs: list[Doc]) -> None:
        self._docs = {
            doc.doc_id: doc._replace(title="" if row % 3 == 0 else " ".join(doc.text.split()[: 3 + row % 5]))
            for row, doc in enumerate(docs)
        }

    def __len__(self) -> int:
        return len(self._docs)

    def __iter__(self):
        return iter(self._docs.values())

    def __getitem__(self, doc_id: str) -> Doc:
        return self._docs[doc_id]


@pytest.mark.parametrize(("name", "system", "titles", "why"), COMPARED)
@pytest.mark.usefixtures("elasticsearch", "shared_data")
def test_the_engines_agree(name, system, titles, why, capfd):
    dataset = load(name)
    corpus = Titled(list(dataset.corpus)) if titles == "some" else dataset.corpus
    runs = []
    for engine in ("tantivy", "elasticsearch"):
        resolved = resolve(system, language=dataset.card.language, engine=engine)
        ready = resolved.prepare(corpus, f"{dataset.fingerprint} {titles}")
        runs.append(ready.retriever.search(dataset.queries, DEPTH))
    embedded, server = runs
    compared = sum(agree(dict(embedded[query_id]), dict(server[query_id])) for query_id in dataset.queries)
    assert compared > 20 * len(dataset.queries), "queries have many hits"
    with capfd.disabled():
        sys.stdout.write(
            f"\n{name}, {system}, titles in {titles}: {len(embedded):,} queries, {compared:,} hits compared\n"
        )


@pytest.mark.usefixtures("elasticsearch")
@pytest.mark.parametrize("system", ["bm25", "rrf(bm25,bm25(profile=raw),depth=20)"])
def test_the_engines_agree_where_queries_are_documents(system):
    """Each document stands there twice; no query finds itself, under either of its ids."""
    docs = [doc._replace(doc_id=doc.doc_id + suffix) for suffix in ("", "#2") for doc in load("mini/ru").corpus]
    corpus, queries = Titled(docs), {doc.doc_id: doc.text for doc in load("mini/ru").corpus}
    suffixes = ("", "#2")
    runs = []
    for engine in ("tantivy", "elasticsearch"):
        resolved = resolve(system, language="ru", engine=engine, self_suffixes=suffixes)
        ready = resolved.prepare(corpus, "mini/ru twice")
        runs.append(search_without_self(ready.retriever, queries, 10, suffixes))
    embedded, server = runs
    assert all({query_id, f"{query_id}#2"}.isdisjoint(hits) for query_id, hits in server.items())
    compared = sum(agree(dict(embedded[query_id]), dict(server[query_id])) for query_id in queries)
    assert compared > 5 * len(queries)


def test_the_comparison_sees_a_difference():
    run: Run = {"a": 3.0, "b": 2.0, "c": 2.0}
    assert agree(dict(run), {"a": 3.0, "c": 2.0, "b": 2.0}) == 3
    assert agree(dict(run), {"a": 3.0, "c": 2.0, "z": 2.0}) == 3
    for other in ({"b": 3.0, "a": 2.0, "c": 2.0}, {"a": 3.0, "b": 2.001, "c": 2.0}, {"a": 3.0, "b": 2.0}):
        with pytest.raises(AssertionError):
            agree(dict(run), other)


@pytest.mark.usefixtures("elasticsearch", "shared_data")
def test_the_papers_figure(tmp_path):
    from rusbeir.experiment import bench

    row = bench("xquad/ru", "bm25(profile=rusbeir-paper)", engine="elasticsearch", out=tmp_path)
    expected = {"nDCG@10": 95.86, "AP@10": 94.73, "R@10": 99.24}
    for name, value in expected.items():
        assert 100 * row["measures"][name] == pytest.approx(value, abs=0.01)
    assert row["engine"] == "elasticsearch"


@pytest.mark.usefixtures("elasticsearch", "shared_data")
def test_cocktails_figure(tmp_path):
    from rusbeir.experiment import bench

    system = "bm25(profile=lucene-english)"
    row = bench("cocktail/nfcorpus/mixed", system, engine="elasticsearch", out=tmp_path, measures=["nDCG@1"])
    assert 100 * row["measures_answered"]["nDCG@1"] == pytest.approx(45.4, abs=0.1)


@pytest.mark.usefixtures("elasticsearch")
def test_many_queries_without_results_are_warned_of(tmp_path, caplog):
    """As on the embedded engines, where test_experiment.py finds the bound."""
    queries = {f"q{number}": f"слово{number}" for number in range(20)}
    docs = [{"_id": str(number), "text": f"слово{number}"} for number in range(18)]
    dataset = Dataset.of(docs, queries, {query_id: {"0": 1} for query_id in queries}, language="ru")
    assert bench(dataset, "bm25(profile=raw)", engine="elasticsearch", out=tmp_path)["n_zero_hit"] == 2
    assert "2 of 20 queries of in-memory have no results (10.0 %)" in caplog.text
