"""Pools of datasets in several languages: ids, judgements by each rule, counts as published, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import logging
from pathlib import Path

import pytest

from rusbeir.datasets import find_obstacle, join_datasets, load, load_material, make_queries, pool, read_judgement_file
from rusbeir.errors import BadInput, UnknownName
from rusbeir.types import Dataset, MultilingualQueries

LANGUAGES = ("ar", "de", "el", "en", "es", "hi", "ru", "th", "tr", "vi", "zh")


def make(language: str, **changes: object) -> Dataset:
    """Three documents of a family: q1 is asked in every language, and qx in this one alone."""
    parts: dict[str, object] = {
        "corpus": [{"_id": f"d{n}", "text": f"{language} {n}"} for n in range(3)],
        "queries": {"q1": f"query in {language}", f"q{language}": "alone"},
        "qrels": {"q1": {"d1": 2, "d2": 0}, f"q{language}": {"d2": 1}},
        "licence": "CC-BY-4.0",
        "source": "https://example.org",
    }
    return Dataset.of(**{**parts, "language": language, "name": f"shop/{language}", **changes})


def test_ids_are_distinct_and_texts_unchanged():
    joined = join_datasets([make("ru"), make("en")])
    assert [doc.doc_id for doc in joined.corpus] == ["d0@ru", "d1@ru", "d2@ru", "d0@en", "d1@en", "d2@en"]
    assert [doc.language for doc in joined.corpus] == ["ru"] * 3 + ["en"] * 3
    assert joined.corpus["d1@en"] == joined.corpus[4] == joined.corpus[3:][1] == ("d1@en", "en 1", "", "en")
    assert "d1@kk" not in joined.corpus
    assert isinstance(joined.queries, MultilingualQueries)
    assert dict(joined.queries.languages) == {"q1@ru": "ru", "qru@ru": "ru", "q1@en": "en", "qen@en": "en"}
    assert (joined.card.name, joined.card.language, joined.card.languages) == ("shop/ru+en", "mul", ("ru", "en"))
    assert (joined.card.licence, joined.card.source) == ("CC-BY-4.0", "https://example.org")


@pytest.mark.parametrize(
    ("relevant", "expected"),
    [
        ("any", {"q1@ru": {"d1@ru": 2, "d2@ru": 0, "d1@en": 2, "d2@en": 0}, "qru@ru": {"d2@ru": 1}}),
        ("own", {"q1@ru": {"d1@ru": 2, "d2@ru": 0}, "qru@ru": {"d2@ru": 1}}),
        ("other", {"q1@ru": {"d1@en": 2, "d2@en": 0}}),
    ],
)
def test_rules(relevant: str, expected: dict[str, dict[str, int]]):
    joined = join_datasets([make("ru"), make("en")], relevant=relevant)
    assert {key: grades for key, grades in joined.qrels.items() if key.endswith("@ru")} == expected
    assert joined.queries.keys() == joined.qrels.keys()


def test_what_is_left_out_is_counted(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        join_datasets([make("ru"), make("en")], relevant="other")
    assert caplog.messages == ["shop/ru+en: 2 queries are left out, as no document is judged for them."]
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        join_datasets([make("ru", qrels={"q1": {"gone": 1}}), make("en")])
    assert caplog.messages[0] == "shop/ru: 1 judgements are of documents that it lacks; the pool has them, too."


def test_one_set_of_queries_for_all(caplog: pytest.LogCaptureFixture):
    """Documents of one language each, as NeuCLIR's, and such as several have, as products are."""
    datasets = [
        make("ru", queries=None, qrels=None),
        make("en", corpus=[{"_id": "d1", "text": "x"}], queries=None, qrels=None),
    ]
    queries = MultilingualQueries({"t1": "кот", "t2": "мысық"}, {"t1": "ru", "t2": "kk"})
    with caplog.at_level(logging.WARNING):
        joined = join_datasets(datasets, queries=queries, qrels={"t1": {"d1": 1, "d0": 3, "gone": 1}, "t2": {"d2": 1}})
    assert joined.qrels == {"t1": {"d1@ru": 1, "d1@en": 1, "d0@ru": 3}, "t2": {"d2@ru": 1}}
    assert caplog.messages == [
        "1 judgements are left out, of documents in no language of the pool, such as 'gone'.",
        "shop/ru+en: 1 queries are in 'kk', in which the pool has no documents.",
        "shop/ru+en: for 1 queries documents of one language alone are judged.",
    ]


def test_datasets_without_judgements_are_pooled(tmp_path: Path):
    pool([make("ru", qrels=None), make("en", qrels=None)], tmp_path / "pool")
    loaded = load(tmp_path / "pool", judged=False)
    assert (len(loaded.corpus), len(loaded.queries), loaded.qrels) == (6, 4, {})


@pytest.mark.parametrize(
    ("datasets", "relevant", "error", "message"),
    [
        (["ru"], "any", BadInput, "two datasets or more"),
        (["ru", "ru"], "any", BadInput, "shop/ru and shop/ru are both in 'ru', so that their ids would collide"),
        (["ru", "en"], "all", UnknownName, "No rule 'all'"),
    ],
)
def test_what_cannot_be_pooled_is_refused(datasets: list[str], relevant: str, error: type[Exception], message: str):
    with pytest.raises(error, match=message) as caught:
        join_datasets([make(language) for language in datasets], relevant=relevant)
    assert "\n" not in str(caught.value)


def test_ids_of_queries_that_collide_are_refused():
    english = make("en", queries=MultilingualQueries({"q1": "another", "qen": "x"}, {"q1": "ru"}))
    with pytest.raises(BadInput, match="another dataset asks the query 'q1' in 'ru' with another text"):
        join_datasets([make("ru"), english])
    with pytest.raises(BadInput, match="leaves no query with a judged document"):
        join_datasets([make("ru", qrels={"qru": {"d1": 1}}), make("en", qrels={"qen": {"d1": 1}})], relevant="other")
    with pytest.raises(BadInput, match="in several languages already"):
        join_datasets([join_datasets([make("ru"), make("en")]), make("kk")])


def test_licences_of_all_sources_bind():
    """A pool of sources under different licences is published once somebody states one that all of them allow."""
    mixed = join_datasets([make("ru"), make("en", licence="CC-BY-SA-4.0")]).card
    assert mixed.licence == "CC-BY-4.0 AND CC-BY-SA-4.0"
    for licence in (mixed.licence, "CC-BY-4.0"):
        assert "whose licence CC-BY-SA-4.0 also binds it" in str(find_obstacle(mixed.name, licence, mixed.provenance))
    assert find_obstacle(mixed.name, "CC-BY-SA-4.0", mixed.provenance) is None
    unknown = join_datasets([make("ru"), make("en", licence="")]).card
    assert find_obstacle(unknown.name, unknown.licence, unknown.provenance) is not None


def test_xquad_r_has_the_counts_of_lareqa(tmp_path: Path, shared_data: Path):
    """LAReQA (Roy et al. 2020): 13,014 candidate sentences, 1,190 questions a language, each with 11 answers."""
    report = pool([load(f"xquad-r/{language}") for language in LANGUAGES], tmp_path / "pool")
    assert (report["n_docs"], report["queries"]) == (13_014, dict.fromkeys(LANGUAGES, 1_190))
    loaded = load(tmp_path / "pool")
    assert {len(grades) for grades in loaded.qrels.values()} == {11}
    assert loaded.corpus["47-4-2@zh"].text.startswith("应力张量")


def test_queries_of_one_set_that_several_corpora_have_are_one():
    """As of NeuCLIR, whose topics in English are asked of documents in Persian, Russian and Chinese."""
    parts = [make(language, queries={"t1": "kettles"}, qrels={"t1": {"d1": 1}}) for language in ("ru", "zh")]
    cards = [dataclasses.replace(part.card, query_language="en") for part in parts]
    joined = join_datasets([dataclasses.replace(part, card=card) for part, card in zip(parts, cards, strict=True)])
    assert joined.queries == {"t1@en": "kettles"}
    assert joined.qrels == {"t1@en": {"d1@ru": 1, "d1@zh": 1}}


def test_a_pool_is_not_translated():
    joined = join_datasets([make("ru"), make("en")])
    with pytest.raises(BadInput, match="is in several languages: translate the datasets that it was made of"):
        _ = load_material(joined).language


def test_queries_of_one_set_without_a_language_are_detected(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        joined = join_datasets(
            [make("ru"), make("en")],
            relevant="own",
            queries={"t1": "красный чайник", "t2": "a kettle for tea"},
            qrels={"t1": {"d1": 1}, "t2": {"d1": 1}},
        )
    assert joined.qrels == {"t1": {"d1@ru": 1}, "t2": {"d1@en": 1}}
    assert "shop/ru+en: languages of queries were detected: ru 1, en 1" in caplog.text


def test_the_layout_of_neuclir(tmp_path: Path):
    """Three corpora of NeuCLIR's keys, topics with their translations, and one file of judgements by TREC."""
    documents = {"fas": "کتری قرمز", "rus": "Красный чайник", "zho": "红色水壶"}
    for code, text in documents.items():
        record = {"id": f"{code}-1", "cc_file": "x", "time": None, "title": "", "text": text, "url": "x"}
        (tmp_path / f"{code}.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    topics = [
        {"lang": "fas", "source": "human translation", "topic_title": "کتری"},
        {"lang": "eng", "source": "original", "topic_title": "kettles", "topic_description": "Find kettles."},
    ]
    topic = {"topic_id": "7", "languages_with_qrels": ["fas", "rus", "zho"], "topics": topics}
    (tmp_path / "topics.jsonl").write_text(json.dumps(topic) + "\n", encoding="utf-8")
    (tmp_path / "qrels.all").write_text("7 0 fas-1 3\n7 0 rus-1 1\n7 0 zho-1 0\n", encoding="utf-8")
    languages = {"fas": "fa", "rus": "ru", "zho": "zh"}
    joined = join_datasets(
        [load(tmp_path / f"{code}.jsonl", language=tag, judged=False) for code, tag in languages.items()],
        queries=make_queries(tmp_path / "topics.jsonl", {}),
        qrels=read_judgement_file(tmp_path / "qrels.all", {}),
    )
    assert dict(joined.queries) == {"7": "kettles"}
    assert joined.queries.languages == {"7": "en"}
    assert joined.qrels == {"7": {"fas-1@fa": 3, "rus-1@ru": 1, "zho-1@zh": 0}}
