"""The Python API of measuring: what `bench` and `search` take, what they return and what they refuse."""

from __future__ import annotations

import json
import os

import pytest

from rusbeir.datasets import load, read_run
from rusbeir.errors import BackendError, BadInput
from rusbeir.evaluation import evaluate
from rusbeir.experiment import Request, bench, bench_run, search
from rusbeir.ledger import read_rows
from rusbeir.retrieval import parse, resolve
from rusbeir.translation.porting.api import port
from rusbeir.types import Dataset, Doc
from tests.support.small_port import Fake

QUERY = "Кто открыл радий?"


@pytest.fixture(scope="module")
def mini():
    return load("mini/ru")


def test_out_and_measures_may_be_strings(mini, tmp_path, monkeypatch):
    """As `port` takes its folder; a measure alone is not a sequence of letters."""
    monkeypatch.chdir(tmp_path)
    row = bench(mini, "bm25(profile=raw)", measures="nDCG@10", out="here")
    assert list(row["measures"]) == ["nDCG@10"]
    assert (tmp_path / row["run"]).is_file()
    assert list(read_rows("here")) == [row]
    assert list(read_rows("nowhere")) == []


def test_paths_that_are_not_utf_8_are_refused_before_the_work(mini, tmp_path):
    """Rows and reports are JSON. The command line refuses such an argument, whatever it is for."""
    odd = tmp_path / os.fsdecode(b"\xff")
    with pytest.raises(BadInput, match=r"out= is .*\\udcff', which is not UTF-8"):
        bench(mini, "bm25(profile=raw)", out=odd)
    with pytest.raises(BadInput, match=r"\\udcff' is not UTF-8"):
        port(mini, to="en", translator=Fake(), out=odd)
    assert not odd.exists()


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(mini, tmp_path, fresh_cache):
    (tmp_path / "file").write_text("")
    with pytest.raises(BackendError, match=r"Cannot write \S+/file/results: "):
        bench(mini, "bm25(profile=raw)", out=tmp_path / "file" / "results")
    assert not (fresh_cache / "indexes").exists()


def test_force_measures_beside_rows_that_are_damaged(mini, tmp_path):
    (tmp_path / "rows.jsonl").write_text("{\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"rows\.jsonl:1.*Remove the line"):
        bench(mini, "bm25(profile=raw)", out=tmp_path)
    assert bench(mini, "bm25(profile=raw)", out=tmp_path, force=True)["n_queries"] == len(mini.queries)


def test_rows_that_are_there_open_no_cluster(mini, tmp_path):
    """A Ray at this address would be asked for: nothing listens there."""
    row = bench(mini, "bm25(profile=raw)", out=tmp_path)
    assert bench(mini, "bm25(profile=raw)", out=tmp_path, on="ray://127.0.0.1:9") == row


def test_a_run_to_diagnose_is_not_written_where_rows_cannot_name_it(mini, tmp_path):
    with pytest.raises(BadInput, match="which is not UTF-8"):
        bench_run(mini, "bm25(profile=raw)", Request(out=tmp_path / os.fsdecode(b"\xff")))


def test_a_row_with_a_run_that_no_file_can_be_named_is_measured_again(mini, tmp_path):
    row = bench(mini, "bm25(profile=raw)", out=tmp_path)
    (tmp_path / "rows.jsonl").write_text(json.dumps({**row, "run": "x" * 5000}) + "\n", encoding="utf-8")
    assert bench(mini, "bm25(profile=raw)", out=tmp_path)["run"] == row["run"]


def test_a_system_is_a_text_a_spec_or_resolved(mini, tmp_path):
    """All three are one system: the second and third return the row of the first."""
    text = "bm25(profile=raw)"
    row = bench(mini, text, out=tmp_path)
    assert bench(mini, parse(text), out=tmp_path) == row
    assert bench(mini, resolve(text, language="ru"), out=tmp_path) == row
    assert len(list(read_rows(tmp_path))) == 1


def test_search_finds_what_bench_measures(mini, tmp_path):
    row = bench(mini, "bm25(profile=raw)", k=10, out=tmp_path)
    run = search(mini, "bm25(profile=raw)", k=10)
    assert list(run) == list(mini.queries)
    assert {query_id: hits for query_id, hits in run.items() if hits} == read_run(row["run"])
    assert evaluate(mini.qrels, run).measures["nDCG@10"] == row["measures"]["nDCG@10"]


def test_search_for_a_text_or_for_queries(mini):
    run = search(mini, "bm25", QUERY, k=2)
    assert list(run) == [QUERY]
    assert len(run[QUERY]) == 2
    assert search(mini, "bm25", {"a": QUERY, "b": "!"}, k=2) == {"a": run[QUERY], "b": {}}
    with pytest.raises(BadInput, match=r"Query 'b' has 1,000,001 characters; at most 1,000,000 are searched for"):
        search(mini, "bm25", {"a": QUERY, "b": "x" * 1_000_001}, k=2)


@pytest.mark.parametrize(("doc_id", "query_id", "shown"), [("d 1", "q1", "'d 1'"), ("d1", "q\u00a01", r"'q\\xa01'")])
def test_ids_with_white_space_are_refused_before_the_search(doc_id, query_id, shown, tmp_path, monkeypatch):
    """A run in TREC's format cannot hold them, which was found when everything had been searched."""
    searched = []
    monkeypatch.setattr("rusbeir.experiment.measuring.search_without_self", lambda *call: searched.append(call))
    dataset = Dataset.of([Doc(doc_id, "x")], {query_id: "x"}, {query_id: {doc_id: 1}}, language="ru")
    with pytest.raises(BadInput, match=f"the id {shown} has white space, which TREC's formats cannot hold"):
        bench(dataset, "bm25(profile=raw)", out=tmp_path)
    assert not searched


@pytest.mark.parametrize(
    ("system", "k", "measure", "depth", "warned"),
    [
        ("bm25(profile=raw)", 5, "AP", 5, True),
        ("bm25(profile=raw)", 5, "Bpref", 5, True),
        ("bm25(profile=raw)", 5, "nDCG(judged_only=True)@3", 5, True),
        ("bm25(profile=raw)", 5, "nDCG@5", 5, False),
        ("bm25(profile=raw)", 1000, "AP", 1000, False),
        ("rrf(bm25,bm25(profile=raw),depth=3)", 1000, "AP", 3, True),
    ],
)
def test_the_depth_is_in_the_row_and_warned_of(mini, tmp_path, caplog, system, k, measure, depth, warned):
    """A measure without a cut-off needs as many hits as there are, of which 1,000 are usual."""
    assert bench(mini, system, k=k, measures=measure, out=tmp_path)["depth"] == depth
    assert (f"{measure} would need more than the {depth} hits per query" in caplog.text) == warned


def test_a_dataset_whose_json_only_python_reads_is_measured(tmp_path):
    """As Cocktail's nq-utd, whose queries hold NaN."""
    (tmp_path / "d" / "qrels").mkdir(parents=True)
    (tmp_path / "d" / "corpus.jsonl").write_text('{"_id": "d1", "text": "кот\t"}\n{"_id": "d2", "text": "пёс"}\n')
    (tmp_path / "d" / "queries.jsonl").write_text('{"_id": "q1", "text": "кот", "Gemini": NaN}\n')
    (tmp_path / "d" / "qrels" / "test.tsv").write_text("q1\td1\t1\n")
    row = bench(tmp_path / "d", "bm25(profile=raw)", language="ru", measures="nDCG@10", out=tmp_path / "out")
    assert row["measures"]["nDCG@10"] == 1


def test_judgements_of_documents_that_the_corpus_lacks_are_counted_and_told(mini, tmp_path, caplog):
    qrels = {query_id: {**grades, "none": 1} for query_id, grades in mini.qrels.items()}
    lacking = Dataset.of(mini.corpus, mini.queries, qrels, language="ru", name="lacking")
    assert bench(mini, "bm25(profile=raw)", out=tmp_path)["n_judged_missing"] == 0
    assert not caplog.records
    assert bench(lacking, "bm25(profile=raw)", out=tmp_path)["n_judged_missing"] == len(qrels)
    n = len(qrels) + sum(map(len, mini.qrels.values()))
    assert f"lacking: {len(qrels)} of {n} judgements are of documents that the corpus lacks" in caplog.text


@pytest.mark.parametrize("verb", [bench, search])
def test_a_run_holds_at_least_one_hit(verb):
    with pytest.raises(BadInput, match="k is 0; ask for at least 1 hit per query"):
        verb("mini/ru", k=0)


@pytest.mark.parametrize("engine", ["tantivy", "bm25s"])
@pytest.mark.parametrize(("n_lost", "warned"), [(1, False), (2, True)])
def test_many_queries_without_results_are_warned_of(tmp_path, caplog, n_lost: int, warned: bool, engine: str):
    """Languages written without spaces found nothing for 86 % of the queries, and nobody was told."""
    words = [f"слово{number}" for number in range(20)]
    docs = [{"_id": str(number), "text": word} for number, word in enumerate(words[n_lost:])]
    queries = {f"q{number}": word for number, word in enumerate(words)}
    dataset = Dataset.of(docs, queries, {query_id: {"0": 1} for query_id in queries}, language="ru")
    row = bench(dataset, "bm25(profile=raw)", engine=engine, out=tmp_path)
    assert row["n_zero_hit"] == n_lost
    assert (f"{n_lost} of 20 queries of in-memory have no results (10.0 %)" in caplog.text) is warned
    assert ("Does the analyzer know the language?" in caplog.text) is warned


def test_queries_of_a_port_without_results_can_be_those_of_its_source(tmp_path, caplog):
    """323 queries of NFCorpus had 19 without results in Spanish, and 15 in English: the analyzer was not to blame."""
    queries = {"q1": "слово", "q2": "дело"}
    provenance = {"made_by": "rusbeir 0.1.0, port", "source": {"name": "small", "language": "en"}}
    qrels = {query_id: {"d": 1} for query_id in queries}
    dataset = Dataset.of([{"_id": "d", "text": "слово"}], queries, qrels, language="ru", provenance=provenance)
    bench(dataset, "bm25(profile=raw)", out=tmp_path)
    assert "1 of 2 queries of in-memory have no results (50.0 %). If fewer have none in small, of which" in caplog.text
    assert "Does the analyzer know" not in caplog.text
