"""Which queries are independent."""

from __future__ import annotations

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


@pytest.mark.parametrize("view", ["", "/sentences", "/windows-3"])
def test_the_questions_of_xquad_are_about_240_paragraphs(shared_data, view):
    clusters = cluster_queries(load(f"xquad/ru{view}"))
    assert (len(clusters), len(set(clusters.values()))) == (1_190, 240)
