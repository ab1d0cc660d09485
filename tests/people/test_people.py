"""Agreement statistics compared with scikit-learn, krippendorff and published values; sheets and a judge."""

from __future__ import annotations

import csv
import json
import math
import random
import shutil
import statistics
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from rusbeir.audit import audit_port
from rusbeir.audit.port_checks.aligned import open_port
from rusbeir.errors import BadInput
from rusbeir.evaluation.label_agreement import count_confusion, kappa, kappa_at
from rusbeir.jobs import read_object
from rusbeir.people.agreement import agree
from rusbeir.people.judge import DIMENSIONS, SCALE, judge_port, read_verdict, read_verdicts
from rusbeir.people.raters import Alpha, RaterAgreement, compare_raters, compute_alpha, estimate_port_mean, read_sample
from rusbeir.people.sampling import TextStratum, draw_rows, draw_sample
from rusbeir.people.sheet_files import read_sheet
from rusbeir.people.sheets import FORMS, TRANSLATIONS, make_sheets
from tests.support.openai_server import Reply, completion

SCORES = st.integers(1, 5)


def compare(first: list[int], second: list[int]) -> RaterAgreement | None:
    return compare_raters(first, second, SCALE, [str(text) for text in range(len(first))])


@given(st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=40))
def test_kappa(pairs):
    first, second = map(list, zip(*pairs, strict=True))
    confusion = count_confusion(np.array(first) - 1, np.array(second) - 1, 5)
    rows = [
        (kappa(confusion), (first, second), {}),
        (kappa(confusion, power=2), (first, second), {"weights": "quadratic"}),
    ]
    for n in range(2, 6):
        binary = [[score >= n for score in scores] for scores in (first, second)]
        rows.append((kappa_at(confusion, n - 1), binary, {"labels": [False, True]}))
    for computed, scores, options in rows:
        if len({*scores[0], *scores[1]}) == 1:
            assert np.isnan(computed)
        else:
            expected = cohen_kappa_score(*scores, **{"labels": [1, 2, 3, 4, 5], **options})
            assert computed == pytest.approx(expected, abs=1e-12)


# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, example C: four observers, twelve units.
EXAMPLE = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def alpha_of(sheets: list[list[int | None]]) -> Alpha:
    return compute_alpha(sheets, SCALE, [str(text) for text in range(len(sheets[0]) if sheets else 0)])


def test_alpha_of_the_published_example():
    alpha = alpha_of(EXAMPLE)
    assert alpha.value == pytest.approx(0.815, abs=0.0005)
    assert alpha.n == 11
    assert alpha.interval[0] < alpha.value < alpha.interval[1]


@pytest.mark.parametrize("guessed", [0.0, 0.1, 0.3, 1.0])
def test_alpha_of_simulated_sheets(guessed):
    """Raters who guess a part of the texts and score the others right: α is the chance that two do not guess."""
    draw = random.Random(3)
    truth = [draw.randint(1, 5) for _ in range(500)]
    sheets = [[draw.randint(1, 5) if draw.random() < guessed else score for score in truth] for _ in range(3)]
    sheets[0][:20] = [None] * 20
    alpha = alpha_of(sheets)
    data = np.array([[np.nan if score is None else score for score in sheet] for sheet in sheets])
    expected = krippendorff.alpha(reliability_data=data, value_domain=[1, 2, 3, 4, 5], level_of_measurement="ordinal")
    assert alpha.value == pytest.approx(expected, abs=1e-12)
    assert alpha.value == pytest.approx((1 - guessed) ** 2, abs=0.05)
    assert alpha.interval[0] <= alpha.value <= alpha.interval[1]
    assert alpha_of(sheets) == alpha, "the seed decides the interval"


@pytest.mark.parametrize("scores", [[], [[1, 2]], [[1, None], [None, 2]], [[3, 3], [3, 3]]])
def test_alpha_of_nothing(scores):
    assert np.isnan([alpha_of(scores).value, *alpha_of(scores).interval]).all()


def test_pairs():
    agreement = compare([1, 2, 5, 4], [1, 3, 2, 4])
    assert (agreement.n, agreement.within_one, agreement.mean_absolute_error) == (4, 0.75, 1.0)
    assert agreement.confusion[4] == [0, 1, 0, 0, 0]
    thresholds = [f"kappa >= {n}" for n in range(2, 6)]
    assert list(agreement.figures) == ["kappa", "quadratic_kappa", *thresholds, "alpha", "strictness"]
    assert agreement.figures["strictness"].value == 0.5
    assert agreement.figures["kappa >= 5"].value == 0, "as chance would have it"
    assert compare([], []) is None


def test_texts_of_one_topic_are_drawn_together():
    """Ten queries of which one is misjudged in ten documents: its share, not that of a document, is uncertain."""
    first, second = [1, 5] * 50, [1, 5] * 45 + [5, 1] * 5
    alone = compare(first, second).figures["kappa"]
    together = compare_raters(first, second, SCALE, [str(text // 10) for text in range(100)]).figures["kappa"]
    assert alone.value == together.value == pytest.approx(0.8)
    assert together.interval[0] < alone.interval[0]


@pytest.fixture
def checked(make_port, back_translator) -> Path:
    folder = make_port()
    audit_port(folder, source=folder.parent / "small", back_translator=back_translator, processes=1, round_trip=False)
    return folder


def sheets_of(folder: Path, n: int = 6, **options: int) -> list[Path]:
    return make_sheets(folder, n=n, source=folder.parent / "small", duplicates=1, **options)


def fill(path: Path, out: Path, score: object = 4, delimiter: str = ",") -> Path:
    """The sheet with that score everywhere, or what a function of item and dimension gives."""
    rows = list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines(keepends=True)))
    with out.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, TRANSLATIONS.columns, delimiter=delimiter)
        writer.writeheader()
        for row in rows:
            answers = {name: score(row["item"], name) if callable(score) else score for name in DIMENSIONS}
            writer.writerow({**row, **answers})
    return out


def test_sample(checked):
    port = open_port(checked, source=checked.parent / "small")
    whole, some = draw_sample(port, 100, 0), draw_sample(port, 3, 0)
    assert len(whole) == 6
    assert {item.kind for item in some} == {"document", "query"}
    assert draw_sample(port, 3, 0) == some
    assert {item.item_id for item in draw_sample(port, 6, 1)} != {item.item_id for item in whole}
    assert sum(item.weight for item in whole) == 6


def test_sheets_are_blind_and_the_same_again(checked):
    paths = sheets_of(checked)
    assert [path.name for path in paths] == [
        f"rater-{n}.{ending}" for n in (1, 2) for ending in ("csv", "xlsx", "html")
    ]
    first, second = (fill(path, path) and read_sheet(path, FORMS).scores for path in paths if path.suffix == ".csv")
    assert first.keys() == second.keys()
    assert list(first) != list(second)
    assert len(first) == 7, "six texts, one of them twice"
    text = paths[0].read_text(encoding="utf-8-sig") + paths[2].read_text()
    assert not any(word in text for word in ("chrF", "flag", "fake-1", "back-1", "d1", "q1", "duplicate"))
    # An existing sheet is never overwritten, and no other sample takes its place.
    assert sheets_of(checked) == []
    with pytest.raises(BadInput, match="another sample"):
        sheets_of(checked, seed=1)


def test_agree(checked, tmp_path):
    paths = sheets_of(checked)
    key = json.loads((checked / "qa" / "sheets" / "key.json").read_text())
    ((again, first),) = key["duplicates"].items()
    items = sorted(key["items"])
    anna = fill(paths[0], tmp_path / "anna.csv", lambda item, name: 1 + sorted([*items, again]).index(item) % 4)
    far = next(item for item in items if item != first)
    boris = fill(
        paths[3],
        tmp_path / "boris.csv",
        lambda item, name: 5 if item == far else 1 + sorted([*items, again]).index(item) % 4,
        delimiter=";",
    )
    report = agree([anna, boris], port=checked)
    assert report["raters"] == {"anna": 6, "boris": 6}
    (pair,) = report["dimensions"]["fluency"]["pairs"]
    assert pair["raters"] == ["anna", "boris"]
    assert pair["n"] == 6
    off = abs(5 - (1 + sorted([*items, again]).index(far) % 4))
    assert pair["mean_absolute_error"] == pytest.approx(off / 6)
    assert report["dimensions"]["accuracy"]["self"]["anna"]["n"] == 1
    assert {row["item"] for row in report["disagreements"]} == ({far} if off >= 2 else set())
    assert report["dimensions"]["accuracy"]["alpha_with_judge"] is None


def about(stratum: tuple[str, int, int, bool], n: int, drawn: int) -> dict[str, object]:
    """An item in the key of sheets, of a stratum of n texts of which some were drawn."""
    return {**dict(zip(TextStratum._fields, stratum, strict=True)), "weight": n / drawn}


QUERY, SHORT, LONG = ("query", 1, 0, False), ("document", 1, 0, False), ("document", 2, 0, True)
SAMPLE = {
    **{f"s{n}": about(SHORT, 900, 3) for n in range(3)},
    **{f"l{n}": about(LONG, 10, 2) for n in range(2)},
    **{f"q{n}": about(QUERY, 90, 2) for n in range(2)},
}
GIVEN = {"s0": 5, "s1": 4, "s2": 4, "l0": 1, "l1": 2, "q0": 3, "q1": 5}


@pytest.mark.parametrize(
    ("left_out", "mean"),
    [
        # Each stratum's mean, by its share of the 1,000 texts.
        ((), F(900, 1000) * F(13, 3) + F(10, 1000) * F(3, 2) + F(90, 1000) * 4),
        # The others of its stratum stand for a text without a score.
        (("s0",), F(900, 1000) * 4 + F(10, 1000) * F(3, 2) + F(90, 1000) * 4),
        # A stratum with a single score joins its neighbour, the long documents the queries.
        (("l0",), F(900, 1000) * F(13, 3) + F(100, 1000) * F(10, 3)),
        (("q0", "q1"), F(900, 1000) * F(13, 3) + F(100, 1000) * F(3, 2)),
    ],
)
def test_means_are_weighted_to_the_port(left_out, mean):
    scores = {item: float(score) for item, score in GIVEN.items() if item not in left_out}
    estimate = estimate_port_mean(scores, read_sample(SAMPLE), SCALE)
    assert estimate.mean == pytest.approx(float(mean), abs=1e-12)
    assert (estimate.n_scored, estimate.n_texts) == (len(scores), 1000)
    assert 1 <= estimate.interval[0] < estimate.mean < estimate.interval[1] <= 5


def test_few_scores_of_many_strata():
    """Two scored queries, each a stratum of its own, and documents without a score, which the next ones represent."""
    items = {f"q{n}": about(("query", n, 0, False), 1, 1) for n in range(2)} | {
        f"d{n}": about(("document", n, 0, False), 4, 1) for n in range(2)
    }
    sample = read_sample(items)
    for scored in (("q0", "q1"), ("d0", "q1"), ("d1", "q0"), ("d0", "d1")):
        estimate = estimate_port_mean(dict.fromkeys(scored, 4.0), sample, SCALE)
        assert (estimate.mean, estimate.n_texts) == (4, 10)
        assert estimate.interval[0] < 4 < estimate.interval[1]


def test_the_interval_is_that_of_a_stratified_sample():
    """Cochran (1977), Sampling Techniques: the sum of W² (1 - n/N) s²/n over strata (5.6), and freedom (5.16)."""
    sizes, groups = {"a": 60, "b": 40}, {"a": [1, 5, 3, 5, 2, 4], "b": [1, 4, 5, 1]}
    items = {
        f"{name}{n}": about(("document", number, 0, False), sizes[name], len(groups[name]))
        for number, name in enumerate(groups)
        for n in range(len(groups[name]))
    }
    scores = {f"{name}{n}": float(score) for name, group in groups.items() for n, score in enumerate(group)}
    mean = estimate_port_mean(scores, read_sample(items), (-9, 19))
    spreads = {
        name: F(sizes[name], 100) ** 2
        * (1 - F(len(group), sizes[name]))
        * F(statistics.variance(map(F, group)))
        / len(group)
        for name, group in groups.items()
    }
    total = sum(spreads.values())
    freedom = total**2 / sum(spread**2 / (len(groups[name]) - 1) for name, spread in spreads.items())
    half = stats.t.ppf(0.975, float(freedom)) * float(total) ** 0.5
    assert mean.interval == pytest.approx((mean.mean - half, mean.mean + half), abs=1e-9)
    everything = {item: {**row, "weight": 1.0} for item, row in items.items()}
    of_all = estimate_port_mean(scores, read_sample(everything), SCALE)
    assert of_all.interval == (of_all.mean, of_all.mean), "where every text is scored nothing is left to estimate"


def give_by_quality(row: dict[str, Any], random: np.random.Generator) -> float:
    """The worse the back-translation the lower, and flagged texts by two points."""
    return 1 + row["chrF"] / 25 - 2 * len(row["flags"]) + random.normal(0, 0.8)


def give_mostly_the_best(row: dict[str, Any], random: np.random.Generator) -> float:
    return 5 - math.floor(random.exponential(0.7))


@pytest.mark.parametrize(
    ("give", "n", "width", "at_least"),
    [
        (give_by_quality, 20, 1.4, 0.93),
        (give_by_quality, 60, 0.6, 0.93),
        (give_by_quality, 120, 0.4, 0.93),
        (give_mostly_the_best, 20, 0.7, 0.89),
        (give_mostly_the_best, 120, 0.3, 0.93),
    ],
)
def test_the_intervals_cover(give, n, width, at_least):
    """400 samples of 1,000 texts: some 95 % of the intervals hold the mean of all, and each sample represents all."""
    random = np.random.default_rng(4)
    rows = [
        {
            "kind": "document" if number < 900 else "query",
            "id": str(number),
            "chars": int(random.integers(20, 900)),
            "flags": ["length"] if random.random() < 0.04 else [],
            "chrF": float(random.uniform(20, 100)),
        }
        for number in range(1000)
    ]
    truth = {(row["kind"], row["id"]): float(np.clip(np.rint(give(row, random)), 1, 5)) for row in rows}
    mean = statistics.fmean(truth.values())
    covered, widths = 0, []
    for seed in range(400):
        drawn = draw_rows(rows, n, seed)
        items = {"/".join(key): {**stratum._asdict(), "weight": weight} for key, (stratum, weight) in drawn.items()}
        assert sum(row["weight"] for row in items.values()) == pytest.approx(1000), "no stratum is left out"
        estimate = estimate_port_mean({"/".join(key): truth[key] for key in drawn}, read_sample(items), SCALE)
        covered += estimate.interval[0] <= mean <= estimate.interval[1]
        widths.append(estimate.interval[1] - estimate.interval[0])
    assert at_least <= covered / 400 <= 0.98, covered
    assert statistics.fmean(widths) < width


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text.replace(",4,4,4,4", ",4,6,4,4", 1), r"csv:2: fluency is '6'"),
        (lambda text: text.replace(",4,4,4,4", ",4,4,3.5,4", 1), r"csv:2: completeness is '3.5'"),
        (lambda text: text.replace(",4,4,4,4", ",4,4,4,good", 1), r"csv:2: style_consistency is 'good'"),
        (lambda text: text + text.splitlines()[-1] + "\n", "occurs a second time"),
        (lambda text: text + "abcdef,x,y,4,4,4,4,\n", "'abcdef' is not in this sample"),
        (lambda text: text.replace(",4", ","), "contains no scores"),
        (lambda text: text.replace("fluency", "flow", 1), "no column 'fluency'"),
        (lambda text: text + 'x,"never closed', "not valid CSV"),
        (lambda text: "", "no column 'item'"),
    ],
)
def test_spoiled_sheets(checked, tmp_path, spoil, message):
    path = fill(sheets_of(checked)[0], tmp_path / "anna.csv")
    path.write_text(spoil(path.read_text(encoding="utf-8-sig")), encoding="utf-8")
    with pytest.raises(BadInput, match=message):
        agree([path], port=checked)


def test_sheets_that_do_not_belong_together(checked, tmp_path):
    paths = sheets_of(checked)
    anna = fill(paths[0], tmp_path / "anna.csv")
    half = fill(paths[3], tmp_path / "boris.csv", lambda item, name: 4 if name == "fluency" else "")
    other = fill(paths[3], tmp_path / "carla.csv", lambda item, name: 4 if name == "accuracy" else "")
    assert agree([anna, half])["dimensions"]["accuracy"]["pairs"] == []
    with pytest.raises(BadInput, match="boris and carla have no scored text in common"):
        agree([half, other])
    with pytest.raises(BadInput, match="given twice"):
        agree([anna, anna])
    for name, data in (("x.xlsx", b"no zip"), ("x.ods", b""), ("x.csv", b"\xff\xfe")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(BadInput, match=name):
            agree([tmp_path / name])
    with pytest.raises(BadInput, match=r"key\.json does not exist"):
        agree([anna], port=tmp_path / "small")


def test_xlsx(checked, tmp_path):
    path = next(path for path in sheets_of(checked) if path.suffix == ".xlsx")
    book = openpyxl.load_workbook(path)
    for row in book.active.iter_rows(min_row=2):
        for cell, score in zip(row[3:7], (5, 4.0, "3", 1), strict=True):
            cell.value = score
    book.save(tmp_path / "anna.xlsx")
    sheet = read_sheet(tmp_path / "anna.xlsx", FORMS)
    assert len(sheet.scores) == 7
    assert set(map(tuple, (row.values() for row in sheet.scores.values()))) == {(5, 4, 3, 1)}


def fill_as(ending: str, sheet: Path, out: Path, score: object = 4) -> Path:
    """The CSV sheet filled in and saved as its page exports it (html), or as a spreadsheet saves it (tsv, xlsx)."""
    path = out.with_suffix(f".{'csv' if ending == 'html' else ending}")
    fill(sheet, path, score, "\t" if ending == "tsv" else ",")
    rows = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines(keepends=True)))
    if ending == "html":
        lines = [",".join('"{}"'.format(cell.replace('"', '""')) for cell in row) for row in rows]
        path.write_text("\ufeff" + "\r\n".join([*lines, ""]), encoding="utf-8", newline="")
    if ending == "xlsx":
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append([float(cell) if cell.isdigit() else cell for cell in row])
        book.save(path)
    return path


@pytest.mark.parametrize("second", ["csv", "tsv", "html", "xlsx"])
@pytest.mark.parametrize("first", ["csv", "html", "xlsx"])
def test_texts_and_raters_are_counted_in_every_format(checked, tmp_path, first, second):
    """A second rater's sheet and a repeated text are not further texts."""
    sheet = sheets_of(checked)[0]
    paths = [fill_as(first, sheet, tmp_path / "anna", 4), fill_as(second, sheet, tmp_path / "boris", 2)]
    report = agree(paths, port=checked)
    assert (report["raters"], report["texts"], report["unanswered"]) == ({"anna": 6, "boris": 6}, 6, {})
    people = report["dimensions"]["fluency"]["port"]["people"]
    assert (people["mean"], people["n_scored"], people["n_texts"]) == (3, 6, 6)
    assert people["interval"] == (3, 3), "all six texts of the port were scored"


def first_half(item: str, name: str) -> object:
    return 4 if name in DIMENSIONS[:2] else ""


def second_half(item: str, name: str) -> object:
    return "" if name in DIMENSIONS[:2] else 4


@pytest.mark.parametrize(
    ("files", "raters", "refused"),
    [
        ([("anna", "csv", 4), ("anna", "xlsx", 4)], {"anna": 6}, ""),
        ([("anna", "csv", first_half), ("anna", "html", second_half)], {"anna": 6}, "given twice"),
        ([("anna", "tsv", first_half), ("anna", "xlsx", second_half)], {"anna": 6}, ""),
        ([("anna", "csv", 4), ("anna", "xlsx", 5)], {}, "are one rater's, by their name, and differ: accuracy of"),
        ([("a/anna", "csv", 4), ("b/anna", "xlsx", 4)], {}, "have the same name and the same answers"),
        ([("a/anna", "csv", 4), ("b/anna", "csv", 5)], {"a/anna.csv": 6, "b/anna.csv": 6}, ""),
    ],
)
def test_files_of_one_rater(checked, tmp_path, monkeypatch, files, raters, refused):
    sheet = sheets_of(checked)[0]
    monkeypatch.chdir(tmp_path)
    for folder in "ab":
        (tmp_path / folder).mkdir()
    paths = [fill_as(ending, sheet, Path(name), score) for name, ending, score in files]
    if refused:
        with pytest.raises(BadInput, match=refused):
            agree(paths, port=checked)
        return
    report = agree(paths, port=checked)
    assert report["raters"] == raters
    assert report["unanswered"] == {}, "the halves make a whole"


def test_open_answers_are_counted(checked, tmp_path):
    paths = sheets_of(checked)
    items = sorted(json.loads((checked / "qa" / "sheets" / "key.json").read_text())["items"])
    left = {(items[0], "fluency"), *((items[1], name) for name in DIMENSIONS)}
    anna = fill(paths[0], tmp_path / "anna.csv", lambda item, name: "" if (item, name) in left else 4)
    report = agree([anna, fill(paths[3], tmp_path / "boris.csv")], port=checked)
    assert report["unanswered"] == {"anna": {"answers": 5, "texts": 2}}
    assert report["raters"] == {"anna": 5, "boris": 6}
    assert report["texts"] == 6


def test_texts_that_have_changed_are_left_out(checked, tmp_path):
    anna = fill(sheets_of(checked)[0], tmp_path / "anna.csv")
    queries = checked / "queries.jsonl"
    whole = queries.read_text()
    queries.write_text(whole.replace("лёд тает", "тает лёд"))
    report = agree([anna], port=checked)
    assert (report["raters"], report["texts"], report["changed"]) == ({"anna": 5}, 5, {"people": 1, "judge": 0})
    # Keys of earlier versions have no digests: the port is then known by its fingerprint alone.
    path = checked / "qa" / "sheets" / "key.json"
    key = json.loads(path.read_text())
    for about_item in key["items"].values():
        del about_item["digest"]
    path.write_text(json.dumps(key))
    with pytest.raises(BadInput, match="no text that people scored is the same"):
        agree([anna], port=checked)
    queries.write_text(whole)
    assert agree([anna], port=checked)["raters"] == {"anna": 6}


def test_verdicts_on_texts_that_have_changed_are_left_out(checked, tmp_path, endpoint):
    endpoint.script.extend([verdict(4)] * 6)
    judge_port(checked, llm="m", protocol="likert", n=6, source=tmp_path / "small", concurrency=1)
    assert len(read_verdicts(checked)[0]) == 6
    queries = checked / "queries.jsonl"
    queries.write_text(queries.read_text().replace("лёд тает", "тает лёд"))
    scores, n_changed = read_verdicts(checked)
    assert (len(scores), n_changed) == (5, 1)
    anna = fill(sheets_of_changed(checked), tmp_path / "anna.csv", 2)
    report = agree([anna], port=checked)
    assert report["changed"] == {"people": 0, "judge": 1}
    assert report["dimensions"]["fluency"]["port"]["judge"]["n_scored"] == 5
    assert report["dimensions"]["fluency"]["port"]["people"]["mean"] == 2


def sheets_of_changed(folder: Path) -> Path:
    """A sheet of a port that was checked again."""
    audit_port(folder, source=folder.parent / "small", processes=1, round_trip=False)
    return sheets_of(folder)[0]


def verdict(score: object = 4, **other: object) -> Reply:
    return completion(json.dumps({**dict.fromkeys(DIMENSIONS, score), "comments": "", **other}))


INVALID = ["Fine!", '{"accuracy": 4', json.dumps(dict.fromkeys(DIMENSIONS, 6)), json.dumps({"accuracy": 4})]


def test_judge(checked, tmp_path, endpoint):
    source = tmp_path / "small"
    # One of five answers is not a verdict, and one text never gets one.
    endpoint.script.extend([verdict(5), verdict(4), completion(INVALID[0]), verdict(3), verdict(4), verdict(5)])
    endpoint.script.extend(completion(text) for text in INVALID[1:])
    report = judge_port(checked, llm="m", protocol="likert", n=6, source=source, concurrency=1)
    assert (report["n"], report["judged"], report["invalid"]) == (6, 5, 1)
    assert (report["answers"], report["invalid_answers"]) == (9, 4)
    assert report["means"]["fluency"]["sample"] == pytest.approx(21 / 5)
    low, high = report["means"]["fluency"]["interval"]
    assert 1 <= low < report["means"]["fluency"]["port"] < high <= 5
    assert endpoint.asked[0]["response_format"]["json_schema"]["schema"]["properties"]["fluency"]["maximum"] == 5
    # Texts that have a verdict are not sent again.
    n_asked = len(endpoint.asked)
    again = judge_port(checked, llm="m", protocol="likert", n=6, source=source, concurrency=1)
    assert len(endpoint.asked) == n_asked
    assert (report["requests"], report["retries"]) == (9, 3), "one text is asked about twice, one three times"
    assert again == {**report, "tokens": {"input": 0, "output": 0, "cost": 0.0}, "requests": 0, "retries": 0}
    assert report["spent"]["requests"] == 9
    # Another model is another judge.
    judge_port(checked, llm="n", protocol="likert", n=1, source=source)
    assert len(endpoint.asked) == n_asked + 3


def test_half_a_character_in_a_comment_costs_no_verdict(checked, tmp_path, endpoint):
    endpoint.script.extend([verdict(5, comments="half \ud83d"), *[verdict(4)] * 5])
    report = judge_port(checked, llm="m", protocol="likert", n=6, source=tmp_path / "small", concurrency=1)
    assert (report["judged"], report["invalid"], len(endpoint.asked)) == (6, 0, 6)
    comments = [
        json.loads(line)["scores"]["comments"] for line in (checked / "qa" / "judge.jsonl").read_text().splitlines()
    ]
    assert sorted(comments) == ["", "", "", "", "", "half \ufffd"]


def test_judge_and_people(checked, tmp_path, endpoint):
    endpoint.script.extend([verdict(4)] * 6)
    judge_port(checked, llm="m", protocol="likert", n=6, source=tmp_path / "small", concurrency=1)
    anna = fill(sheets_of(checked)[0], tmp_path / "anna.csv", 2)
    report = agree([anna], port=checked)
    (pair,) = report["dimensions"]["accuracy"]["pairs"]
    assert (pair["raters"], pair["n"], pair["within_one"]) == (["anna", "judge"], 6, 0)
    assert pair["mean_absolute_error"] == 2
    assert report["dimensions"]["accuracy"]["alpha_with_judge"]["n"] == 6
    assert len(report["disagreements"]) == 24
    assert {"kind", "id"} <= report["disagreements"][0].keys()


def test_judge_needs_a_checked_port(make_port, endpoint, tmp_path):
    with pytest.raises(BadInput, match="has not been checked yet"):
        judge_port(make_port(), llm="m", source=tmp_path / "small")
    assert endpoint.asked == []


@pytest.mark.parametrize(
    ("answer", "valid"),
    [
        (json.dumps(dict.fromkeys(DIMENSIONS, 3)), True),
        (f"Sure! ```json\n{json.dumps(dict.fromkeys(DIMENSIONS, 3))}\n```", True),
        (json.dumps(dict.fromkeys(DIMENSIONS, 0)), False),
        (json.dumps(dict.fromkeys(DIMENSIONS, True)), False),
        (json.dumps(dict.fromkeys(DIMENSIONS, 3.0)), False),
        (json.dumps(dict.fromkeys(DIMENSIONS, "3")), False),
        (json.dumps(dict.fromkeys(DIMENSIONS[1:], 3)), False),
        ("[" * 100_000, False),
        ("{" * 100_000 + "}", False),
        ("", False),
    ],
)
def test_verdicts(answer, valid):
    verdict = read_object(answer)
    assert (verdict is not None and read_verdict(verdict) is not None) is valid


@given(st.dictionaries(st.sampled_from([*DIMENSIONS, "comments"]), st.integers() | st.text() | st.none()))
def test_any_verdict(answer):
    read_verdict(answer)


def test_moved_sheets_need_no_port(checked, tmp_path):
    path = fill(sheets_of(checked)[0], tmp_path / "anna.csv")
    assert agree([path])["raters"] == {"anna": 7}
    shutil.copy(checked / "qa" / "sheets" / "key.json", tmp_path)
    assert agree([path])["raters"] == {"anna": 6}


def test_judge_for_real(checked, tmp_path, monkeypatch, smollm):
    """SmolLM2-135M behind the server of llama.cpp: its verdicts are worth little, but the whole path must work."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{smollm.listening_address}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    report = judge_port(checked, llm="smollm2", protocol="likert", n=1, source=tmp_path / "small", concurrency=1)
    assert report["judged"] + report["invalid"] == report["n"] == 1
    assert report["answers"] == report["judged"] + report["invalid_answers"]
    assert report["tokens"]["input"] > 0
    for row in report["means"].values():
        assert 1 <= row["sample"] <= 5
