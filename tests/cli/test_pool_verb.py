"""`rusbeir datasets pool`: files of several languages become one dataset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rusbeir.datasets import load, validate
from tests.support.command_line import one_line


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """A shop's products in two files, under one set of ids, and what its customers asked."""
    (tmp_path / "ru.csv").write_text("sku,name\n1,Красный чайник\n2,Синяя чашка\n", encoding="utf-8")
    (tmp_path / "en.csv").write_text("sku,name\n1,Red kettle\n2,Blue cup\n", encoding="utf-8")
    (tmp_path / "queries.csv").write_text("qid,query,lang\nq1,чайник,ru\nq2,cup,en\n", encoding="utf-8")
    (tmp_path / "qrels.csv").write_text("qid,docid,score\nq1,1,1\nq2,2,1\n", encoding="utf-8")
    return [str(tmp_path / "ru.csv"), str(tmp_path / "en.csv"), "--columns", "id=sku,text=name"]


def test_tables_become_a_pool(files: list[str], tmp_path: Path, rusbeir):
    asked = ["--queries", tmp_path / "queries.csv", "--qrels", tmp_path / "qrels.csv"]
    done = rusbeir("datasets", "pool", *files, *asked, "--lang", "ru,English", "--out", tmp_path / "shop", "--json")
    report = json.loads(done.out)
    assert (report["languages"], report["n_docs"], report["n_qrels"]) == (["ru", "en"], 4, 4)
    assert validate(tmp_path / "shop") == []
    assert load(tmp_path / "shop").qrels == {"q1": {"1@ru": 1, "1@en": 1}, "q2": {"2@ru": 1, "2@en": 1}}


def test_the_table_and_the_next_step(tmp_path: Path, rusbeir):
    done = rusbeir("datasets", "pool", "mini/ru", "mini/en", "--out", tmp_path / "pool", "--relevant", "own")
    assert "mini/ru+en: 250 documents, 164 queries, 722 judgements." in done.err
    assert f"Measure it: rusbeir bench {tmp_path / 'pool'}" in done.err


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--lang", "ru,en,kk"], ["--lang names 3 languages for 2 datasets"]),
        (["--lang", "ru,?"], ["No language '?'"]),
        (["--qrels", "qrels.csv"], ["--qrels are the judgements of --queries"]),
        (["--lang", "ru"], ["no card.json that names its language", "--lang"]),
        (["--lang", "ru,ru"], ["both in 'ru'", "collide"]),
        (["--lang", "ru,en", "--relevant", "all"], ["--relevant", "any, other, own"]),
    ],
)
def test_bad_input_is_one_line(options: list[str], parts: list[str], files: list[str], tmp_path: Path, rusbeir):
    done = rusbeir("datasets", "pool", *files, *options, "--out", tmp_path / "pool")
    assert done.code == 2
    assert one_line(done.err, parts)
    assert not (tmp_path / "pool").exists()


def test_a_table_in_several_languages_is_searched(tmp_path: Path, rusbeir):
    """Matches are marked by the analyzer of each document's language, and hits say it."""
    (tmp_path / "mixed.csv").write_text("id,text\n1,Красный чайник\n2,Red kettle\n3,12-77\n", encoding="utf-8")
    search = ["search", "mixed.csv", "чайники", "--lang", "ru,en"]
    done = rusbeir(*search)
    assert "Красный [чайник]" in done.out
    assert "languages of documents were detected: ru 1, en 1; 0 of these" in done.err
    assert "mul" not in done.err, "no analyzer is looked for under that name"
    (hit,) = json.loads(rusbeir(*search, "--json").out)["hits"]
    assert (hit["doc_id"], hit["language"]) == ("1", "ru")
