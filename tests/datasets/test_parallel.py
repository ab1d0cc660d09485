"""Documents in one language asked with queries in another: which queries are taken, and what is refused."""

from __future__ import annotations

import dataclasses

import pytest

from rusbeir.datasets import load, write_beir
from rusbeir.datasets.parallel import expand_languages, find_parallel, take_queries
from rusbeir.errors import BadInput, UnknownName
from rusbeir.types import Dataset


@pytest.fixture(scope="module")
def russian() -> Dataset:
    return load("mini/ru")


@pytest.fixture(scope="module")
def english() -> Dataset:
    return load("mini/en")


def rename(dataset: Dataset, name: str) -> Dataset:
    return dataclasses.replace(dataset, card=dataclasses.replace(dataset.card, name=name))


def test_the_queries_are_those_of_the_other_language(russian, english):
    found, language = take_queries(russian, "mini/en")
    assert language == "en"
    assert list(found.queries) == list(russian.queries)
    assert found.queries == english.queries
    assert found.qrels == russian.qrels
    assert found.corpus is russian.corpus


def test_the_fingerprint_covers_the_documents_and_the_queries(russian, english):
    asked = [take_queries(russian, "mini/en")[0], take_queries(english, "mini/ru")[0]]
    assert len({one.fingerprint for one in [russian, english, *asked]}) == 4


FOUND = [
    ("mini/ru", "en", "mini/en", "the registered name differs in the language alone"),
    ("mini/ru", "English", "mini/en", "languages are spelled as people spell them"),
    ("mini/ru", "RU", None, "its own"),
    ("xquad/ru/sentences", "de", "xquad/de/sentences", "views have the same view"),
    ("mini/en@ru", "en", "mini/en", "a port is asked in what it is a port of"),
    ("xquad/en/sentences@ru", "de", "xquad/de/sentences", "and in whatever that is asked in"),
    ("mine", "mini/en", "mini/en", "a name"),
    ("mine", "kk", "port-kk", "another dataset of the call"),
    ("mini/ru", "en", "mini/en", "a registered one before another dataset of the call"),
]


@pytest.mark.parametrize(("name", "wanted", "place", "why"), FOUND)
def test_where_queries_are_looked_for(russian, name, wanted, place, why):
    card = rename(russian, name).card
    assert find_parallel(card, wanted, {"kk": "port-kk", "en": "port-en"}) == place, why


REFUSED = [
    ("mini/ru", "kk", UnknownName, "No language 'kk' of datasets parallel to mini/ru. Available: en."),
    ("xquad/ru", "kk", UnknownName, "No language 'kk' of datasets parallel to xquad/ru. Available: ar, de, el, en, es"),
    ("beir/nfcorpus/test", "fr", BadInput, "No registered dataset has the queries of beir/nfcorpus/test in another"),
    ("mine", "en", BadInput, "name one that has, or its folder, as in query_language=mini/en."),
]


@pytest.mark.parametrize(("name", "wanted", "error", "message"), REFUSED)
def test_languages_that_no_parallel_dataset_has(russian, name, wanted, error, message):
    card = dataclasses.replace(rename(russian, name).card, language="en" if name.startswith("beir") else "ru")
    with pytest.raises(error) as caught:
        find_parallel(card, wanted)
    assert message in str(caught.value)


def test_datasets_that_are_not_parallel(russian, tmp_path):
    """MIRACL's query ids are numbers, equal in all languages by chance; so only equal judgements show that it is."""
    qrels = {query_id: {"other": 1} for query_id in russian.qrels}
    docs = [{"_id": "other", "text": "x"}]
    write_beir(Dataset.of(docs, russian.queries, qrels, language="en", name="chance"), tmp_path / "chance")
    with pytest.raises(
        BadInput, match=r"^chance is not parallel to mini/ru: of 82 query ids 82 are common, and for 0 "
    ):
        take_queries(russian, str(tmp_path / "chance"))
    with pytest.raises(
        BadInput, match=r"^xquad/en is not parallel to mini/ru: of 82 query ids 0 are common, and for 0 "
    ):
        take_queries(russian, "xquad/en")
    with pytest.raises(BadInput, match=r"^mini/ru is in 'ru', as copy: omit query_language=\.$"):
        take_queries(rename(russian, "copy"), "mini/ru")


def test_queries_that_the_other_lacks_are_told(russian, english, tmp_path, caplog):
    some = dict(list(english.queries.items())[:80])
    qrels = {query_id: english.qrels[query_id] for query_id in some}
    write_beir(Dataset.of(english.corpus, some, qrels, language="en", name="some"), tmp_path / "some")
    found, _ = take_queries(russian, str(tmp_path / "some"))
    assert (found.queries, found.qrels) == (some, qrels)
    assert "some has 80 of the 82 queries of mini/ru; only these are measured." in caplog.text


def test_all_languages_are_those_of_the_call(russian, english):
    cards = [russian.card, english.card, russian.card]
    assert expand_languages(["all"], cards) == ["ru", "en"]
    assert expand_languages(["en", "de", "en"], cards) == ["en", "de"]
    with pytest.raises(BadInput, match="all means the languages of all datasets of the call, which have only 'ru'"):
        expand_languages(["all"], [russian.card])
