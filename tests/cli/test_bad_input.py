"""Bad input gets one readable line that says what and what to do, exit code 1 or 2, and no traceback."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.support.command_line import one_line

LONG = "A" * 300
LONG_NAMES = [
    ["eval", LONG, LONG],
    ["compare", LONG],
    ["report", LONG, "--out", "site"],
    ["report", "{beir}", "--out", LONG],
    ["validity", LONG, "--pair", "a=b"],
]
ARGUMENTS = [
    # arguments, code, parts of the line
    (["bench", "xquad/kz"], 2, ["No dataset 'xquad/kz'", "Did you mean"]),
    (["bench", "{beir}", "--lang", "kz", "--system", "bm25"], 2, ["language"]),
    (["analyze", "--lang", "kz", "x"], 2, ["No language 'kz'", "ru"]),
    (["analyze", "--lang", "ru", "--profile", "snowbal", "x"], 2, ["No profile 'snowbal'", "'snowball'"]),
    (["bench", "{beir}", "--system", "bm25(profile=snowbal)"], 2, ["'snowbal'", "'snowball'"]),
    (["bench", "{beir}", "-m", "ndcg@10"], 2, ["No measure 'ndcg@10'", "'nDCG@10'"]),
    (["bench", "{beir}", "--engine", "tantivi"], 2, ["No engine 'tantivi'", "'tantivy'"]),
    (["bench", "{beir}", "--engine", "tantivy", "--system", "bm25(k1=0.9)"], 2, ["tantivy", "k1", "bm25s"]),
    (["bench", "{beir}", "--system", "bm52"], 2, ["'bm52'", "'bm25'"]),
    # Said before the dataset is looked for.
    (["bench", "no/such", "--system", "rrf(bm25,dnse(x))"], 2, ["'dnse'", "'dense'"]),
    (["bench", "{beir}", "--system", "bm25(k1="], 2, ["column 9"]),
    (["bench", "{beir}", "--system", "bm25(k3=1)"], 2, ["k3"]),
    (["bench", "{beir}", "--system", "bm25(k1=-1)"], 2, ["k1"]),
    (["bench", "{beir}", "--system", "bm25(b=2)"], 2, ["b"]),
    (["bench", "{beir}", "-k", "0"], 2, ["-k", "greater than or equal to 1"]),
    (["bench", "{beir}", "-k", "9" * 30], 2, ["-k"]),
    (["search", "{beir}", "дом", "-k", "0"], 2, ["greater than or equal to 1"]),
    (["bench"], 2, ["Missing argument 'DATASET"]),
    (["audit", "sample", "mini-ru"], 2, ["No such command 'sample'. Did you mean 'rusbeir audit sheet'?"]),
    (["translate", "mini/en"], 2, ["No such command 'translate'. Did you mean 'rusbeir port'?"]),
    (["bensh"], 2, ["No such command 'bensh'", "Did you mean 'bench'"]),
    (["bench", "{beir}", "--sistem", "bm25"], 2, ["--sistem", "--system"]),
    (["bench", "no/such/folder"], 2, ["no/such/folder"]),
    (["cache", "clear", "lemas"], 2, ["No part of the cache 'lemas'"]),
    (["eval", "none.qrels", "none.run"], 2, ["none.qrels"]),
    (["datasets", "info", "xquad/rru"], 2, ["Did you mean"]),
    # Names that the system refuses: of more than 255 bytes.
    *((call, 2, ["File name too long"]) for call in LONG_NAMES),
]


@pytest.mark.parametrize(("arguments", "code", "parts"), ARGUMENTS, ids=lambda value: str(value)[:60])
def test_arguments(rusbeir, beir, arguments, code, parts):
    outcome = rusbeir(*(argument.replace("{beir}", str(beir)) for argument in arguments))
    assert outcome.code == code
    assert one_line(outcome.err, parts)


CORPUS = '{"_id": "d1", "title": "", "text": "кот"}\n'
SPOILED = [
    # file, content, parts of the line, why
    ("corpus.jsonl", CORPUS + "{'_id': 'd2'}\n", ["corpus.jsonl:2", "JSON"], "not JSON"),
    ("corpus.jsonl", CORPUS + '{"text": "x"}\n', ["corpus.jsonl:2", "_id"], "no _id"),
    ("corpus.jsonl", CORPUS + CORPUS, ["corpus.jsonl:2", "d1"], "repeated _id"),
    ("corpus.jsonl", CORPUS + '{"_id": "d2", "te', ["corpus.jsonl:2"], "cut in the middle"),
    ("corpus.jsonl", "", ["corpus.jsonl"], "empty corpus"),
    ("corpus.jsonl", CORPUS.encode() + b'{"_id": "d2", "text": "\xff"}\n', ["corpus.jsonl:2"], "bad UTF-8"),
    ("queries.jsonl", '{"_id": "zz", "text": "x"}\n', ["queries.jsonl"], "none of the queries is judged"),
    ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\n", ["test.tsv:2", "columns"], "two columns"),
    ("qrels/test.tsv", "q1\t0\td1\t1\t9\n", ["test.tsv:1", "columns"], "five columns"),
    (
        "qrels/test.tsv",
        "query-id\tcorpus-id\tscore\nq1\td1\thigh\n",
        ["test.tsv:2", "high"],
        "grade no integer",
    ),
    ("qrels/test.tsv", "query-id\tcorpus-id\tscore\n", ["split 'test'"], "no judgement"),
]


@pytest.mark.parametrize(("name", "content", "parts", "why"), SPOILED, ids=[row[3] for row in SPOILED])
def test_spoiled_dataset(rusbeir, beir, name, content, parts, why):
    (beir / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    outcome = rusbeir("bench", beir)
    assert outcome.code in {1, 2}, why
    assert one_line(outcome.err, parts)
    assert not Path("results").exists()


RUNS = [
    ("q1 Q0 d1 1 nan tag\n", ["my.run:1", "nan"]),
    ("q1 Q0 d1 1 inf tag\n", ["my.run:1", "inf"]),
    ("q1 Q0 d1 1 tag\n", ["my.run:1", "columns"]),
    ("q1 Q0 d1 1 high tag\n", ["my.run:1", "high"]),
    ("q1 Q0 d1 1 2 tag\nq1 Q0 d1 2 1 tag\n", ["my.run:2", "d1"]),
    ("zz Q0 d1 1 2 tag\n", ["no query"]),
    ('{"q1": {"d1": "x"}}', ["my.run"]),
]


@pytest.mark.parametrize(("content", "parts"), RUNS)
def test_bad_run(rusbeir, beir, content, parts):
    Path("my.run").write_text(content)
    outcome = rusbeir("eval", beir / "qrels" / "test.tsv", "my.run")
    assert outcome.code == 2
    assert one_line(outcome.err, parts)


def test_path_without_card_needs_a_language(rusbeir, beir):
    (beir / "card.json").unlink()
    outcome = rusbeir("bench", beir)
    assert outcome.code == 2
    assert one_line(outcome.err, ["--lang"])
    assert rusbeir("bench", beir, "--lang", "ru").code == 0


def test_zip_that_climbs_out(rusbeir, beir, tmp_path):
    with zipfile.ZipFile("evil.zip", "w") as archive:
        archive.writestr("../evil.txt", "x")
        archive.writestr("corpus.jsonl", CORPUS)
    outcome = rusbeir("bench", "evil.zip", "--lang", "ru")
    assert outcome.code == 2
    assert one_line(outcome.err, ["../evil.txt"])
    assert not (tmp_path.parent / "evil.txt").exists()


def test_checksum_that_differs(rusbeir, tmp_path, monkeypatch, fresh_cache):
    (tmp_path / "data" / "xquad").mkdir(parents=True)
    (tmp_path / "data" / "xquad" / "xquad.ru.json").write_text("{}")
    monkeypatch.setenv("RUSBEIR_DATA", str(tmp_path / "data"))
    outcome = rusbeir("bench", "xquad/ru")
    assert outcome.code == 2
    assert one_line(outcome.err, ["xquad.ru.json", "checksum", "208d5b1a"])


def test_folder_that_cannot_be_written(rusbeir, beir, tmp_path):
    Path("file").write_text("not a folder")
    outcome = rusbeir("bench", beir, "--out", "file/results")
    assert outcome.code == 1
    assert one_line(outcome.err, ["Cannot write", "file/results"])


def test_corrupt_index(rusbeir, beir, fresh_cache):
    assert rusbeir("index", beir).code == 0
    index = next((fresh_cache / "indexes").iterdir())
    for file in index.rglob("*"):
        if file.is_file() and file.suffix in {".idx", ".store", ".term", ".fast"}:
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    outcome = rusbeir("search", beir, "кошка")
    assert outcome.code == 1
    assert one_line(outcome.err, [str(index)])
