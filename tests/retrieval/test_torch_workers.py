"""Models on the workers of a cluster compute what they compute in this process."""

from __future__ import annotations

import asyncio
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from rusbeir.cluster import Deployed
from rusbeir.retrieval import resolve
from rusbeir.retrieval.models import batches as token_batches
from tests.support import tiny_encoders

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("fresh_cache")]


POOLED = [
    # system, its reranker or encoder
    ("dense({cls},max_tokens=40)", "encoder"),
    ("dense({m3},like=bge-m3,runtime=flagembedding,max_tokens=40)", "encoder"),
    ("sparse({m3},like=bge-m3,max_tokens=40)", "encoder"),
    ("late({late})", "encoder"),
    ("bm25 >> rerank({late})", "reranker"),
    ("bm25 >> rerank({cross},max_tokens=40)", "reranker"),
    ("bm25 >> rerank({cross},runtime=flagembedding,max_tokens=40)", "reranker"),
    ("bm25 >> rerank({m3},runtime=bge-m3-sparse,max_tokens=40)", "reranker"),
    ("bm25 >> rerank({m3},runtime=bge-m3-multivector,max_tokens=40)", "reranker"),
]


@pytest.mark.parametrize(("system", "part"), POOLED, ids=[system for system, _ in POOLED])
def test_workers_of_a_cluster_compute_the_same_batches(models, monkeypatch, system, part):
    """Tokenised in pieces of 32 texts, computed in calls of one batch or several, some of them done before."""
    from rusbeir.retrieval import remote
    from rusbeir.retrieval.encoding.encoder import gather
    from rusbeir.retrieval.rerank import flagembedding

    monkeypatch.setitem(token_batches.BATCH_TOKENS, "cpu", 100)
    monkeypatch.setattr(remote, "CHUNK_TEXTS", 32)
    monkeypatch.setattr(flagembedding, "CALL_PAIRS", 8)
    made = getattr(resolve(system.format(**models), language="ru"), part)
    texts = tiny_encoders.uneven(150)
    workers = ThreadWorkers()
    if part == "encoder":
        away = remote.deploy_encoder(workers, made)
        tokens = [model.tokenize(texts, queries=False) for model in (made, away)]
        done = {index for batch in list(tokens[0].batches())[1::3] for index in batch.tolist()}
        compute = [
            lambda keep, model=model, read=read: model.encode_tokens(read, done, keep)
            for model, read in zip((made, away), tokens, strict=True)
        ]
        assert away.count_truncated(texts) == made.count_truncated(texts) == sum(tokens[0].over_length) > 0
    else:
        away = remote.deploy_reranker(workers, made)
        pairs = [(texts[number % 7], text) for number, text in enumerate(texts)]
        tokens = [model.tokenize_pairs(pairs) for model in (made, away)]
        compute = [
            lambda keep, model=model, read=read: model.score_tokens(read, keep)
            for model, read in zip((made, away), tokens, strict=True)
        ]
        assert list(away.are_truncated(texts[3], texts)) == list(made.are_truncated(texts[3], texts))
        assert made.score(texts[0], []) == away.score(texts[0], []) == []
    assert list(tokens[0].over_length) == list(tokens[1].over_length)
    assert 0 < sum(tokens[0].over_length) < len(texts)
    assert away.truncation == made.truncation
    here, there = (rows.vectors if part == "encoder" and "late" in system else rows for rows in map(gather, compute))
    # Queries that several batches share are computed again for each, in other batches.
    within = 1e-6 * abs(here).max() if part == "reranker" and ("bge-m3" in system or "late" in system) else 0
    assert abs(here - there).max() <= within
    assert max(workers.batches) > 1 == min(workers.batches)


class ThreadWorkers:
    """Two workers that are threads of this process; what they get and answer is pickled."""

    def __init__(self):
        self.batches = []
        self._threads = ThreadPoolExecutor(8)

    def __len__(self):
        return 2

    def deploy(self, make, *, signature, at_once):
        self._server = make()
        assert self._server.signature == signature
        return Deployed(self, "", None, signature, at_once)

    def submit(self, deployed, method, args):
        if method == "compute":
            self.batches.append(args[1])
        return self._threads.submit(self._answer, method, pickle.dumps(args))

    def _answer(self, method, args):
        async def ask():
            answer = getattr(self._server, method)
            answer = answer(*pickle.loads(args)) if callable(answer) else answer
            return await answer

        return pickle.loads(pickle.dumps(asyncio.run(ask())))
