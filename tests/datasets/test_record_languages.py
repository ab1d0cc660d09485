"""Documents and queries that name their language: in every format, in memory and on disk, through a round trip."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pickle
from pathlib import Path

import pytest

from rusbeir.datasets import load, validate, write_beir
from rusbeir.errors import BadInput
from rusbeir.types import (
    MULTILINGUAL,
    Card,
    Dataset,
    Doc,
    MemoryCorpus,
    MultilingualQueries,
    count_languages,
    fingerprint,
    query_language,
    select_queries,
)

DOCS = [
    {"_id": "r", "text": "Кошка спит.", "lang": "ru"},
    {"_id": "e", "text": "The cat sleeps.", "title": "Cats", "lang": "eng"},
    {"_id": "n", "text": "12-34", "lang": "en"},
]
QUERIES = [{"_id": "q1", "text": "кошка", "lang": "ru"}, {"_id": "q2", "text": "cat", "lang": "en"}]
QRELS = {"q1": {"r": 1}, "q2": {"e": 1}}
EXPECTED = [Doc("r", "Кошка спит.", "", "ru"), Doc("e", "The cat sleeps.", "Cats", "en"), Doc("n", "12-34", "", "en")]


def make_pool() -> Dataset:
    dataset = Dataset.of(DOCS, QUERIES, QRELS, language=MULTILINGUAL, name="pool")
    return dataclasses.replace(dataset, card=dataclasses.replace(dataset.card, languages=("ru", "en")))


def canonical(*fields: str | int) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def test_a_language_is_hashed_where_it_is_named_and_nowhere_else():
    """By the rule of the fingerprint, written here with Python's json and hashlib."""
    lines = [canonical("r", "", "Кошка спит.", "ru"), canonical("e", "Cats", "The cat sleeps.", "en")]
    corpus = hashlib.sha256(b"".join([*lines, canonical("n", "", "12-34", "en")])).hexdigest()
    queries = [canonical("q1", "кошка", "ru"), canonical("q2", "cat", "en")]
    judged = [canonical("q1", "r", 1), canonical("q2", "e", 1)]
    whole = hashlib.sha256(b"".join([canonical(corpus), *queries, *judged])).hexdigest()
    assert (make_pool().corpus.sha256, make_pool().fingerprint) == (corpus, whole)
    unnamed = MemoryCorpus([Doc("n", "12-34")])
    assert unnamed.sha256 == hashlib.sha256(canonical("n", "", "12-34")).hexdigest()
    plain = {query["_id"]: query["text"] for query in QUERIES}
    assert fingerprint(corpus, MultilingualQueries(plain, {}), QRELS) == fingerprint(corpus, plain, QRELS)


def test_a_folder_keeps_languages(tmp_path: Path):
    pool = make_pool()
    write_beir(pool, tmp_path / "pool")
    loaded = load(tmp_path / "pool")
    assert list(loaded.corpus) == EXPECTED
    assert loaded.corpus["e"] == loaded.corpus[1] == EXPECTED[1]
    assert count_languages(loaded.corpus) == count_languages(pool.corpus) == {"ru": 1, "en": 2}
    assert isinstance(loaded.queries, MultilingualQueries)
    assert loaded.queries.languages == {"q1": "ru", "q2": "en"}
    assert (loaded.card.language, loaded.card.languages) == ("mul", ("ru", "en"))
    assert loaded.fingerprint == pool.fingerprint
    assert validate(tmp_path / "pool") == []


@pytest.mark.parametrize(
    ("name", "table", "columns"),
    [
        ("docs.csv", "id,text,lang\nd1,Кот,ru\nd2,Cat,en\n", None),
        ("docs.tsv", "id\ttext\tlocale\nd1\tКот\tru\nd2\tCat\ten\n", "language=locale"),
        ("docs.jsonl", '{"id":"d1","text":"Кот","lang":"rus"}\n{"id":"d2","text":"Cat","lang":"English"}\n', None),
    ],
)
def test_tables_name_languages(name: str, table: str, columns: str | None, tmp_path: Path):
    (tmp_path / name).write_text(table, encoding="utf-8")
    loaded = load(tmp_path / name, language="mul", columns=columns, judged=False)
    assert [doc.language for doc in loaded.corpus] == ["ru", "en"]


def test_columns_of_lists_name_languages():
    docs = [{"sku": "d1", "text": "Кот", "locale": "ru"}, {"sku": "d2", "text": "Cat", "locale": "en"}]
    queries = [{"id": "q1", "query": "кот", "of": "ru"}]
    columns = {"id": "sku", "language": "locale", "query_language": "of"}
    dataset = Dataset.of(docs, queries, {"q1": ["d1"]}, language="mul", columns=columns)
    assert [doc.language for doc in dataset.corpus] == ["ru", "en"]
    assert query_language(dataset.queries, "q1", "") == "ru"


def test_queries_keep_languages_when_they_are_selected_and_pickled():
    queries = MultilingualQueries({"q1": "кот", "q2": "cat"}, {"q1": "ru", "q2": "en", "q3": "kk"})
    assert dict(queries.languages) == {"q1": "ru", "q2": "en"}
    assert query_language(pickle.loads(pickle.dumps(queries)), "q2", "mul") == "en"
    assert query_language(select_queries(queries, ["q2"]), "q2", "mul") == "en"
    assert type(select_queries({"q1": "кот"}, ["q1"])) is dict


@pytest.mark.parametrize("value", ["?", 5, "русский язык"])
def test_what_is_not_a_language_is_refused_with_its_line(value: object, tmp_path: Path):
    write_beir(make_pool(), tmp_path / "pool")
    with (tmp_path / "pool" / "corpus.jsonl").open("ab") as file:
        file.write(json.dumps({"_id": "x", "text": "x", "lang": value}).encode() + b"\n")
    with pytest.raises(BadInput, match=r"corpus\.jsonl:4: document 'x' has a language that is not a tag of BCP 47"):
        load(tmp_path / "pool")
    with pytest.raises(BadInput, match="Document 1 of the corpus"):
        Dataset.of([{"_id": "x", "text": "x", "lang": value}], language="mul")


def test_a_card_in_one_language_is_written_as_before(tmp_path: Path):
    card = Card(name="one", language="ru", split="test")
    write_beir(Dataset(corpus=MemoryCorpus([Doc("r", "Кот")]), queries={}, qrels={}, card=card), tmp_path / "one")
    assert "languages" not in json.loads((tmp_path / "one" / "card.json").read_bytes())
    assert "lang" not in json.loads((tmp_path / "one" / "corpus.jsonl").read_bytes())
