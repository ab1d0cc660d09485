"""What a bench would take: a small dataset measured whole, larger ones in a straight line, nothing left behind."""

from __future__ import annotations

import math
import os
import shutil
from collections import namedtuple
from dataclasses import replace
from types import SimpleNamespace

import pytest

import rusbeir
from rusbeir import forecast as forecasting
from rusbeir.errors import BadInput
from rusbeir.forecast import forecast, refuse_full_disk
from rusbeir.retrieval import resolve
from rusbeir.retrieval.dense import approximate as approximate_index
from rusbeir.retrieval.dense.system import DenseSystem
from rusbeir.retrieval.models.settings import Model
from tests.support.openai_server import Endpoint
from tests.support.toy_encoder import Toy

DIM = 32


def toy_system(index: str = "exact") -> DenseSystem:
    return DenseSystem(name="dense(toy)", model=Model(name="toy", separator=" "), encoder=Toy(DIM), index=index)


def made(n_docs: int) -> rusbeir.Dataset:
    corpus = [{"_id": f"d{n}", "text": f"слово{n} число{n % 7}"} for n in range(n_docs)]
    return rusbeir.Dataset.of(corpus, {"q": "слово1", "r": "число2"}, {"q": {"d1": 1}, "r": {"d2": 1}}, language="ru")


def cached_bytes(folder) -> dict[str, int]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.stat().st_size for path in files}


def test_a_small_dataset_is_timed_whole_and_nothing_stays(fresh_cache):
    (entry,) = forecast("mini/ru", ["bm25"])
    assert (entry.dataset, entry.n_docs, entry.n_queries, entry.sampled) == ("mini/ru", 125, 82, 125)
    assert {name.split("/")[0] for name in cached_bytes(fresh_cache)} <= {"lemmas", "corpora", "checksums"}
    assert os.environ["RUSBEIR_CACHE"] == str(fresh_cache)
    rusbeir.bench("mini/ru", "bm25", out=fresh_cache / "results")
    written = sum(size for name, size in cached_bytes(fresh_cache).items() if name.startswith("indexes/"))
    assert entry.disk_bytes == pytest.approx(written, rel=0.02), "index files of equal documents differ by some bytes"


def test_larger_ones_are_extended_from_the_first_texts(fresh_cache, monkeypatch):
    monkeypatch.setattr(forecasting, "ENOUGH_SECONDS", 0.0)
    exact, graph = forecast(made(1_000), [toy_system(), toy_system("hnsw")])
    assert exact.sampled == graph.sampled == 64
    assert exact.disk_bytes > 1_000 * 4 * DIM, "every vector, and where it is"
    # A graph holds the vectors and 64 links a vector in memory (FAISS).
    assert graph.memory_bytes - exact.memory_bytes == pytest.approx(1_000 * (4 * DIM + 4 * 64 + 16), abs=8 << 20)
    assert exact.prepare_seconds > 0 < exact.search_seconds


class Slow(Toy):
    """As an encoder: 100 seconds to load, a second a document and a tenth a query. As a reranker: ever slower."""

    pointwise = True

    def __init__(self):
        super().__init__(DIM)
        self.now = 0.0

    def encode_documents(self, texts):
        self.now += len(texts) + 100.0 * (not self.calls)
        return super().encode_documents(texts)

    def encode_queries(self, texts):
        self.now += 0.1 * len(texts)
        return super().encode_queries(texts)

    def score(self, query, documents):
        self.calls.append(len(documents))
        self.now += (1 + len(self.calls) / 100) * len(documents)
        return [0.0] * len(documents)


@pytest.fixture
def slow(monkeypatch):
    made = Slow()
    monkeypatch.setattr(forecasting, "time", SimpleNamespace(perf_counter=lambda: made.now))
    return made


def test_loading_a_model_is_not_taken_for_its_speed(fresh_cache, slow):
    (entry,) = forecast(made(1_000), [replace(toy_system(), encoder=slow)])
    assert entry.sampled == 64
    assert (entry.prepare_seconds, entry.search_seconds) == pytest.approx((1_000.1, 0.2))
    assert entry.disk_bytes < 1_000 * (4 * DIM + 100) + (1 << 16), "the first page of a database is not each document's"


def test_noise_in_reranking_does_not_grow_with_the_corpus(fresh_cache, slow, monkeypatch):
    monkeypatch.setattr(forecasting, "MOST_SAMPLED", 100)
    spec = "bm25(profile=raw) >> rerank(python:tests.support.cluster_models.Near,depth=10)"
    corpus = [{"_id": f"d{n}", "text": f"слово число{n}"} for n in range(5_000)]
    dataset = rusbeir.Dataset.of(corpus, {"q": "слово"}, {"q": {"d1": 1}}, language="ru")
    (entry,) = forecast(dataset, [replace(resolve(spec, language="ru"), reranker=slow)])
    assert entry.search_seconds == pytest.approx(10 * (1 + len(slow.calls) / 100)), "as in the last sample"


def test_hits_of_all_queries_are_in_memory(fresh_cache, monkeypatch):
    monkeypatch.setattr(forecasting, "peak_rss", lambda: 0)
    many = {f"q{n}": f"слово{n}" for n in range(5_000)}
    dataset = replace(made(1_000), queries=many, qrels={query_id: {"d1": 1} for query_id in many})
    shallow, deep = forecast(dataset, ["bm25"], k=1)[0], forecast(dataset, ["bm25"], k=2_000)[0]
    assert deep.memory_bytes - shallow.memory_bytes == 5_000 * 999 * 160


@pytest.mark.parametrize("index", ["hnsw", "ivf"])
def test_an_index_that_is_built_at_the_first_search_is_on_the_disk(fresh_cache, monkeypatch, caplog, index):
    monkeypatch.setattr(forecasting, "ENOUGH_SECONDS", math.inf)
    exact, approximate = forecast(made(4_000), [toy_system(), toy_system(index)])
    size = approximate_index.KINDS[index].count_bytes(4_000, DIM)
    assert approximate.disk_bytes - exact.disk_bytes == pytest.approx(size, abs=1 << 16)
    assert "recall@" not in caplog.text, "that of a sample"


def test_endpoints_are_not_asked(serve, fresh_cache, caplog):
    endpoint = serve(Endpoint())
    (entry,) = forecast("mini/ru", ["dense(toy-embedding,runtime=openai)"])
    assert (entry.sampled, entry.prepare_seconds, entry.disk_bytes) == (0, None, None)
    assert not endpoint.asked
    assert "Texts are sent" not in caplog.text


def test_a_disk_that_is_too_small_is_one_line(fresh_cache, monkeypatch):
    usage = namedtuple("usage", "total used free")
    forecasts = forecast(made(200), [toy_system()])
    refuse_full_disk(forecasts)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 10, 0))
    with pytest.raises(BadInput, match=r"would write 0\.0 GB below .*, where 0\.0 GB are free\. Set RUSBEIR_CACHE"):
        refuse_full_disk(forecasts)


def test_no_samples_are_left_on_a_server(fresh_cache):
    with pytest.raises(BadInput, match="bm25 has its index on a server; only systems on this machine are timed"):
        forecast("mini/ru", ["bm25"], engine="elasticsearch")
