"""Ports against their originals: published taus, verdicts, and every form that scores come in."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import orjson
import pytest

from rusbeir.comparison.task_scores import find_task, read_task_scores
from rusbeir.comparison.validity import AS_GOOD, UNKNOWN, WORSE, _judge, measure_validity, read_band
from rusbeir.errors import BadInput, RusbeirError, UnknownName
from rusbeir.evaluation.significance import Figure
from tests.comparison.test_rankings import GOLDEN, TAUS


def test_vietnamese_ports_as_published(needs):
    needs("golden scores of MTEB", GOLDEN.is_dir(), f"put them into {GOLDEN}")
    validity = measure_validity(
        [GOLDEN / "ndcg10.tsv"], list(TAUS), claims=GOLDEN / "model_languages.tsv", claiming="vie-Latn"
    )
    assert {(task.original, task.port): round(task.kendall.value, 3) for task in validity.tasks} == TAUS
    assert validity.average is not None
    assert validity.average.kendall.value == pytest.approx(0.923, abs=5e-4)
    assert len(validity.claims) == 13
    verdicts = {task.port: task.verdict for task in validity.tasks}
    assert verdicts["TRECCOVID-VN"] == UNKNOWN
    assert verdicts["NFCorpus-VN"] == AS_GOOD


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Five systems on a task, on a port in the same order, and on one in which the best is the worst."""
    path = tmp_path / "scores.tsv"
    lines = ["task\tsplit\tsubset\tmodel\tvalue"]
    for task, means in {
        "en": (0.5, 0.4, 0.3, 0.2, 0.1), "ru": (0.45, 0.35, 0.3, 0.1, 0.05), "bad": (0.05, 0.45, 0.35, 0.3, 0.1),
    }.items():  # fmt: skip
        lines += [f"{task}\ttest\tdefault\tm{n}\t{mean}" for n, mean in enumerate(means)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_port_that_reorders_systems(table):
    validity = measure_validity([table], [("en", "ru"), ("en", "bad")])
    good, bad = validity.tasks
    assert good.kendall == good.tau_ap == Figure(value=1.0, interval=(1.0, 1.0), over="systems")
    assert (good.verdict, good.reversals, good.movers) == (AS_GOOD, 0, ())
    # Of ten pairs the four of the best system are reversed.
    assert bad.kendall.value == pytest.approx(0.2)
    assert bad.reversals == 4
    assert [(move.system, move.rank_original, move.rank_port) for move in bad.movers[:1]] == [("m0", 1, 5)]
    assert bad.n_queries is None
    assert (bad.mean_original, bad.mean_port) == (pytest.approx(0.3), pytest.approx(0.25))
    assert orjson.loads(orjson.dumps(validity.to_dict()))["tasks"][1]["reversals"] == 4
    assert measure_validity([table], [("en", "bad")], gap=0.3).tasks[0].reversals == 2


@pytest.mark.parametrize(("shift", "verdict"), [(0.0, AS_GOOD), (-0.01, UNKNOWN)])
def test_the_verdict_asks_for_the_whole_interval(shift, verdict):
    lowest, _ = read_band()
    assert _judge(Figure(value=lowest + 0.02, interval=(lowest + shift, 1.0), over="systems")) == verdict
    assert _judge(Figure(value=0.1, interval=(0.0, lowest - 0.01), over="systems")) == WORSE


def test_result_rows_bring_their_queries(results):
    noise = np.random.default_rng(0).normal(0, 0.2, (4, 50))
    scores = {f"m{n}": np.clip(0.5 - n / 50 + noise[n], 0, 1).tolist() for n in range(4)}
    results(scores, dataset="toy/en")
    folder = results(scores, dataset="toy/ru")
    (task,) = measure_validity([folder], [("toy/en", "toy/ru")]).tasks
    assert task.n_queries == (50, 50)
    assert task.kendall == Figure(value=1.0, interval=(1.0, 1.0), over="systems and queries"), (
        "the same scores, drawn together"
    )
    other = {name: values[:40] for name, values in scores.items()}
    folder = results(other, dataset="toy/de")
    (task,) = measure_validity([folder], [("toy/en", "toy/de")]).tasks
    assert task.n_queries == (50, 40)
    assert task.kendall.interval[0] < 1, "other queries, drawn on their own"


def test_mteb_results(tmp_path):
    for model, value in {"a": 0.25, "b": 0.5}.items():
        folder = tmp_path / model / "revision"
        folder.mkdir(parents=True)
        rows = [{"hf_subset": "default", "main_score": 0.9, "ndcg_at_10": value, "map_at_10": 0.1}]
        document = {"task_name": "SciFact", "mteb_version": "2.0", "scores": {"test": rows}}
        (folder / "SciFact.json").write_text(json.dumps(document), encoding="utf-8")
        (folder / "model_meta.json").write_text('{"name": "a"}', encoding="utf-8")
    assert find_task("SciFact", read_task_scores([tmp_path], "nDCG@10")).means == {"a": 0.25, "b": 0.5}
    assert find_task("SciFact/test", read_task_scores([tmp_path], "AP@10")).means == {"a": 0.1, "b": 0.1}
    with pytest.raises(BadInput, match="SciFact: none of its 2 result files has nDCG@20"):
        find_task("SciFact", read_task_scores([tmp_path], "nDCG@20"))
    with pytest.raises(BadInput, match="hold no ERR"):
        read_task_scores([tmp_path], "ERR@20")


NAN = "nauc_recall_at_1000_max"
"""A key that MTEB computes from correlations, which are often not defined."""


def write_mteb(folder: Path, model: str, revision: str, task: str, row: dict[str, object], version: str) -> None:
    """A result file with the keys and in the place that mteb gives it; Python's json writes NaN as mteb does."""
    path = folder / model / revision / f"{task}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{NAN: math.nan, **row, "hf_subset": "default", "languages": ["eng-Latn"]}]
    document = {
        "dataset_revision": "0228b52cf27578f30900b9e5271d331663a030d7", "task_name": task, "mteb_version": version,
        "scores": {"test": rows}, "evaluation_time": 7.1, "kg_co2_emissions": None,
    }  # fmt: skip
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")


@pytest.fixture
def mteb(tmp_path: Path) -> Path:
    """The layout of MTEB's public results: five models, two tasks, a classification, NaN, and a broken file."""
    folder = tmp_path / "results"
    for n in range(5):
        name = f"org__model-{n}"
        for task in ("ArguAna", "ArguAna-VN"):
            row = {"ndcg_at_10": 0.5 - n / 10, "main_score": 0.5}
            write_mteb(folder, name, "1a2b3c", task, row, "1.12.75")
        write_mteb(folder, name, "1a2b3c", "AmazonCounterfactualClassification", {"accuracy": 0.7}, "1.12.75")
        (folder / name / "1a2b3c" / "model_meta.json").write_text('{"name": "org/model"}', encoding="utf-8")
    (folder / "org__model-0" / "1a2b3c" / "Damaged.json").write_text("{", encoding="utf-8")
    return folder


def test_the_public_results_of_mteb(mteb):
    """NaN, other tasks and a broken file of another task are no errors."""
    validity = measure_validity([mteb], [("ArguAna", "ArguAna-VN")])
    (task,) = validity.tasks
    assert (len(task.systems), task.kendall.value, validity.n_without_measure) == (5, 1.0, 0)
    with pytest.raises(UnknownName, match=r"No task 'Argu' of these scores\. Did you mean 'ArguAna'"):
        measure_validity([mteb], [("Argu", "ArguAna-VN")])


@pytest.mark.parametrize("row", [{}, {"ndcg_at_10": math.nan}])
def test_result_files_without_the_measure_are_counted(mteb, row):
    write_mteb(mteb, "org__model-4", "1a2b3c", "ArguAna", row, "1.12.75")
    validity = measure_validity([mteb], [("ArguAna", "ArguAna-VN")])
    assert (len(validity.tasks[0].systems), validity.n_without_measure) == (4, 1)
    assert validity.conclusion[-1] == "1 result file without nDCG@10 left out."


@pytest.mark.parametrize(
    ("revisions", "why"),
    [
        ({"external": "2.0.0", "1a2b3c": "1.12.75"}, "a known revision counts before one that is not"),
        (
            {"no_revision_available": "1.9.0", "external": "1.10.0"},
            "of unknown ones the newest mteb: 1.10 is after 1.9",
        ),
        ({"ff": "1.12.75", "0a": "2.1.4"}, "of known ones as well"),
    ],
)
def test_one_of_several_revisions_counts(tmp_path, revisions, why):
    for value, (revision, version) in zip((0.1, 0.2), revisions.items(), strict=True):
        write_mteb(tmp_path, "m", revision, "SciFact", {"ndcg_at_10": value}, version)
    assert find_task("SciFact", read_task_scores([tmp_path], "nDCG@10")).means == {"m": 0.2}, why


HEADER = "task\tsplit\tsubset\tmodel\tvalue\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\n", r"scores.tsv:1: the first line must name the columns"),
        (HEADER + "a\ttest\tdefault\tm\n", r"scores.tsv:2: it has 4 columns"),
        (HEADER + "a\ttest\tdefault\tm\tnan\n", r"scores.tsv:2: 'nan' is not a finite number"),
        (HEADER + "a\ttest\td\tm\t1\n" * 2 + "a\ttest\td\tm\t2\n", r"scores.tsv:4: m has two values on a/test/d"),
        (
            HEADER + "a\ttest\td\tm\t1\na\tdev\td\tm\t1\n",
            "a has several splits or subsets: name one of a/test/d, a/dev/d",
        ),
        (HEADER, "No task 'a'"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, text, message):
    path = tmp_path / "scores.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RusbeirError, match=message):
        find_task("a", read_task_scores([path], "nDCG@10"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pairs": []}, "Name an original and its port"),
        ({"pairs": [("en", "ru")], "claiming": "rus-Cyrl"}, "claiming= needs claims="),
        ({"pairs": [("en", "none")]}, "No task 'none'"),
    ],
)
def test_calls_that_cannot_be_answered(table, options, message):
    with pytest.raises(RusbeirError, match=message):
        measure_validity([table], **options)


def test_too_few_systems_claim_the_language(table, tmp_path):
    claims = tmp_path / "claims.tsv"
    claims.write_text("model\tlanguages\nm0\trus-Cyrl eng-Latn\nm1\trus-Cyrl\nm2\teng-Latn\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"2 systems have scores .* and claim rus-Cyrl; an order needs 4"):
        measure_validity([table], [("en", "ru")], claims=claims, claiming="rus-Cyrl")
    claims.write_text("model\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"claims.tsv:1: it has 1 columns"):
        measure_validity([table], [("en", "ru")], claims=claims)


def test_a_place_of_another_kind(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "scores.csv").write_text("a", encoding="utf-8")
    with pytest.raises(BadInput, match=r"no rows.jsonl and no <model>"):
        read_task_scores([tmp_path / "empty"], "nDCG@10")
    with pytest.raises(BadInput, match=r"scores.csv holds no scores"):
        read_task_scores([tmp_path / "scores.csv"], "nDCG@10")
