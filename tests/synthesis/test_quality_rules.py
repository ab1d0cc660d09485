"""The rules of quality control, each on examples that can be checked by hand."""

from __future__ import annotations

import pytest

from rusbeir.synthesis.quality.candidates import bound_candidates, vote
from rusbeir.synthesis.quality.decisions import Decision, apply_decisions
from rusbeir.synthesis.quality.relevance import read_label
from rusbeir.synthesis.quality.span_checks import carries_answer, find_outscoring, score_span
from rusbeir.types import Doc

VOTES = [
    # rank of a document by each ranker, None where it was not found; threshold; whether it is a candidate, and why
    ((1, 1, 1), 10, True, "all of three"),
    ((10, 10, 900), 10, True, "two of three, at the threshold"),
    ((10, 11, 11), 10, False, "one of three"),
    ((11, 11, 11), 10, False, "just below for all"),
    ((20, 20, 21), 20, True, "a generated hard negative has until 20"),
    ((1, None, None), 10, False, "two have not found it"),
    ((1, 2, None), 10, True, "one has not found it"),
    ((1, 2, 30, 40), 10, False, "half of four is not more than half"),
    ((1, 2, 3, 40), 10, True, "three of four"),
    ((1, 30), 10, False, "half of two"),
    ((1, 1), 1, True, "both of two, at threshold 1"),
]


@pytest.mark.parametrize(("ranks", "threshold", "expected", "why"), VOTES, ids=[row[3] for row in VOTES])
def test_votes(ranks, threshold, expected, why):
    rankings = {
        str(place): [*(f"other-{n}" for n in range(1, (rank or 50))), *(["it"] if rank else [])]
        for place, rank in enumerate(ranks)
    }
    found = list(vote(rankings, {"it": threshold}))
    assert found == ([("it", dict(zip("0123", ranks, strict=False)), threshold)] if expected else [])


@pytest.mark.parametrize("n_rankers", [2, 3, 4, 5])
def test_the_most_candidates_of_a_query(n_rankers):
    """Rankers that agree as little as a majority can."""
    majority = n_rankers // 2 + 1
    docs = [f"d{n}" for n in range(n_rankers * 4 // majority)]
    dealt = [doc_id for doc_id in docs for _ in range(majority)]
    rankings = {str(n): dealt[n::n_rankers] for n in range(n_rankers)}
    assert len(list(vote(rankings, dict.fromkeys(docs, 4)))) == bound_candidates(n_rankers, 0, 4, 8)
    assert bound_candidates(n_rankers, 3, 4, 8) == bound_candidates(n_rankers, 0, 4, 8) + 3


QRELS = {"q1": {"a": 1, "b": 2, "n": 0}, "q2": {"a": 1}, "q3": {"c": 1}}


def decide(step, query_id, doc_id, action, **others):
    return Decision(step=step, query_id=query_id, doc_id=doc_id, kind="positive", action=action, **others)


OUTCOMES = [
    # decisions; the judgements that differ (None: the query is gone); the documents that go; why
    ([decide("source", "q1", "a", "keep", label=3)], {}, set(), "nothing happens"),
    ([decide("source", "q1", "a", "drop-judgement")], {"q1": {"b": 2, "n": 0}}, set(), "one of two positives"),
    ([decide("source", "q2", "a", "drop-query")], {"q2": None}, set(), "the only positive"),
    (
        [decide("source", "q1", "a", "drop-query"), decide("source", "q1", "b", "drop-query")],
        {"q1": None}, set(), "a judgement of 0 does not keep a query",
    ),
    (
        [decide("source", "q1", "a", "drop-query"), decide("source", "q1", "b", "drop-query", undone=True)],
        {"q1": {"b": 2, "n": 0}}, set(), "one of two undone: the query is back with it",
    ),
    ([decide("source", "q2", "a", "drop-query", undone=True)], {}, set(), "undone"),
    ([decide("span", "q1", "a", "drop-query")], {"q1": None}, set(), "a span that does not carry the answer"),
    ([decide("candidate", "q1", "n", "drop-document")], {"q1": {"a": 1, "b": 2}}, {"n"}, "a false hard negative"),
    ([decide("candidate", "q2", "c", "add-judgement", label=3)], {"q2": {"a": 1, "c": 1}}, set(), "an answer"),
    (
        [decide("candidate", "q2", "n", "add-judgement", label=3), decide("candidate", "q1", "n", "drop-document")],
        {"q1": {"a": 1, "b": 2}}, {"n"}, "a document that goes is judged for no other query",
    ),
    (
        [decide("source", "q2", "a", "drop-query"), decide("candidate", "q2", "c", "add-judgement", label=3)],
        {"q2": None}, set(), "a query that is gone stays gone",
    ),
    (
        [decide("false-negative", "q3", "a", "drop-query-and-document")],
        {"q1": None, "q2": None}, {"a"}, "the queries whose positive it is go, even with another",
    ),
    (
        [decide("false-negative", "q3", "n", "drop-query-and-document")],
        {"q1": {"a": 1, "b": 2}}, {"n"}, "a document judged 0 takes no query with it",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("decisions", "changed", "gone", "why"), OUTCOMES, ids=[row[3] for row in OUTCOMES])
def test_outcomes(decisions, changed, gone, why):
    found = apply_decisions(QRELS, decisions, 1)
    expected = {query_id: grades for query_id, grades in (QRELS | changed).items() if grades is not None}
    assert (found.qrels, found.documents) == (expected, gone)


def test_the_label_may_be_the_grade():
    added = [decide("candidate", "q2", "c", "add-judgement", label=2)]
    assert apply_decisions(QRELS, added, None).qrels["q2"] == {"a": 1, "c": 2}
    assert apply_decisions(QRELS, added, 5).qrels["q2"] == {"a": 1, "c": 5}


LABELS = [
    ({"label": 0, "reason": "No."}, {"label": 0, "reason": "No."}, "the least"),
    ({"label": 3, "reason": "Yes."}, {"label": 3, "reason": "Yes."}, "the highest"),
    ({"label": 3}, {"label": 3, "reason": ""}, "no reason"),
    ({"label": 3, "reason": ["Yes."]}, {"label": 3, "reason": ""}, "a reason that is not a text"),
    ({"label": 4, "reason": ""}, None, "above the scale"),
    ({"label": -1, "reason": ""}, None, "below the scale"),
    ({"label": 2.5}, None, "between two labels"),
    ({"label": 2.0}, None, "not an integer"),
    ({"label": True}, None, "a truth value"),
    ({"label": "3"}, None, "a word"),
    ({"reason": "Yes."}, None, "no label"),
]


@pytest.mark.parametrize(("answer", "expected", "why"), LABELS, ids=[row[2] for row in LABELS])
def test_labels(answer, expected, why):
    assert read_label(answer) == expected


class Words:
    """Scores a document by how many of the query's words it has."""

    name = "words"

    def score(self, query, texts):
        return [float(len(set(query.split()) & set(text.split()))) for text in texts]


class Letters(Words):
    """Scores a document by its length."""

    name = "letters"

    def score(self, query, texts):
        return [float(len(text)) for text in texts]


def test_spans():
    doc = Doc("d", "it rains . the sun shines", "weather")
    assert score_span([Words(), Letters()], "when the sun shines", doc, (11, 25)) == {
        "words": {"with": 3.0, "without": 0.0},
        "letters": {"with": 33.0, "without": 19.0},
    }
    assert not carries_answer(score_span([Words(), Letters()], "when it rains", doc, (11, 25)))


def test_documents_that_outscore_the_positive():
    positives = [Doc("p1", "the sun"), Doc("p2", "the sun shines")]
    others = [Doc("a", "sun shines"), Doc("b", "when the sun shines"), Doc("c", "the sun shines xx"), Doc("d", "rain")]
    found = dict(find_outscoring([Words(), Letters()], "when the sun shines", positives, others))
    assert found == {
        "b": {"words": {"document": 4, "positive": 3}, "letters": {"document": 19, "positive": 14}},
        "c": {"words": {"document": 3, "positive": 3}, "letters": {"document": 17, "positive": 14}},
    }, "above the best positive by one reranker is enough; equal is not"
