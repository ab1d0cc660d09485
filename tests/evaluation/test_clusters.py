"""Which queries are independent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rusbeir import Dataset, load
from rusbeir.evaluation import cluster_queries

QRELS = {
    "q1": {"0-0": 1, "0-1": 1},
    "q2": {"0-1": 2, "0-0": 1, "0-3": 0},
    "q3": {"0-2": 1},
    "q4": {"0-2": 0},
    "q5": {"0-2": 0},
}


@pytest.mark.parametrize(
    ("name", "expected", "why"),
    [
        ("toy", [0, 0, 1, 2, 3], "q1 and q2 have the same relevant documents; q4 and q5 have none"),
        ("toy/sentences", [0, 0, 0, 1, 2], "all relevant sentences are of paragraph 0"),
        ("toy/windows-3", [0, 0, 0, 1, 2], "all relevant windows are of paragraph 0"),
    ],
)
def test_queries_with_the_same_relevant_documents_share_a_cluster(name, expected, why):
    docs = [{"_id": f"0-{n}", "text": "a"} for n in range(4)]
    dataset = Dataset.of(docs, dict.fromkeys(QRELS, "a"), QRELS, language="en", name=name)
    assert list(cluster_queries(dataset).values()) == expected, why


@pytest.mark.parametrize("name", ["xquad/ru", "xquad/ru/sentences", "xquad/ru/windows-3", "xquad-r/ru"])
def test_the_questions_of_xquad_are_about_240_paragraphs(shared_data, name):
    clusters = cluster_queries(load(name))
    assert (len(clusters), len(set(clusters.values()))) == (1_190, 240)


@pytest.mark.parametrize("name", ["toy", "xquad-r/zh-Hant+en"])
def test_queries_of_a_pool_share_a_cluster_with_their_translations(name):
    """Whatever is judged: translations of a document count as one, and so do the sentences of one paragraph."""
    docs = [{"_id": f"0-{n}@{tag}", "text": "a", "lang": tag} for n in range(2) for tag in ("zh-Hant", "en")]
    qrels = {"q0@en": {"0-0@en": 1}, "q0@zh-Hant": {"0-0@zh-Hant": 1}, "q1@en": {"0-1@en": 1, "0-1@zh-Hant": 1}}
    dataset = Dataset.of(docs, dict.fromkeys(qrels, "a"), qrels, language="mul", name=name)
    pool = replace(dataset, card=replace(dataset.card, languages=("zh-Hant", "en")))
    assert list(cluster_queries(pool).values()) == ([0, 0, 1] if name == "toy" else [0, 0, 0])
    other = replace(dataset, card=replace(dataset.card, language="en", languages=()))
    assert list(cluster_queries(other).values()) == [0, 1, 2] or name != "toy", "ids of other data may have an @"
