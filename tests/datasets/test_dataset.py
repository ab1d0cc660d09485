"""Dataset.of: a dataset made in Python has the fingerprint of its content, and refuses what no file could hold."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from rusbeir.datasets import load, open_corpus, write_beir
from rusbeir.errors import BadInput
from rusbeir.experiment import bench
from rusbeir.types import Card, Dataset, Doc, MemoryCorpus

DOCS = [Doc("d1", "Кошка спит.", "Дом"), Doc("d2", "Собака лает."), Doc("d3", "Рыба плавает.")]
QUERIES = {"q2": "собака", "q1": "кошка", "q9": "никто"}
QRELS = {"q1": {"d1": 2, "d3": 0}, "q2": {"d2": 1}}


def test_two_datasets_of_one_name_share_no_index(fresh_cache, tmp_path):
    """The second holds the query's word in no document."""
    cats = Dataset.of([Doc("d1", "кошка"), Doc("d2", "дом")], {"q": "кошка"}, {"q": {"d1": 1}}, language="ru")
    dogs = Dataset.of([Doc("d1", "собака"), Doc("d2", "дом")], {"q": "кошка"}, {"q": {"d1": 1}}, language="ru")
    found = [bench(dataset, out=tmp_path)["measures"]["nDCG@10"] for dataset in (cats, dogs)]
    assert found == [1, 0]


def test_the_fingerprint_follows_the_content():
    dataset = Dataset.of(DOCS, QUERIES, QRELS, language="ru")
    changes = [
        {"corpus": MemoryCorpus([*DOCS[:2], Doc("d3", "Рыба плывёт.")])},
        {"queries": {"q1": "кошки", "q2": "собака"}},
        {"qrels": {"q1": {"d1": 1, "d3": 0}, "q2": {"d2": 1}}},
    ]
    changed = [dataclasses.replace(dataset, **change) for change in changes]
    assert len({one.fingerprint for one in (dataset, *changed)}) == 4
    assert dataclasses.replace(dataset, card=Card(name="x", language="kk", split="dev")).fingerprint == (
        dataset.fingerprint
    )


@pytest.mark.parametrize("fingerprint", ["", "f" * 64])
def test_a_fingerprint_cannot_be_typed_in(fingerprint):
    with pytest.raises(TypeError, match="fingerprint"):
        Card(name="x", language="ru", split="test", fingerprint=fingerprint)


@pytest.mark.parametrize(
    "corpus",
    [
        DOCS,
        iter(DOCS),
        [{"_id": doc.doc_id, "text": doc.text, "title": doc.title or None, "metadata": {}} for doc in DOCS],
        ({"doc_id": doc.doc_id, "text": doc.text, "title": doc.title} for doc in DOCS),
        MemoryCorpus(DOCS),
    ],
    ids=["list of Doc", "iterator", "dicts of BEIR", "generator of dicts", "corpus"],
)
def test_the_same_content_written_and_loaded(corpus, tmp_path: Path):
    dataset = Dataset.of(
        corpus, QUERIES, QRELS, language="ru", name="toy", split="dev", licence="CC0", self_suffixes=("",)
    )
    write_beir(dataset, tmp_path / "out")
    loaded = load(tmp_path / "out")
    assert loaded.fingerprint == dataset.fingerprint
    assert loaded.card == dataset.card
    assert dict(loaded.queries) == dict(dataset.queries) == {"q1": "кошка", "q2": "собака"}
    assert loaded.qrels == dataset.qrels == QRELS
    assert list(loaded.corpus) == list(dataset.corpus) == DOCS
    assert (len(dataset.corpus), dataset.corpus["d1"]) == (3, DOCS[0])
    with pytest.raises(KeyError):
        dataset.corpus["d4"]


def test_a_corpus_on_disk_stays_there(samples):
    corpus = open_corpus(samples.beir() / "corpus.jsonl")
    dataset = Dataset.of(corpus, {"q": "мост"}, {"q": {"d1": np.int64(1)}}, language="ru")
    assert dataset.corpus is corpus
    assert type(dataset.qrels["q"]["d1"]) is int
    assert dataset.fingerprint == Dataset.of(list(corpus), {"q": "мост"}, {"q": {"d1": 1}}, language="ru").fingerprint


def test_the_fingerprint_follows_changes_in_place():
    dataset = Dataset.of(DOCS, QUERIES, QRELS, language="ru")
    before = dataset.fingerprint
    dataset.queries["q1"] = "кошки"
    assert dataset.fingerprint != before


def test_what_was_given_may_change_later():
    docs, queries, qrels = list(DOCS), dict(QUERIES), {"q1": {"d1": 1}, "q2": {}}
    dataset = Dataset.of(docs, queries, qrels, language="ru")
    docs.pop()
    queries["q1"] = "пёс"
    qrels["q1"]["d2"] = 1
    assert (len(dataset.corpus), dataset.queries, dataset.qrels) == (3, {"q1": "кошка"}, {"q1": {"d1": 1}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"corpus": []}, "The corpus is empty; a dataset needs at least one document."),
        ({"corpus": ["Кошка"]}, "Document 1 of the corpus is a str; expected a Doc or a dict"),
        (
            {"corpus": [{"text": "x"}]},
            "Document 1 of the corpus has no column for the document id .*; it has text. Name it: columns=",
        ),
        ({"corpus": [DOCS[0], Doc(7, "x")]}, "Document 2 of the corpus: the id is 7; it must be a string."),
        ({"corpus": [Doc(" ", "x")]}, "Document 1 of the corpus: the id is ' '; it must not be empty."),
        ({"corpus": [*DOCS, Doc("d1", "x")]}, "Document 4 of the corpus repeats the id 'd1'; ids must be unique."),
        ({"corpus": [Doc("d1", b"x")]}, r"Document 1 of the corpus \('d1'\): the text is b'x'; it must be a string."),
        ({"corpus": [{"_id": "d1", "text": "x", "title": 5}]}, r"\('d1'\): the title is 5; it must be a string."),
        ({"corpus": [Doc("d1", "a\ud800")]}, "character 2 of the text is an unpaired surrogate"),
        ({"queries": {"q1": "кошка"}}, "The qrels judge a query without a text, such as 'q2'; add"),
        ({"queries": {}}, "The qrels judge 2 queries without a text, such as 'q1'; add"),
        ({"queries": {**QUERIES, "q1": None}}, "Query 'q1': the text is None; it must be a string."),
        ({"qrels": {"q1": "d1"}}, r"The qrels of query 'q1' are 'd1'; expected \{document id: grade\}."),
        ({"qrels": {"q1": {"d1": 0.5}}}, "The grade of document 'd1' for query 'q1' is 0.5; expected an integer"),
        ({"qrels": {"q1": {"d1": True}}}, "is True; expected an integer"),
        ({"qrels": {"q1": {"d1\0": 1}}}, r"the id is 'd1\\x00'; it must not be empty or have a control character."),
        ({"qrels": {"q1": {"d1": 10**9}}}, "is 1000000000; expected an integer from -1,000 to 1,000."),
        ({"qrels": {"q1": {5: 1}}}, "A document judged for query 'q1': the id is 5; it must be a string."),
    ],
)
def test_refused(change, message):
    given = {"corpus": DOCS, "queries": QUERIES, "qrels": QRELS, **change}
    with pytest.raises(BadInput, match=message) as refused:
        Dataset.of(**given, language="ru")
    assert "\n" not in str(refused.value)
