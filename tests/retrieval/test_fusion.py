"""Fusion against values worked out by hand from the published formulas, and as a stage of a system."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rusbeir.errors import BadInput, UnknownName
from rusbeir.retrieval import resolve
from rusbeir.retrieval.fusion import fuse

A = {"q": {"a": 12.0, "b": 10.0, "c": 4.0}, "empty": {}}
B = {"q": {"c": 0.9, "d": 0.5}, "empty": {"a": 1.0}}

FUSED = [
    # method, weights, rrf_k, expected scores of q, why
    ("rrf", (1, 1), 60, {"c": 1 / 63 + 1 / 61, "a": 1 / 61, "b": 1 / 62, "d": 1 / 62}, "Cormack et al. 2009, eq. 1"),
    ("rrf", (1, 1), 0, {"c": 1 / 3 + 1, "a": 1.0, "b": 0.5, "d": 0.5}, "k = 0: reciprocal ranks"),
    ("rrf", (0, 2), 60, {"c": 2 / 61, "d": 2 / 62, "a": 0.0, "b": 0.0}, "a weight of 0 leaves hits, without a score"),
    ("minmax", (1, 1), 60, {"a": 1.0, "c": 1.0, "b": 0.75, "d": 0.0}, "(s - min) / (max - min); absent is 0"),
    ("minmax", (0.3, 0.7), 60, {"c": 0.7, "a": 0.3, "b": 0.225, "d": 0.0}, "weighted"),
    # A: mean 26/3, deviation 3.39935; B: mean 0.7, deviation 0.2; absent is the lowest.
    (
        "zscore", (1, 1), 60,
        {"c": -1.372813 + 1, "a": 0.980581 - 1, "b": 0.392232 - 1, "d": -1.372813 - 1},
        "(s - mean) / deviation of the population",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("method", "weights", "rrf_k", "expected", "why"), FUSED, ids=[row[4] for row in FUSED])
def test_scores(method, weights, rrf_k, expected, why):
    run = fuse([A, B], method, weights, rrf_k=rrf_k)
    assert run["q"] == pytest.approx(expected, abs=1e-6)
    assert list(run["q"].values()) == sorted(run["q"].values(), reverse=True)
    assert list(run["empty"]) == ["a"]
    assert list(fuse([A, B], method, weights, k=2, rrf_k=rrf_k)["q"]) == list(run["q"])[:2]


def test_equal_scores_keep_the_order_of_the_runs():
    assert list(fuse([A, B], "rrf", (1, 1), rrf_k=60)["q"]) == ["c", "a", "b", "d"]
    assert list(fuse([A, B], "minmax", (1, 1))["q"]) == ["a", "c", "b", "d"]


@pytest.mark.parametrize("method", ["minmax", "zscore"])
def test_hits_that_all_score_the_same(method):
    hits = fuse([{"q": {"a": 2.0, "b": 2.0}}, {"q": {"b": 1.0}}], method, (1, 1))["q"]
    assert next(iter(hits)) in {"a", "b"}
    assert all(score == score for score in hits.values()), "no NaN"


scores = st.dictionaries(st.sampled_from("abcdef"), st.floats(-1e6, 1e6), max_size=6)


def ordered(hits):
    return dict(sorted(hits.items(), key=lambda hit: -hit[1]))


@given(scores, scores, st.sampled_from(["rrf", "minmax", "zscore"]))
def test_every_hit_is_there_once_with_a_number(first, second, method):
    hits = fuse([{"q": ordered(first)}, {"q": ordered(second)}], method, (0.4, 0.6))["q"]
    assert set(hits) == set(first) | set(second)
    assert all(abs(score) < 1e9 for score in hits.values())


def test_name_and_signature():
    system = resolve("rrf( bm25, bm25(profile=raw), k=10 )", language="ru")
    assert system.name == "rrf(bm25,bm25(profile=raw),k=10)"
    assert system.signature.startswith("rrf|k:10|depth:100|weights:1:1|of:[bm25|k1:1.2")
    assert system.engine == "tantivy+tantivy"
    weighted = resolve("minmax(bm25,bm25(profile=raw),weights=0.25:0.75,depth=50)", language="ru")
    assert "minmax|depth:50|weights:0.25:0.75|of:[" in weighted.signature
    assert resolve(weighted.name, language="ru").signature == weighted.signature


REFUSED = [
    ("rrf", BadInput, ["joins two systems or more"]),
    ("rrf(bm25)", BadInput, ["rrf(bm25,dense(bge-m3))"]),
    ("rrf(bm25,bm52)", UnknownName, ["No system 'bm52'", "'bm25'"]),
    ("rrf(bm25,bm25,k=no)", BadInput, ["k to be a number from 0 up, not no"]),
    ("rrf(bm25,bm25,depth=0)", BadInput, ["depth to be a whole number from 1 up, not 0"]),
    ("minmax(bm25,bm25,k=3)", BadInput, ["minmax has no option 'k'", "depth, weights"]),
    ("minmax(bm25,bm25,weights=1)", BadInput, ["2 numbers from 0 up, one for each system, such as 1:1, not 1"]),
    ("minmax(bm25,bm25,weights=1:-1)", BadInput, ["not 1:-1"]),
    ("minmax(bm25,bm25,weights=0:0)", BadInput, ["not 0:0"]),
    ("bm25 >> rrf(bm25,bm25)", BadInput, ["cannot follow 'bm25 >>'"]),
]


@pytest.mark.parametrize(("text", "error", "parts"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refused(text, error, parts):
    with pytest.raises(error) as raised:
        resolve(text, language="ru")
    message = str(raised.value)
    assert all(part in message for part in parts), message
    assert "\n" not in message
