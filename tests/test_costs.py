"""What a row says that a system costs, with and without a cache."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import rusbeir
from rusbeir.processes import reset_peak_rss

PAUSE = 0.5
"""Seconds that the slow models take for each call; no search of mini/ru takes as long."""

MODULE = """
import time
from types import SimpleNamespace
import numpy as np

def _encode(texts):
    return np.array([[np.cos(len(text)), np.sin(len(text))] for text in texts], np.float32)

def _slowly(texts):
    time.sleep(0.5)
    return _encode(texts)

def encoder():
    return SimpleNamespace(signature="slow-encoder", encode_queries=_slowly, encode_documents=_encode)

def _score(query, documents):
    time.sleep(0.05)
    return [float(len(document)) for document in documents]

def reranker():
    return SimpleNamespace(signature="slow-reranker", score=_score, pointwise=True)

def big_encoder():
    def encode(texts):
        held = np.ones(400_000_000, np.uint8)
        return _encode(texts) * held[0]
    return SimpleNamespace(signature="big-encoder", encode_queries=encode, encode_documents=encode)
"""


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_models.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUSBEIR_CACHE", str(tmp_path / "cache"))


DENSE = "dense(python:slow_models.encoder)"
CARRIED = [
    # First system, second system: what the first computed is in the cache of the second.
    (DENSE, DENSE),
    (DENSE, f"rrf(bm25,{DENSE})"),
    (f"rrf(bm25,{DENSE})", f"rrf(bm25,{DENSE})"),
    (f"rrf(bm25,{DENSE})", f"minmax(bm25,{DENSE})"),
    ("bm25 >> rerank(python:slow_models.reranker)", "bm25 >> rerank(python:slow_models.reranker)"),
]


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize(("first", "second"), CARRIED)
def test_seconds_that_the_cache_saves_are_charged(first: str, second: str) -> None:
    """A lower bound, which no load breaks: the models sleep for half a second."""
    row = rusbeir.bench("mini/ru", first, out="a", force=True)
    again = rusbeir.bench("mini/ru", second, out="b", force=True)
    assert row["costs"] == again["costs"] == 2
    assert row["seconds"]["search"] >= PAUSE
    assert again["seconds"]["search"] >= PAUSE
    assert "peak_rss" not in again["bytes"]


@pytest.mark.usefixtures("models")
def test_seconds_that_an_old_cache_does_not_know_are_left_out(tmp_path: Path) -> None:
    rusbeir.bench("mini/ru", DENSE, out="a")
    (path,) = (tmp_path / "cache").rglob("queries/rows.sqlite")
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE seconds")
    for system in (DENSE, f"rrf(bm25,{DENSE})", f"rrf({DENSE},bm25)"):
        assert list(rusbeir.bench("mini/ru", system, out="b", force=True)["seconds"]) == [
            "analyse",
            "index",
            "evaluate",
        ]


@pytest.mark.usefixtures("models")
def test_memory_of_an_earlier_system_is_not_charged() -> None:
    big = rusbeir.bench("mini/ru", "dense(python:slow_models.big_encoder)", out="a")
    small = rusbeir.bench("mini/ru", "bm25", out="a")
    if reset_peak_rss() is None:
        assert "peak_rss" not in big["bytes"] | small["bytes"]
    else:
        assert big["bytes"]["peak_rss"] > 400_000_000
        assert small["bytes"]["peak_rss"] < 200_000_000
