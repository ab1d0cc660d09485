"""Languages of documents and queries that name none: detected among those of the dataset, counted, or refused."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from rusbeir.datasets import load
from rusbeir.datasets.detection import make_detector
from rusbeir.errors import BadInput, UnknownName
from rusbeir.types import Dataset, query_language

DOCS = [
    {"_id": "r", "text": "Красный чайник для дома."},
    {"_id": "k", "text": "Үйге арналған қызыл шәйнек."},
    {"_id": "e", "text": "A red kettle for the home."},
    {"_id": "d", "text": "12-34"},
    {"_id": "n", "text": "Kettle", "lang": "en"},
]
EXPECTED = {"r": "ru", "k": "kk", "e": "en", "d": "ru", "n": "en"}
COUNTS = {"languages": {"ru": 1, "kk": 1, "en": 1}, "unsure": 0, "undetected": 1}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "shop.jsonl"
    path.write_text("".join(json.dumps(doc, ensure_ascii=False) + "\n" for doc in DOCS), encoding="utf-8")
    return path


def test_files_and_lists_are_detected_alike(corpus: Path, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        loaded = load(corpus, language="ru,kk,en", judged=False)
    line = (
        "shop: languages of documents were detected: ru 1, kk 1, en 1; 0 of these with a probability below 0.9. "
        "1 show no language and count as ru."
    )
    assert caplog.messages == [line]
    made = Dataset.of(DOCS, language="Russian,kk,en")
    for dataset in (loaded, made):
        assert {doc.doc_id: doc.language for doc in dataset.corpus} == EXPECTED
        assert (dataset.card.language, dataset.card.languages) == ("mul", ("ru", "kk", "en"))
        assert dataset.card.provenance["detected"]["documents"] == COUNTS
    assert loaded.fingerprint == made.fingerprint
    assert next(extra for doc, extra in loaded.corpus.whole() if doc.doc_id == "d") == {"lang_detected": 0.0}


def test_a_second_load_counts_the_same(corpus: Path):
    first, second = (load(corpus, language="ru,kk,en", judged=False) for _ in range(2))
    assert first.card == second.card
    assert first.corpus.path == second.corpus.path


def test_queries_are_detected_where_nothing_says_their_language():
    queries = {"q1": "красный чайник", "q2": "red kettle for tea"}
    dataset = Dataset.of(DOCS, queries, language="ru,kk,en")
    assert [query_language(dataset.queries, key, "") for key in queries] == ["ru", "en"]
    assert dataset.card.provenance["detected"]["queries"]["languages"] == {"ru": 1, "en": 1}


def test_what_nobody_asks_for_is_said(caplog: pytest.LogCaptureFixture):
    docs = [{"_id": "r", "text": "Чайник", "lang": "ru"}, {"_id": "e", "text": "Kettle", "lang": "en"}]
    with caplog.at_level(logging.WARNING):
        Dataset.of(docs, [{"_id": "q", "text": "tetera", "lang": "es"}], language="ru,en,kk")
    assert caplog.messages == [
        "in-memory: no document is in 'kk'.",
        "in-memory: 1 queries are in 'es', and no document is.",
    ]


@pytest.mark.parametrize(
    ("language", "error", "message"),
    [
        ("mul", BadInput, "in-memory: 4 of 5 documents name no language. Say which there are, with language=ru,en"),
        ("ru,kk", BadInput, "1 documents are in 'en', which is not one of ru, kk"),
        ("ru", BadInput, "in-memory is in 'ru', but 1 of its documents say that they are in 'en'"),
        ("ru,en,tlh", BadInput, "py3langid cannot detect 'tlh'"),
        ("en,pt-BR,pt-PT", BadInput, "py3langid cannot tell 'pt-BR' from 'pt-PT'"),
        ("en,qq", UnknownName, "No language 'qq'"),
    ],
)
def test_what_cannot_be_decided_is_one_line(language: str, error: type[Exception], message: str):
    with pytest.raises(error, match=message) as caught:
        Dataset.of(DOCS, language=language)
    assert "\n" not in str(caught.value)


def test_a_card_that_contradicts_is_refused(corpus: Path):
    folder = corpus.parent / "folder"
    folder.mkdir()
    corpus.rename(folder / "corpus.jsonl")
    (folder / "card.json").write_text('{"language": "ru"}', encoding="utf-8")
    with pytest.raises(BadInput, match="says that the language is 'ru', not 'mul'"):
        load(folder, language="ru,en", judged=False)
    (folder / "card.json").write_text('{"language": "mul", "languages": ["ru", "kk", "en"]}', encoding="utf-8")
    assert {doc.doc_id: doc.language for doc in load(folder, judged=False).corpus} == EXPECTED


def test_queries_that_name_no_language_are_in_that_of_the_card(corpus: Path):
    folder = corpus.parent / "folder"
    (folder / "qrels").mkdir(parents=True)
    corpus.rename(folder / "corpus.jsonl")
    card = {"language": "mul", "languages": ["ru", "kk", "en"], "query_language": "en"}
    (folder / "card.json").write_text(json.dumps(card), encoding="utf-8")
    queries = '{"_id": "q", "text": "чайник"}\n{"_id": "named", "text": "kettle", "lang": "kk"}\n'
    (folder / "queries.jsonl").write_text(queries, encoding="utf-8")
    qrels = "query-id\tcorpus-id\tscore\nq\tr\t1\nnamed\tk\t1\n"
    (folder / "qrels" / "test.tsv").write_text(qrels, encoding="utf-8")
    dataset = load(folder)
    assert {key: query_language(dataset.queries, key, "") for key in dataset.queries} == {"q": "en", "named": "kk"}
    assert "queries" not in dataset.card.provenance["detected"]


@pytest.mark.parametrize(
    ("text", "language", "sure"),
    [("кот", "ru", True), ("cat", "en", False), ("мысық", "kk", True), ("", "ru", False), ("№ 5!", "ru", False)],
)
def test_short_texts(text: str, language: str, sure: bool):
    """By py3langid 0.4 alone among the three: кот 0.95, cat 0.76, мысық 0.998."""
    detection = make_detector(["ru", "kk", "en"])(text)
    assert (detection.language, detection.probability >= 0.9) == (language, sure)
