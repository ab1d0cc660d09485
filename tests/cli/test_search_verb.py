"""`rusbeir search`: tables, the prompt, pipes; and `rusbeir datasets` filtered."""

from __future__ import annotations

import io
import json
import pydoc
import sys

import pytest

from rusbeir.cli import output

PRODUCTS = "sku,name,description\np1,Red jacket,Warm and red.\np2,Blue jacket,Light.\np3,Boots,\n"
COLUMNS = ("--columns", "id=sku,text=name+description,title=name")


@pytest.fixture
def products(tmp_path):
    (tmp_path / "products.csv").write_text(PRODUCTS)
    return "products.csv"


@pytest.fixture
def type_lines(monkeypatch):
    return lambda text: monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_a_table_is_searched(rusbeir, products):
    outcome = rusbeir("search", products, "red jackets", "--lang", "en", *COLUMNS)
    assert (outcome.code, "[Red] [jacket] — [Red] [jacket] Warm and [red]." in outcome.out) == (0, True)
    assert "Columns: id=sku,text=name+description,title=name\n" in outcome.err
    hits = json.loads(rusbeir("search", products, "boot", "--lang", "en", *COLUMNS, "--json").out)["hits"]
    assert [(hit["doc_id"], hit["title"]) for hit in hits] == [("p3", "Boots")]
    assert rusbeir("index", products, "--lang", "en", *COLUMNS).code == 0


def test_a_wrong_column_is_one_line(rusbeir, products):
    for columns, message in (
        ((), "has no column for the document id (_id or id or"),
        (("--columns", "id=nr"), "has no column 'nr' for the document id; it has sku, name, description."),
    ):
        outcome = rusbeir("search", products, "x", "--lang", "en", *columns)
        assert (outcome.code, outcome.err.count("\n")) == (2, 1)
        assert message in outcome.err


def test_the_prompt_explains_on_demand(rusbeir, products, type_lines):
    type_lines("red jackets\n?1\n?7\nzebra\n")
    outcome = rusbeir("search", products, "--lang", "en", *COLUMNS)
    assert outcome.code == 0
    assert "[Blue]" not in outcome.out
    assert "Blue [jacket] — Blue [jacket] Light." in outcome.out
    explained = [line.split() for line in outcome.out.splitlines() if line.strip().startswith(("red ", "jackets "))]
    assert [row[0] for row in explained] == ["red", "jackets"]
    assert all(float(row[1]) + float(row[2]) == pytest.approx(float(explained[0][1]) + float(explained[0][2]), abs=2e-3)
               for row in explained)  # fmt: skip
    for line in (
        "No hit '7' to explain.",
        "No hits for 'zebra'.",
        "es_mappings/en.json",
        "This is for looking at hits",
    ):
        assert line in outcome.err


def test_words_that_the_system_drops_are_not_marked(rusbeir, products, tmp_path):
    (tmp_path / "colours.txt").write_text("red\n")
    outcome = rusbeir("search", products, "red jacket", "--lang", "en", *COLUMNS, "--system", "bm25(stop=colours.txt)")
    assert "Red [jacket] — Red [jacket] Warm and red." in outcome.out


def test_lines_of_stdin_are_one_json_document(rusbeir, products, type_lines):
    type_lines("red jacket\n\nboots\n")
    document = json.loads(rusbeir("search", products, "--lang", "en", *COLUMNS, "--json").out)
    found = [(query["query"], [hit["doc_id"] for hit in query["hits"]]) for query in document["queries"]]
    assert found == [("red jacket", ["p1", "p2"]), ("boots", ["p3"])]


def test_documents_alone(rusbeir, beir):
    for name in ("qrels/test.tsv", "queries.jsonl"):
        (beir / name).unlink()
        assert "d1" in rusbeir("search", beir, "мышь").out
        assert rusbeir("bench", beir, "--dry-run").code == 0
    outcome = rusbeir("bench", beir)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert "has no judgements, so nothing can be measured on it. Add qrels/test.tsv" in outcome.err
    assert "`rusbeir synth queries`" in outcome.err


def test_judgements_in_a_table(rusbeir, tmp_path):
    (tmp_path / "qrels.csv").write_text("query_id,doc_id,grade\nq1,d1,1\n")
    (tmp_path / "my.run").write_text("q1 Q0 d1 1 2.5 me\n")
    outcome = rusbeir("eval", "qrels.csv", "my.run", "-m", "RR@10", "--json")
    assert json.loads(outcome.out)["measures"] == {"RR@10": 1.0}


def test_the_list_of_datasets_is_filtered_and_counted(rusbeir):
    outcome = rusbeir("datasets", "--name", "xquad/", "--lang", "ru")
    assert [line.split()[0] for line in outcome.out.splitlines() if "xquad/" in line] == [
        "xquad/ru", "xquad/ru/sentences", "xquad/ru/windows-3",
    ]  # fmt: skip
    assert outcome.err.startswith("3 of ")
    refused = rusbeir("datasets", "--name", "scifct")
    assert (refused.code, "Did you mean 'beir/scifact/test'" in refused.err) == (2, True)


def test_a_long_list_is_shown_page_by_page_on_a_terminal(monkeypatch, capsys):
    pages: list[str] = []
    monkeypatch.setattr(pydoc, "pager", pages.append)
    for n_lines in (1_000, 1):
        with monkeypatch.context() as terminal:
            terminal.setattr(sys.stdout, "isatty", lambda: True)
            with output.page(n_lines):
                output.echo(f"{n_lines} lines")
    assert (pages, capsys.readouterr().out) == (["1000 lines\n"], "1 lines\n")
