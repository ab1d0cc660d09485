"""Ratings of people: attention checks of Appraise, means with the help of a judge, and who may not judge whom."""

from __future__ import annotations

import csv
import json
import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rusbeir.cli.main import app
from rusbeir.evaluation import estimate_mean
from rusbeir.people.metric_agreement import compare_metrics
from rusbeir.people.raters import Scale, estimate_means, estimate_powered_mean
from rusbeir.people.rating_agreement import agree_on_errors
from rusbeir.people.sampling import Item, TextStratum


def write_lines(path: Path, *rows: tuple[str, int, str, int, str]) -> Path:
    """An export of Appraise; a row is a rater, a number, a type, a score, and a document with its system and copy."""
    lines = [f"{who},wmt.A,{n},{kind},eng,deu,{score},{name},False,[],1,2\n" for who, n, kind, score, name in rows]
    path.write_text("".join(lines))
    return path


def test_attention_checks_and_repeats_of_appraise(tmp_path):
    scored = [("r1", n, "TGT", score, "d#A") for n, score in ((8, 90), (9, 80), (10, 70))]
    path = write_lines(
        tmp_path / "campaign.csv",
        *scored,
        *(("r1", n, "BAD", score, "d#A#bad1") for n, score in ((3, 40), (4, 80), (5, 10))),
        *(("r1", n, "TGT", score, "d#A#duplicate1") for n, score in ((20, 91), (21, 78), (22, 70))),
        # Neither a check of a part nor one of a document that this rater did not see can be compared with anything.
        ("r1", 30, "BAD", 99, "d#A#bad2"),
        ("r1", 31, "BAD", 99, "e#B#bad1"),
        ("r2", 1, "TGT", 60, "f#A"),
    )
    report = agree_on_errors([path])
    assert report["checks"] == {"r1": {"planted": 3, "missed": 1, "items": ["d#A#bad1/4"]}}
    assert report["self"]["r1"]["n"] == 3
    assert report["self"]["r1"]["mean_absolute_difference"]["value"] == pytest.approx(1)
    assert report["raters"] == {"r1": 3, "r2": 1}
    assert report["means"]["r1"]["score"] == pytest.approx(80), "copies are in no mean"
    assert report["pairs"] == []
    printed = CliRunner().invoke(app, ["audit", "agree", str(path)]).output
    assert "r1 missed 1 of 3 attention checks." in printed
    assert "r2 rated one text, which says nothing about agreement." in printed
    assert "No two raters have rated the same text" in printed


@pytest.mark.parametrize("name", ["240315rc5ESA", "240520rc6ESA"])
def test_attention_checks_of_wmt(shared_data, name):
    """Campaigns of ESA at WMT23: each damaged document is that of the same rater's with as many segments."""
    path = Path(shared_data).parent / "golden" / "wmt23-en-de" / "esa" / f"{name}.scores.csv"
    if not path.exists():
        pytest.skip("WMT23's English-German ratings are not here")
    tasks: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    with path.open() as file:
        for row in csv.reader(file):
            tasks[row[0], row[7]][int(row[2])] = float(row[6])
    lower = [
        damaged[n] < original
        for (rater, document), damaged in tasks.items()
        if "#bad" in document and "#duplicate" not in document
        for n, original in zip(
            sorted(damaged), (score for _, score in sorted(tasks[rater, document.rpartition("#")[0]].items())),
            strict=True,
        )
    ]  # fmt: skip
    checks = agree_on_errors([path])["checks"].values()
    assert 0 <= sum(row["planted"] for row in checks) - len(lower) <= 1, "one check is shown twice"
    assert 0 <= sum(row["missed"] for row in checks) - lower.count(False) <= 1
    assert 0.1 < lower.count(False) / len(lower) < 0.2, "people do not always see them"


ONE = TextStratum("document", 1, 0, False)
SCALE = Scale(0, 100, 25)


def draw_port(draw: random.Random, n: int) -> list[tuple[float, float]]:
    """What people and a judge would score n texts: the judge sees four fifths of what people see, and is milder."""
    port = []
    for _ in range(n):
        truth = draw.uniform(20, 90)
        port.append((truth, min(100.0, 20 + 0.8 * truth + draw.gauss(0, 6))))
    return port


def make_items(n: int, n_texts: int) -> list[Item]:
    return [Item(f"i{k}", "document", f"d{k}", "", "", ONE, n_texts / n, "", ()) for k in range(n)]


def test_a_judge_who_has_read_more_makes_intervals_narrower():
    """1,000 texts of which the judge has read 200 and people 40: the 95 % intervals hold as often as they should."""
    draw, held, worth = random.Random(4), [], []
    items = make_items(200, 1000)
    for _ in range(300):
        port = draw_port(draw, 1000)
        truth = sum(score for score, _ in port) / len(port)
        judge = {item.item_id: port[n][1] for n, item in enumerate(items)}
        people = {item.item_id: port[n][0] for n, item in enumerate(items[:40])}
        mean = estimate_powered_mean(items, people, judge, SCALE)
        assert mean is not None
        held.append(mean["interval"][0] <= truth <= mean["interval"][1])
        worth.append(mean["worth"])
    assert 0.92 <= np.mean(held) <= 0.98
    assert np.median(worth) > 2, "40 ratings are worth as much as more than 80"


def test_a_judge_who_sees_nothing_changes_little():
    items = make_items(100, 100_000)
    draw = random.Random(1)
    people = {item.item_id: draw.uniform(0, 100) for item in items[:50]}
    noise = {item.item_id: draw.uniform(0, 100) for item in items}
    same = dict.fromkeys(noise, 50.0)
    alone = estimate_means(items, people, SCALE)
    blind = estimate_powered_mean(items, people, noise, SCALE)
    constant = estimate_powered_mean(items, people, same, SCALE)
    assert blind is not None
    assert constant is not None
    assert blind["worth"] == pytest.approx(1, abs=0.15)
    assert constant["port"] == pytest.approx(alone["port"])
    assert (constant["weight"], constant["worth"]) == (0, pytest.approx(1))
    assert estimate_powered_mean(items, people, {item: noise[item] for item in people}, SCALE) is None
    assert estimate_powered_mean(items, {item.item_id: 1.0 for item in items[:9]}, noise, SCALE) is None


def write_scores(path: Path, rows: dict[str, list[float | None]]) -> Path:
    path.write_text("".join(f"{system}\t{score}\n" for system, scores in rows.items() for score in scores))
    return path


def test_what_few_ratings_and_a_metric_say_of_all_translations(tmp_path):
    """The prediction-powered mean by its formula: the metric's mean of all, and the mean error on the rated ones."""
    draw = np.random.default_rng(3)
    truth = draw.normal(60, 10, (2, 200))
    scored = truth / 10 + draw.normal(0, 0.4, truth.shape)
    known = [[value if n % 4 == 0 else None for n, value in enumerate(row)] for row in truth.tolist()]
    people = write_scores(tmp_path / "people.seg.score", dict(zip("AB", known, strict=True)))
    metric = write_scores(tmp_path / "metric.seg.score", dict(zip("AB", scored.tolist(), strict=True)))
    (row,) = compare_metrics(people, [metric])["metrics"]
    rated = np.arange(200) % 4 == 0
    x, y = (np.concatenate(list(side[:, rated])) for side in (scored, truth))
    by_system = np.repeat([0, 1], rated.sum())
    apart = [side - np.array([side[by_system == n].mean() for n in (0, 1)])[by_system] for side in (x, y)]
    weight = (apart[0] * apart[1]).sum() / (apart[0] ** 2).sum()
    mean = row["of_all"]
    assert mean["mean"] == pytest.approx(weight * scored.mean() + (y - weight * x).mean())
    assert (mean["n_labelled"], mean["n_pairs"], mean["rated"]) == (100, 400, pytest.approx(y.mean()))
    assert mean["interval"][0] <= truth.mean() <= mean["interval"][1]
    assert mean["worth"] > 3
    expected = estimate_mean(dict(zip(np.flatnonzero(np.tile(rated, 2)).tolist(), y.tolist(), strict=True)),
                             scored.ravel(), np.repeat([0, 1], 200))  # fmt: skip
    assert mean["interval"] == pytest.approx(expected.interval)
    printed = CliRunner().invoke(app, ["audit", "meta", str(people), "--scores", str(metric)]).output
    assert "people of all translations, by" in printed
    # Where people have rated all, nothing is left to say.
    (whole,) = compare_metrics(metric, [metric])["metrics"]
    assert whole["of_all"] is None


def test_a_judge_of_the_translators_family_is_named(tmp_path):
    scores = {"GPT4-5shot": [1.0, 2, 3, 4], "NLLB": [1.0, 3, 2, 4]}
    people = write_scores(tmp_path / "people.seg.score", scores)
    metric = write_scores(tmp_path / "GEMBA-MQM-src.seg.score", scores)
    other = tmp_path / "spans.jsonl"
    other.write_text(
        "".join(
            json.dumps({"system": system, "score": score, "judge": "judge|protocol:esa|model:gpt-4o|rubric:1"}) + "\n"
            for system, values in scores.items()
            for score in values
        )
    )
    metrics = compare_metrics(people, [metric, other, people])["metrics"]
    assert [row["shared_families"] for row in metrics] == [{"GPT4-5shot": ["openai"]}] * 2 + [{}]
    printed = CliRunner().invoke(app, ["audit", "meta", str(people), "--scores", str(metric)]).output
    assert "GEMBA-MQM-src and GPT4-5shot are of one family (openai)" in printed


def test_a_metric_that_says_the_same_of_all_is_named(tmp_path):
    people = write_scores(tmp_path / "people.seg.score", {"A": [1.0, 2, 3, 4], "B": [1.0, 3, 2, 4]})
    silent = write_scores(tmp_path / "silent.seg.score", {"A": [0.0] * 4, "B": [0.0] * 4})
    printed = CliRunner().invoke(app, ["audit", "meta", str(people), "--scores", str(silent)]).output
    assert "silent gives all rated translations the same score, such as a judge who never sees an error" in printed
    assert "undefined" in printed
