"""`rusbeir diagnose`: what it prints and keeps, and calls that are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import one_line

TEXTS = {"human": "the cat sleeps", "bot": "a cat"}


@pytest.fixture
def cats(tmp_path: Path) -> Path:
    """A collection of two sources and one document."""
    for source, text in TEXTS.items():
        path = tmp_path / "cats" / "corpus" / f"{source}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"_id": "d1", "text": text}) + "\n")
    (tmp_path / "cats" / "queries.jsonl").write_text('{"_id": "q1", "text": "cat"}\n')
    (tmp_path / "cats" / "qrels").mkdir()
    (tmp_path / "cats" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    return tmp_path / "cats"


def test_help_has_an_example(rusbeir):
    done = rusbeir("diagnose", "source-bias", "--help")
    assert "Example: rusbeir diagnose source-bias" in done.out
    assert "--json" in done.out


def test_source_bias_of_two_systems(rusbeir, cats):
    call = ["diagnose", "source-bias", cats, "--lang", "en", "--no-alone", "--samples", "100", "--cutoff", "1"]
    call += ["--system", "bm25(profile=raw)", "--system", "bm25"]
    done = rusbeir(*call)
    assert done.code == 0
    assert "bot is -200.0 (-200.0 to -200.0); its sign is not safe: 1 query is too few for an interval." in done.out
    documents = json.loads(rusbeir(*call, "--json").out)["diagnoses"]
    assert [one["system"] for one in documents] == ["bm25(profile=raw)", "bm25"]
    kept = sorted(Path("results/diagnoses").iterdir())
    assert sorted((json.loads(path.read_text()) for path in kept), key=lambda one: -len(one["system"])) == documents
    assert len(Path("results/rows.jsonl").read_text().splitlines()) == 2
    rusbeir("report", "results", "--out", "site")
    assert "1 query is too few for an interval" in Path("site/source-bias.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["mini/en"], ["mini/en has one copy of each document", "corpus/<source>.jsonl"]),
        (["cats"], ["--lang"]),
        (["cats", "--lang", "en", "--cutoff", "200"], ["The cut-offs are 200; give numbers from 1 to 100"]),
        (["cats", "--lang", "en", "--split", "dev"], ["dev"]),
    ],
)
def test_wrong_calls(rusbeir, cats, arguments, parts):
    done = rusbeir("diagnose", "source-bias", *arguments)
    assert done.code == 2
    assert one_line(done.err, parts)
