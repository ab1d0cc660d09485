"""Metrics held against people: compared with scipy, scikit-learn, the definitions, and WMT23's files."""

from __future__ import annotations

import gzip
import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from rusbeir.audit.quality_estimation.segment_scores import read_segment_scores
from rusbeir.errors import BadInput
from rusbeir.people.metric_agreement import compare_metrics

SYSTEMS = ("A", "B", "C", "D")
N_SEGMENTS = 40


@pytest.fixture
def files(tmp_path) -> tuple[Path, Path, np.ndarray, np.ndarray, np.ndarray]:
    """Ratings by errors and scores of a metric as WMT has them, and the tables that they were made of."""
    generator = np.random.default_rng(5)
    n_errors = generator.integers(0, 3, (2, N_SEGMENTS, len(SYSTEMS))) + np.arange(len(SYSTEMS)) // 2
    minor, major = n_errors
    people = -(minor + 5.0 * major)
    metric = np.round(people / 10 + generator.normal(size=people.shape), 1)
    ratings, scores = [], []
    for column, system in enumerate(SYSTEMS):
        for row in range(N_SEGMENTS):
            counts = {"minor": minor[row, column], "major": major[row, column]}
            errors = [{"severity": severity} for severity, n in counts.items() for _ in range(n)]
            ratings.append(f"{system}\t{json.dumps({'errors': errors}) if row else None}\n")
            scores.append(f"{system}\t{metric[row, column]}\n")
    (tmp_path / "mqm.seg.rating").write_text("".join(ratings))
    (tmp_path / "metric.seg.score").write_text("".join(scores))
    return tmp_path / "mqm.seg.rating", tmp_path / "metric.seg.score", people, metric, major > 0


def test_the_statistics_are_those_of_their_definitions(files):
    ratings, scores, people, metric, severe = files
    (report,) = compare_metrics(ratings, [scores])["metrics"]
    figures = {name: figure["value"] for name, figure in report["figures"].items()}
    people, scored, severe = people[1:], metric[1:], severe[1:]  # nobody rated the first segment
    assert figures["pearson"] == pytest.approx(stats.pearsonr(people.ravel(), scored.ravel()).statistic)
    assert figures["auc"] == pytest.approx(roc_auc_score(severe.ravel(), -scored.ravel()))
    pairs = list(combinations(range(len(SYSTEMS)), 2))
    accuracies = {
        threshold: np.mean([
            np.sign(row[a] - row[b]) == np.sign(d if abs(d := other[a] - other[b]) > threshold else 0)
            for row, other in zip(people, scored, strict=True)
            for a, b in pairs
        ])
        for threshold in {abs(row[a] - row[b]) for row in scored for a, b in pairs} | {0.0}
    }  # fmt: skip
    assert figures["acc_eq"] == pytest.approx(max(accuracies.values()))
    assert accuracies[report["tie_threshold"]] == max(accuracies.values())
    assert figures["tau_eq"] == pytest.approx(2 * figures["acc_eq"] - 1)
    # A system's score by the metric is that of all its segments.
    means = people.mean(axis=0), metric.mean(axis=0)
    alike = sum(np.sign(means[0][a] - means[0][b]) == np.sign(means[1][a] - means[1][b]) for a, b in pairs)
    assert (figures["pairs"], report["alike"]) == (alike / len(pairs), alike)
    signs = np.random.default_rng(0).choice((-1.0, 1.0), (20_000, len(people)))
    chances = [
        [(signs @ (side[:, a] - side[:, b]) >= (side[:, a] - side[:, b]).sum() - 1e-9).mean() for a, b in pairs]
        for side in (people, scored)
    ]
    assert figures["soft_pairs"] == pytest.approx(1 - np.abs(np.subtract(*chances)).mean(), abs=0.01)
    for figure in report["figures"].values():
        low, high = figure["interval"]
        assert low <= figure["value"] <= high
        assert figure["over"] == "segments"


def test_every_form_gives_the_same_figures(files, tmp_path):
    ratings, scores, people, metric, severe = files
    expected = compare_metrics(ratings, [scores])
    table, lines, compressed = tmp_path / "metric.tsv", tmp_path / "mqm.jsonl", tmp_path / "metric.seg.score.gz"
    rows = [(system, row, column) for column, system in enumerate(SYSTEMS) for row in range(N_SEGMENTS)]
    cells = [f"{metric[row, column]}\ts{row}\t{system}\n" for system, row, column in rows]
    table.write_text("score\tsegment\tsystem\n" + "".join(reversed(cells)))
    made = [
        {
            "system": system,
            "segment": f"s{row}",
            "score": people[row, column] if row else None,
            "errors": [{"severity": "major"}] * int(severe[row, column]) if row else None,
        }
        for system, row, column in rows
    ]
    lines.write_text("".join(json.dumps(row) + "\n" for row in made))
    compressed.write_bytes(gzip.compress(scores.read_bytes()))
    assert compare_metrics(lines, [table])["metrics"] == expected["metrics"]
    assert compare_metrics(ratings, [compressed])["metrics"] == expected["metrics"]


def test_intervals_resample_documents(files, tmp_path):
    ratings, scores, *_ = files
    documents = tmp_path / "en-de.docs"
    documents.write_text("".join(f"news\tdoc{row // 10}\n" for row in range(N_SEGMENTS)))
    report = compare_metrics(ratings, [scores], documents=documents)
    assert (report["n_documents"], report["resampled"]) == (4, "documents")
    values = [compared["metrics"][0]["figures"]["pearson"] for compared in (report, compare_metrics(ratings, [scores]))]
    assert values[0]["value"] == values[1]["value"]
    assert values[0]["interval"] != values[1]["interval"]


def test_what_the_files_do_not_share_is_left_out(files, tmp_path):
    """All metrics are compared on the same segments, so that one that scored fewer does not seem better."""
    ratings, scores, *_ = files
    lines = scores.read_text().splitlines()
    fewer = [line if n % N_SEGMENTS else f"{line.split()[0]}\tNone" for n, line in enumerate(lines, 1)]
    (tmp_path / "fewer.seg.score").write_text("\n".join(fewer) + "\n")
    report = compare_metrics(ratings, [scores, tmp_path / "fewer.seg.score"], without=["D"])
    assert (report["systems"], report["n_segments"]) == (["A", "B", "C"], N_SEGMENTS - 2)
    assert len(report["metrics"]) == 2


def test_one_system_has_no_order(tmp_path):
    (tmp_path / "people.tsv").write_text("score\n" + "".join(f"{n}\n" for n in range(9)))
    (tmp_path / "judge.tsv").write_text("score\n" + "5\n" * 9)
    (metric,) = compare_metrics(tmp_path / "people.tsv", [tmp_path / "judge.tsv"])["metrics"]
    assert {name for name, figure in metric["figures"].items() if figure} == {"pearson"}
    assert np.isnan(metric["figures"]["pearson"]["value"]), "a judge that always says the same"


def test_systems_with_segments_of_their_own(tmp_path):
    rows = [f"{system}\t{system}{n}\t{n}\n" for system in "AB" for n in range(4)]
    (tmp_path / "people.tsv").write_text("system\tsegment\tscore\n" + "".join(rows))
    (metric,) = compare_metrics(tmp_path / "people.tsv", [tmp_path / "people.tsv"])["metrics"]
    assert {name for name, figure in metric["figures"].items() if figure} == {"pearson", "pairs"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.seg.score", "A\t1\nA\tx\n", r"a\.seg\.score:2: 'x' is not a score"),
        ("a.seg.score", "A\t1\nA\tnan\n", ":2: the score is nan, which is not a number"),
        ("a.seg.score", "A 1\n", ":1: there is no score after a tab"),
        ("a.seg.score", "A\tNone\n", "has no score"),
        ("a.seg.rating", 'A\t{"errors": [{"severity": "huge"}]}\n', ":1: the severity of an error is 'huge'"),
        ("a.seg.rating", 'A\t{"errors": 5}\n', ":1: 'errors' is not a list"),
        ("a.seg.rating", "A\t{5\n", ":1: not JSON|:1:1: not JSON"),
        ("a.tsv", "system\tvalue\nA\t1\n", "has no column 'score'"),
        ("a.tsv", "system\tscore\nA\n", ":2: the line has 1 cells"),
        ("a.tsv", "segment\tscore\n1\t2\n1\t3\n", ":3: the segment '1' of the file occurs a second time"),
        ("a.jsonl", '{"system": "A"}\n', ":1: there is no 'score' and no 'errors'"),
        ("a.jsonl", '["A", 1]\n', ":1: there is no 'score'"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=message):
        read_segment_scores(tmp_path / name)


def test_ratings_of_other_texts(files, tmp_path):
    ratings, scores, *_ = files
    lines = scores.read_text().splitlines(keepends=True)
    (tmp_path / "short.seg.score").write_text("".join(lines[:-1]))
    with pytest.raises(BadInput, match=r"has 39 segments of D, and .* 40\. Segments without a name are known by"):
        compare_metrics(ratings, [tmp_path / "short.seg.score"])
    (tmp_path / "other.seg.score").write_text("".join(lines).replace("\t", "2\t"))
    with pytest.raises(BadInput, match=r"have 0 rated segments in common.*People rated: A, B, C and 1 more"):
        compare_metrics(ratings, [tmp_path / "other.seg.score"])
    (tmp_path / "named.tsv").write_text("system\tsegment\tscore\nA\t1\t5\n")
    with pytest.raises(BadInput, match="names no segments, and the other file does"):
        compare_metrics(ratings, [tmp_path / "named.tsv"])
    (tmp_path / "short.docs").write_text("news\td1\n")
    with pytest.raises(BadInput, match=r"has 1 lines; it must have one for each of the 40 segments"):
        compare_metrics(ratings, [scores], documents=tmp_path / "short.docs")


WMT23 = {
    # metric: AUC of "people marked a major error", system pairs of 66 in people's order, as published with the data
    "chrF-refA": (0.640, 54),
    "BLEU-refA": (0.607, 57),
    "CometKiwi-src": (0.785, 65),
    "MetricX-23-QE-src": (0.795, 61),
    "GEMBA-MQM-src": (0.796, 66),
}


def test_wmt23(shared_data):
    folder = Path(shared_data).parent / "golden" / "wmt23-en-de"
    if not folder.is_dir():
        pytest.skip("WMT23's English-German ratings are not here")
    scores = [folder / "metrics" / f"{name}.seg.score" for name in WMT23]
    report = compare_metrics(folder / "en-de.mqm.merged.seg.rating", scores, documents=folder / "en-de.docs")
    assert (report["n_rated"], report["n_major"], report["n_pairs"]) == (5520, 2353, 66)
    measured = {row["name"]: (round(row["figures"]["auc"]["value"], 3), row["alike"]) for row in report["metrics"]}
    assert measured == WMT23
    # People's scores by the file of ratings are those of the file of scores.
    assert (
        read_segment_scores(folder / "en-de.mqm.merged.seg.rating").scores["AIRC"]
        == pytest.approx(read_segment_scores(folder / "en-de.mqm.seg.score").scores["AIRC"])
    )  # fmt: skip
