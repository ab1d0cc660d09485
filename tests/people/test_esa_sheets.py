"""Sheets on which people mark errors: campaigns, pages in a browser, Pearmut's, Appraise's and WMT's files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import pearsonr
from typer.testing import CliRunner

from rusbeir.audit import audit_port
from rusbeir.cli.main import app
from rusbeir.errors import BadInput, UnknownName
from rusbeir.people.esa_sheets import Campaign, find_texts, make_esa_sheets, plant_damage, read_esa_key
from rusbeir.people.rating_agreement import agree_on_errors
from rusbeir.people.rating_files import is_rating_file, read_ratings
from tests.support.browser import CHROMIUM, violations

ALL = Campaign(attention=0.2, repeats=0.4)


@pytest.fixture
def checked(make_port, back_translator) -> Path:
    folder = make_port()
    audit_port(folder, source=folder.parent / "small", back_translator=back_translator, processes=1, round_trip=False)
    return folder


def sheets_of(folder: Path, campaign: Campaign = ALL, **options: Any) -> dict[str, Any]:
    make_esa_sheets(folder, n=6, source=folder.parent / "small", campaign=campaign, **options)
    return read_esa_key(folder / "qa" / "esa")


def write_rows(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def row(rater: str, item: str, score: float | None, *errors: dict[str, Any], time: int = 1) -> dict[str, Any]:
    return {"sheet": "s", "rater": rater, "item": item, "score": score, "errors": [*errors], "time": time}


def error(text: str, start: int, end: int, side: str = "translation", severity: str = "major") -> dict[str, Any]:
    return {"in": side, "start": start, "end": end, "span": text[start:end], "severity": severity}


@pytest.mark.parametrize(("raters", "overlap", "per_text"), [(2, None, 2), (3, 2, 2), (4, 1, 1), (1, None, 1)])
def test_each_text_is_given_to_as_many_raters_as_the_overlap(checked, raters, overlap, per_text):
    key = sheets_of(checked, Campaign(raters=raters, overlap=overlap, repeats=0))
    assert len(key["raters"]) == raters
    shown = [item for items in key["raters"].values() for item in items]
    assert {item: shown.count(item) for item in key["items"]} == dict.fromkeys(key["items"], per_text)
    sizes = [len(items) for items in key["raters"].values()]
    assert max(sizes) - min(sizes) <= 1


def test_copies_are_far_from_what_they_repeat(checked):
    key = sheets_of(checked)
    for items in key["raters"].values():
        first = key["repeats"] | {copy: check["of"] for copy, check in key["checks"].items()}
        copies = [item for item in items if item in first]
        assert len(copies) == 4, "two of six are repeated and two damaged"
        assert all(abs(items.index(copy) - items.index(first[copy])) >= 3 for copy in copies)
    for copy, check in key["checks"].items():
        source, translation = find_texts(key, copy)
        assert source == key["items"][check["of"]]["source"]
        assert translation != key["items"][check["of"]]["translation"]


def test_pages_are_blind_and_the_same_again(checked):
    key = sheets_of(checked)
    page = (checked / "qa" / "esa" / "rater-1.html").read_text()
    assert not any(word in page for word in ("chrF", "flag", "fake-1", '"d1"', '"q1"', "damaged"))
    assert not set(key["repeats"]) & set(key["items"])
    assert make_esa_sheets(checked, n=6, source=checked.parent / "small", campaign=ALL) == []
    with pytest.raises(BadInput, match="another sample"):
        sheets_of(checked, seed=1)


@pytest.mark.parametrize(
    ("translation", "donor"),
    [("a b c d e f g h", "1 2 3 4 5 6 7 8"), ("ab", "xyz"), ("百度翻译系统", "天地玄黄宇宙"), ("one two", "three")],
)
def test_damage_is_where_it_says(translation, donor):
    damage = plant_damage(translation, donor, random.Random(1))
    words = damage.translation[damage.start : damage.end]
    assert words
    assert words in donor
    assert damage.translation.startswith(translation[: damage.start])
    assert damage.translation.endswith(translation[len(translation) - (len(damage.translation) - damage.end) :])


@pytest.mark.parametrize(
    ("campaign", "message"),
    [
        (Campaign(raters=0), "raters"),
        (Campaign(raters=2, overlap=3), "overlap"),
        (Campaign(attention=1.5), "attention"),
        (Campaign(attention=float("nan")), "attention"),
    ],
)
def test_impossible_campaigns(checked, campaign, message):
    with pytest.raises(BadInput, match=message):
        make_esa_sheets(checked, campaign=campaign)


def test_agree(checked, tmp_path):
    """Anna sees all damage, Boris none; both repeat themselves, and Boris is ten points milder."""
    key = sheets_of(checked)
    rows: dict[str, list[dict[str, Any]]] = {"anna": [], "boris": []}
    for n, item in enumerate(key["items"]):
        translation = key["items"][item]["translation"]
        rows["anna"].append(row("anna", item, 10 * n, error(translation, 0, 4)))
        rows["boris"].append(row("boris", item, 10 * n + 10, error(translation, 2, 4, severity="minor")))
    scores = {name: {line["item"]: line["score"] for line in lines} for name, lines in rows.items()}
    for rater in rows:
        for copy, first in key["repeats"].items():
            rows[rater].append(row(rater, copy, scores[rater][first] + 5))
    for copy, check in key["checks"].items():
        damaged = check["translation"]
        rows["anna"].append(row("anna", copy, 100, error(damaged, check["start"], check["end"])))
        rows["boris"].append(row("boris", copy, 100))
    files = [write_rows(tmp_path / f"{rater}.jsonl", *lines) for rater, lines in rows.items()]
    report = agree_on_errors(files, port=checked)
    n_checks = len(key["checks"])
    assert {rater: (check["planted"], check["missed"]) for rater, check in report["checks"].items()} == {
        "anna": (n_checks, 0),
        "boris": (n_checks, n_checks),
    }
    (pair,) = report["pairs"]
    assert pair["raters"] == ["anna", "boris"]
    assert pair["pearson"]["value"] == pytest.approx(1)
    assert (pair["mean_absolute_difference"]["value"], pair["strictness"]["value"]) == (10, -10)
    assert pair["same_major"]["value"] == 0
    # Two of four characters: precision 1/2 and recall 1.
    assert pair["spans"]["value"] == pytest.approx(2 / 3)
    assert report["self"]["anna"]["mean_absolute_difference"]["value"] == 5 if len(key["repeats"]) > 2 else True
    assert report["port"]["people"]["score"]["sample"] == pytest.approx(30)
    assert report["port"]["people"]["major"]["sample"] == pytest.approx(0.5)
    assert report["means"]["boris"]["mqm"] == -1
    printed = CliRunner().invoke(app, ["audit", "agree", *map(str, files), "--port", str(checked)])
    assert printed.exit_code == 0, printed.output
    assert f"boris missed {n_checks} of {n_checks} attention checks; do not rely on these ratings." in printed.output


def test_a_judge_of_the_same_texts(make_port, back_translator, tmp_path):
    """Six texts that a judge of the translator's own family read too; it has nothing to add to so few."""
    folder = make_port(signature="llm|model:gpt-4o")
    audit_port(folder, source=folder.parent / "small", back_translator=back_translator, processes=1, round_trip=False)
    key = sheets_of(folder)
    about = [
        {name: value for name, value in text.items() if name not in ("source", "translation")} | {"item": item}
        for item, text in key["items"].items()
    ]
    verdict = {"judge": "judge|protocol:esa|model:gpt-5|rubric:0", "protocol": "esa", "score": 50, "mqm": 0}
    write_rows(folder / "qa" / "spans.jsonl", *({**text, **verdict, "major": False, "errors": []} for text in about))
    anna = write_rows(tmp_path / "anna.jsonl", *(row("anna", item, 10 * n) for n, item in enumerate(key["items"])))
    report = agree_on_errors([anna], port=folder)
    assert report["raters"] == {"anna": 6, "judge": 6}
    assert report["shared_families"] == ["openai"]
    assert report["port"].keys() == {"people", "judge"}
    printed = CliRunner().invoke(app, ["audit", "agree", str(anna), "--port", str(folder)]).output
    assert "The judge and the translator are of one family (openai)" in printed


def test_partial_work_is_merged_without_doubles(checked, tmp_path):
    key = sheets_of(checked)
    first, second, third, *_ = key["items"]
    old = write_rows(tmp_path / "a.jsonl", row("anna", first, 10, time=1), row("anna", second, 20, time=1))
    new = write_rows(tmp_path / "b.jsonl", row("anna", second, 90, time=2), row("anna", third, 30, time=1))
    for files in ([old, new], [new, old], [old, new, old]):
        report = agree_on_errors(files, port=checked)
        assert report["raters"] == {"anna": 3}
        assert report["means"]["anna"]["score"] == pytest.approx((10 + 90 + 30) / 3)
        assert report["doubles"] == len(files) - 1 + (len(files) > 2)


def test_errors_that_cannot_be_right_are_counted_and_left_out(checked, tmp_path):
    key = sheets_of(checked)
    item = next(iter(key["items"]))
    text = key["items"][item]["translation"]
    wrong = {**error(text, 0, 3), "span": "not there"}
    far = error(text, 0, len(text) + 50)
    milder = error(text, 1, 4, severity="minor")
    path = write_rows(tmp_path / "anna.jsonl", row("anna", item, 50, wrong, far, milder, error(text, 0, 4)))
    report = agree_on_errors([path], port=checked)
    assert report["spans"] == {"marked": 4, "not_in_text": 2, "overlapping": 1}
    assert report["means"]["anna"] == {"score": 50, "mqm": -5, "major": 1}
    printed = CliRunner().invoke(app, ["audit", "agree", str(path), "--port", str(checked)])
    assert "Of 4 marked errors, 2 are not in the texts and 1 overlap another one; they are left out." in printed.output
    assert "anna rated one text, which says nothing about agreement." in printed.output
    assert "has not scored" not in printed.output, "anna is not one of the raters whose sheets are known"


@pytest.mark.parametrize(
    ("spoiled", "message"),
    [
        ({"score": 101}, r"jsonl:1: the score is 101\. It must be a number from 0 to 100"),
        ({"score": "nan"}, "the score is 'nan'"),
        ({"score": True}, "the score is True"),
        ({"item": "of another sample"}, "'of another sample', which is not in the sample"),
        ({"errors": [{"in": "translation", "start": 3, "end": 2, "severity": "minor"}]}, "from 3 to 2"),
        ({"errors": [{"in": "margin", "start": 0, "end": 2, "severity": "minor"}]}, "'in'"),
        ({"errors": [{"in": "source", "start": 0, "end": 2, "severity": "awful"}]}, "'awful'"),
        ({"errors": "none"}, "'errors' is not a list"),
        ({"score": None}, None),
    ],
)
def test_ratings_that_cannot_be_right(checked, tmp_path, spoiled, message):
    key = sheets_of(checked)
    path = write_rows(tmp_path / "anna.jsonl", {**row("anna", next(iter(key["items"])), 50), **spoiled})
    if message is None:
        assert agree_on_errors([path], port=checked)["texts"] == 0, "an open text is not rated"
        return
    with pytest.raises(BadInput, match=message):
        agree_on_errors([path], port=checked)


def test_a_campaign_for_pearmut(checked, tmp_path):
    """Its form is that of Pearmut's README: tasks of documents of segments; a log names the item that it is about."""
    key = sheets_of(checked, ALL, format="pearmut")
    campaign = json.loads((checked / "qa" / "esa" / "pearmut.json").read_text())
    assert campaign["info"] == {"assignment": "task-based", "protocol": "ESA", "users": ["rater-1", "rater-2"]}
    assert [[item["item_id"] for (item,) in task] for task in campaign["data"]] == [*key["raters"].values()]
    assert all(set(item["tgt"]) == {"port"} for task in campaign["data"] for (item,) in task)
    lines = []
    for rater, task in zip(campaign["info"]["users"], campaign["data"], strict=True):
        for n, (item,) in enumerate(task):
            end = len(item["tgt"]["port"])
            errors = [
                {"start_i": 0, "end_i": 2, "severity": "major", "category": None},
                {"start_i": end + 1, "end_i": end + 9, "severity": "minor", "category": None},
            ]
            answer = {"port": {"score": 10 * n, "error_spans": errors, "textfield": None}}
            lines.append({"user_id": rater, "item_i": n, "item": [item], "annotation": [answer], "actions": []})
    log = write_rows(tmp_path / "log.jsonl", *lines)
    report = agree_on_errors([log], port=checked)
    assert report["raters"] == {"rater-1": 6, "rater-2": 6}
    assert report["unscored"] == {}
    assert report["means"]["rater-1"]["mqm"] == -6, "the mark behind the text is for what is missing"
    assert report["spans"]["not_in_text"] == 0
    assert agree_on_errors([write_rows(tmp_path / "export.json", {"campaign": lines})], port=checked) == report
    reset = [*lines, {"user_id": "rater-2", "item_i": None, "annotation": "__RESET__"}]
    assert agree_on_errors([write_rows(tmp_path / "reset.jsonl", *reset)], port=checked)["raters"]["rater-2"] == 0


def test_annotations_of_pearmut_from_elsewhere(tmp_path):
    """As Pearmut's demo of ESA has them: without the item, and with several models."""
    lines = [
        {"user_id": rater, "item_i": n, "annotation": {
            "GPT-4": {"score": 85 + n, "error_spans": [
                {"start_i": 11, "end_i": 16, "category": None, "severity": "minor"}]},
            "Claude": {"score": 92 - n, "error_spans": []}}, "comment": "", "time": 45}
        for rater in ("alice", "bob") for n in range(3)
    ]  # fmt: skip
    ratings = read_ratings([write_rows(tmp_path / "demo.jsonl", *lines)])
    assert len(ratings.raters["alice"]) == 6
    assert ratings.raters["alice"]["GPT-4/0/0"].spans[0].extent == ("translation", 11, 17)
    (pair,) = agree_on_errors([tmp_path / "demo.jsonl"])["pairs"]
    assert (pair["n"], pair["pearson"]["value"], pair["spans"]["value"]) == (6, pytest.approx(1), 1)


MQM = """system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity
A\td\t1\t1\tr1\tA dog.\tEin <v>Katze</v>.\tAccuracy/Mistranslation\tMajor
A\td\t1\t1\tr1\tA dog.\tEin Katze<v>.</v>\tFluency/Punctuation\tMinor
A\td\t2\t2\tr1\tA <v>red</v> dog.\tEin Hund.\tAccuracy/Omission\tmajor
A\td\t3\t3\tr1\tA cat.\tEine Katze.\tno-error\tno-error
A\td\t1\t1\tr2\tA dog.\t<v>Ein Katze</v>.\tAccuracy/Mistranslation\tmajor
A\td\t2\t2\tr2\tA red dog.\tEin Hund.\tNo-error\tNo-error
A\td\t3\t3\tr2\tA cat.\tEine Katze.\tno-error\tno-error
"""
APPRAISE = (
    'r{rater},wmt.A,{item},TGT,eng,deu,{score},d#A,False,"[{{""start_i"":4,""end_i"":8,""severity"":""undecided"",'
    '""error_type"":null}}]",1,2\n'
)


def test_files_of_the_field(tmp_path):
    path = tmp_path / "mqm.tsv"
    path.write_text(MQM)
    assert is_rating_file(path)
    raters = read_ratings([path]).raters
    assert [rating.mqm for rating in raters["r1"].values()] == [pytest.approx(-5.1), -5, 0]
    assert raters["r1"]["d/1/A"].spans[0].extent == ("translation", 4, 9)
    assert raters["r1"]["d/2/A"].spans[0].extent == ("source", 2, 5)
    (pair,) = agree_on_errors([path])["pairs"]
    assert (pair["n"], pair["same_major"]["value"]) == (3, pytest.approx(2 / 3))

    path = tmp_path / "appraise.csv"
    path.write_text(
        "".join(APPRAISE.format(rater=rater, item=item, score=20 * item) for rater in (1, 2) for item in (1, 2, 3))
        + "r1,wmt.A,9,BAD,eng,deu,99,d#A,False,[],1,2\n"
    )
    assert is_rating_file(path)
    report = agree_on_errors([path])
    assert report["raters"] == {"r1": 3, "r2": 3}
    assert report["pairs"][0]["spans"]["value"] == 1


def test_published_campaigns_of_people(shared_data):
    """The two ESA campaigns of WMT23 by their segment scores, with Pearson's correlation of scipy."""
    folder = Path(shared_data).parent / "golden" / "wmt23-en-de" / "esa"
    files = [folder / "en-de.ESA-1.seg.score", folder / "en-de.ESA-2.seg.score"]
    (pair,) = agree_on_errors(files)["pairs"]
    tables = [[line.split() for line in path.read_text().splitlines()] for path in files]
    known = [
        (float(left[1]), float(right[1])) for left, right in zip(*tables, strict=True)
        if "None" not in (left[1], right[1])
    ]  # fmt: skip
    assert pair["n"] == len(known)
    assert pair["pearson"]["value"] == pytest.approx(pearsonr(*zip(*known, strict=True)).statistic, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--attention", "5%"], "--attention is not an option of the protocol likert"),
        (["--protocol", "esa", "--step", "candidate"], "--step is not an option of the protocol esa"),
        (["--protocol", "esa", "--attention", "much"], "--attention 'much' is not a share"),
        (["--protocol", "mqm"], "mqm"),
    ],
)
def test_options_of_the_other_protocol(checked, options, message):
    result = CliRunner().invoke(app, ["audit", "sheet", str(checked), *options])
    assert isinstance(result.exception, BadInput | UnknownName) or result.exit_code
    assert message in str(result.exception) + result.output


def test_a_page_in_a_browser(checked, browser, tmp_path):
    """Errors by mouse and by keys, the score, a download that agrees, and its import on another machine."""
    key = sheets_of(checked, Campaign(raters=1, repeats=0))
    # Without a profile on disk, as tests share it, a page that is reloaded may have lost what it stored.
    context = browser.browser_type.launch_persistent_context(
        tmp_path / "profile", executable_path=CHROMIUM, args=["--no-sandbox"]
    )
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    page.goto((checked / "qa" / "esa" / "rater-1.html").as_uri())
    page.focus("#translation")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("2")
    page.dblclick("#source", position={"x": 25, "y": 20})
    page.click("#minor")
    assert page.locator("mark.major").count() > 1
    assert page.locator("#errors li").count() == 2
    page.fill("#score", "70")
    assert "1 scored" in page.inner_text("#state")
    page.reload()
    # What was saved just before may reach the new page after it is loaded.
    page.wait_for_function("() => document.getElementById('state').textContent.includes('1 scored')")
    other = context.new_page()
    other.goto(page.url)
    other.fill("#score", "30")
    page.wait_for_function("() => document.getElementById('score').value === '30'")
    page.fill("#score", "70")
    other.wait_for_function("() => document.getElementById('score').value === '70'")
    other.close()
    with page.expect_download() as download:
        page.click("#download")
    path = tmp_path / "rater-1.jsonl"
    download.value.save_as(path)
    report = agree_on_errors([path], port=checked)
    assert report["means"]["rater-1"] == {"score": 70, "mqm": -6, "major": 1}
    assert report["unscored"] == {"rater-1": len(key["items"]) - 1}
    assert report["spans"] == {"marked": 2, "not_in_text": 0, "overlapping": 0}
    page.evaluate("localStorage.clear()")
    page.reload()
    for text in ("1 texts taken, 0 already here", "0 texts taken, 1 already here"):
        page.set_input_files("#load", path)
        page.wait_for_function("text => document.getElementById('loaded').textContent.includes(text)", arg=text)
    assert "1 scored" in page.inner_text("#state")
    assert violations(page) == []
    assert problems == []
    context.close()
