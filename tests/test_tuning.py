"""Tuning: weights by cross-validation worked out again by hand, and never on a test split."""

from __future__ import annotations

import hashlib
from statistics import fmean

import pytest

from rusbeir import tuning
from rusbeir.datasets import load
from rusbeir.errors import BadInput
from rusbeir.evaluation import evaluate
from rusbeir.retrieval import parse, resolve
from rusbeir.retrieval.fusion import fuse
from rusbeir.tuning import tune
from rusbeir.types import Card, Dataset

SYSTEM = "minmax(bm25(profile=raw),bm25,depth=20)"


@pytest.fixture(scope="module")
def dev() -> Dataset:
    """mini/ru with its queries named a development split."""
    dataset = load("mini/ru")
    card = Card(name="mini/ru", language="ru", split="dev")
    return Dataset(corpus=dataset.corpus, queries=dataset.queries, qrels=dataset.qrels, card=card)


def test_weights_and_the_held_out_mean(dev):
    tuned = tune(dev, SYSTEM, folds=4)
    runs = [
        resolve(text, language="ru").prepare(dev.corpus, "t").retriever.search(dev.queries, 20)
        for text in ("bm25(profile=raw)", "bm25")
    ]
    grid = [(tenths / 10, 1 - tenths / 10) for tenths in range(1, 10)]
    scores = {
        weights: {
            query_id: values["nDCG@10"]
            for query_id, values in evaluate(dev.qrels, fuse(runs, "minmax", weights), ["nDCG@10"]).per_query.items()
        }
        for weights in grid
    }

    def mean(weights, queries):
        return fmean(scores[weights][query_id] for query_id in queries)

    everything = list(dev.queries)
    best = max(mean(weights, everything) for weights in grid)
    stage = parse(tuned.system).stages[0]
    assert dict(stage.options)["weights"] == ":".join(f"{weight:g}" for weight in tuned.weights)
    assert resolve(tuned.system, language="ru").name == tuned.system
    assert evaluate(dev.qrels, fuse(runs, "minmax", tuned.weights), ["nDCG@10"]).measures["nDCG@10"] == pytest.approx(
        best
    )
    order = sorted(everything, key=lambda query_id: hashlib.sha256(query_id.encode()).digest())
    held_out = []
    for fold, weights in enumerate(tuned.folds):
        part = order[fold::4]
        rest = [query_id for query_id in everything if query_id not in part]
        chosen = evaluate(dev.qrels, fuse(runs, "minmax", weights), ["nDCG@10"]).per_query
        assert fmean(chosen[query_id]["nDCG@10"] for query_id in rest) == pytest.approx(
            max(mean(weights, rest) for weights in grid)
        )
        held_out += [chosen[query_id]["nDCG@10"] for query_id in part]
    assert tuned.held_out == pytest.approx(fmean(held_out))
    assert tuned.held_out <= best + 1e-12
    assert tuned.equal == pytest.approx(mean((0.5, 0.5), everything))


@pytest.mark.parametrize(
    ("change", "system", "folds", "part"),
    [
        ({"split": "test"}, SYSTEM, 5, "is a 'test' split: weights are tuned only on dev, train, validation"),
        (
            {},
            "bm25 >> rerank(bge-reranker-v2-m3)",
            5,
            "bge-reranker-v2-m3.* has nothing to tune: rrf, minmax and zscore",
        ),
        ({}, SYSTEM, 1000, "82 queries cannot be split into 1000 folds"),
    ],
)
def test_refused(dev, change, system, folds, part):
    card = Card(name="mini/ru", language="ru", **{"split": "dev", **change})
    with pytest.raises(BadInput, match=part):
        tune(Dataset(corpus=dev.corpus, queries=dev.queries, qrels=dev.qrels, card=card), system, folds=folds)


BM25 = [
    # system, the options that are chosen, why
    ("bm25(profile=raw)", {"k1", "b"}, "one field: k1 and b"),
    ("bm25(profile=raw,k1=0.9,b=0.4,fields=sum)", {"k1", "b", "weights"}, "two fields: their weights, too"),
]


@pytest.mark.parametrize(("system", "names", "why"), BM25, ids=[row[2] for row in BM25])
def test_k1_b_and_weights_of_fields(dev, system, names, why, monkeypatch, tmp_path):
    """A smaller grid, gone through by hand: options are chosen without a fold's queries, and indexes do not stay."""
    monkeypatch.setenv("RUSBEIR_CACHE", str(tmp_path))
    monkeypatch.setattr(tuning, "K1", (0.1, 3.0))
    monkeypatch.setattr(tuning, "B", (0.0, 0.75))
    monkeypatch.setattr(tuning, "FIELD_WEIGHTS", ("1:4", "9:1"))
    tuned = tune(dev, system, folds=2)
    assert set(tuned.options) <= names, why
    assert resolve(tuned.system, language="ru").name == tuned.system
    assert not (tmp_path / "indexes").exists()
    means = {}
    for k1, b in [(0.1, 0.0), (0.1, 0.75), (3.0, 0.0), (3.0, 0.75)]:
        spec = parse(system).stages[0]
        options = dict(spec.options) | {"k1": k1, "b": b}
        text = f"bm25({','.join(f'{name}={value}' for name, value in options.items())})"
        run = resolve(text, language="ru").prepare(dev.corpus, "t").retriever.search(dev.queries, 10)
        means[k1, b] = evaluate(dev.qrels, run, ["nDCG@10"]).measures["nDCG@10"]
    best = max(means, key=means.__getitem__)
    if means[best] > tuned.equal:
        assert (tuned.options["k1"], tuned.options["b"]) == best
    assert len(tuned.fold_options) == 2
