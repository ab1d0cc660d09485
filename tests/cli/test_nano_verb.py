"""`rusbeir nano` prints its agreement, and refuses what cannot be right in one line."""

from __future__ import annotations

import json

import pytest

from rusbeir import write_beir
from rusbeir.types import Dataset
from tests.support.command_line import one_line

REFUSED = [
    # arguments, parts of the line
    (["mini/ru", "--queries", "0"], ["--queries 0", "at least 2"]),
    (["mini/ru", "--queries", "500"], ["82 queries", "500", "--queries"]),
    (["mini/ru", "--depth", "0"], ["--depth 0"]),
    (["mini/ru", "--others", "-1"], ["--others -1"]),
    (["mini/rru"], ["No dataset 'mini/rru'"]),
    (["mini/ru", "--system", "bm25(k1="], ["column 9"]),
    (["mini/ru", "--system", "bm52"], ["'bm52'"]),
    (["mini/ru", "--held-out", "bm25("], ["column"]),
    (["mini/ru", "--system", "bm25", "--held-out", "bm25"], ["bm25 is given twice"]),
    (["mini/ru", "--system", "bm25", "--system", "bm25(profile=raw)", "--held-out", "rrf(bm25,bm25(profile=raw))"],
     ["cannot be held out"]),
    (["mini/ru", "--system", "bm25", "--held-out", "bm25(profile=raw)", "--queries", "30"],
     ["1 held-out systems", "4", "--held-out"]),
    (["mini/ru", "--measure", "nDGC@10"], ["'nDGC@10'"]),
    (["{full}", "--lang", "ru"], ["has no judgements"]),
    (["mini/ru", "--to", "{full}"], ["holds something else"]),
    (["{irrelevant}", "--system", "bm25"], ["no query has a relevant document"]),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "parts"), REFUSED, ids=lambda value: " ".join(value)[:50])
def test_bad_input(rusbeir, tmp_path, arguments, parts):
    full, irrelevant = tmp_path / "full", tmp_path / "irrelevant"
    full.mkdir()
    (full / "corpus.jsonl").write_text('{"_id": "d", "text": "x"}\n')
    docs, queries = [{"_id": "d", "text": "дом"}], {"q": "дом", "p": "дом"}
    write_beir(Dataset.of(docs, queries, {"q": {"d": 0}, "p": {"e": 1}}, language="ru"), irrelevant)
    given = [one.format(full=full, irrelevant=irrelevant) for one in arguments]
    target = [] if "--to" in given else ["--to", str(tmp_path / "new")]
    outcome = rusbeir("nano", *given, *target)
    assert outcome.code == 2
    assert one_line(outcome.err, parts)
    assert not (tmp_path / "new").exists()


def test_it_prints_the_agreement(rusbeir, tmp_path):
    given = ["nano", "mini/ru", "--to", tmp_path / "new", "--system", "bm25", "--queries", "30", "--depth", "5"]
    outcome = rusbeir(*given)
    assert outcome.code == 0
    assert "Kendall's tau with the whole is" in outcome.out
    assert "bm25(profile=blend)" in outcome.out
    assert "bm25(k1=8.0,b=1.0) finds the same documents as bm25" in outcome.err
    outcome = rusbeir(*given[:3], tmp_path / "again", *given[4:], "--json")
    report = json.loads(outcome.out)
    assert report["queries"] == {"full": 82, "nano": 30}
    assert rusbeir("datasets", "validate", tmp_path / "again").code == 0
