"""Exact search: the same hits as numpy's, whatever the blocks; and max-passage over long documents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rusbeir.retrieval.dense import approximate, vector_search
from rusbeir.retrieval.dense.system import DenseRetriever, DenseSystem
from rusbeir.retrieval.models.settings import Model
from rusbeir.types import Doc, silent
from tests.support.toy_encoder import Docs, Toy, documents

rng = np.random.default_rng(3)


def search_by_sorting(queries, vectors, rows, k):
    """Scores and places by falling score and then by place, by sorting everything."""
    scores = queries @ vectors[rows].astype(np.float32).T
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, order, 1), order


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("block_bytes", [1, 4 * 16 * 7, 1 << 20])
@pytest.mark.parametrize("rows", [np.arange(200), np.arange(50, 130), rng.permutation(200), np.array([3, 3, 9])])
@pytest.mark.parametrize("k", [1, 10, 500])
def test_equal_to_sorting_everything(rows, block_bytes, dtype, k):
    vectors = rng.standard_normal((200, 16)).astype(dtype)
    queries = rng.standard_normal((5, 16)).astype(np.float32)
    scores, passages = vector_search.search_exactly(
        queries, vectors, rows.astype(np.uint32), k, block_bytes=block_bytes
    )
    expected, order = search_by_sorting(queries, vectors, rows, k)
    assert scores.shape == (5, min(k, len(rows)))
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)
    if len(set(rows.tolist())) == len(rows):
        assert passages.tolist() == order.tolist()
    else:
        assert rows[passages].tolist() == rows[order].tolist()


@pytest.fixture
def one_thread():
    """FAISS on one thread: on a busy machine its threads wait for each other, longer than small searches take."""
    faiss = vector_search.load_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_ties_at_the_cut_off_are_decided_by_place():
    """10,000 searches among vectors of small integers: the hits of a full stable sort, whatever the blocks."""
    generator = np.random.default_rng(11)
    differing = searches = tied = 0
    while searches < 10_000:
        n, k, dim, width = (int(generator.integers(1, end)) for end in (300, 60, 9, 4))
        vectors = generator.integers(-width, width + 1, (n, dim)).astype(np.float32)
        if generator.random() < 0.5:
            vectors = vectors[generator.integers(0, max(1, n // 10), n)]
        queries = generator.integers(-width, width + 1, (generator.integers(1, 100), dim)).astype(np.float32)
        rows = generator.permutation(n)[: generator.integers(1, n + 1)].astype(np.uint32)
        expected, order = search_by_sorting(queries, vectors, rows, k)
        everything = search_by_sorting(queries, vectors, rows, n)[0]
        tied += int((everything[:, k - 1] == everything[:, k]).sum()) if k < len(rows) else 0
        for in_block in (*generator.integers(n // 6 + 1, n + 1, 2), n):
            scores, passages = vector_search.search_exactly(
                queries, vectors, rows, k, block_bytes=int(4 * dim * in_block)
            )
            differing += int(((passages != order) | (scores != expected)).any(axis=1).sum())
        searches += len(queries)
    assert differing == 0
    assert tied > 5_000, "most searches have equal scores at the cut-off"


def test_equal_vectors_of_any_numbers_come_by_place_at_the_cut_off():
    """50 vectors, 20 copies of each: at k 30 the second one's copies are cut."""
    generator = np.random.default_rng(2)
    vectors = np.tile(generator.standard_normal((50, 64)).astype(np.float32), (20, 1))
    queries = generator.standard_normal((7, 64)).astype(np.float32)
    rows = np.arange(1_000, dtype=np.uint32)
    for in_block in (1, 7, 130, 1_000):
        _, passages = vector_search.search_exactly(queries, vectors, rows, 30, block_bytes=4 * 64 * in_block)
        best = np.argsort(-(queries @ vectors[:50].T), axis=1)[:, :2]
        for passages_found, (first, second) in zip(passages.tolist(), best.tolist(), strict=True):
            assert passages_found == [*range(first, 1_000, 50), *range(second, 500, 50)]


def system(toy, **options) -> DenseSystem:
    return DenseSystem(name="dense(toy)", model=Model(name="toy", separator=" "), encoder=toy, **options)


def test_a_long_document_is_found_by_its_best_passage(fresh_cache):
    filler = "много разных слов о другом "
    docs = Docs(
        [
            Doc("short", "кошка ловит мышь"),
            Doc("long", filler * 40 + "пингвин живёт во льдах " + filler * 40),
            Doc("other", filler * 5),
        ]
    )
    queries = {"q": "пингвин живёт во льдах"}
    whole = system(Toy(256)).prepare(docs, "f").retriever.search(queries, 3)["q"]
    prepared = system(Toy(256), chunk=8, stride=4).prepare(docs, "f")
    passages = prepared.retriever.search(queries, 3)["q"]
    assert next(iter(passages)) == "long"
    assert passages["long"] > 0.6 > whole["long"]
    assert sorted(passages) == ["long", "other", "short"]
    # Every passage scored by hand: the document's score is the best of them.
    words = docs["long"].text.split()
    texts = [" ".join(words[start : start + 8]) for start in range(0, len(words) - 4, 4)]
    best = (Toy(256).encode_documents(texts) @ Toy(256).encode_queries(list(queries.values()))[0]).max()
    assert passages["long"] == pytest.approx(float(best), abs=1e-4)


def test_many_passages_of_one_document_leave_room_for_others(fresh_cache):
    docs = Docs([Doc("all", "слово " * 400), *(Doc(f"d{i}", f"другое{i}") for i in range(9))])
    retriever = system(Toy(), chunk=2, stride=1).prepare(docs, "f").retriever
    hits = retriever.search({"q": "слово слово"}, 10)["q"]
    assert len(hits) == 10
    assert next(iter(hits)) == "all"
    assert list(hits.values()) == sorted(hits.values(), reverse=True)


def test_equal_documents_tie_in_corpus_order(fresh_cache):
    docs = documents(40)
    hits = system(Toy()).prepare(docs, "f").retriever.search({"q": docs["d8"].text}, 40)["q"]
    assert hits["d8"] == hits["d9"]
    assert [doc_id for doc_id in hits if doc_id in {"d8", "d9"}] == ["d8", "d9"]


@pytest.mark.parametrize(
    ("kind", "written"), [("hnsw", "|hnsw:32/200/128|"), ("ivf", "|ivf:4sqrt/spherical/40/4sqrt/50/fp16|")]
)
def test_an_approximate_index_reports_its_recall_and_is_built_once(kind, written, fresh_cache, caplog):
    docs = documents(400)
    queries = {doc.doc_id: doc.text for doc in list(docs)[:20]}
    exactly = system(Toy()).prepare(docs, "f").retriever.search(queries, 10)
    searcher = system(Toy(), index=kind)
    assert written in searcher.signature
    hits = searcher.prepare(docs, "f").retriever.search(queries, 10)
    shared = [len(set(hits[query]) & set(exactly[query])) / 10 for query in queries]
    reported = float(caplog.text.split("exact search is ")[1].split()[0].rstrip("."))
    assert reported > 0.9
    assert np.mean(shared) == pytest.approx(reported, abs=0.1), "either of two equal scores may be found"
    file = next(fresh_cache.rglob(f"{kind}-*.faiss"))
    stamp = file.stat().st_mtime_ns
    assert searcher.prepare(docs, "f").retriever.search(queries, 10) == hits
    assert file.stat().st_mtime_ns == stamp


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("kind", sorted(approximate.KINDS))
def test_the_size_told_beforehand_is_that_of_the_file(kind, tmp_path, caplog):
    vectors = rng.standard_normal((5_000, 32)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = np.arange(len(vectors), dtype=np.uint32)
    index = approximate.FaissIndex(
        kind=kind, folder=tmp_path, vectors=vectors, rows=rows, progress=silent, name="dense(toy)"
    )
    _, passages = index.search(vectors[:50], 1)
    expected_bytes = approximate.KINDS[kind].count_bytes(*vectors.shape)
    assert next(tmp_path.iterdir()).stat().st_size == pytest.approx(expected_bytes, rel=0.02)
    assert f"{expected_bytes / 1e6:,.1f} MB" in caplog.text
    assert (passages[:, 0] == rows[:50]).mean() > 0.95, "a vector is its own nearest"


class Counting:
    """An approximate search that misses nothing, and notes how many queries were asked for how many passages."""

    kind = "counting"

    def __init__(self, retriever: DenseRetriever, most: int) -> None:
        self.max_hits = most
        self.requests: list[tuple[int, int]] = []
        self._retriever = retriever

    def search(self, queries, k):
        self.requests.append((len(queries), k))
        vectors, _ = self._retriever.documents.map_vectors()
        return vector_search.search_exactly(queries, vectors, self._retriever.encoded.rows, k)


# The query for d0 finds 20 passages of it before another document; d1 to d39 have one passage each.
LONG = Docs([Doc("d0", "a b c d " * 20), *(Doc(f"d{i}", f"w{i} x{i} y{i} z{i}") for i in range(1, 40))])
DEEPENED = [
    # passages at most, what is asked, documents found for the long one, warned of
    (1_000, [(5, 5), (1, 20), (1, 59)], 5, False),
    (10, [(5, 5), (1, 10)], 1, True),
]


@pytest.mark.parametrize(("most", "requests", "documents_found", "warned"), DEEPENED)
def test_only_queries_that_lack_documents_are_asked_again(fresh_cache, caplog, most, requests, documents_found, warned):
    queries = {"long": "a b c d", **{f"q{i}": f"w{i} x{i} y{i} z{i}" for i in range(1, 5)}}
    exactly = system(Toy(), chunk=4, stride=4).prepare(LONG, "f").retriever
    counting = Counting(exactly, most)
    deepened = replace(exactly, approximate=counting).search(queries, 5)
    assert counting.requests == requests
    assert caplog.text.count("recall@") == 1
    assert "recall@5 of counting against exact search is 1.0000" in caplog.text
    assert len(deepened.pop("long")) == documents_found
    whole = exactly.search(queries, 5)
    assert {query: list(hits) for query, hits in deepened.items()} == {query: list(whole[query]) for query in deepened}
    line = "1 of 5 queries have fewer than 5 documents; counting returns at most 10 passages"
    assert caplog.text.count(line) == warned


def test_recall_is_the_mean_over_queries():
    assert vector_search.compute_recall([[1, 2, 3], [4, -1, -1]], [[3, 1, 2], [4, 5, 6]]) == pytest.approx(2 / 3)
