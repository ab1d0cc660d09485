"""What a bench would take: a small dataset measured whole, larger ones in a straight line, nothing left behind."""

from __future__ import annotations

import os
import shutil
from collections import namedtuple

import pytest

import rusbeir
from rusbeir import forecast as forecasting
from rusbeir.errors import BadInput
from rusbeir.forecast import forecast, refuse_full_disk
from rusbeir.retrieval.dense.system import DenseSystem
from rusbeir.retrieval.models import Model
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
    (found,) = forecast("mini/ru", ["bm25"])
    assert (found.dataset, found.n_docs, found.n_queries, found.sampled) == ("mini/ru", 125, 82, 125)
    assert {name.split("/")[0] for name in cached_bytes(fresh_cache)} <= {"lemmas", "corpora", "checksums"}
    assert os.environ["RUSBEIR_CACHE"] == str(fresh_cache)
    rusbeir.bench("mini/ru", "bm25", out=fresh_cache / "results")
    written = sum(size for name, size in cached_bytes(fresh_cache).items() if name.startswith("indexes/"))
    assert found.disk_bytes == pytest.approx(written, rel=0.02), "index files of equal documents differ by some bytes"


def test_larger_ones_are_extended_from_the_first_texts(fresh_cache, monkeypatch):
    monkeypatch.setattr(forecasting, "ENOUGH_SECONDS", 0.0)
    exact, graph = forecast(made(1_000), [toy_system(), toy_system("hnsw")])
    assert exact.sampled == graph.sampled == 64
    assert exact.disk_bytes > 1_000 * 4 * DIM, "every vector, and where it is"
    # A graph holds the vectors and 64 links a vector in memory (FAISS).
    assert graph.memory_bytes - exact.memory_bytes == pytest.approx(1_000 * (4 * DIM + 4 * 64 + 16), abs=8 << 20)
    assert exact.prepare_seconds > 0 < exact.search_seconds


def test_endpoints_are_not_asked(serve, fresh_cache, caplog):
    endpoint = serve(Endpoint())
    (found,) = forecast("mini/ru", ["dense(toy-embedding,runtime=openai)"])
    assert (found.sampled, found.prepare_seconds, found.disk_bytes) == (0, None, None)
    assert not endpoint.asked
    assert "Texts are sent" not in caplog.text


def test_a_disk_that_is_too_small_is_one_line(fresh_cache, monkeypatch):
    usage = namedtuple("usage", "total used free")
    found = forecast(made(200), [toy_system()])
    refuse_full_disk(found)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 10, 0))
    with pytest.raises(BadInput, match=r"would write 0\.0 GB below .*, where 0\.0 GB are free\. Set RUSBEIR_CACHE"):
        refuse_full_disk(found)


def test_no_samples_are_left_on_a_server(fresh_cache):
    with pytest.raises(BadInput, match="bm25 has its index on a server; only systems on this machine are timed"):
        forecast("mini/ru", ["bm25"], engine="elasticsearch")
