"""Runs that other programs wrote, as systems: alone, in fusions, under rerankers, in `bench`."""

from __future__ import annotations

import gzip
import re
import time

import orjson
import pytest

from rusbeir.datasets import load, read_run
from rusbeir.errors import BadInput
from rusbeir.experiment import bench
from rusbeir.retrieval import compose, parse, resolve
from rusbeir.types import Dataset, Doc
from tests.support.stubs import Docs

DOCS = Docs([Doc("a", "кошка"), Doc("b", "собака"), Doc("c", "рыба")])
QUERIES = {"q": "кто ловит мышь", "none": "кто летит"}
LINES = ["q Q0 b 1 3.5 mine", "q Q0 a 2 2 mine", "q Q0 c 3 2 mine"]
HITS = {"b": 3.5, "a": 2.0, "c": 2.0}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch, fresh_cache):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.run").write_text("\n".join(LINES) + "\n", encoding="utf-8")


def search(text, k=10):
    return resolve(text, language="ru").prepare(DOCS, "f").retriever.search(QUERIES, k)


def write_as(kind, path):
    if kind == "gzip":
        path.write_bytes(gzip.compress("\n".join(LINES).encode()))
    elif kind == "json":
        path.write_bytes(orjson.dumps({"q": HITS}))
    else:
        order = LINES[2], LINES[0], LINES[1]
        lines = [re.sub(r" \d ", " 0 ", line, count=1) for line in order]
        path.write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.parametrize("kind", ["gzip", "json", "unsorted, without ranks"])
def test_every_format_gives_the_same_hits(tmp_path, kind):
    path = tmp_path / ("a.run.gz" if kind == "gzip" else "a.run")
    write_as(kind, path)
    run = search(f"run({path})")
    assert run == {"q": HITS, "none": {}}
    assert next(iter(run["q"])) == "b"
    assert search(f"run({path})", 1)["q"] == {"b": 3.5}


def test_the_name_prints_and_the_signature_has_the_tag_and_the_content(tmp_path):
    system = resolve("run( mine.run )", language="ru")
    assert str(parse(system.name)) == system.name == "run(mine.run)"
    assert (system.engine, system.depth) == ("run", 3)
    assert system.signature.startswith("run|tag:mine|sha256:")
    (tmp_path / "other.run").write_text(LINES[0].replace("3.5", "4"), encoding="utf-8")
    assert resolve("run(other.run)", language="ru").signature != system.signature


def test_runs_are_fused_with_weights():
    (hits, empty) = search("rrf(run(mine.run),run(mine.run),weights=2:1)").values()
    assert hits == pytest.approx({"b": 3 / 61, "a": 3 / 62, "c": 3 / 63})
    assert empty == {}


REFUSED = [
    # lines of the file, part of the message, why
    ([*LINES, "q Q0 x 4 1 mine"], "bad.run: 1 of 4 documents are not in the corpus, such as 'x'", "unknown documents"),
    ([*LINES, "q Q0 a 4 1 mine"], "bad.run:4: ", "a document twice"),
    (["q Q0 a 1 1 mine", "q Q0 b 2 2 mine"],
     "bad.run:2: query 'q' has at rank 2 the score 2, which is higher than 1 at rank 1", "scores against ranks"),
    (["p Q0 a 1 1 mine"], "bad.run has hits for none of the 2 queries, such as 'q'; it has 'p'. Is it a run of another",
     "another dataset's queries"),
    (["q Q0 a 1 high mine"], "bad.run:1: ", "a score that is not a number"),
    (["q a 1"], "bad.run:1: 3 columns; a run has six", "qrels"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "part", "why"), REFUSED, ids=[row[-1] for row in REFUSED])
def test_refused(tmp_path, lines, part, why):
    (tmp_path / "bad.run").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(BadInput) as raised:
        search("run(bad.run)")
    assert part in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("text", "part"), [
    ("run(absent.run)", "There is no file absent.run"),
    ("run(mine.run,depth=3)", "run has no options, so depth= means nothing here"),
    ("run", "run takes one file, as in 'run(bm25.run.gz)'"),
    ("bm25 >> run(mine.run)", "run searches the corpus itself"),
])  # fmt: skip
def test_refused_before_it_is_read(text, part):
    with pytest.raises(BadInput) as raised:
        resolve(text, language="ru")
    assert part in str(raised.value)


def test_bench_measures_a_run_as_the_system_that_wrote_it(tmp_path):
    """Alone it has the same measures; reranked, the row also says what the best order of its hits would score."""
    (tmp_path / "reversing.py").write_text(
        "class Reversing:\n    signature, pointwise = 'reversing', False\n"
        "    def score(self, query, documents): return list(range(len(documents)))\n",
        encoding="utf-8",
    )
    first = bench("mini/ru", "bm25(profile=raw)", measures="nDCG@10", k=5)
    again, reranked = bench(
        "mini/ru", [f"run({first['run']})", f"run({first['run']}) >> rerank(python:reversing.Reversing)"],
        measures="nDCG@10", k=5,
    )  # fmt: skip
    assert again["measures"] == first["measures"]
    assert again["bytes"]["index"] == 0
    assert "pool_ceiling" not in again
    assert reranked["measures"]["nDCG@10"] < first["measures"]["nDCG@10"] <= reranked["pool_ceiling"]["nDCG@10"] <= 1
    # By hand: the gain of the relevant documents that are in the pool.
    dataset, run = load("mini/ru"), read_run(reranked["run"])
    share = sum(any(dataset.qrels[query].get(doc, 0) > 0 for doc in hits) for query, hits in run.items())
    assert reranked["pool_ceiling"]["nDCG@10"] <= share / len(dataset.qrels)


def test_a_million_lines_are_read_in_seconds(tmp_path):
    with gzip.open(tmp_path / "large.run.gz", "wt", compresslevel=1) as file:
        for query in range(1_000):
            file.writelines(f"q{query} Q0 d{query * 7 + n} {n} {1000 - n} large\n" for n in range(1, 1_001))
    started = time.process_time()
    assert resolve("run(large.run.gz)", language="ru").depth == 1_000
    assert time.process_time() - started < 5


def test_a_row_says_at_which_depth_of_the_pool_the_gain_ends(tmp_path):
    """The relevant document is third of five: a reranker that knows it gains nothing from the fourth."""
    docs = [{"_id": f"d{number}", "text": f"text {number}"} for number in range(5)]
    dataset = Dataset.of(docs, {"q": "text"}, {"q": {"d2": 1}}, language="ru", name="pool")
    lines = [f"q Q0 d{number} {number + 1} {5 - number} mine" for number in range(5)]
    (tmp_path / "five.run").write_text("\n".join(lines), encoding="utf-8")

    class Knowing:
        signature, pointwise = "knowing", True

        def score(self, query, documents):
            return [float(text == "text 2") for text in documents]

    system = compose(f"run({tmp_path / 'five.run'}) >> mine", mine=Knowing())
    row = bench(dataset, system, measures=["nDCG@10", "R@2"], out=tmp_path)
    assert row["pool_ceiling"] == row["measures"] == {"nDCG@10": 1, "R@2": 1}
    assert row["pool_gain_depth"] == {"nDCG@10": 3, "R@2": 3}
    assert "pool_gain_depth" not in bench(dataset, system, measures="nDCG@10", k=3, out=tmp_path), "two lack a score"
