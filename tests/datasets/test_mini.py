"""The bundled collection: parallel, aligned sentence by sentence, honestly judged, and of the promised shape."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files

import pytest

from rusbeir.datasets import load, validate

LANGUAGES = ["en", "ru"]
MEMORY = files("rusbeir.datasets") / "mini" / "memory.en-ru.tsv"


@pytest.fixture(scope="module")
def mini():
    return {language: load(f"mini/{language}") for language in LANGUAGES}


def test_shape(mini):
    for dataset in mini.values():
        assert len(dataset.corpus) >= 120
        assert len(dataset.queries) >= 80
        assert len({doc.doc_id.split("-")[0] for doc in dataset.corpus}) >= 8, "domains"
        assert dataset.card.licence == "CC0-1.0"


def test_languages_are_parallel(mini):
    english, russian = mini["en"], mini["ru"]
    assert [doc.doc_id for doc in english.corpus] == [doc.doc_id for doc in russian.corpus]
    assert list(english.queries) == list(russian.queries)
    assert english.qrels == russian.qrels


def test_passages_have_60_to_120_words(mini):
    for doc in mini["en"].corpus:
        assert 60 <= len(doc.text.split()) <= 120, doc.doc_id


def test_judgements(mini):
    qrels = mini["ru"].qrels
    assert {grade for judged in qrels.values() for grade in judged.values()} == {0, 1, 2}
    assert all(2 in judged.values() and 0 in judged.values() for judged in qrels.values())
    several = sum(sum(grade > 0 for grade in judged.values()) > 1 for judged in qrels.values())
    assert several >= 20, "queries with more than one relevant passage"


def test_no_word_mixes_scripts(mini):
    for dataset in mini.values():
        for text in [*(f"{doc.title} {doc.text}" for doc in dataset.corpus), *dataset.queries.values()]:
            mixed = [
                word for word in re.findall(r"\w+", text) if re.search("[a-zA-Z]", word) and re.search("[а-яё]", word)
            ]
            assert mixed == []


def test_texts_are_their_own_translation_memory(mini):
    pairs = dict(line.split("\t") for line in MEMORY.read_text(encoding="utf-8").splitlines())
    for english, russian in zip(mini["en"].corpus, mini["ru"].corpus, strict=True):
        assert pairs[english.title] == russian.title
        assert " ".join(_sentences(english.text, pairs)) == russian.text
    for query_id, text in mini["en"].queries.items():
        assert pairs[text] == mini["ru"].queries[query_id]


def _sentences(text: str, pairs: dict[str, str]) -> list[str]:
    """The translations of the sentences that a text is made of."""
    found = []
    while text:
        source = max((source for source in pairs if text.startswith(source)), key=len)
        found.append(pairs[source])
        text = text[len(source) :].lstrip(" ")
    return found


def test_texts_are_distinct(mini):
    for dataset in mini.values():
        assert max(Counter(doc.text for doc in dataset.corpus).values()) == 1
        assert max(Counter(dataset.queries.values()).values()) == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_valid(language):
    assert validate(f"mini/{language}") == []
