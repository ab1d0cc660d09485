"""Qrels and runs: what is read, what is refused and why, and what comes back after writing."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rusbeir.datasets import read_qrels, read_run, write_qrels, write_run
from rusbeir.errors import BadInput

QRELS = {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}}
RUN = {"q1": {"d1": 1.5, "d2": -0.25}, "q2": {"d1": 3.0}}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\n", "TREC"),
        ("q1\t0\td1\t2\nq1\t0\td2\t0\nq2\t0\td1\t1", "TREC with tabs, no line end"),
        ("q1  0   d1\t2\n\nq1 0 d2 0 \r\nq2 Q0 d1 1\n", "any white space, as trec_eval; blank lines"),
        ("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td1\t1\n", "BEIR"),
        ("q1\td1\t2\nq1\td2\t0\nq2\td1\t1\n", "BEIR without header"),
        ("\ufeffquery_id\tdoc_id\trelevance\r\nq1\td1\t2\r\nq1\td2\t0\r\nq2\td1\t1\r\n", "byte order mark, Windows"),
        ("q1 d1 2\nq1 d2 0\nq2 d1 1\n", "three columns by spaces"),
        ('{"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}}', "JSON"),
        ('\n {"q1":\n {"d1": 2, "d2": 0}, "q2": {"d1": 1}}', "JSON after white space"),
        ("# judged\nq1 0 d1 2\n#q9 0 d1 2\nq1 0 d2 0\n# by us\nq2 0 d1 1\n", "comments of trec_eval 10"),
        ("# a b c\nq1 d1 2\nq1 d2 0\nq2 d1 1\n", "a comment before three columns by spaces"),
        ('q1\t"d1"\t2\n"q1"\td2\t0\nq2\td1\t1\n', "cells in quotes, as BEIR's csv reader takes them"),
    ],
)
def test_qrels_are_told_apart_by_content(content: str, reason: str, tmp_path: Path):
    (tmp_path / "qrels").write_bytes(content.encode())
    assert read_qrels(tmp_path / "qrels") == QRELS
    (tmp_path / "qrels.gz").write_bytes(gzip.compress(content.encode()))
    assert read_qrels(str(tmp_path / "qrels.gz")) == QRELS


def test_ids_with_spaces_live_in_a_tsv(tmp_path: Path):
    (tmp_path / "qrels.tsv").write_text("q 1\td 1\t1\n")
    assert read_qrels(tmp_path / "qrels.tsv") == {"q 1": {"d 1": 1}}


def test_an_id_in_a_tsv_may_begin_as_a_comment_does(tmp_path: Path):
    (tmp_path / "qrels.tsv").write_text("#q1\td1\t1\n#q2\td1\t0\n")
    assert read_qrels(tmp_path / "qrels.tsv") == {"#q1": {"d1": 1}, "#q2": {"d1": 0}}


@pytest.mark.parametrize("record_id", ['"dq"', '"', '""', 'a"b', '"a"b"'])
def test_ids_with_quotes_are_what_csv_readers_see(record_id: str, tmp_path: Path):
    """BEIR reads its tsv with csv.reader."""
    qrels = {record_id: {record_id: 1}}
    write_qrels(tmp_path / "qrels.tsv", qrels)
    with (tmp_path / "qrels.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_MINIMAL))
    assert rows[1:] == [[record_id, record_id, "1"]]
    assert read_qrels(tmp_path / "qrels.tsv") == qrels


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"q1 1\n", ":1: 2 columns; qrels have four"),
        (b"q1 0 d1 1 extra\n", ":1: 5 columns; qrels have four"),
        (b"q1\td1\t1\nq1\t0\td2\t1\n", ":2: 4 columns, but the file's first line has 3"),
        (b"q1 0 d1 1\nq1 0 d2\n", ":2: 3 columns, but the file's first line has 4"),
        (b"q1 0 d1 1\nq1 0 d2 0.5\n", ":2: the grade '0.5' is not an integer"),
        (b"q1 0 d1 high\n", ":1: the grade 'high' is not an integer"),
        (b"q1\td1\tscore\n", ":1: the grade 'score' is not an integer"),
        (b"q1 0 d1 1_0\n", ":1: the grade '1_0'"),
        (b"q1 0 d1 " + b"9" * 5000, ":1: the grade '9999"),
        (b"q1 0 d1 1\nq1 0 d2 999999999\n", ":2: the grade '999999999' is not an integer from -1,000 to 1,000"),
        (b"q1 0 d1 -1001\n", ":1: the grade '-1001' is not"),
        (b'{"q1": {"d1": 1001}}', "query 'q1', document 'd1': 1001 is not a usable number"),
        ("q1 0 d1 ١\n".encode(), ":1: the grade '١'"),
        (b"q1 0 d1 1\nq2 0 d1 1\nq1 0 d1 0\n", ":3: query 'q1' and document 'd1' are paired a second time"),
        (b"q1\t\t1\n", ":1: the query id or the document id is empty"),
        (b"q1 0 d1 1\nq\xff 0 d2 1\n", ":2: the line is not UTF-8"),
        (b"q1 0 d1 1\nq2\x00 0 d2 1\n", ":2: the id 'q2\\x00' has a control character"),
        ("q1 0 d\x9b2 1\n".encode(), ":1: the id 'd\\x9b2' has a control character"),
        (b'{"q1": {"d\\u0000": 1}}', "the id 'd\\x00' has a control character"),
        (b"", "has no judgement; a line of"),
        (b"query-id\tcorpus-id\tscore\n", "has no judgement; a line of"),
        (b'{"q1": {"d1": 1.0}}', "query 'q1', document 'd1': 1.0"),
        (b'{"q1": {"d1": true}}', "query 'q1', document 'd1': True"),
        (b'{"q1": ["d1"]}', "query 'q1' must have an object"),
        (b'{"q1": {"d1": 1, "d1": 1}}', "the key 'd1' is repeated"),
        (b'{"q1": {"d1": 1}', ":1: not JSON"),
    ],
)
def test_bad_qrels_are_refused(content: bytes, message: str, tmp_path: Path):
    path = tmp_path / "qrels"
    path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        read_qrels(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("q1 Q0 d1 1 1.5 t\nq1 Q0 d2 2 -0.25 t\nq2 Q0 d1 1 3 t\n", "TREC"),
        ("q1\tQ0\td1\t9\t1.5\tt\nq2 0 d1 x 3e0 t\n\nq1 Q0 d2 0 -.25 t", "ranks are not read; queries may be split"),
        ("\ufeffq1 Q0 d1 1 1.5 t\r\nq1 Q0 d2 2 -0.25 t\r\nq2 Q0 d1 1 3 t\r\n", "byte order mark, Windows"),
        ('{"q1": {"d1": 1.5, "d2": -0.25}, "q2": {"d1": 3}}', "BEIR's JSON"),
        ("# a run\nq1 Q0 d1 1 1.5 t\n#q1 Q0 d9 1 9 t\nq1 Q0 d2 2 -0.25 t\n#\nq2 Q0 d1 1 3 t\n", "comments"),
    ],
)
def test_runs_are_told_apart_by_content(content: str, reason: str, tmp_path: Path):
    (tmp_path / "run").write_bytes(content.encode())
    assert read_run(tmp_path / "run") == RUN
    (tmp_path / "run.gz").write_bytes(gzip.compress(content.encode()))
    assert read_run(tmp_path / "run.gz") == RUN


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"q1 Q0 d1 1 1.5\n", ":1: 5 columns; a run has six"),
        (b"q1 Q0 d1 1 1.5 t\nq1 Q0 d1 1 1.5 t t\n", ":2: 7 columns; a run has six"),
        (b"q1 Q0 d1 1 1.5 t\nq1 Q0 d2 2 nan t\n", ":2: the score 'nan' is not a finite number"),
        (b"q1 Q0 d1 1 -Infinity t\n", ":1: the score '-Infinity' is not a finite number"),
        (b"q1 Q0 d1 1 1e999 t\n", ":1: the score '1e999' is not a finite number"),
        (b"q1 Q0 d1 1 high t\n", ":1: the score 'high' is not a finite number"),
        (b"q1 Q0 d1 1 1 t\nq1 Q0 d1 2 1 t\n", ":2: query 'q1' and document 'd1' are paired a second time"),
        (b"q1 Q0 d\xff 1 1 t\n", ":1: the line is not UTF-8"),
        (b"q1 Q0 d1 1 1 t\nq1 Q0 d\x00 2 1 t\n", ":2: the id 'd\\x00' has a control character"),
        ("q1\x85 Q0 d1 1 1 t\n".encode(), ":1: the id 'q1\\x85' has a control character"),
        (b'{"q1\\n": {"d1": 1}}', "the id 'q1\\n' has a control character"),
        (b'{"q1": {"d1": NaN}}', ":1: not JSON (unexpected character"),
        (b'{"q1": {"d1": 1e999}}', ":1: not JSON (number is infinity"),
        (b'{"q1": {"d1": ' + b"9" * 400 + b"}}", ":1: not JSON (number is infinity"),
        (b'{"q1": {"d1": "1"}}', "query 'q1', document 'd1': '1'"),
        (b'{"q1": {}, "q1": {}}', "the key 'q1' is repeated"),
        (b'{"q1":\n{"d1": 1', ":2: not JSON"),
        (b'{"q":' * 5000, ":1: not JSON"),
    ],
)
def test_bad_runs_are_refused(content: bytes, message: str, tmp_path: Path):
    path = tmp_path / "run"
    path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        read_run(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_run_without_a_hit_is_empty(tmp_path: Path):
    (tmp_path / "run").write_bytes(b"")
    assert read_run(tmp_path / "run") == {}


def test_a_broken_gz_and_a_missing_file_are_told(tmp_path: Path):
    whole = gzip.compress(b"q1 Q0 d1 1 1.5 t\n" * 100)
    for content in (b"no gzip", whole[:-10], whole[:30]):
        (tmp_path / "run.gz").write_bytes(content)
        with pytest.raises(BadInput, match=r"run\.gz: cannot be unpacked .*again"):
            read_run(tmp_path / "run.gz")
    with pytest.raises(BadInput, match="No file"):
        read_run(tmp_path / "none")


# an id that starts as a JSON object does would make a TREC file look like JSON, and one with # would be a comment
IDS = st.text(st.characters(exclude_categories=["Z", "C"], exclude_characters="{#"), min_size=1, max_size=8)
RUNS = st.dictionaries(IDS, st.dictionaries(IDS, st.floats(allow_nan=False, allow_infinity=False), min_size=1))


@given(RUNS)
@pytest.mark.parametrize("name", ["a.run", "a.run.gz", "a.json", "a.json.gz"])
def test_scores_come_back_to_the_last_bit(name: str, tmp_path_factory: pytest.TempPathFactory, run):
    path = tmp_path_factory.getbasetemp() / name
    write_run(path, run, "tag")
    assert read_run(path) == run


def test_a_query_that_would_be_a_comment_is_not_written(tmp_path: Path):
    for write in (
        lambda path: write_run(path, {"#1": {"d": 1.0}}, "tag"),
        lambda path: write_qrels(path, {"#1": {"d": 1}}),
    ):
        with pytest.raises(BadInput, match="The query id '#1' would make its lines comments of a TREC file"):
            write(tmp_path / "a.txt")
        write(tmp_path / "a.json")


@pytest.mark.parametrize("name", ["a", "a.tsv", "a.json", "a.txt.gz", "a.tsv.gz", "a.json.gz"])
def test_qrels_come_back(name: str, tmp_path: Path):
    write_qrels(tmp_path / name, QRELS)
    assert read_qrels(tmp_path / name) == QRELS


def test_ranks_are_those_of_trec_eval(tmp_path: Path):
    """Falling score, and equal scores by falling document id; numpy's numbers are numbers."""
    write_run(tmp_path / "run", {"q": {"a": np.float32(0.5), "c": 1.0, "b": np.float64(0.5)}}, "t")
    assert (tmp_path / "run").read_text() == "q Q0 c 1 1.0 t\nq Q0 b 2 0.5 t\nq Q0 a 3 0.5 t\n"


def test_json_keeps_an_unanswered_query_and_equal_runs_give_equal_bytes(tmp_path: Path):
    write_run(tmp_path / "run.json", {"q1": {}, "q2": {"d": 1.0}}, "t")
    assert json.loads((tmp_path / "run.json").read_bytes()) == {"q1": {}, "q2": {"d": 1.0}}
    write_run(tmp_path / "a.gz", RUN, "t")
    write_run(tmp_path / "b.gz", RUN, "t")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


@pytest.mark.parametrize(
    ("run", "tag", "message"),
    [
        ({"q": {"d": float("nan")}}, "t", "'d' for query 'q' with nan"),
        ({"q": {"d 1": 1.0}}, "t", "'d 1'"),
        ({"": {"d": 1.0}}, "t", "''"),
        ({"q": {"d": 1.0}}, "two words", "'two words'"),
        ({"q": {"d": 1.0}}, "", "one word"),
    ],
)
def test_what_a_run_file_cannot_hold_is_refused_and_nothing_is_left(run, tag: str, message: str, tmp_path: Path):
    with pytest.raises(BadInput, match=message):
        write_run(tmp_path / "run", run, tag)
    assert list(tmp_path.iterdir()) == []
