"""Every engine against one contract, and against BM25 computed from Lucene's formulas."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from rusbeir.errors import BadInput
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.lexical.engines import ENGINES, load
from rusbeir.types import Doc
from tests.support import exact_bm25
from tests.support.stubs import Docs, retriever

every_engine = pytest.mark.parametrize("engine", sorted(ENGINES), indirect=True)

VOCABULARY = [f"w{number}" if number % 3 else f"~w{number}" for number in range(120)]
"""A third are grams, which have fields of their own where the BM25 says so, and else are terms like others."""
WEIGHTS = [1 / (rank + 1) for rank in range(120)]


def corpus(random_: random.Random, size: int, *, no_title: float, no_text: float, longest: int = 300) -> Docs:
    """Documents of Zipf words, some of them without a title or a text, and some written twice."""
    docs: Docs = Docs()
    for number in range(size):
        if docs and random_.random() < 0.15:
            docs.append(random_.choice(list(docs))._replace(doc_id=f"d{number}"))
            continue
        title = "" if random_.random() < no_title else words(random_, 1, 12)
        text = "" if random_.random() < no_text else words(random_, 1, longest)
        docs.append(Doc(f"d{number}", text, title))
    return docs


def words(random_: random.Random, least: int, most: int) -> str:
    return " ".join(random_.choices(VOCABULARY, WEIGHTS, k=random_.randint(least, most)))


class Exact:
    """What Lucene's formulas give; Elasticsearch keeps the old factor k1 + 1, tantivy too, bm25s does not."""

    def __init__(self, docs: Docs, bm25: Bm25, engine: str) -> None:
        self._bm25 = bm25
        self._rows = len(docs)
        exact = engine == "bm25s" and bm25.lengths != "lucene"
        self._length = exact_bm25.exact_length if exact else exact_bm25.lucene_length
        self._factor = 1.0 if engine == "bm25s" else bm25.k1 + 1
        if bm25.fields == "flat":
            fields = [[f"{doc.title} {doc.text}" for doc in docs]]
        else:
            fields = [[doc.title for doc in docs], [doc.text for doc in docs]]
        self._parts = [(1.0, [exact_bm25.Field([text.split() for text in texts]) for texts in fields])]
        if bm25.gram_weight:
            self._parts = [
                (weight, [exact_bm25.Field([pick(text.split(), grams) for text in texts]) for texts in fields])
                for weight, grams in ((1.0, False), (bm25.gram_weight, True))
            ]

    def scores(self, query: list[str]) -> list[float]:
        total = [0.0] * self._rows
        for weight, fields in self._parts:
            scores, *others = [
                field.scores(query, k1=self._bm25.k1, b=self._bm25.b, length=self._length, factor=self._factor)
                for field in fields
            ]
            if others:
                title, text = self._bm25.weights or (1.0, 1.0)
                scores, others = [title * score for score in scores], [[text * score for score in others[0]]]
                scores = exact_bm25.combine(self._bm25.fields, self._bm25.tie_breaker, scores, *others)
            total = [sum_ + weight * score for sum_, score in zip(total, scores, strict=True)]
        return total


def pick(terms: list[str], grams: bool) -> list[str]:
    return [term for term in terms if term.startswith("~") == grams]


def equal(score: float, exact: float) -> bool:
    """Whether they are the same to 1e-5; pytest.approx says the same, slowly."""
    return abs(score - exact) <= 1e-5 * abs(exact)


CORPORA = [
    # size, share without title, share without text, why
    (400, 0.0, 0.0, "every document has both fields"),
    (400, 1 / 3, 0.0, "a third without title: Lucene's N and average length are the field's own"),
    (400, 1.0, 0.0, "no title at all: that field has no statistics"),
    (400, 1 / 3, 0.1, "empty texts too, and documents with neither"),
    (7, 1 / 3, 0.2, "so few documents that a fraction of a filler token would show"),
    (1, 0.0, 0.0, "a single document"),
]
RECIPES = [
    Bm25(),
    Bm25(fields="best_fields", tie_breaker=0.5),
    Bm25(fields="best_fields", tie_breaker=0.0),
    Bm25(fields="sum"),
    Bm25(k1=0.9, b=0.4),
    Bm25(k1=0.9, b=0.4, fields="sum"),
    Bm25(k1=0.0, b=1.0),
    Bm25(gram_weight=0.2),
    Bm25(gram_weight=0.2, fields="best_fields", tie_breaker=0.5),
    Bm25(fields="sum", weights=(2.0, 0.5)),
    Bm25(k1=0.9, b=0.4, fields="best_fields", weights=(3.0, 1.0), gram_weight=0.2),
]


COMPUTED = [
    (name, bm25)
    for name in sorted(ENGINES)
    # OpenSearch gets the requests of Elasticsearch: a field, two fields, and everything at once.
    for bm25 in (RECIPES if name != "opensearch" else (RECIPES[0], RECIPES[1], RECIPES[-1]))
    if load(name).refusal(bm25) is None
]


@pytest.mark.parametrize(("size", "no_title", "no_text", "why"), CORPORA)
@pytest.mark.parametrize(
    ("engine", "bm25"), COMPUTED, indirect=["engine"], ids=lambda value: getattr(value, "signature", value)
)
def test_scores_are_lucenes(tmp_path, engine, size, no_title, no_text, why, bm25):
    random_ = random.Random(f"{size} {why}")
    docs = corpus(random_, size, no_title=no_title, no_text=no_text)
    retrieve = retriever(tmp_path / "index", docs, engine, bm25)
    queries = {str(number): words(random_, 1, 8) for number in range(60)}
    queries["repeated"] = "w5 w5 w5 w9"
    queries["unseen"] = "nobody wrote this w7"
    row_of = {doc.doc_id: row for row, doc in enumerate(docs)}
    reference = Exact(docs, bm25, engine)
    scores = {query_id: reference.scores(text.split()) for query_id, text in queries.items()}
    for k in (5, 2 * size):
        run = retrieve.search(queries, k)
        assert list(run) == list(queries)
        for query_id, exact in scores.items():
            ranking = sorted((row for row in range(size) if exact[row] > 0), key=lambda row: -exact[row])[:k]
            hits = run[query_id]
            assert len(hits) == len(ranking), why
            # Equal to 1e-5 at every rank, which also holds the order outside of ties.
            for (doc_id, score), row in zip(hits.items(), ranking, strict=True):
                assert equal(score, exact[row_of[doc_id]]), why
                assert equal(score, exact[row]), why
            assert list(hits.items()) == sorted(hits.items(), key=lambda hit: (-hit[1], row_of[hit[0]]))


@every_engine
def test_equal_scores_come_in_corpus_order_also_at_the_cut_off(tmp_path, engine):
    docs = [Doc(f"z{9999 - number}", "same words here") for number in range(3000)]
    retrieve = retriever(tmp_path / "index", [Doc("a", "other"), *docs], engine)
    assert list(retrieve.search({"q": "same here"}, 7)["q"]) == [doc.doc_id for doc in docs[:7]]


@every_engine
def test_contract(tmp_path, engine):
    docs = [Doc("a", "мама мыла раму", "о маме"), Doc("b", "рама"), Doc("c", "", ""), Doc("d", "мыла мыла")]
    retrieve = retriever(tmp_path / "index", docs, engine)
    queries = {"some": "мыла раму", "none": "окно", "empty": "", "space": " \t "}
    before = dict(queries)
    run = retrieve.search(queries, 10)
    assert {query_id: list(hits) for query_id, hits in run.items()} == {
        "some": ["a", "d"],
        "none": [],
        "empty": [],
        "space": [],
    }
    assert queries == before
    assert all(isinstance(score, float) for score in run["some"].values())
    assert list(retrieve.search(queries, 1)["some"]) == ["a"], "k cuts"
    assert retrieve.search({}, 3) == {}
    assert retrieve.search(queries, 10**12) == run, "k beyond the corpus"


@pytest.mark.parametrize("k", [0, -1])
@every_engine
def test_k_below_one(tmp_path, engine, k):
    retrieve = retriever(tmp_path / "index", [Doc("a", "text")], engine)
    with pytest.raises(BadInput, match=f"k is {k}; ask for at least 1"):
        retrieve.search({"q": "text"}, k)


@every_engine
def test_searches_share_nothing(tmp_path, engine):
    random_ = random.Random(3)
    docs = corpus(random_, 300, no_title=0.3, no_text=0.0)
    retrieve = retriever(tmp_path / "index", docs, engine, Bm25(fields="best_fields"))
    queries = {str(number): words(random_, 1, 6) for number in range(400)}
    alone = {query_id: retrieve.search({query_id: text}, 9)[query_id] for query_id, text in queries.items()}
    runs: list[object] = []
    threads = [threading.Thread(target=lambda: runs.append(retrieve.search(queries, 9))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert runs == [alone] * 4
    assert retrieve.search({"q": "w1"}, 2).keys() == {"q"}, "nothing is left over of earlier queries"


@every_engine
def test_thousands_of_query_terms(tmp_path, engine):
    docs = [Doc(f"d{number}", f"t{number} t{number + 1}") for number in range(6000)]
    retrieve = retriever(tmp_path / "index", docs, engine)
    hits = retrieve.search({"q": " ".join(f"t{number}" for number in range(5000))}, 6000)["q"]
    assert len(hits) == 5000


@every_engine
def test_long_terms_are_found(tmp_path, engine):
    long = "ы" * 50_000
    retrieve = retriever(tmp_path / "index", [Doc("a", "short"), Doc("b", f"x {long} y"), Doc("c", "x y")], engine)
    assert list(retrieve.search({"q": long}, 3)["q"]) == ["b"]


@every_engine
def test_odd_ids_and_texts(tmp_path, engine):
    docs = [Doc("id with space", "a b"), Doc('"quo\\ted"', 'a "b" \\ {c}'), Doc("новый/№1", "a \ud7ff \U0001f600")]
    retrieve = retriever(tmp_path / "index", docs, engine)
    assert set(retrieve.search({"q": "a"}, 9)["q"]) == {doc.doc_id for doc in docs}
    assert list(retrieve.search({"q": "\U0001f600"}, 9)["q"]) == ["новый/№1"]


def test_a_filler_cannot_be_asked_for(tmp_path):
    from rusbeir.retrieval.lexical import tantivy_engine

    retrieve = retriever(tmp_path / "index", [Doc("a", "x"), Doc("b", "")])
    assert retrieve.search({"q": f"{tantivy_engine.FILLER} y"}, 9) == {"q": {}}


def test_several_segments_change_nothing(tmp_path: Path, monkeypatch):
    """A small heap makes many segments, whose order, merging and pruning must show nowhere."""
    from rusbeir.retrieval.lexical import tantivy_engine

    random_ = random.Random(8)
    docs: Docs = Docs()
    for number in range(12_000):
        # Short documents first, so that the average lengths of the segments differ widely.
        rare = " ".join(f"u{random_.randrange(10**9)}" for _ in range(2 + number // 100))
        docs.append(Doc(f"d{number}", f"{rare} {words(random_, 1, 3 + number // 300)}"))
    whole = retriever(tmp_path / "one", docs)
    monkeypatch.setattr(tantivy_engine, "_HEAP_BYTES", 15_000_000)
    many = retriever(tmp_path / "many", docs)
    assert whole.searcher.searcher.num_segments == 1
    assert many.searcher.searcher.num_segments > 1
    # Merges in the background decide whether the segments come in row order; both ways must give the same.
    unordered = replace(many, searcher=replace(many.searcher, first_rows=None))
    queries = {str(number): words(random_, 1, 6) for number in range(100)}
    for k in (1, 10, 1000):
        expected, actual = whole.search(queries, k), many.search(queries, k)
        for query_id, hits in expected.items():
            assert list(actual[query_id].values()) == pytest.approx(list(hits.values()), rel=1e-6)
        assert unordered.search(queries, k) == actual
