"""A language model that reranks in batches and by files: the same hits as one by one."""

from __future__ import annotations

import math

import pytest

from rusbeir.datasets import load
from rusbeir.errors import BadInput, Suspended
from rusbeir.experiment import Request, bench_all
from rusbeir.jobs import Limits
from rusbeir.retrieval import RunSettings, resolve
from tests.support.batch_files import answer_file
from tests.support.batch_server import BatchServer
from tests.support.openai_server import completion, refusal

SYSTEM = "bm25 >> rerank(tiny,runtime=llm,depth=5,input_price=1,output_price=2)"


def judge(body):
    """A model that likes long documents, and says neither yes nor no of one in ten."""
    n = len(body["messages"][-1]["content"])
    chance = (n % 97 + 1) / 99
    top = {"Hm": -0.1} if n % 10 == 0 else {"yes": math.log(chance), "no": math.log(1 - chance)}
    assert body["top_logprobs"] == 20
    return completion("yes", top_tokens=top, tokens=(n, 1))


@pytest.fixture(scope="module")
def mini():
    return load("mini/ru")


@pytest.fixture
def provider(monkeypatch):
    with BatchServer(judge) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key")
        yield server


def rerank(mini, settings, system=SYSTEM):
    queries = dict(list(mini.queries.items())[:8])
    ready = resolve(system, language="ru").prepare(mini.corpus, "f", settings)
    return {query_id: list(hits.items()) for query_id, hits in ready.retriever.search(queries, 5).items()}


def test_batches_bring_the_same_hits(provider, mini, fresh_cache, monkeypatch, tmp_path):
    monkeypatch.setattr("rusbeir.retrieval.rerank.batched.LIMITS", _quick())
    batched = RunSettings(batching={"batch": 0.5})
    hits = rerank(mini, batched)
    assert provider.calls["POST /batches"] == 1, "the pairs of all queries are sent together"
    assert provider.calls["POST /chat/completions"] == 0
    assert set(provider.paid.values()) == {1}
    (client,) = batched.clients
    tokens = client.meter.spent
    assert tokens.requests == provider.paid.total()
    assert tokens.cost == pytest.approx((tokens.input_tokens + 2 * tokens.output_tokens) / 1e6 / 2)
    assert rerank(mini, RunSettings()) == hits, "scores come from the cache, whoever was asked"
    assert provider.calls["POST /chat/completions"] == 0
    monkeypatch.setenv("RUSBEIR_CACHE", str(tmp_path / "live"))
    assert rerank(mini, RunSettings()) == hits
    assert provider.calls["POST /chat/completions"] == provider.paid.total() / 2


def test_files_bring_the_same_hits(provider, mini, fresh_cache, monkeypatch, tmp_path):
    live = rerank(mini, RunSettings())
    monkeypatch.setenv("RUSBEIR_CACHE", str(tmp_path / "files"))
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(Suspended, match="requests are written to"):
        rerank(mini, RunSettings(batching={"batch_out": tmp_path / "r.jsonl"}))
    answer_file(tmp_path / "r.jsonl", tmp_path / "a.jsonl", judge, seed=1)
    assert rerank(mini, RunSettings(batching={"batch_in": [tmp_path / "a.jsonl"]})) == live


def test_what_is_under_way_is_not_asked_one_by_one(provider, mini, fresh_cache, monkeypatch):
    monkeypatch.setattr("rusbeir.retrieval.rerank.batched.LIMITS", _quick())
    provider.refusals["GET /batches/ID"] = [refusal(401, "expired")]
    with pytest.raises(BadInput, match="does not accept the key"):
        rerank(mini, RunSettings(batching={"batch": True}))
    with pytest.raises(BadInput, match="1 batches of this job are under way"):
        rerank(mini, RunSettings())
    rerank(mini, RunSettings(batching={"batch": True}))
    assert set(provider.paid.values()) == {1}


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("bm25 >> rerank(tiny,runtime=llm-list,depth=5)", "Only language models that score each document"),
        ("bm25 >> rerank(bge-reranker-v2-m3)", "Only language models that score each document"),
    ],
)
def test_other_rerankers_are_refused(provider, mini, fresh_cache, system, message):
    with pytest.raises(BadInput, match=message):
        rerank(mini, RunSettings(batching={"batch": True}), system)


def test_bench_says_that_nothing_is_sent(provider, fresh_cache, tmp_path):
    request = Request(out=tmp_path / "results", batching={"batch": True})
    _, failed = bench_all(["mini/ru"], ["bm25"], request)
    assert "bm25 asks no language model, so nothing is sent in batches" in str(failed[0].error)


def _quick():
    return Limits(concurrency=2, retries=1, first_wait_seconds=0.0, max_wait_seconds=0.01)
