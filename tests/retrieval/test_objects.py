"""Systems that are objects of the caller's: functions, retrievers, encoders and rerankers, also without a file."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import rusbeir
from rusbeir import compose
from rusbeir.errors import BackendError, BadInput, UnknownName
from rusbeir.experiment import bench, search
from rusbeir.ledger import read_rows
from rusbeir.retrieval import parse, resolve
from rusbeir.types import Dataset, Doc
from rusbeir.user_sources import digest_object

DOCS = [Doc("d1", "кошка спит"), Doc("d2", "собака сторожит дом"), Doc("d3", "дом кошки")]
QUERIES = {"q1": "кошка", "q2": "дом"}
QRELS = {"q1": {"d1": 1}, "q2": {"d2": 1}}


def first(queries, k):
    return {query_id: {"d2": 2.0, "d1": 1.0} for query_id in queries}


class Retriever:
    def __init__(self, corpus=DOCS):
        self.docs = list(corpus)

    def search(self, queries, k):
        return {
            query_id: {doc.doc_id: len({*text.split()} & {*doc.text.split()}) for doc in self.docs}
            for query_id, text in queries.items()
        }


class Encoder:
    def __init__(self, turned=1):
        self.turned = turned

    def encode_documents(self, texts):
        return np.eye(64, dtype=np.float32)[[self.turned * ord(text[0]) % 64 for text in texts]]

    encode_queries = encode_documents


class Reranker:
    signature, pointwise = "shortest-1", True

    def score(self, query, documents):
        return [-len(text) for text in documents]


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RUSBEIR_CACHE", str(tmp_path / "cache"))


def dataset() -> Dataset:
    return Dataset.of(DOCS, QUERIES, QRELS, language="ru", name="animals")


def measured(system, out):
    return bench(dataset(), system, measures="RR@10", out=out)


OBJECTS = [
    # object, its name, RR@10, why
    (first, "python:first", 0.75, "a function of queries and k"),
    (Retriever(), "python:Retriever", 0.75, "an object with search"),
    (Retriever, "python:Retriever", 0.75, "a class that is called with the corpus"),
    (Encoder(), "dense(python:Encoder)", 0.75, "an encoder is searched"),
    (Reranker(), "bm25 >> python:Reranker", 0.5, "a reranker sorts the hits of BM25"),
    (lambda queries, k: {}, "python:function", 0.0, "a function without a name"),
    (compose("rrf(bm25,mine)", mine=first), "rrf(bm25,python:mine)", 1.0, "a part of a fusion"),
    (compose("rrf(mine,other)", mine=Encoder(), other=first), "rrf(python:mine,python:other)", 0.75, "two objects"),
    (compose("dense(mine,dtype=float16)", mine=Encoder()), "dense(python:mine,dtype=float16)", 0.75, "with options"),
    (compose("a >> b(depth=2)", a=first, b=Reranker()), "python:a >> python:b(depth=2)", 0.75, "objects alone"),
    (compose("bm25 >> rerank(mine)", mine=Reranker()), "bm25 >> rerank(python:mine)", 0.5, "where a model is named"),
    (compose("rrf(mine,bm25)", mine=resolve("bm25(k1=0.9)", language="ru")), "rrf(python:mine,bm25)", 0.75, "a system"),
]  # fmt: skip


@pytest.mark.parametrize(("system", "name", "expected", "why"), OBJECTS, ids=[row[1] + row[3][:9] for row in OBJECTS])
def test_objects_are_systems(tmp_path, system, name, expected, why):
    row = measured(system, tmp_path)
    assert row["system"] == name, why
    assert str(parse(name)) == name
    assert row["measures"]["RR@10"] == pytest.approx(expected), why
    assert measured(system, tmp_path) == row, "the row is reused"
    assert len(list(read_rows(tmp_path))) == 1


REFUSED = [
    # what is called, error, a part of the message
    (lambda: bench(dataset(), 3), BadInput, "score, and 'int' is none of these"),
    (lambda: bench(dataset(), lambda first, second, third: {}), BadInput, "A retriever is a function (queries, k)"),
    (lambda: bench([DOCS], "bm25"), BadInput, "which 'list' is not"),
    (lambda: search(dataset(), queries=[1]), BadInput, "Query 1 is 1; expected a text"),
    (lambda: search(dataset(), queries="кошка", k="3"), BadInput, "k is '3'; ask for at least 1"),
    (lambda: compose("rrf(bm25,mine)"), UnknownName, "No system 'mine'"),
    (lambda: compose("rrf(bm25,mine)", mine=3), BadInput, "'int' is none of these"),
    (lambda: compose("bm25", mine=first), BadInput, "'mine' is not in the system 'bm25'"),
    (lambda: compose("bm25", bm25=first), BadInput, "'bm25' is the name of a system"),
    (lambda: bench(dataset(), lambda queries, k: [1]), BackendError, "answered a list for the queries"),
]


@pytest.mark.parametrize(("call", "error", "part"), REFUSED, ids=[row[2] for row in REFUSED])
def test_other_objects_are_refused_in_one_line(tmp_path, monkeypatch, call, error, part):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error) as caught:
        call()
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_lists_and_names(tmp_path):
    rows = bench(dataset(), {"words": "bm25", "mine": first}, measures="RR@10", out=tmp_path)
    assert [(row["label"], row["system"]) for row in rows] == [("words", "bm25"), ("mine", "python:first")]
    again = measured("other=bm25", tmp_path)
    assert again == rows[0] | {"label": "other"}, "a row that is there gets another name, and is not measured again"
    assert [row.get("label") for row in read_rows(tmp_path)] == ["words", "mine", "other"]
    assert [row["system"] for row in bench(dataset(), [first, "bm25"], measures="RR@10", out=tmp_path)] == [
        "python:first",
        "bm25",
    ]


def test_queries_are_texts_or_have_ids():
    assert search(dataset(), first, queries=["кошка"], k=1) == {"кошка": {"d2": 2.0}}
    assert search(dataset(), first, queries={"q": "кошка"}, k=1) == {"q": {"d2": 2.0}}


NOTEBOOK = """
import rusbeir.user_sources
WEIGHT = {weight}
def helper(text): return len(text) * WEIGHT  {comment}
def mine(queries, k): return {{query_id: {{"d1": helper(text)}} for query_id, text in queries.items()}}
class Mine:
    depth = 3
    def __init__(self, factor): self.factor = factor
    def search(self, queries, k): return helper("x")
print(rusbeir.user_sources.digest_object(mine), rusbeir.user_sources.digest_object(Mine({factor})))
"""


def digests(**values) -> list[str]:
    """The digests of a function and of an object that a program on standard input has."""
    text = NOTEBOOK.format(**{"weight": 1, "factor": 1, "comment": ""} | values)
    done = subprocess.run([sys.executable, "-"], input=text, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_code_without_a_file_is_digested():
    function, object_ = digests()
    assert digests(comment="# the same") == [function, object_], "in another process, with a comment"
    weighted, weighted_object = digests(weight=2)
    assert weighted != function, "a value that a function of it uses"
    assert weighted_object != object_
    assert digests(factor=2)[0] == function
    assert digests(factor=2)[1] != object_, "the state of an object"


def test_a_state_that_cannot_be_pickled_is_never_taken_for_another():
    thing = Encoder(turned=lambda: 1)
    assert digest_object(thing) != digest_object(thing)
    assert digest_object(Encoder(2)) == digest_object(Encoder(2)) != digest_object(Encoder(3))


def test_it_is_public():
    assert rusbeir.compose is compose
