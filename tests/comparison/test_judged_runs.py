"""Runs of other programs: compared, reported, and written as rows that join those of `bench`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import rusbeir as package
from rusbeir.comparison.judged_runs import open_judged, score_runs
from rusbeir.errors import BadInput
from tests.cli.conftest import rusbeir

__all__ = ["rusbeir"]

QRELS = {f"q{n}": {f"d{n}": 1} for n in range(30)}
GOOD = {f"q{n}": {f"d{n}": 2.0, "other": 1.0} for n in range(30)}
BAD = {f"q{n}": {"other": 2.0, f"d{n}": 1.0} for n in range(30)}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Judgements, a run in TREC's format, the same in CSV and gzipped JSON, and a worse one."""
    (tmp_path / "qrels.tsv").write_text("".join(f"{q}\t{d}\t1\n" for q, grades in QRELS.items() for d in grades))
    for name, run in (("good.run", GOOD), ("bad.run", BAD)):
        lines = [f"{q} Q0 {d} 0 {score} x\n" for q, hits in run.items() for d, score in hits.items()]
        (tmp_path / name).write_text("".join(lines))
    cells = [f"{score},{q},{d}\n" for q, hits in GOOD.items() for d, score in hits.items()]
    sheet = "score,query_id,doc_id\n" + "".join(cells)
    (tmp_path / "sheet.csv.zst").write_bytes(pyarrow.Codec("zstd").compress(sheet.encode(), asbytes=True))
    (tmp_path / "packed.json.gz").write_bytes(gzip.compress(json.dumps(BAD).encode()))
    return tmp_path


def test_files_of_every_format_are_compared(files: Path, rusbeir: Callable[..., Any]):
    paths = [str(files / name) for name in ("good.run", "sheet.csv.zst", "packed.json.gz")]
    done = rusbeir("compare", "--qrels", str(files / "qrels.tsv"), *paths, "--json")
    (dataset,) = json.loads(done.out)["datasets"]
    assert [(score["system"], score["mean"]) for score in dataset["systems"]] == [
        ("good", 1.0), ("sheet", 1.0), ("packed", pytest.approx(0.63093, abs=1e-5)),
    ]  # fmt: skip
    assert [score["best_group"] for score in dataset["systems"]] == [True, True, False]
    assert dataset["dataset"] == "qrels"


@pytest.mark.parametrize("judgements", [["qrels.tsv", "--corpus", "texts"], ["texts"]], ids=["corpus", "dataset"])
def test_texts_without_a_card_are_in_a_language_that_is_named(files: Path, rusbeir: Callable[..., Any], judgements):
    (files / "texts" / "qrels").mkdir(parents=True)
    (files / "texts" / "qrels" / "test.tsv").write_text((files / "qrels.tsv").read_text())
    for name, ids in (("corpus", [*(f"d{n}" for n in range(30)), "other"]), ("queries", QRELS)):
        lines = "".join(json.dumps({"_id": text_id, "text": f"text of {text_id}"}) + "\n" for text_id in ids)
        (files / "texts" / f"{name}.jsonl").write_text(lines)
    command = ["report", "good.run", "bad.run", "--qrels", *judgements, "--out", "site"]
    refused = rusbeir(*command)
    assert (refused.code, "Name it with --lang TAG" in refused.err) == (2, True)
    assert rusbeir(*command, "--lang", "en").code == 0
    assert any("text of q7" in path.read_text() for path in (files / "site").rglob("*.*"))
    assert rusbeir("compare", *command[1:-2], "--lang", "en").code == 0


def test_runs_in_memory_are_compared_with_files(files: Path):
    comparison = package.compare({"ours": GOOD, "theirs": files / "bad.run"}, qrels=QRELS, measure="RR@10")
    assert comparison.conclusion[0].startswith("qrels (30 queries, RR@10): ours is better than theirs")


def test_rows_of_eval_join_the_ledger(files: Path, rusbeir: Callable[..., Any], tmp_path: Path):
    out = str(tmp_path / "results")
    done = rusbeir("bench", "mini/ru", "--system", "bm25(profile=raw)", "--out", out, "-m", "nDCG@10", "--json")
    run = json.loads(done.out)["rows"][0]["run"]
    (tmp_path / "production.run.gz").write_bytes(Path(run).read_bytes())
    assert rusbeir("eval", "mini/ru", str(tmp_path / "production.run.gz"), "--out", out).code == 0
    (dataset,) = json.loads(rusbeir("compare", out, "--json").out)["datasets"]
    first, second = dataset["systems"]
    assert {first["system"], second["system"]} == {"bm25(profile=raw)", "production"}
    assert first["mean"] == second["mean"], "it is the same run"


def test_values_of_each_query_as_csv(files: Path, rusbeir: Callable[..., Any]):
    done = rusbeir("eval", str(files / "qrels.tsv"), str(files / "good.run"), "-m", "RR@10", "--csv")
    assert done.out.splitlines()[:2] == ["run,query,RR@10", f"{files / 'good.run'},q0,1.0"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.run", "other Q0 d1 0 1.0 x\n", "have no query in common. Are they of the same split?"),
        ("x.run", "q1 Q0 d1 0 1.0 x\nq1 Q0 d1 1 0.5 x\n", "x.run:2: "),
        ("x.csv", "q1,d1,1.0\nq1,d1,0.5\n", "x.csv:2: "),
        ("x.csv", "q1,d1\n", "x.csv:1: 2 columns; a run has three (query, document, score)."),
        ("x.csv", "q1,d1,much\n", "x.csv:1: the score 'much' is not a finite number."),
    ],
)
def test_a_run_that_cannot_be_scored_is_one_line(
    files: Path, rusbeir: Callable[..., Any], name: str, content: str, message: str
):
    (files / name).write_text(content)
    done = rusbeir("compare", "--qrels", str(files / "qrels.tsv"), str(files / "good.run"), str(files / name))
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert message in done.err


def test_runs_need_judgements():
    with pytest.raises(BadInput, match="Runs need the judgements"):
        package.compare({"ours": GOOD, "theirs": BAD})


def test_equal_names_get_their_folders(tmp_path: Path):
    paths = [tmp_path / folder / "bm25.run" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text("q1 Q0 d1 0 1.0 x\n")
    scored = score_runs(paths, open_judged(QRELS), ["nDCG@10"])
    assert [run.row["system"] for run in scored] == ["a/bm25", "b/bm25"]
