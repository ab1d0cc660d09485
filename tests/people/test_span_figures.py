"""Marked errors held against people's: WMT's ratings, exports of Appraise, and what a judge marked."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from rusbeir.audit.quality_estimation.appraise import read_appraise
from rusbeir.audit.quality_estimation.segment_scores import Extent, read_segment_scores
from rusbeir.errors import BadInput
from rusbeir.people.metric_agreement import SPAN_FIGURES, compare_metrics

ESA = {"ESA-1": "240315rc5ESA", "ESA-2": "240520rc6ESA"}


@pytest.fixture
def wmt23(shared_data) -> Path:
    folder = Path(shared_data).parent / "golden" / "wmt23-en-de"
    if not folder.is_dir():
        pytest.skip("WMT23's English-German ratings are not here")
    return folder


def test_two_campaigns_of_esa(wmt23):
    """The figures of docs/audit.md: other raters, a month later, about the same translations."""
    first, second = (wmt23 / "esa" / f"{name}.scores.csv" for name in ESA.values())
    report = compare_metrics(first, [second], without=["refA"])
    assert (len(report["systems"]), report["n_rated"], report["n_documents"]) == (12, 2482, 71)
    assert (report["n_repeated"], report["metrics"][0]["n_repeated"]) == (29, 31)
    figures = {name: figure for name, figure in report["metrics"][0]["figures"].items() if figure}
    assert figures.keys() == {"auc", "pearson", "pairs"}, "no two systems share a name of a segment"
    spans = report["metrics"][0]["spans"]
    assert spans["f"]["value"] == pytest.approx(0.175, abs=0.001)
    assert spans["f"]["interval"] == pytest.approx((0.155, 0.195), abs=0.002)
    assert figures["pearson"]["value"] == pytest.approx(0.483, abs=0.001)


def align(folder: Path, name: str, out: Path) -> Path:
    """An export of Appraise as a file of ratings: it has no places of segments, but the file of scores has."""
    documents = [line.split("\t")[1] for line in (folder / "en-de.docs").read_text().splitlines()]
    annotations = defaultdict(list)
    for _, row in read_appraise(folder / "esa" / f"{ESA[name]}.scores.csv")[0]:
        annotations[row.system, row.document].append(row)
    scores = defaultdict(list)
    for line in (folder / "esa" / f"en-de.{name}.seg.score").read_text().splitlines():
        system, score = line.split("\t")
        scores[system].append(score)
    lines = []
    for system, values in scores.items():
        rated = defaultdict(list)
        for n, (document, value) in enumerate(zip(documents, values, strict=True)):
            if value != "None":
                rated[document].append(n)
        ratings: list[dict | None] = [None] * len(documents)
        for document, places in rated.items():
            rows = sorted(annotations[system, document], key=lambda row: int(row.segment.rpartition("/")[2]))
            # A few documents were cut into two tasks, whose order is not known.
            if [float(row.score) for row in rows] == [float(values[n]) for n in places]:
                for row, n in zip(rows, places, strict=True):
                    ratings[n] = {"errors": row.errors, "score": float(row.score)}
        lines += [f"{system}\t{json.dumps(rating) if rating else None}\n" for rating in ratings]
    path = out / f"{name}.seg.rating"
    path.write_text("".join(lines))
    return path


def test_esa_against_mqm(wmt23, tmp_path):
    paths = [align(wmt23, name, tmp_path) for name in ESA]
    report = compare_metrics(
        wmt23 / "en-de.mqm.merged.seg.rating", paths, documents=wmt23 / "en-de.docs", without=["refA"]
    )
    assert (report["n_rated"], report["n_documents"], report["n_pairs"]) == (1852, 70, 66)
    measured = [
        [round(metric["spans"][name]["value"], 3) for name in SPAN_FIGURES] + [metric["alike"]]
        for metric in report["metrics"]
    ]
    assert measured == [[0.417, 0.053, 0.094, 63], [0.419, 0.114, 0.179, 62]]


def write_line(system: str, item: int, score: int, errors: list[dict], *, kind: str = "TGT", document="d1") -> str:
    cells = ["u1", f"wmt.{system}", str(item), kind, "eng", "deu", str(score), f"{document}#{system}", "False"]
    quoted = json.dumps(errors).replace('"', '""')
    return ",".join([*cells, f'"{quoted}"', "1.5", "2.5"]) + "\n"


def test_what_appraise_exports(tmp_path):
    spans = [
        {"start_i": 4, "end_i": 7, "severity": "major", "error_type": None},
        {"start_i": 10, "end_i": 10, "severity": "undecided", "error_type": None},
        {"start_i": "missing", "end_i": "missing", "severity": "minor", "error_type": None},
    ]
    path = tmp_path / "campaign.scores.csv"
    path.write_text(
        write_line("A", 1, 90, [])
        + write_line("A", 1, 40, spans)
        + write_line("A", 2, 100, [], kind="BAD")
        + write_line("A", 3, 70, [], document="tutorial").replace("tutorial#A", "tutorial")
        + write_line("A#duplicate1", 4, 80, [])
    )
    scores = read_segment_scores(path)
    assert (scores.name, scores.n_repeated) == ("campaign", 2)
    assert scores.scores == {"A": {"d1#A/1": 40.0}}, "the last rating of an item, without checks and tutorials"
    assert scores.severe == {("A", "d1#A/1"): True}
    assert scores.spans["A", "d1#A/1"] == [
        Extent("translation", 4, 8), Extent("translation", 10, 11), Extent("missing", 0, 1),
    ]  # fmt: skip
    assert scores.documents == {"d1#A/1": "d1"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a,b,c\n", "the line has 3 cells; an export of Appraise has 12"),
        (write_line("A", 1, 90, [{"start_i": 1, "end_i": 2, "severity": "bad"}]), "the severity of an error is 'bad'"),
        (write_line("A", 1, 90, {"start_i": 1}), "the errors are not a list of objects"),
    ],
)
def test_other_csv_files(tmp_path, line, message):
    (tmp_path / "other.csv").write_text(line)
    with pytest.raises(BadInput, match=message):
        read_segment_scores(tmp_path / "other.csv")


def write_ratings(path: Path, *errors: list[dict]) -> Path:
    path.write_text("".join(f"A\t{json.dumps({'errors': row})}\n" for row in errors))
    return path


def error(start: int | None, end: int | None, **other: object) -> dict:
    return {"start": start, "end": end, "severity": "major", "category": "x", **other}


def test_spans_of_ratings(tmp_path):
    people = write_ratings(
        tmp_path / "people.seg.rating",
        [error(0, 4), error(5, 9, is_source_error=True)], [], [error(0, 8)], [error(2, 4, score=0)], [error(3, 3)],
    )  # fmt: skip
    scores = read_segment_scores(people)
    assert [len(spans) for spans in scores.spans.values()] == [2, 0, 1, 0, 0], "errors of no cost and no width are none"
    (same,) = compare_metrics(people, [people])["metrics"]
    assert [same["spans"][name]["value"] for name in SPAN_FIGURES] == [1, 1, 1]
    metric = write_ratings(tmp_path / "metric.seg.rating", [error(2, 6)], [error(0, 1)], [error(0, 8)], [], [])
    (other,) = compare_metrics(people, [metric])["metrics"]
    precision, recall = (0.5 + 0 + 1) / 3, (0.5 + 0 + 1) / 3
    assert other["spans"]["precision"]["value"] == pytest.approx(precision)
    assert other["spans"]["recall"]["value"] == pytest.approx(recall)
    # Where a file only says that something is missing, that is all that can be compared.
    missing = write_ratings(tmp_path / "missing.seg.rating", [error(None, None)], [], [], [], [])
    (vague,) = compare_metrics(people, [missing])["metrics"]
    assert vague["spans"]["precision"]["value"] == 1
    assert vague["spans"]["recall"]["value"] == pytest.approx(1 / 3)
    # Scores have no spans.
    (tmp_path / "plain.seg.score").write_text("".join(f"A\t{n}\n" for n in range(5)))
    (plain,) = compare_metrics(people, [tmp_path / "plain.seg.score"])["metrics"]
    assert plain["spans"] is None


def test_places_that_are_none(tmp_path):
    path = write_ratings(tmp_path / "bad.seg.rating", [error(4, None)])
    with pytest.raises(BadInput, match=r"bad\.seg\.rating:1: an error goes from 4 to None"):
        read_segment_scores(path)
