"""Each query asked again says nothing new: no interval, test or detectable effect of any verb may change.

The reference is the same data without the repeated queries, whose queries are all independent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rusbeir import Dataset, bench
from rusbeir.audit.published_ports.integrity import compare_ids
from rusbeir.audit.score_differences.attribution import attribute
from rusbeir.comparison.label_judges import judge_labels
from rusbeir.comparison.order_agreement import compare_rankings
from rusbeir.comparison.validity import measure_validity
from rusbeir.diagnostics import diagnose_position, diagnose_source_bias
from rusbeir.diagnostics.position_curve import make_curve
from rusbeir.nano.fidelity import measure_agreement
from rusbeir.tuning import tune

N = 30
"""Queries, before they are repeated, and documents."""
SYSTEMS = ["bm25(profile=raw)", "bm25(profile=raw,k1=0.1,b=0.0)", "bm25(profile=raw,k1=9.0,b=1.0)", "bm25"]
DIGITS = 1e-9


def repeat(ids: list[str], times: int) -> dict[str, str]:
    """Each id and as many more that a hash sorts after it, with the id that they repeat."""
    copies = {}
    for query_id in ids:
        digest = hashlib.sha256(query_id.encode()).digest()
        later = (name for n in count() if hashlib.sha256((name := f"{query_id}-{n}").encode()).digest() > digest)
        copies.update({query_id: query_id, **{next(later): query_id for _ in range(times - 1)}})
    return copies


def make(times: int, *, seed: int = 0, name: str = "toy", split: str = "test", n_docs: int = N) -> Dataset:
    """Documents of 30 words, and for each a query of three of its words and two others, asked so many times."""
    random = np.random.default_rng(seed)
    words = np.array([f"word{n}" for n in range(60)])
    docs = [" ".join(random.choice(words, size=random.integers(10, 40))) for _ in range(N)]
    texts = {
        f"q{n}": " ".join([*random.choice(doc.split(), 3), *random.choice(words, 2)]) for n, doc in enumerate(docs)
    }
    copies = repeat(list(texts), times)
    return Dataset.of(
        [{"_id": f"d{n}", "text": doc} for n, doc in enumerate(docs[:n_docs])],
        {query_id: texts[source] for query_id, source in copies.items()},
        {query_id: {f"d{source[1:]}": 1} for query_id, source in copies.items()},
        language="en", name=name, split=split,
    )  # fmt: skip


def draw_scores(times: int, mean: float, seed: int) -> dict[str, float]:
    random = np.random.default_rng(seed)
    scores = dict(zip([f"q{n}" for n in range(N)], (mean + random.normal(0, 0.3, N)).tolist(), strict=True))
    return {query_id: scores[source] for query_id, source in repeat(list(scores), times).items()}


def measure_orders(times: int, folder: Path) -> dict[str, Any]:
    """`compare --rankings` and `validity`, of two sets of as many queries."""
    # Sets in which no two systems have equal means: of five systems with such a pair, half of the draws order it the
    # same, so that the mean tau approaches 0.9 itself, which is what is asked for, and the last digit decides.
    for name, seed in (("a", 6), ("b", 7)):
        for system in SYSTEMS:
            bench(make(times, seed=seed, name=name), system, out=folder)
    orders = compare_rankings([folder], "a", "b")
    (port,) = measure_validity([folder], [("a", "b")]).tasks
    return {
        "n_clusters": [orders.n_clusters, port.n_clusters],
        "needed": [needed and needed / times for needed in orders.queries_needed],
        "validity": [port.kendall.interval, port.tau_ap.interval],
        **{name: figure.interval for name, figure in orders.correlations.items()},
    }


def measure_judge(times: int, folder: Path) -> dict[str, Any]:
    random = np.random.default_rng(3)
    people = {f"q{n}": {f"d{n}-{m}": int(grade) for m, grade in enumerate(random.integers(0, 4, 9))} for n in range(N)}
    judge = {
        query_id: {doc_id: int(np.clip(grade + random.integers(-1, 2), 0, 3)) for doc_id, grade in grades.items()}
        for query_id, grades in people.items()
    }
    runs = {
        f"s{n}": {
            query_id: {doc_id: grade + float(random.normal(0, 1 + n / 2)) for doc_id, grade in grades.items()}
            for query_id, grades in people.items()
        }
        for n in range(5)
    }
    copies = repeat(list(people), times)

    def again(table: Mapping[str, Any]) -> dict[str, Any]:
        return {query_id: table[source] for query_id, source in copies.items()}

    agreement = judge_labels(again(people), again(judge), runs={name: again(run) for name, run in runs.items()})
    assert agreement.order is not None
    # Krippendorff's alpha corrects for the number of labels.
    names = [name for name in agreement.figures if name != "alpha"]
    return {
        "n_clusters": agreement.n_clusters,
        "order": agreement.order.kendall.interval,
        **{name: agreement.figures[name].interval for name in names},
    }


def measure_nano(times: int, folder: Path) -> dict[str, Any]:
    full = {
        name: draw_scores(times, mean, seed)
        for seed, (name, mean) in enumerate({"bm25": 0.5, "bm25(k1=3.0)": 0.4, "dense(x)": 0.4, "a": 0.1}.items())
    }
    clusters = {query_id: int(source[1:]) for query_id, source in repeat([f"q{n}" for n in range(N)], times).items()}
    nano = {
        name: {query_id: score for query_id, score in scores.items() if clusters[query_id] % 3 == 0}
        for name, scores in full.items()
    }
    fidelity = measure_agreement("nDCG@10", full, nano, clusters=clusters)
    assert fidelity.gap is not None
    return {
        "n_clusters": fidelity.n_clusters, "tau": fidelity.kendall.interval, "gap": fidelity.gap.distortion.interval,
        "apart": fidelity.told_apart, "detectable": [fidelity.detectable_full, fidelity.detectable_nano],
    }  # fmt: skip


def measure_attribution(times: int, folder: Path) -> dict[str, Any]:
    attribution, _ = attribute(make(times), make(times, seed=1), "bm25(profile=raw)")
    return {
        "n_clusters": attribution.n_clusters,
        **{name: getattr(attribution, name).interval for name in ("lost", "queries", "documents")},
    }


def measure_source_bias(times: int, folder: Path) -> dict[str, Any]:
    human, other = make(times), make(times, seed=1)
    for source, dataset in (("human", human), ("bot", other)):
        path = folder / "toy" / "corpus" / f"{source}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps({"_id": doc.doc_id, "text": doc.text}) + "\n" for doc in dataset.corpus))
    (folder / "toy" / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": query_id, "text": text}) + "\n" for query_id, text in human.queries.items())
    )
    (folder / "toy" / "qrels").mkdir()
    lines = [f"{query_id}\t{doc_id}\t1\n" for query_id, grades in human.qrels.items() for doc_id in grades]
    (folder / "toy" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    diagnosis = diagnose_source_bias(
        folder / "toy", "bm25(profile=raw)", language="en", alone=False, samples=500, out=folder / "out"
    )
    return {
        "n_clusters": [delta.n_clusters for delta in diagnosis.deltas],
        "intervals": [(delta.low, delta.high, delta.published_low, delta.published_high) for delta in diagnosis.deltas],
    }


def measure_position(times: int, folder: Path) -> dict[str, Any]:
    random = np.random.default_rng(4)
    scores, bins = random.random(400), np.arange(400) % 4
    documents = np.repeat(np.arange(400), times)
    curve = make_curve("all", scores[documents], bins[documents], documents, (documents > 150).astype(np.int64))
    names = ("n_clusters", "n_counted", "psi_counted", "low", "high", "p", "chance", "chance_high")
    return {name: getattr(curve, name) for name in names}


def measure_loss(times: int, folder: Path) -> dict[str, Any]:
    class Port:
        source, dataset = make(times), make(times, n_docs=N // 2)

    dropped = compare_ids(Port(), lambda *_: None)["dropped"]  # type: ignore[arg-type]
    return {name: dropped[name] for name in ("n_clusters", "detectable", "detectable_ratio")}


def measure_weights(times: int, folder: Path) -> dict[str, Any]:
    tuned = tune(make(times, split="dev"), "minmax(bm25(profile=raw),bm25(profile=raw,k1=9.0,b=1.0))", out=folder)
    return {
        "n_clusters": tuned.n_clusters, "held_out": tuned.held_out, "folds": [*map(list, tuned.folds)],
        "weights": tuned.weights,
    }  # fmt: skip


@pytest.mark.parametrize(
    "measure",
    [
        measure_orders,
        measure_judge,
        measure_nano,
        measure_attribution,
        measure_source_bias,
        measure_position,
        measure_loss,
        measure_weights,
    ],
)
def test_repeated_queries_change_nothing(measure: Callable[[int, Path], dict[str, Any]], tmp_path: Path) -> None:
    once, twice, thrice = (dict(flatten(measure(times, tmp_path / str(times)))) for times in (1, 2, 3))
    assert twice == pytest.approx(once, rel=DIGITS)
    assert thrice == pytest.approx(once, rel=DIGITS)


def flatten(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The numbers of nested values, each with its path."""
    if isinstance(value, dict | list | tuple):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from flatten(item, f"{name}.{key}")
    else:
        yield name, value


def test_the_questions_of_xquad_are_240_units(shared_data: Path, tmp_path: Path) -> None:
    for system in [*SYSTEMS[:3], "bm25(profile=raw,k1=0.5)"]:
        for name in ("xquad/ru", "xquad/en"):
            bench(name, system, out=tmp_path)
    curve, *_ = diagnose_position("xquad/ru", SYSTEMS[0], out=tmp_path, samples=100, permutations=100).curves
    assert (curve.n_queries, curve.n_clusters) == (1_190, 240)
    assert "(95 % interval; 1,190 queries, 240 independent)" in curve.sentence
    orders = compare_rankings([tmp_path], "xquad/ru", "xquad/en")
    assert orders.n_clusters == (240, 240)
    assert "queries like those of xquad/ru, which has 1,190 queries, 240 independent." in orders.conclusion[1]
    ports = measure_validity([tmp_path], [("xquad/en", "xquad/ru")])
    assert ports.tasks[0].n_clusters == (240, 240)
    assert "xquad/ru, 4 systems, 1,190 queries, 240 independent: tau" in ports.conclusion[1]
