"""`rusbeir audit`: what it prints, its exit codes, and one line for everything that can be wrong."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import one_line
from tests.support.small_port import DOCS, records, translated, write_source


@pytest.fixture
def ported(rusbeir, tmp_path) -> Path:
    """A port of the small source, and a translation memory for the way back."""
    source = write_source(tmp_path / "small")
    texts = {text for doc in DOCS for text in (doc["title"], doc["text"]) if text}
    texts |= {query["text"] for query in records(source / "queries.jsonl")}
    pairs = {text: translated(text) for text in sorted(texts)}
    for name, sides in (("memory", pairs.items()), ("back", [(russian, text) for text, russian in pairs.items()])):
        lines = [json.dumps({"source": source, "target": target}) + "\n" for source, target in sides]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    memory = ("--translator", "memory", "--memory", "memory.jsonl")
    assert rusbeir("port", source, "--to", "ru", *memory, "--out", "out").code == 0
    return source


CHECK = ["audit", "check", "out", "--source", "small"]
THERE_AND_BACK = [*CHECK, "--back-translator", "memory", "--memory", "back.jsonl"]


def test_check(rusbeir, ported):
    outcome = rusbeir(*THERE_AND_BACK, "--gate", "chrf>=55,flagged<=2%")
    assert outcome.code == 0, outcome.err
    assert "documents" in outcome.out
    assert "bm25 on" in outcome.out
    assert "qa/report.html" in outcome.err
    assert outcome.err.splitlines()[-1] == "The gate holds: chrf>=55,flagged<=2%"
    report = json.loads(rusbeir(*THERE_AND_BACK, "--json").out)
    assert report["levels"]["queries"]["chrF"] == 100
    assert report == json.loads(Path("out/qa/report.json").read_text())


def test_a_gate_that_does_not_hold(rusbeir, ported):
    outcome = rusbeir(*CHECK, "--gate", "flagged<0")
    assert outcome.code == 1
    assert outcome.err.splitlines()[-1] == "rusbeir: gate: flagged<0 does not hold: flagged is 0."
    assert Path("out/qa/report.html").exists()


def test_score(rusbeir, tmp_path):
    (tmp_path / "hyp").write_text("Кошка сидела на ковре.\nОна спала.\n")
    (tmp_path / "ref").write_text("Кошка сидела на коврике.\nОна спала.\n")
    (tmp_path / "src").write_text("The cat sat on the mat.\nIt slept at 17:45.\n")
    files = ["--hyp", "hyp", "--ref", "ref", "--source", "src", "--lang", "ru"]
    outcome = rusbeir("audit", "score", *files)
    assert outcome.code == 0
    assert "BLEU" in outcome.out
    (row,) = json.loads(rusbeir("audit", "score", *files, "--json").out)["rows"]
    assert row["flags"]["lost-numbers"]["segments"] == 1
    assert rusbeir("audit", "score", *files, "--gate", "chrf>=99").code == 1


def test_clean(rusbeir, ported):
    text = Path("out/corpus.jsonl").read_text()
    Path("out/corpus.jsonl").write_text(text.replace("Дождь падает https://a.org/b. Река ночь.", ""))
    rusbeir(*CHECK)
    outcome = rusbeir("audit", "clean", "out", "--source", "small")
    assert outcome.code == 0
    assert "1 documents and 0 queries are removed" in outcome.err
    assert "Nothing was changed" in outcome.err
    assert not Path("out-clean").exists()
    assert rusbeir("audit", "clean", "out", "--source", "small", "--apply").code == 0
    assert len(records(Path("out-clean/corpus.jsonl"))) == 3
    again = rusbeir("audit", "clean", "out", "--source", "small", "--apply")
    assert again.code == 2
    assert one_line(again.err, ["out-clean already exists", "--out"])


def test_sheet_and_agree(rusbeir, ported):
    rusbeir(*CHECK)
    outcome = rusbeir("audit", "sheet", "out", "--source", "small", "-n", "4", "--raters", "2")
    assert outcome.code == 0
    assert len(outcome.out.splitlines()) == 6
    for rater in (1, 2):
        path = Path(f"out/qa/sheets/rater-{rater}.csv")
        text = path.read_text(encoding="utf-8-sig").replace(",,,,,", f",4,5,4,{rater},")
        path.write_text(text, encoding="utf-8")
    sheets = ["out/qa/sheets/rater-1.csv", "out/qa/sheets/rater-2.csv"]
    outcome = rusbeir("audit", "agree", *sheets, "--port", "out")
    assert outcome.code == 0
    assert "rater-1 and rater-2" in outcome.out
    means = {line.split()[0]: line.split() for line in outcome.out.splitlines() if " of 6 " in line}
    assert means["accuracy"][1:5] == ["4", "of", "6", "4.00"]
    assert means["style_consistency"][4] == "1.50"
    assert "The card of" not in outcome.err
    page = Path("out/qa/report.html").read_text(encoding="utf-8")
    assert "What people and judges said" in page
    assert 'aria-label="4.00, from ' in page, "accuracy, with its interval on the scale from 1 to 5"
    assert re.findall(r">(\d)</text>", page.partition('class="axis"')[2].partition("</svg>")[0]) == [
        "1",
        "2",
        "3",
        "4",
        "5",
    ]
    linked = set(re.findall(r'href="sheets/rater-1.html#(\w+)"', page))
    assert linked <= json.loads(Path("out/qa/sheets/key.json").read_text(encoding="utf-8"))["items"].keys()
    Path("elsewhere.csv").write_bytes(Path(sheets[0]).read_bytes().replace(b",4,5,4,1,", b",4,,4,1,", 1))
    moved = rusbeir("audit", "agree", "elsewhere.csv", "--port", "out")
    assert "elsewhere left 1 answers open; texts with an open answer: 1." in moved.err
    assert "counts the sheets in out/qa/sheets: put these there." in moved.err
    report = json.loads(rusbeir("audit", "agree", *sheets, "--json").out)
    (pair,) = report["dimensions"]["style_consistency"]["pairs"]
    assert (pair["within_one"], pair["mean_absolute_error"], pair["figures"]["quadratic_kappa"]["value"]) == (1, 1, 0)
    assert report["dimensions"]["fluency"]["alpha"]["value"] is None


def test_labels_of_a_quality_control(rusbeir, tmp_path):
    """A model that found all relevant and a person who did not, for one of the two documents."""
    out = tmp_path / "checked"
    (out / "qrels").mkdir(parents=True)
    (out / "qa").mkdir()
    (out / "card.json").write_text('{"language": "en"}')
    (out / "corpus.jsonl").write_text('{"_id": "d1", "text": "Cats."}\n{"_id": "d2", "text": "Dogs."}\n')
    (out / "queries.jsonl").write_text('{"_id": "q1", "text": "cats"}\n')
    (out / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t1\n")
    row = {"step": "candidate", "query_id": "q1", "kind": "unjudged", "label": 3, "action": "add-judgement"}
    row |= {"reason": "", "ranks": None, "threshold": None, "scores": None, "undone": False}
    rows = [{"id": f"00000000000{n}", "doc_id": f"d{n}", **row} for n in (1, 2)]
    (out / "qa" / "decisions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    outcome = rusbeir("audit", "sheet", out, "--raters", "1", "--step", "candidate")
    assert outcome.code == 0, outcome.err
    sheet = out / "qa" / "sheets" / "rater-1.csv"
    text = sheet.read_text(encoding="utf-8-sig").replace("Cats.,,", "Cats.,3,").replace("Dogs.,,", "Dogs.,0,")
    sheet.write_text(text, encoding="utf-8")
    outcome = rusbeir("audit", "agree", sheet, "--port", out)
    assert outcome.code == 0, outcome.err
    assert "rater-1 \\ judge" in outcome.out
    assert "000000000002" in outcome.out, "it can be undone"
    assert "000000000001" not in outcome.out
    report = json.loads(rusbeir("audit", "agree", sheet, "--port", out, "--json").out)
    assert report["shares"][">= 2"]["mean"] == 0.5
    wrong = rusbeir("audit", "sheet", out, "--step", "spam")
    assert wrong.code == 2
    assert one_line(wrong.err, ["decisions.jsonl", "no decision has a label", "--step spam"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "nowhere"], ["nowhere is not a folder"]),
        (["check", "small"], ["small is not a port", "--source"]),
        ([*CHECK[1:], "--gate", "chrf=>5"], ["'chrf=>5'", "chrf>=55,flagged<=2%"]),
        ([*CHECK[1:], "--gate", "chrf>=5"], ["No figure to gate by 'chrf'"]),
        ([*CHECK[1:], "--gate", "comet>=5"], ["No figure to gate by 'comet'"]),
        ([*CHECK[1:], "--back-translator", "gogle"], ["No translator 'gogle'", "google"]),
        (["clean", "out", "--source", "small"], ["has not been checked yet", "rusbeir audit check out"]),
        (["sheet", "out", "--source", "small"], ["has not been checked yet"]),
        (["judge", "out", "--source", "small", "--llm", "m"], ["has not been checked yet"]),
        (["agree", "memory.jsonl"], ["memory.jsonl", ".csv or .xlsx"]),
        (["agree", "nowhere.csv"], ["nowhere.csv"]),
        (["agree", "nowhere.xlsx"], ["nowhere.xlsx"]),
        (["score", "--hyp", "memory.jsonl", "--lang", "ru"], ["--ref", "--source"]),
    ],
)
def test_bad_calls(rusbeir, ported, arguments, words):
    outcome = rusbeir("audit", *arguments)
    assert outcome.code == 2
    assert one_line(outcome.err, words)


def test_a_card_that_names_no_source_any_more(rusbeir, ported):
    shutil.rmtree("small")
    outcome = rusbeir("audit", "check", "out")
    assert outcome.code == 2
    assert one_line(outcome.err, ["port of 'small'", "--source"])
