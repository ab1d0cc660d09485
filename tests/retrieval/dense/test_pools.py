"""Pools of texts in batches of similar length: the same bytes whatever the batches, the pools and the kills."""

from __future__ import annotations

import contextlib
import time

import numpy as np
import pytest

from rusbeir.costs import CarriedSeconds
from rusbeir.errors import BackendError
from rusbeir.retrieval.encoding import encoded_corpus, pools
from rusbeir.retrieval.encoding.embedding_store import EmbeddingStore
from rusbeir.retrieval.encoding.pools import Encoding
from tests.support.killing import kill_eight_times
from tests.support.toy_encoder import Toy, ToyPools, build, uneven

N = 800


@pytest.fixture(autouse=True)
def _small_pools(monkeypatch):
    monkeypatch.setattr(pools, "POOL_TEXTS", 300)


def files(folder):
    return [(folder / name).read_bytes() for name in ("store/vectors", "corpus/rows.u32")]


class Noiseless(ToyPools):
    """Vectors that do not depend on the batch."""

    def _encode(self, texts):
        return np.concatenate([super(Noiseless, self)._encode([text]) for text in texts])


@pytest.mark.parametrize(
    ("n_pool", "batch_words", "seconds"),
    [(N, 10**6, 5.0), (70, 400, 5.0), (300, 90, 0.0)],
    ids=["one batch", "pools of 70", "small batches, each written at once"],
)
def test_bytes_do_not_depend_on_pools_and_batches(tmp_path, monkeypatch, n_pool, batch_words, seconds):
    build(tmp_path / "expected", N, Noiseless())
    monkeypatch.setattr(pools, "POOL_TEXTS", n_pool)
    monkeypatch.setattr(pools, "KEEP_SECONDS", seconds)
    store = build(tmp_path / "other", N, Noiseless(batch_words=batch_words))
    assert files(tmp_path / "other") == files(tmp_path / "expected")
    texts = [f"{doc.title} {doc.text}" for doc in uneven(N)]
    alone = np.concatenate([Toy().encode_documents([text]) for text in texts])
    rows = encoded_corpus.open_folder(tmp_path / "other" / "corpus", store).rows
    assert (store.read(rows) == alone).all(), "each document has its own vector"
    assert [path.name for path in (tmp_path / "other" / "store").iterdir() if path.is_dir()] == []


def test_killed_encoding_ends_with_the_same_bytes(tmp_path, monkeypatch):
    """SIGKILL eight times within pools; batches decide the last digits, so the same ones must be computed again."""
    build(tmp_path / "whole", N, ToyPools())
    waiting = tmp_path / "killed" / "store" / "pool-corpus" / "vectors"
    kill_eight_times(Toy.__module__, [tmp_path / "killed", N, "pools"], waiting)
    toy = ToyPools()
    build(tmp_path / "killed", N, toy)
    assert sum(toy.calls) < N, "nothing was resumed"
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


@pytest.mark.parametrize(
    ("pause", "fails_at", "expected"),
    [
        (0.0, 99, [[0], [1], [2], [3], [4], [5], [6]]),
        (1e9, 99, [[0], [1, 2, 3, 4, 5, 6]]),
        (1e9, 4, [[0], [1, 2, 3]]),
        (1e9, 1, [[0]]),
        (1e9, 0, []),
    ],
    ids=["writing costs nothing", "writing costs much", "a failure", "after the first part", "at once"],
)
def test_parts_are_joined_as_writing_is_dear_and_none_is_lost(monkeypatch, pause, fails_at, expected):
    def parts():
        for number in range(7):
            if number == fails_at:
                raise BackendError("no more")
            yield np.array([number])

    monkeypatch.setattr(pools, "KEEP_SECONDS", pause)
    # Each writing is then taken to have taken long.
    monkeypatch.setattr(pools, "WRITE_SHARE", 1e-30)
    pools_read = []
    with pytest.raises(BackendError) if fails_at < 7 else contextlib.nullcontext():
        pools_read.extend(rows.tolist() for rows in pools.join_for_disk(parts()))
    assert pools_read == expected


class Failing(ToyPools):
    """Fails at its sixth batch."""

    def _encode(self, texts):
        if len(self.calls) == 5:
            raise BackendError("no more")
        return super()._encode(texts)


def test_a_failed_pool_is_resumed_where_it_was(tmp_path):
    with pytest.raises(BackendError, match="no more"):
        build(tmp_path / "failed", 290, failing := Failing())
    build(tmp_path / "failed", 290, toy := ToyPools())
    build(tmp_path / "whole", 290, plain := ToyPools())
    assert failing.calls + toy.calls == plain.calls
    assert files(tmp_path / "failed") == files(tmp_path / "whole")


def test_each_text_is_tokenised_once_and_long_ones_are_counted(tmp_path):
    toy = ToyPools()
    store = build(tmp_path, N, toy)
    texts = [f"{doc.title} {doc.text}" for doc in uneven(N)]
    assert sum(toy.pools) == len(set(texts)) < N
    long = sum(len(text.split()) > 11 for text in texts)
    assert encoded_corpus.open_folder(tmp_path / "corpus", store).truncated == long > 0
    # The same from the cache, where nothing is encoded.
    again = ToyPools()
    docs = uneven(N)
    encoding = Encoding(store=store, encoder=again, name="toy")
    encoded_corpus.encode(tmp_path / "again", docs, encoding, lambda doc: [f"{doc.title} {doc.text}"])
    assert again.calls == again.pools == [], "not even its tokenizer is loaded for them"
    assert encoded_corpus.open_folder(tmp_path / "again", store).truncated == long


def test_a_stop_does_not_wait_for_the_next_pool_to_be_tokenised(tmp_path):
    class Slow(ToyPools):
        def __init__(self):
            super().__init__()
            self.read = 0

        def tokenize(self, texts, *, queries):
            return super().tokenize(map(self._read, texts), queries=queries)

        def _read(self, text):
            self.read += 1
            time.sleep(0.02 * bool(self.pools))
            return text

        def _encode(self, texts):
            raise KeyboardInterrupt

    slow = Slow()
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path, N, slow)
    assert slow.read < 500


def test_queries_come_in_their_order_and_progress_never_falls(tmp_path, monkeypatch):
    monkeypatch.setattr(pools, "KEEP_SECONDS", 0.0)
    queries = {doc.doc_id: doc.text for doc in uneven(700)}
    seen = []
    store = EmbeddingStore(tmp_path, "float32")
    encoding = Encoding(
        store=store, encoder=Noiseless(), name="toy",
        progress=lambda what, done, total: seen.append((what, done, total)),
    )  # fmt: skip
    rows = encoded_corpus.encode_queries(queries, encoding, CarriedSeconds())
    alone = np.concatenate([Toy().encode_queries([text]) for text in queries.values()])
    assert (store.read(rows) == alone).all()
    assert seen == sorted(seen)
    assert seen[-1] == ("encode queries", 700, 700)
    assert len({done for _, done, _ in seen}) > 10


def test_a_wrong_batch_is_refused_and_not_kept(tmp_path):
    class Wrong(ToyPools):
        def _encode(self, texts):
            return super()._encode(texts) * np.float32("nan")

    encoding = Encoding(store=EmbeddingStore(tmp_path, "float32"), encoder=Wrong(), name="dense(toy)")
    with pytest.raises(BackendError, match=r"dense\(toy\) returned NaN or infinity"):
        encoded_corpus.encode_queries({"q": "one"}, encoding, CarriedSeconds())
    assert len(EmbeddingStore(tmp_path, "float32")) == 0
