"""The way of a porter with a folder of their own, in an empty folder, as docs/port.md and docs/audit.md say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rusbeir.translation.checks.checks import FAILURES
from tests.support.small_port import records

PACKAGE = Path(__file__).parent.parent.parent / "rusbeir"
MEMORY = PACKAGE / "datasets" / "mini" / "memory.en-ru.tsv"
PORT = ["port", "animals", "--lang", "en", "--to", "ru", "--translator", "memory", "--memory", MEMORY]


@pytest.fixture
def animals(tmp_path: Path) -> Path:
    """The English animals without a card: half of the queries in test, half in train, the last two in neither."""
    mini = PACKAGE / "datasets" / "mini" / "en"
    folder = tmp_path / "animals"
    (folder / "qrels").mkdir(parents=True)
    for name in ("corpus.jsonl", "queries.jsonl"):
        (folder / name).write_bytes((mini / name).read_bytes())
    header, *lines = (mini / "qrels" / "test.tsv").read_text().splitlines()
    ids = [row["_id"] for row in records(folder / "queries.jsonl")]
    for split, judged in (("test", set(ids[:-2:2])), ("train", set(ids[1:-2:2]))):
        left = [header, *(line for line in lines if line.split("\t")[0] in judged)]
        (folder / "qrels" / f"{split}.tsv").write_text("\n".join(left) + "\n")
    pairs = [line.split("\t") for line in MEMORY.read_text(encoding="utf-8").splitlines()]
    (tmp_path / "back.tsv").write_text("".join(f"{other}\t{one}\n" for one, other in pairs), encoding="utf-8")
    return folder


def test_from_a_folder_of_ones_own_to_a_cleaned_port(rusbeir, animals):
    def run(*arguments):
        outcome = rusbeir(*arguments)
        assert outcome.code == 0, outcome.err
        return outcome

    (report,) = json.loads(run(*PORT, "--out", "animals-ru", "--json").out)["ports"]
    n_queries = len(records(animals / "queries.jsonl"))
    assert (report["splits"], report["n_queries"], report["missing"]) == (["test", "train"], n_queries - 2, 0)
    checked = json.loads(
        run("audit", "check", "animals-ru", "--back-translator", "memory", "--memory", "back.tsv", "--json").out
    )
    assert (checked["splits"], checked["n_queries"]) == (["test", "train"], n_queries - 2)
    assert checked["round_trip"]["n_queries"] == len(range(0, n_queries - 2, 2))
    run("audit", "sheet", "animals-ru", "-n", "20", "--raters", "2")
    for number in (1, 2):
        sheet = Path(f"animals-ru/qa/sheets/rater-{number}.csv")
        Path(f"person-{number}.csv").write_text(
            sheet.read_text(encoding="utf-8-sig").replace(",,,,,", f",4,{2 + number},4,5,")
        )
    agreed = run("audit", "agree", "person-1.csv", "person-2.csv", "--port", "animals-ru")
    assert "person-1 and person-2" in agreed.out
    # A document and a query of the split train that are no translations.
    ported = Path("animals-ru")
    victim = next(line.split("\t") for line in (ported / "qrels" / "train.tsv").read_text().splitlines()[1:])
    for name, record_id in (("corpus", victim[1]), ("queries", records(ported / "queries.jsonl")[1]["_id"])):
        rows = [
            {**row, "text": "Nothing but a long English sentence that nobody has translated."}
            if row["_id"] == record_id
            else row
            for row in records(ported / f"{name}.jsonl")
        ]
        (ported / f"{name}.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    run("audit", "check", "animals-ru")
    run("audit", "clean", "animals-ru", "--apply")
    cleaned = Path("animals-ru-clean")
    assert victim[1] not in {row["_id"] for row in records(cleaned / "corpus.jsonl")}
    judged = {split: (cleaned / "qrels" / f"{split}.tsv").read_text() for split in ("test", "train")}
    assert not any(f"\t{victim[1]}\t" in text for text in judged.values())
    assert records(ported / "queries.jsonl")[1]["_id"] not in {row["_id"] for row in records(cleaned / "queries.jsonl")}
    again = json.loads(run("audit", "check", "animals-ru-clean", "--json").out)
    assert not any(again["flags"][flag]["segments"] for flag in FAILURES)
    for arguments, split in (([], "test"), (["--split", "train"], "train")):
        (row,) = json.loads(run("bench", "animals-ru-clean", *arguments, "--json").out)["rows"]
        assert row["split"] == split
        assert row["measures"]["nDCG@10"] > 0.5


def test_a_split_and_further_queries_are_added(rusbeir, animals):
    assert rusbeir(*PORT, "--out", "animals-ru", "--split", "test").code == 0
    assert [path.name for path in Path("animals-ru/qrels").iterdir()] == ["test.tsv"]
    assert rusbeir(*PORT, "--out", "animals-ru", "--split", "train").code == 0
    assert sorted(path.name for path in Path("animals-ru/qrels").iterdir()) == ["test.tsv", "train.tsv"]
    outcome = rusbeir(*PORT, "--out", "animals-ru", "--all-queries", "--json")
    (report,) = json.loads(outcome.out)["ports"]
    assert report["n_queries"] == len(records(animals / "queries.jsonl"))


def test_one_split_of_a_port_is_audited_by_name(rusbeir, animals):
    assert rusbeir(*PORT, "--out", "animals-ru").code == 0
    check = ["audit", "check", "animals-ru", "--back-translator", "memory", "--memory", "back.tsv", "--json"]
    n_train = json.loads(rusbeir(*check, "--split", "train").out)["round_trip"]["n_queries"]
    assert n_train == len(range(1, len(records(animals / "queries.jsonl")) - 2, 2))
    outcome = rusbeir(*check, "--split", "tran")
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert "No split 'tran'. Did you mean 'train'" in outcome.err
