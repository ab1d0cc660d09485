"""Search by weights of terms against sorting everything, and the store through kills; the model is arithmetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from rusbeir.errors import BackendError, BadInput
from rusbeir.experiment import bench
from rusbeir.retrieval import parse, resolve
from rusbeir.retrieval.encoding.embedding_store import BLOCK_TEXTS
from rusbeir.retrieval.models.settings import Model
from rusbeir.retrieval.sparse import system as sparse_system
from rusbeir.retrieval.sparse.system import SparseSystem, search
from rusbeir.retrieval.sparse.weight_store import WeightStore
from rusbeir.types import Dataset, Doc
from tests.support import toy_weights
from tests.support.killing import kill_eight_times
from tests.support.stubs import Docs
from tests.support.toy_encoder import add
from tests.support.toy_weights import ToyWeights, build, distinct, documents

N = 20 * BLOCK_TEXTS + 7


def make_store(folder: Path, weights):
    """A store of these rows, one text each, in several blocks."""
    store = WeightStore(folder)
    for start in range(0, len(weights), 7):
        part = sparse.csr_array(weights[start : start + 7])
        store.find_or_add([str(start + row) for row in range(part.shape[0])], lambda _, part=part: [part])
    return store


def sort_everything(queries, weights, rows, k):
    """Scores and places of what is above 0, by falling score and then by place."""
    scores = queries @ weights[rows].T
    for line in scores:
        order = [index for index in np.argsort(-line, kind="stable")[:k].tolist() if line[index] > 0]
        yield line[order].tolist(), order


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 45), st.integers(1, 200), st.integers(0, 1 << 30))
def test_equal_to_sorting_everything_whatever_the_blocks(tmp_path_factory, n, k, block_numbers, seed):
    """Weights of few distinct values, so that ties and rows without weights are everywhere."""
    generator = np.random.default_rng(seed)
    weights = (generator.integers(0, 3, (n, 12)) * (generator.random((n, 12)) < 0.3)).astype(np.float32)
    queries = (generator.integers(0, 3, (4, 9)) * (generator.random((4, 9)) < 0.5)).astype(np.float32)
    rows = generator.integers(0, n, generator.integers(1, 2 * n + 1)).astype(np.uint32)
    reader = make_store(tmp_path_factory.mktemp("store"), weights).open_reader()
    hits = search(sparse.csr_array(queries), reader, rows, k, block_numbers=block_numbers)
    assert [(scores.tolist(), numbers.tolist()) for scores, numbers in hits] == list(
        sort_everything(queries, weights[:, :9], rows, k)
    )


def test_blocks_of_any_size_give_the_same_bits(tmp_path):
    generator = np.random.default_rng(3)
    weights = (generator.random((60, 30)) * (generator.random((60, 30)) < 0.4)).astype(np.float32)
    reader, rows = make_store(tmp_path, weights).open_reader(), np.arange(60, dtype=np.uint32)
    queries = sparse.csr_array((generator.random((5, 30)) * (generator.random((5, 30)) < 0.4)).astype(np.float32))
    whole = search(queries, reader, rows, 10)
    for block_numbers in range(1, 5 * 60 + 1):
        for (scores, numbers), (a, b) in zip(
            search(queries, reader, rows, 10, block_numbers=block_numbers), whole, strict=True
        ):
            assert scores.tobytes() == a.tobytes()
            assert numbers.tolist() == b.tolist()


def system(toy: ToyWeights) -> SparseSystem:
    return SparseSystem(name="sparse(toy)", model=Model(name="toy"), encoder=toy)


DOCS = Docs(
    [
        Doc("cat", "кошка ловит мышь"),
        Doc("twice", "кошка кошка спит"),
        Doc("again", "кошка ловит мышь"),
        Doc("empty", ""),
        Doc("titled", "сторожит дом", "собака"),
        Doc("long", "а б в г д е ё ж з рыба"),
    ]
)
HITS = [
    # query, k, documents found in order, why
    ("кошка", 9, ["twice", "cat", "again"], "the heavier first, equal ones in corpus order, others are not hits"),
    ("кошка", 2, ["twice", "cat"], "of equal ones at the cut the first stays"),
    ("собака дом", 9, ["titled"], "title and text are one"),
    ("рыба", 9, [], "what was cut is not found"),
    ("слон", 9, [], "a term that no document has"),
    ("", 9, [], "a query without terms"),
]


def test_contract(fresh_cache, caplog):
    toy = ToyWeights()
    prepared = system(toy).prepare(DOCS, "f")
    assert "собака\nсторожит дом" in toy.texts
    assert "1 of 6 texts (16.67 %) are longer than toy reads at once: cut at 9 words." in caplog.text
    retriever = prepared.retriever
    for query, k, expected, why in HITS:
        hits = retriever.search({"before": "дом", "q": query}, k)["q"]
        assert list(hits) == expected, why
        assert list(hits.values()) == sorted(hits.values(), reverse=True)
        assert all(score > 0 for score in hits.values())
    assert retriever.search({}, 3) == {}
    with pytest.raises(BadInput, match="k is 0"):
        retriever.search({"q": "кошка"}, 0)
    # Distinct terms, 8 bytes each: of six texts, two of them the same.
    assert prepared.index_bytes == 8 * (3 + 2 + 3 + 0 + 3 + 9)
    assert not prepared.reused
    again = system(ToyWeights()).prepare(DOCS, "f")
    assert again.reused
    assert (again.path, again.index_bytes) == (prepared.path, prepared.index_bytes)


def test_a_second_composition_encodes_nothing(fresh_cache, tmp_path, monkeypatch):
    toy = ToyWeights()
    monkeypatch.setattr(toy_weights, "make", lambda model: toy, raising=False)
    monkeypatch.setitem(sparse_system.RUNTIMES, "flagembedding", "tests.support.toy_weights:make")
    queries = {"q1": "кошка", "q2": "дом"}
    dataset = Dataset.of(DOCS, queries, {"q1": {"cat": 1}, "q2": {"titled": 1}}, language="ru")
    bench(dataset, "sparse(bge-m3)", out=tmp_path)
    assert len(toy.texts) == 5 + 2
    row = bench(dataset, "rrf( bm25, sparse(bge-m3) )", out=tmp_path)
    bench(dataset, "minmax(sparse(bge-m3),bm25)", out=tmp_path)
    assert len(toy.texts) == 5 + 2
    assert row["system"] == "rrf(bm25,sparse(bge-m3))"
    assert row["measures"]["R@10"] == 1
    assert "sparse|toy-weights|sep:\\n|v:" in row["signature"]


@pytest.mark.parametrize("text", ["sparse", "sparse(bge-m3,max_tokens=512)", "rrf(dense(bge-m3),sparse(bge-m3))"])
def test_names(text, fresh_cache):
    assert str(parse(text)) == text
    assert resolve(text, language="ru").name == text


def test_signature_is_the_whole_recipe():
    first, other = (resolve(f"sparse({text})", language="ru").signature for text in ("bge-m3", "bge-m3,max_tokens=9"))
    dense = resolve("dense(bge-m3,runtime=flagembedding)", language="ru")
    assert first.startswith("sparse|bge-m3@5617a9f6|")
    assert "|max:8192|" in first
    assert "|max:9|" in other
    assert resolve("sparse", language="ru").signature == first
    assert resolve("sparse", language="ru").encoder.signature != dense.encoder.signature
    assert not any(character.isspace() for character in first)


def test_killed_encoding_ends_with_the_same_bytes(tmp_path):
    """SIGKILL eight times, each soon after another block was written; then let it finish, and compare."""
    docs = distinct(documents(N))
    build(tmp_path / "whole", docs, ToyWeights())
    kill_eight_times(toy_weights.__name__, [tmp_path / "killed", N], tmp_path / "killed" / "store" / "weights")
    toy = ToyWeights()
    build(tmp_path / "killed", docs, toy)
    assert len(toy.texts) < N, "nothing was resumed"
    for name in ("weights", "vectors"):
        whole, killed = ((tmp_path / which / "store" / name).read_bytes() for which in ("whole", "killed"))
        assert whole == killed, name


class Failing(ToyWeights):
    """Fails at its fourth block."""

    def encode_documents(self, texts):
        if len(self.texts) >= 3 * BLOCK_TEXTS:
            raise BackendError("no more")
        return super().encode_documents(texts)


def test_a_failed_run_is_resumed(tmp_path):
    docs = distinct(documents(6 * BLOCK_TEXTS))
    failing, toy, plain = Failing(), ToyWeights(), ToyWeights()
    with pytest.raises(BackendError, match="no more"):
        build(tmp_path / "failed", docs, failing)
    assert not (tmp_path / "failed" / "corpus").exists()
    # Half a block, as a kill between the two files leaves it.
    with (tmp_path / "failed" / "store" / "weights").open("ab") as file:
        file.write(b"half a block")
    store, encoded = build(tmp_path / "failed", docs, toy)
    assert toy.texts == [doc.text for doc in docs[3 * BLOCK_TEXTS :]]
    whole, expected = build(tmp_path / "whole", docs, plain)
    query = sparse.csr_array(plain.encode_queries([docs[7].text]))
    hits = [
        search(query, reader_store.open_reader(), reader_corpus.rows, 50)
        for reader_store, reader_corpus in ((store, encoded), (whole, expected))
    ]
    assert hits[0][0][0].tobytes() == hits[1][0][0].tobytes()
    assert hits[0][0][1].tolist() == hits[1][0][1].tolist()


def test_every_text_is_encoded_once_whatever_the_corpus(tmp_path):
    toy = ToyWeights()
    docs = documents(N)
    build(tmp_path, docs, toy)
    assert sorted(toy.texts) == sorted({doc.text for doc in docs})
    toy.texts.clear()
    other = [*docs[:50], Doc("new", "совсем новый текст")]
    build(tmp_path, other, toy, corpus="another")
    assert toy.texts == ["совсем новый текст"]


WRONG = [
    # what the encoder makes of its answer, part of the message, why
    (lambda w: w[:1], "1 rows of weights for 2 texts", "too few rows"),
    (lambda w: w * np.float32("nan"), "negative, infinite or NaN", "NaN"),
    (lambda w: w * np.float32("inf"), "negative, infinite or NaN", "infinity"),
    (lambda w: -w, "negative, infinite or NaN", "below 0"),
]


@pytest.mark.parametrize(("answer", "part", "why"), WRONG, ids=[row[2] for row in WRONG])
def test_a_wrong_answer_is_refused_and_not_kept(tmp_path, answer, part, why):
    store, toy = WeightStore(tmp_path), ToyWeights()
    add(store, ["zero"], toy)
    with pytest.raises(BackendError, match=part):
        store.find_or_add(["one", "two"], lambda new: [store.check(answer(toy.encode_documents(new)), new, "toy")])
    assert len(store) == 1


def test_a_cut_file_is_an_error_and_not_a_wrong_answer(tmp_path):
    store, _ = build(tmp_path, DOCS, ToyWeights())
    path = tmp_path / "store" / "weights"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(BackendError, match="rusbeir cache clear embeddings"):
        store.open_reader()
