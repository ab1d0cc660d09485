"""Sheets of relevance labels of what a quality control decided, and what filled ones say of the model's labels."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from rusbeir.datasets import load
from rusbeir.errors import BadInput
from rusbeir.people.agreement import agree
from rusbeir.people.labels import LABELS, Slice
from rusbeir.people.sheet_files import read_sheet
from rusbeir.people.sheets import FORMS, make_sheets
from rusbeir.publishing.evidence import collect_evidence
from rusbeir.synthesis import Rules, control_quality
from tests.support.labelling_model import LabellingModel, small_truth, write_made_set

QUERIES = 20


def decide(number: int, step: str, kind: str, label: int | None, action: str) -> dict[str, object]:
    query = number % QUERIES
    return {
        "id": f"{number:012x}", "step": step, "query_id": f"q{query}", "doc_id": f"d{number}", "kind": kind,
        "label": label, "reason": "The model's reason.", "ranks": {"bm25": 3}, "threshold": 10, "scores": None,
        "action": action, "undone": False,
    }  # fmt: skip


DECISIONS = [
    *(decide(n, "source", "positive", 3 if n % 4 else 0, "keep" if n % 4 else "drop-query") for n in range(20)),
    *(decide(n, "candidate", "unjudged", n % 3, "add-judgement" if n % 3 == 2 else "keep") for n in range(20, 50)),
    *(decide(n, "candidate", "hard-negative", 3, "drop-document") for n in range(50, 60)),
    *(decide(n, "candidate", "unjudged", None, "keep") for n in range(60, 70)),
]
"""A query in four and ten hard negatives are dropped, ten documents have not been labelled."""


@pytest.fixture
def controlled(tmp_path: Path) -> Path:
    """The folder that a quality control wrote."""
    folder = tmp_path / "out"
    for name in ("qrels", "qa"):
        (folder / name).mkdir(parents=True)
    no_queries = {row["query_id"] for row in DECISIONS if row["action"] == "drop-query"}
    no_docs = {row["doc_id"] for row in DECISIONS if row["action"] == "drop-document"}
    queries = {f"q{n}": f"what is number {n}?" for n in range(QUERIES)}
    docs = {row["doc_id"]: f"={row['doc_id']} is a number" for row in DECISIONS}
    for name, texts, without in (("queries", queries, no_queries), ("corpus", docs, no_docs)):
        lines = [{"_id": text_id, "text": text} for text_id, text in texts.items() if text_id not in without]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    removed = [{"doc_id": doc_id, "title": "", "text": docs[doc_id]} for doc_id in sorted(no_docs)]
    removed += [{"query_id": query_id, "text": queries[query_id]} for query_id in sorted(no_queries)]
    (folder / "qa" / "removed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in removed))
    judged = "".join(f"q{n}\td{n}\t1\n" for n in range(QUERIES) if f"q{n}" not in no_queries)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    card = {"name": "made@checked", "language": "en", "provenance": {"rules": {"positive": 2}}}
    (folder / "card.json").write_text(json.dumps(card))
    write_decisions(folder, DECISIONS)
    return folder


def write_decisions(folder: Path, rows: list[dict[str, object]]) -> None:
    (folder / "qa" / "decisions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def read_key(folder: Path) -> dict[str, object]:
    return json.loads((folder / "qa" / "sheets" / "key.json").read_text())


def fill(path: Path, out: Path, label: Callable[[str], object]) -> Path:
    """The sheet with the labels that a function gives to the ids of items."""
    rows = list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines(keepends=True)))
    with out.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, LABELS.columns)
        writer.writeheader()
        writer.writerows({**row, "label": label(row["item"])} for row in rows)
    return out


def test_sheets_are_blind_and_in_proportion(controlled):
    paths = make_sheets(controlled, n=30, duplicates=3)
    assert [path.suffix for path in paths] == [".csv", ".xlsx", ".html"] * 2
    rows = list(csv.DictReader(paths[0].read_text(encoding="utf-8-sig").splitlines(keepends=True)))
    assert (len(rows), list(rows[0])) == (33, ["item", "query", "document", "label", "comments"])
    assert {row["label"] for row in rows} == {""}
    key = read_key(controlled)
    decisions = {row["doc_id"]: row for row in DECISIONS}
    for item, about in key["items"].items():
        (row,) = (row for row in rows if row["item"] == item)
        assert row["query"] == f"what is number {about['query_id'][1:]}?"
        assert row["document"] == f"'={about['doc_id']} is a number", "also of those that were dropped"
        stated = {name: value for name, value in about.items() if name != "digest"}
        assert {name: decisions[about["doc_id"]][name] for name in stated} == stated
    # Half of each stratum of 60: the sample has the proportions of the decisions.
    strata = {(row["step"], row["kind"], row["label"]): row["n"] for row in key["strata"]}
    assert sum(strata.values()) == 60
    taken = Counter((about["step"], about["kind"], about["label"]) for about in key["items"].values())
    assert all(abs(taken[stratum] - n / 2) < 1 for stratum, n in strata.items())
    text = paths[0].read_text(encoding="utf-8-sig") + paths[2].read_text()
    assert not any(word in text for word in ("candidate", "negative", "drop-", "add-", "The model", "bm25", "made@"))
    assert "Documents to label" in paths[2].read_text()
    assert "does not help whoever asks" in paths[2].read_text(), "the scale is described"
    assert make_sheets(controlled, n=30, duplicates=3) == []
    with pytest.raises(BadInput, match="another sample"):
        make_sheets(controlled, n=30, duplicates=3, seed=1)


def test_a_slice(controlled):
    make_sheets(controlled, n=100, only=Slice(step="candidate", kind="unjudged", action="add-judgement"))
    assert {row["label"] for row in read_key(controlled)["items"].values()} == {2}
    assert len(read_key(controlled)["items"]) == 10


@pytest.mark.parametrize(
    ("only", "message"),
    [
        (
            Slice(step="source", kind="hard-negative"),
            "no decision has a label with step=source, kind=hard-negative",
        ),
        (Slice(action="flip"), "no decision has a label with action=flip"),
    ],
)
def test_an_empty_slice(controlled, only, message):
    with pytest.raises(BadInput, match=message):
        make_sheets(controlled, only=only)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"label": 4}, r"decisions\.jsonl:1: this is not what rusbeir writes \(label is 4"),
        ({"query_id": 5}, "query_id is 5, not a string"),
        ({"id": DECISIONS[1]["id"]}, "the id of a decision is repeated"),
        ({"doc_id": "gone"}, "has no text of the document 'gone', which decisions.jsonl names"),
    ],
)
def test_decisions_that_cannot_be_used(controlled, row, message):
    write_decisions(controlled, [{**DECISIONS[0], **row}, DECISIONS[1]])
    with pytest.raises(BadInput, match=message):
        make_sheets(controlled)


def test_dropped_texts_that_are_lost(controlled):
    (controlled / "qa" / "removed.jsonl").unlink()
    with pytest.raises(BadInput, match="has no text of the query 'q0'"):
        make_sheets(controlled, only=Slice(action="drop-query"), n=60)


@pytest.mark.parametrize("positive", [1, 3])
def test_what_is_positive_is_a_rule_of_the_control(controlled, tmp_path, positive):
    card = {"name": "made@checked", "language": "en", "provenance": {"rules": {"positive": positive}}}
    (controlled / "card.json").write_text(json.dumps(card))
    (path, *_) = make_sheets(controlled, n=60, duplicates=0, raters=1)
    anna = fill(path, tmp_path / "anna.csv", lambda item: 2)
    labels = {row["judge"] for row in agree([anna], port=controlled)["contradicted"]}
    assert labels == ({0} if positive == 1 else {3})


def test_agreement_of_labels(controlled, tmp_path):
    """Anna agrees with the model but finds every second hard negative irrelevant; Boris is one label stricter."""
    paths = make_sheets(controlled, n=60, duplicates=6)
    key = read_key(controlled)
    items = key["items"]
    hard = sorted(item for item, about in items.items() if about["kind"] == "hard-negative")

    def anna(item: str) -> int:
        item = key["duplicates"].get(item, item)
        return 0 if item in hard[::2] else items[item]["label"]

    def boris(item: str) -> int:
        return max(anna(item) - 1, 0)

    sheets = [fill(paths[0], tmp_path / "anna.csv", anna), fill(paths[3], tmp_path / "boris.csv", boris)]
    report = agree(sheets, port=controlled)
    assert report["raters"] == {"anna": 60, "boris": 60, "judge": 60}
    pairs = {tuple(row["raters"]): row for row in report["dimensions"]["label"]["pairs"]}
    for raters, scores in [(("anna", "judge"), anna), (("boris", "judge"), boris)]:
        mine, model = [scores(item) for item in items], [about["label"] for about in items.values()]
        figures = pairs[raters]["figures"]
        assert figures["kappa"].value == pytest.approx(cohen_kappa_score(mine, model))
        assert figures["quadratic_kappa"].value == pytest.approx(cohen_kappa_score(mine, model, weights="quadratic"))
        binary = [[label >= 2 for label in labels] for labels in (mine, model)]
        assert figures["kappa >= 2"].value == pytest.approx(cohen_kappa_score(*binary))
        assert figures["strictness"].value == pytest.approx(np.mean(mine) - np.mean(model))
        assert np.sum(pairs[raters]["confusion"]) == 60
    assert report["dimensions"]["label"]["self"]["anna"]["n"] == 6
    assert report["dimensions"]["label"]["self"]["anna"]["figures"]["strictness"].value == 0
    assert {"drop-document"} == {row["action"] for row in report["contradicted"] if row["judge"] == 3}
    assert {row["decision"] for row in report["contradicted"]} == {items[item]["id"] for item in hard[::2]}
    assert report["contradicted"][0]["people"] == {"anna": 0, "boris": 0}


def test_contradictions_that_changed_something_come_first(controlled, tmp_path):
    paths = make_sheets(controlled, n=60, duplicates=0, raters=1)
    items = read_key(controlled)["items"]
    anna = fill(paths[0], tmp_path / "anna.csv", lambda item: 3 - items[item]["label"])
    rows = agree([anna], port=controlled)["contradicted"]
    assert len(rows) == 60
    unchanged = [row["action"] == "keep" for row in rows]
    assert unchanged == sorted(unchanged)


def test_shares_of_all_labels_from_a_sample(controlled, tmp_path):
    """People find half of the ten hard negatives irrelevant, and agree with the model otherwise."""
    paths = make_sheets(controlled, n=30, duplicates=0, raters=1)
    items = read_key(controlled)["items"]
    hard = sorted(item for item, about in items.items() if about["kind"] == "hard-negative")
    assert len(hard) == 5
    anna = fill(paths[0], tmp_path / "anna.csv", lambda item: 0 if item in hard[:2] else items[item]["label"])
    shares = agree([anna], port=controlled)["shares"]
    assert list(shares) == [">= 1", ">= 2", ">= 3"]
    share = shares[">= 2"]
    assert share["judge"] == pytest.approx((15 + 10 + 10) / 60)
    assert share["mean"] == pytest.approx((15 + 10 + 10 * 3 / 5) / 60)
    assert share["interval"][0] < share["mean"] < share["interval"][1]
    assert (share["n_labelled"], share["n_pairs"]) == (30, 60)
    assert 0 < share["labels_to_halve"] <= 30
    filled = fill(paths[0], tmp_path / "one.csv", lambda item: "" if item != hard[0] else 1)
    assert agree([filled], port=controlled)["shares"] == {}, "one label has no spread"


def test_labels_without_their_key(controlled, tmp_path):
    """People are still compared with each other; nothing is known of the model."""
    paths = make_sheets(controlled, n=12, duplicates=1)
    sheets = [fill(paths[3 * n], tmp_path / f"{n}.csv", lambda item: 1 + int(item, 16) % 2) for n in range(2)]
    report = agree(sheets)
    assert report["raters"] == {"0": 13, "1": 13}
    assert "shares" not in report
    assert report["dimensions"]["label"]["pairs"][0]["figures"]["kappa"].value == 1


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda key: {**key, "strata": [{**row, "n": 10**12} for row in key["strata"]]}, "impossible sizes"),
        (lambda key: {**key, "strata": key["strata"][:1]}, "lack pairs of the sample"),
        (lambda key: {**key, "strata": [{}]}, r"key\.json: this is not what rusbeir writes"),
        (lambda key: {**key, "items": {item: {"label": 3} for item in key["items"]}}, "is missing"),
    ],
)
def test_a_damaged_key(controlled, tmp_path, spoil, message):
    paths = make_sheets(controlled, n=30, raters=1)
    anna = fill(paths[0], tmp_path / "anna.csv", lambda item: 1)
    path = controlled / "qa" / "sheets" / "key.json"
    path.write_text(json.dumps(spoil(read_key(controlled))))
    with pytest.raises(BadInput, match=message):
        agree([anna], port=controlled)


def test_labels_of_other_texts_and_of_another_model_do_not_count(controlled, tmp_path, caplog):
    """60 pairs have a label of the model; people read 20, one of which is about a document that is written anew."""
    (path, *_) = make_sheets(controlled, n=20, raters=1, duplicates=0)
    items = read_key(controlled)["items"]
    fill(path, path, lambda item: items[item]["label"])
    card = load(controlled).card
    current = collect_evidence(card, controlled)
    assert current.n_read == 20
    assert "1 rater on 20 texts. Of all pairs that the model labelled" in current.people
    assert "label >= 3 in 41.7% (" in current.people, "25 of 60, as the model has it"
    corpus = controlled / "corpus.jsonl"
    changed = next(row["doc_id"] for row in items.values() if row["action"] != "drop-document")
    corpus.write_text(corpus.read_text().replace(f"={changed} is", f"={changed} was"))
    assert collect_evidence(card, controlled).n_read == 19
    assert agree([path], port=controlled)["changed"] == {"people": 1, "judge": 0}
    write_decisions(controlled, [{**row, "label": 1} if row["label"] == 0 else row for row in DECISIONS])
    caplog.clear()
    assert (collect_evidence(card, controlled).n_read, collect_evidence(card, controlled).people) == (0, "")
    assert "no text that people scored is the same" in caplog.text


def test_labels_outside_the_scale(controlled, tmp_path):
    paths = make_sheets(controlled, n=5, raters=1)
    with pytest.raises(BadInput, match=r"anna\.csv:2: label is '4'. It must be an integer from 0 to 3"):
        read_sheet(fill(paths[0], tmp_path / "anna.csv", lambda item: 4), FORMS)


def test_a_label_of_zero_in_a_browser(controlled, browser, tmp_path):
    path = next(path for path in make_sheets(controlled, n=2, raters=1, duplicates=0) if path.suffix == ".html")
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    assert page.title() == "Documents to label: rater-1"
    assert page.inner_text("#query").startswith("what is number")
    for label in (0, 3):
        page.check(f"input[name=label][value='{label}']")
        page.click("#open")
    assert "2 scored" in page.inner_text("#state")
    with page.expect_download() as download:
        page.click("#export")
    download.value.save_as(tmp_path / "anna.csv")
    page.close()
    assert problems == []
    assert [row["label"] for row in read_sheet(tmp_path / "anna.csv", FORMS).scores.values()] == [0, 3]


def test_a_contradicted_decision_is_undone_by_its_id(tmp_path, serve, own_cache):
    """The model finds that a hard negative answers its query; a person does not, and the document comes back."""
    made, out = write_made_set(tmp_path / "made"), tmp_path / "out"
    serve(LabellingModel(small_truth))
    rules = Rules(rankers=("bm25", "bm25(profile=raw)", "bm25(k1=0.9)"))
    control_quality(made, out=out, llm="labeller", rules=rules)
    (path, *_) = make_sheets(out, raters=1, duplicates=0)
    items = read_key(out)["items"]
    wrong = "q1-neg2"
    anna = fill(path, tmp_path / "anna.csv", lambda item: 1 if items[item]["doc_id"] == wrong else items[item]["label"])
    (row,) = agree([anna], port=out)["contradicted"]
    assert (row["action"], row["doc_id"]) == ("drop-document", wrong)
    assert wrong not in {doc.doc_id for doc in load(out).corpus}
    control_quality(made, out=out, llm="labeller", rules=rules, undo=[row["decision"]])
    assert load(out).corpus[wrong].text.startswith("In a kettle")
