"""Exact MaxSim against comparing everything, and the store of token vectors through kills; models are arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval.encoding.token_vectors import TokenVectors
from rusbeir.retrieval.late import maxsim
from rusbeir.retrieval.late.system import LateSystem
from rusbeir.retrieval.late.token_store import TokenStore
from rusbeir.retrieval.models.settings import Model
from rusbeir.types import Doc
from tests.support import toy_tokens
from tests.support.killing import kill_eight_times
from tests.support.stubs import Docs
from tests.support.toy_tokens import ToyTokens, build, token_vectors

N = 400


def random_vectors(generator, n: int, dim: int = 3, most: int = 6) -> TokenVectors:
    """Texts with few distinct numbers, so that ties are everywhere, some without vectors."""
    lengths = generator.integers(0, most, n)
    vectors = generator.integers(-2, 3, (int(lengths.sum()), dim)) / np.float32(2)
    return TokenVectors(vectors=vectors.astype(np.float32), borders=np.concatenate([[0], np.cumsum(lengths)]))


def make_store(folder, documents: TokenVectors) -> TokenStore:
    store = TokenStore(folder, "float16")
    for start in range(0, len(documents), 7):
        part = documents[np.arange(start, min(start + 7, len(documents)))]
        checked = store.check(part, [""] * len(part), "toy")
        store.find_or_add([str(start + row) for row in range(len(part))], lambda _, part=checked: [part])
    return store


def compare_everything(queries: TokenVectors, documents: TokenVectors, rows, k: int):
    """The formula, pair by pair: the sum of the greatest products; a document without vectors is last."""
    for query in queries:
        scores = [
            float((query @ document.T).max(axis=1).sum()) if len(document) else -1e9 for document in documents[rows]
        ]
        order = sorted(range(len(rows)), key=lambda index: (-scores[index], index))[:k]
        yield [scores[index] for index in order], order


@settings(max_examples=60)
@given(st.integers(1, 30), st.integers(1, 35), st.integers(1, 200), st.integers(0, 1 << 30))
def test_equal_to_comparing_everything_whatever_the_blocks(tmp_path_factory, n, k, block_numbers, seed):
    generator = np.random.default_rng(seed)
    documents, queries = random_vectors(generator, n), random_vectors(generator, 4)
    rows = generator.integers(0, n, generator.integers(1, 2 * n + 1)).astype(np.uint32)
    reader = make_store(tmp_path_factory.mktemp("store"), documents).open_reader()
    hits = maxsim.search(queries, reader, rows, k, block_numbers=block_numbers)
    assert [(scores.tolist(), numbers.tolist()) for scores, numbers in hits] == list(
        compare_everything(queries, documents, rows, k)
    )


def test_blocks_and_groups_of_queries_give_the_same_bits(tmp_path, monkeypatch):
    generator = np.random.default_rng(3)
    documents, queries = (
        TokenVectors(vectors=part.vectors + generator.random(part.vectors.shape, np.float32), borders=part.borders)
        for part in (random_vectors(generator, 60, 8), random_vectors(generator, 5, 8))
    )
    reader, rows = make_store(tmp_path, documents).open_reader(), np.arange(60, dtype=np.uint32)
    whole = maxsim.search(queries, reader, rows, 10)
    monkeypatch.setattr(maxsim, "QUERY_TOKENS", 4)
    for block_numbers in range(1, 3_000, 37):
        for hits, expected in zip(
            maxsim.search(queries, reader, rows, 10, block_numbers=block_numbers), whole, strict=True
        ):
            assert [part.tobytes() for part in hits] == [part.tobytes() for part in expected]


def test_contract(fresh_cache):
    docs = Docs([Doc("a", "кошка ловит мышь"), Doc("copy", "кошка ловит мышь"), Doc("b", "собака"), Doc("empty", "")])
    prepared = LateSystem(name="late(toy)", model=Model(name="toy"), encoder=ToyTokens()).prepare(docs, "f")
    hits = prepared.retriever.search({"q": "кошка ловит", "none": ""}, 9)
    assert list(hits["q"]) == ["a", "copy", "b", "empty"]
    assert hits["q"]["a"] == hits["q"]["copy"]
    assert hits["none"] == {"a": 0.0, "copy": 0.0, "b": 0.0, "empty": -1e9}, "a query without vectors tells none apart"
    assert list(prepared.retriever.search({"q": "кошка"}, 1)["q"]) == ["a"], "of equal ones at the cut the first stays"
    assert prepared.retriever.search({}, 3) == {}
    with pytest.raises(BadInput, match="k is 0"):
        prepared.retriever.search({"q": "кошка"}, 0)
    # Seven words of four texts, two of them the same, in half precision.
    assert prepared.index_bytes == 2 * toy_tokens.DIM * (3 + 3 + 1)
    again = LateSystem(name="late(toy)", model=Model(name="toy"), encoder=ToyTokens()).prepare(docs, "f")
    assert again.reused


def test_killed_encoding_ends_with_the_same_bytes(tmp_path, monkeypatch):
    """SIGKILL eight times, each soon after another batch was written; then let it finish, and compare."""
    build(tmp_path / "whole", N, ToyTokens())
    waiting = tmp_path / "killed" / "store" / "pool-corpus" / "tokens"
    kill_eight_times(toy_tokens.__name__, [tmp_path / "killed", N], waiting)
    toy, whole = ToyTokens(), ToyTokens()
    build(tmp_path / "killed", N, toy)
    build(tmp_path / "again", N, whole)
    assert len(toy.calls) < len(whole.calls), "nothing was resumed"
    monkeypatch.setattr(TokenStore, "read_texts", 7)
    build(tmp_path / "parts", N, ToyTokens())
    for name in ("tokens", "vectors"):
        first, *others = (
            (tmp_path / which / "store" / name).read_bytes() for which in ("whole", "killed", "again", "parts")
        )
        assert all(other == first for other in others), name


WRONG = [
    # what is made of the encoder's answer, error, part of the message
    (lambda answer: answer[[0]], BackendError, "1 rows of token vectors for 2 texts"),
    (lambda answer: answer.vectors, BackendError, "a ndarray of token vectors for 2 texts"),
    (lambda answer: TokenVectors(vectors=answer.vectors * np.float32("nan"), borders=answer.borders), BackendError,
     "NaN or infinity for the text 'one'"),
    (lambda answer: TokenVectors(vectors=answer.vectors[:, :3], borders=answer.borders), BadInput,
     "vectors of 3 dimensions; the cached ones have 8"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "error", "part"), WRONG, ids=[row[2] for row in WRONG])
def test_a_wrong_answer_is_refused_and_not_kept(tmp_path, change, error, part):
    store = TokenStore(tmp_path, "float16")
    store.find_or_add(["zero"], lambda new: [store.check(token_vectors(new), new, "toy")])
    with pytest.raises(error, match=part):
        store.find_or_add(["one", "two"], lambda new: [store.check(change(token_vectors(new)), new, "toy")])
    assert len(store) == 1
