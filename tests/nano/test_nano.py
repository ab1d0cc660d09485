"""A small version keeps what it says, is the same for the same seed, and its agreement is measured on others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rusbeir import bench, load, read_run
from rusbeir.errors import BadInput
from rusbeir.evaluation.orders import kendall
from rusbeir.nano import make_nano
from rusbeir.nano.choice import choose_queries
from rusbeir.nano.fidelity import find_kind, measure_agreement

CHOOSE = ("bm25", "bm25(profile=raw)")
HELD_OUT = (
    "bm25(profile=grams)", "bm25(profile=blend)", "bm25(profile=raw,k1=0.1,b=0.0)",
    "bm25(profile=grams,k1=0.1,b=0.0)", "bm25(k1=8.0,b=1.0)", "dense(python:tests.support.toy_encoder.Toy)",
)  # fmt: skip


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict:
    return make(tmp_path_factory.mktemp("nano") / "small")


def make(to: Path, **options) -> dict:
    given = {"systems": CHOOSE, "held_out": HELD_OUT, "queries": 30, "depth": 5, "others": 10} | options
    return make_nano("mini/ru", to=to, **given)


def test_it_keeps_grades_and_negatives(report, tmp_path):
    whole, small = load("mini/ru"), load(report["to"])
    assert len(small.queries) == 30
    assert small.qrels == {query_id: whole.qrels[query_id] for query_id in small.queries}
    assert small.fingerprint == report["fingerprint"]
    docs = {doc.doc_id for doc in small.corpus}
    assert len(docs) == report["documents"]["nano"] < report["documents"]["full"]
    # Every hit that the first five of a system are is in it, and ten documents more.
    for system in CHOOSE:
        row = bench(whole, system, k=5, measures="nDCG@5", out=tmp_path)
        run = read_run(row["run"])
        assert all(docs.issuperset(run.get(query_id, {})) for query_id in small.queries)


def test_the_card_says_how_well_it_agrees(report):
    card = json.loads((Path(report["to"]) / "card.json").read_text(encoding="utf-8"))
    assert card["name"] == "mini/ru@nano"
    assert card["provenance"]["source"]["fingerprint"] == load("mini/ru").fingerprint
    assert card["provenance"]["agreement"] == json.loads(json.dumps(report["agreement"]))
    assert card["licence"] == load("mini/ru").card.licence


def test_agreement_is_that_of_rows(report, tmp_path):
    """The figures are those of `bench` on both folders."""
    held = report["agreement"]["systems"]
    assert report["agreement"]["twins"] == {"bm25(k1=8.0,b=1.0)": "bm25"}
    means = np.array([
        [bench(place, one["system"], measures="nDCG@10", out=tmp_path)["measures"]["nDCG@10"] for one in held]
        for place in ("mini/ru", report["to"])
    ])  # fmt: skip
    assert [one["full"] for one in held] == pytest.approx(means[0])
    assert [one["nano"] for one in held] == pytest.approx(means[1])
    assert report["agreement"]["kendall"]["value"] == pytest.approx(float(kendall(*means)))
    (dense,) = [place for place, one in enumerate(held) if one["kind"] == "dense"]
    lexical = [place for place, one in enumerate(held) if one["kind"] == "lexical"]
    gaps = means[:, dense] - means[:, lexical].mean(axis=1)
    assert report["agreement"]["gap"]["distortion"]["value"] == pytest.approx(gaps[1] - gaps[0])


def test_the_seed_decides(report, tmp_path):
    again, other = make(tmp_path / "again"), make(tmp_path / "other", seed=1)
    assert again | {"to": report["to"]} == report
    assert other["fingerprint"] != report["fingerprint"]


def test_chosen_queries_are_like_all():
    """Means over fifty chosen queries are far closer to those of all than fifty drawn ones are (seed 0 to 9)."""
    random = np.random.default_rng(0)
    ability = random.normal(size=400)
    scores = np.array([ability + random.normal(size=400) for _ in range(5)])

    def off(places) -> float:
        return float(np.abs(scores[:, places].mean(axis=1) - scores.mean(axis=1)).max())

    chosen = [choose_queries(scores, 50, seed) for seed in range(10)]
    drawn = [np.random.default_rng(seed).permutation(400)[:50] for seed in range(10)]
    assert all(len(set(places)) == 50 for places in chosen)
    assert max(map(off, chosen)) < min(map(off, drawn)) / 2


@pytest.mark.parametrize(
    ("system", "kind"),
    [
        ("bm25(k1=3.0)", "lexical"),
        ("dense(python:a.b)", "dense"),
        ("bm25 >> rerank(x)", "other"),
        ("rrf(bm25,dense(x))", "other"),
        ("python:a.b", "other"),
    ],
)
def test_kinds(system, kind):
    assert find_kind(system) == kind


def test_an_agreement_that_is_known():
    """Ten queries of forty, on which the dense system gains 0.1 that it does not have on the whole."""
    random = np.random.default_rng(0)
    full = {
        name: dict(zip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN", mean + 0.05 * random.normal(size=40), strict=True))
        for name, mean in {"bm25": 0.5, "bm25(k1=3.0)": 0.4, "dense(x)": 0.3, "python:a.b": 0.1}.items()
    }
    same = {name: {query_id: of[query_id] for query_id in "abcdefghij"} for name, of in full.items()}
    better = same | {"dense(x)": {query_id: score + 0.15 for query_id, score in same["dense(x)"].items()}}
    moved = measure_agreement("nDCG@10", full, better)
    assert (moved.told_apart, moved.reversed) == (6, 1)
    assert moved.kendall.value == pytest.approx(4 / 6)
    assert moved.gap is not None
    assert moved.gap.distortion.value == pytest.approx(0.15, abs=0.05)
    low, high = moved.gap.distortion.interval
    assert 0.05 < low < moved.gap.distortion.value < high < 0.25
    kept = measure_agreement("nDCG@10", full, same)
    assert (kept.kendall.value, kept.reversed) == (1.0, 0)
    assert kept.detectable_nano > 1.5 * kept.detectable_full
    only_lexical = {name: full[name] for name in full if name != "dense(x)"}
    assert measure_agreement("nDCG@10", only_lexical, {name: same[name] for name in only_lexical}).gap is None


def test_a_small_version_that_some_resamples_lack():
    """Of forty queries it has two, of one paragraph: a third of the resamples draw none of them."""
    random = np.random.default_rng(0)
    queries = [f"q{n}" for n in range(40)]
    full = {name: dict(zip(queries, random.random(40), strict=True)) for name in ("bm25", "a", "b", "c")}
    nano = {name: {query_id: of[query_id] for query_id in queries[:2]} for name, of in full.items()}
    clusters = {query_id: place // 2 for place, query_id in enumerate(queries)}
    found = measure_agreement("nDCG@10", full, nano, clusters=clusters)
    assert (found.n_queries, found.n_clusters, found.detectable_nano) == ((40, 2), (20, 1), np.inf)
    assert found.conclusion[-2].startswith("No two systems can be told apart here")
    assert found.conclusion[-1] == "The whole has 40 queries, 20 independent; here there are 2 queries, 1 independent."


def test_a_refused_folder_is_named_in_python(tmp_path):
    with pytest.raises(BadInput, match="queries=0"):
        make(tmp_path / "new", queries=0)
