"""`rusbeir synth qc`: what it prints, and one line for everything that cannot be."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.support.command_line import one_line
from tests.support.labelling_model import LabellingModel, small_truth, write_made_set

RANKERS = ("--ranker", "bm25", "--ranker", "bm25(profile=raw)", "--ranker", "bm25(profile=unicode)")
PRICES = ("--option", "input-price=1", "--option", "output-price=1")
ORDER = ("--llm", "qwen3-30b", "--out", "out", *RANKERS)


@pytest.fixture
def made(tmp_path, own_cache):
    return write_made_set(tmp_path / "made")


def cells(table):
    """The words of each row."""
    rows = [line.split() for line in table.splitlines() if line.strip()]
    return rows[1 + next(place for place, row in enumerate(rows) if row[0].startswith("─")) :]


def test_the_verb(made, serve, rusbeir):
    serve(LabellingModel(small_truth))
    dry = rusbeir("synth", "qc", made, *RANKERS, "--dry-run", "--option", "input-price=1000")
    assert dry.code == 0
    assert [row[:2] for row in cells(dry.out)] == [["source", "4"], ["candidate", "62"]]
    found = json.loads(rusbeir("synth", "qc", made, *RANKERS, "--dry-run", "--json").out)
    assert found["stages"]["source"]["labels"] == 4

    done = rusbeir("synth", "qc", made, *ORDER)
    assert done.code == 0
    assert cells(done.out) == [
        ["source", "drop-query", "1", "0"],
        ["source", "keep", "3", "0"],
        ["candidate", "add-judgement", "1", "0"],
        ["candidate", "drop-document", "1", "0"],
        ["candidate", "keep", "1", "0"],
    ]
    for words in (
        "source: 4 labels, 4 asked in this run (40 and 20 tokens, 0.0000 in money); without a valid label",
        "One family, qwen, so not independent: generator qwen3-30b; labeller qwen3-30b.",
        "made@checked: 8 documents before and 7 after, 4 queries before and 3 after",
    ):
        assert words in done.err

    shown = rusbeir("synth", "qc", "out", "--show", "q3")
    assert cells(shown.out)[0][1:6] == ["source", "ice", "positive", "0", "drop-query"]
    (row,) = json.loads(rusbeir("synth", "qc", "out", "--show", "q3", "--json").out)["decisions"]
    again = rusbeir("synth", "qc", made, *ORDER, "--undo", row["id"], "--json")
    report = json.loads(again.out)
    assert (report["undone"], report["queries"]["after"]) == ([row["id"]], 4)
    assert report["stages"]["source"]["asked"] == 0
    assert "drop-query (undone)" in rusbeir("synth", "qc", "out", "--show", "q3").out


BAD = [
    # arguments after the dataset, or a change of the set; what the line says; why
    (["--llm", "m", "--out", "out", "--ranker", "bm25"], ["Rankers given: 1.", "--ranker bm25"], "one ranker"),
    (["--llm", "m", "--out", "out"], ["Rankers given: 0.", "at least 2"], "no ranker"),
    ([*ORDER, "--ranker", "bm25"], ["--ranker bm25 is given twice"], "a ranker twice"),
    ([*ORDER, "--ranker", "bm52"], ["No system 'bm52'. Did you mean 'bm25'?"], "an unknown ranker"),
    ([*ORDER, "--retriever", "bm52"], ["No system 'bm52'"], "an unknown retriever"),
    ([*ORDER, "--retriever", "rerank(x)"], ["sorts the hits of a system"], "a retriever that only reranks"),
    ([*ORDER, "--span-ranker", "bm25"], ["bm25 searches the corpus itself"], "a span ranker that searches"),
    ([*ORDER, "--positive", "4"], ["--positive 4", "1, 2 or 3"], "a least label above the scale"),
    ([*ORDER, "--positive", "0"], ["--positive 0", "1, 2 or 3"], "a least label that all have"),
    ([*ORDER, "--grade", "good"], ["--grade good", "whole number"], "a grade that is none"),
    ([*ORDER, "--grade", "0"], ["--grade 0", "at least 1"], "a grade that is not relevant"),
    ([*RANKERS], ["--llm", "--out"], "neither a model nor a folder"),
    (["--llm", "m", "--out", "made", *RANKERS], ["made is the dataset itself"], "the dataset's own folder"),
    (["--llm", "m", "--out", "full", *RANKERS], ["full contains files"], "a folder of something else"),
    ([*ORDER, "--budget-chars", "100"], ["The budget of 100 characters is smaller than one request"], "a small budget"),
    ([*ORDER, *PRICES, "--budget-cost", "0.0000001"], ["smaller than one request"], "little money"),
    ([*ORDER, "--option", "speed=1"], ["does not take the option 'speed'"], "an unknown option"),
    ([*ORDER, "--undo", "abc"], ["out/qa/decisions.jsonl does not exist"], "nothing to undo yet"),
    (["--show", "q1"], ["decisions.jsonl does not exist"], "nothing to show yet"),
    ([*ORDER, "--lang", "ru"], ["en", "ru"], "another language than the card's"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "says", "why"), BAD, ids=[row[2] for row in BAD])
def test_bad_input(arguments, says, why, made, tmp_path, serve, rusbeir):
    serve(LabellingModel(small_truth))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("Mine.")
    done = rusbeir("synth", "qc", "made", *arguments)
    assert done.code in (1, 2)
    assert one_line(done.err, says)
    assert not (tmp_path / "out" / "corpus.jsonl").exists()


DAMAGE = [
    # a file of the set, what it holds instead, what the line says, why
    ("qrels", None, ["has no judgements", "judgements"], "no judgements"),
    ("qa/generated.jsonl", "{", ["generated.jsonl:1", "not JSON"], "a damaged record of queries"),
    ("qa/generated.jsonl", '{"query_id": "q1"}\n', ["generated.jsonl:1", "doc_id is missing"], "a record without keys"),
    ("card.json", None, ["--lang"], "no language"),
]


@pytest.mark.parametrize(("name", "content", "says", "why"), DAMAGE, ids=[row[3] for row in DAMAGE])
def test_damaged_sets(name, content, says, why, made, serve, rusbeir):
    serve(LabellingModel(small_truth))
    path = made / name
    if content is not None:
        path.write_text(content)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    done = rusbeir("synth", "qc", "made", *ORDER)
    assert done.code in (1, 2)
    assert one_line(done.err, says)


def test_later_mistakes(made, serve, rusbeir, tmp_path):
    model = serve(LabellingModel(small_truth))
    assert rusbeir("synth", "qc", made, *ORDER).code == 0
    rows = [json.loads(line) for line in (tmp_path / "out" / "qa" / "decisions.jsonl").read_text().splitlines()]
    kept = next(row["id"] for row in rows if row["action"] == "keep")
    mistakes = [
        (["made", *ORDER, "--undo", "abc"], ["No decision 'abc'"]),
        (["made", *ORDER, "--undo", kept], ["changed nothing"]),
        (["out", "--show", "q9"], ["--show q9", "no decision"]),
        (["mini/en", *ORDER], ["was created with different settings"]),
    ]
    for arguments, says in mistakes:
        done = rusbeir("synth", "qc", *arguments)
        assert (done.code in (1, 2), one_line(done.err, says)) == (True, True)
    model.truth = lambda query, document: 0
    done = rusbeir("synth", "qc", "made", *ORDER[2:], "--llm", "strict")
    assert (done.code, one_line(done.err, ["No query of made is left", "out/qa/decisions.jsonl"])) == (2, True)
