"""Judgements as the evaluators of search engines take them, and that `_rank_eval` computes rusbeir's nDCG of them."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping

import pytest

import rusbeir
from rusbeir.datasets import write_beir
from rusbeir.errors import BadInput, UnknownName
from rusbeir.publishing import evaluators, publish_for
from rusbeir.types import Dataset
from tests.support import shop

INDEX = "products"
RANK_EVAL = {"index": INDEX, "body": "query.json"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shop.write_search(tmp_path)
    return tmp_path


@pytest.fixture
def odd(folder):
    """A dataset of the texts that evaluators treat in ways of their own."""
    queries = {"q1": 'полка "белая"', "q2": "полка  белая", "q3": "a: b # c", "q4": "стол"}
    data = Dataset.of(
        [{"_id": doc_id, "text": "x"} for doc_id in ("d1", "d2", "d,2")],
        queries,
        {"q1": {"d1": 1}, "q2": {"d1": 2, "d2": -1}, "q3": {"d1": 1}, "q4": {"d,2": 3}},
        language="ru",
        name="odd",
    )
    write_beir(data, folder / "odd")
    return folder / "odd"


def test_rank_eval_computes_our_ndcg(opensearch, folder):
    data = rusbeir.load("mini/ru")
    shop.fill(opensearch.url, INDEX, data.corpus)
    # Equal scores come as trec_eval ranks them.
    shop.write_search(folder, shop.SEARCH[:-1] + ', "sort": ["_score", {"sku": "desc"}]}')
    report = publish_for("rank-eval", "mini/ru", to="out", **RANK_EVAL)
    # Elasticsearch's DCG has gains of 2^grade - 1, trec_eval's the grades themselves; discounts are the same.
    assert report["measure"] == "nDCG(gains={2:3})@10"
    answers = [
        shop.ask("POST", f"{opensearch.url}/{INDEX}/_rank_eval", (folder / "out" / row["file"]).read_bytes())
        for row in report["files"]
    ]
    details = {query_id: detail for answer in answers for query_id, detail in answer["details"].items()}
    (row,) = rusbeir.bench(
        "mini/ru", [f"server(index={INDEX},body=query.json)"], engine=f"opensearch@{opensearch.url}", k=10,
        measures=[report["measure"]], out="results",
    )  # fmt: skip
    ours = json.loads((folder / row["per_query"]).read_text())
    run = rusbeir.read_run(folder / row["run"])
    assert len(details) == len(ours) == 82
    n_whole = 0
    for query_id, grades in data.qrels.items():
        expected = ours[query_id][report["measure"]]
        n_relevant, n_hits = sum(grade > 0 for grade in grades.values()), len(run.get(query_id, {}))
        n_whole += n_hits >= min(10, n_relevant)
        if n_hits < n_relevant:
            # The ideal of _rank_eval has no more ranks than the search has hits, which makes its score higher.
            expected *= _compute_ideal(grades, 10) / _compute_ideal(grades, n_hits) if n_hits else 1
        assert details[query_id]["metric_score"] == pytest.approx(expected, abs=1e-6), query_id
    assert n_whole > 70


def _compute_ideal(grades: Mapping[str, int], cutoff: int) -> float:
    best = sorted(grades.values(), reverse=True)[:cutoff]
    return sum((2**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(best, 1))


def test_rank_eval_requests(odd, folder, monkeypatch):
    monkeypatch.setattr(evaluators, "_REQUEST_BYTES", 200)
    report = publish_for("rank-eval", odd, to="out", **RANK_EVAL)
    assert report["measure"] == "nDCG(gains={2:3,3:7})@10"
    parts = [json.loads((folder / "out" / row["file"]).read_bytes()) for row in report["files"]]
    assert len(parts) > 1
    assert {row["sent_to"] for row in report["files"]} == {"POST /products/_rank_eval"}
    assert {json.dumps(part["metric"]) for part in parts} == {'{"dcg": {"k": 10, "normalize": true}}'}
    requests = {request["id"]: request for part in parts for request in part["requests"]}
    assert list(requests) == ["q1", "q2", "q3", "q4"]
    assert requests["q1"]["request"]["query"]["multi_match"]["query"] == 'полка "белая"'
    assert requests["q2"]["ratings"] == [
        {"_index": INDEX, "_id": "d1", "rating": 2},
        {"_index": INDEX, "_id": "d2", "rating": 0},
    ]


def test_binary_judgements_have_the_usual_ndcg():
    assert [evaluators._name_measure(highest) for highest in (0, 1, 9, 10)] == [
        "nDCG@10", "nDCG@10", "nDCG(gains={2:3,3:7,4:15,5:31,6:63,7:127,8:255,9:511})@10", "",
    ]  # fmt: skip


def test_the_search_relevance_workbench(odd, folder, monkeypatch):
    monkeypatch.setattr(evaluators, "_QUERY_SET_SIZE", 2)
    report = publish_for("search-relevance", odd, to="out", **RANK_EVAL)
    # q1 without its quotes is q2; q3 loses a colon and a hash.
    assert (report["n_queries"], report["n_merged"], report["n_changed"]) == (4, 1, 2)
    sent_to = [row["sent_to"].removeprefix("PUT /_plugins/_search_relevance/") for row in report["files"]]
    assert [(row["file"], address) for row, address in zip(report["files"], sent_to, strict=True)] == [
        ("query-set-001.json", "query_sets"), ("judgments-001.json", "judgments"),
        ("query-set-002.json", "query_sets"), ("judgments-002.json", "judgments"),
        ("search-configuration.json", "search_configurations"),
    ]  # fmt: skip
    first, judgements, second, _, search = (
        json.loads((folder / "out" / row["file"]).read_bytes()) for row in report["files"]
    )
    assert first["sampling"] == "manual"
    assert first["querySetQueries"] == [{"queryText": "полка белая"}, {"queryText": "a b c"}]
    assert second["querySetQueries"] == [{"queryText": "стол"}]
    assert judgements["type"] == "IMPORT_JUDGMENT"
    assert judgements["judgmentRatings"][0] == {
        "query": "полка белая",
        "ratings": [{"docId": "d1", "rating": "2.0"}, {"docId": "d2", "rating": "0.0"}],
    }
    assert json.loads(search["query"])["query"]["multi_match"]["query"] == "%SearchText%"
    assert search["index"] == INDEX


def test_quepid(odd, folder):
    report = publish_for("quepid", odd, to="out")
    with (folder / "out" / "quepid.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["query", "docid", "rating"], ['полка "белая"', "d1", "1"], ["полка белая", "d1", "2"],
        ["полка белая", "d2", "0"], ["a: b # c", "d1", "1"], ["стол", "d,2", "3"],
    ]  # fmt: skip
    assert (report["n_merged"], report["n_changed"]) == (0, 0)


@pytest.mark.parametrize(
    ("target", "options", "error", "reason"),
    [
        ("rank-evel", {}, UnknownName, "No evaluator 'rank-evel'. Did you mean 'rank-eval'"),
        ("rank-eval", {}, BadInput, "rank-eval sends searches to an index: name both with index=products and body="),
        ("rank-eval", {"index": INDEX, "body": "highlit.json"}, BadInput, "_rank_eval takes no highlight"),
        ("rank-eval", {"index": INDEX, "body": "nothing.json"}, BadInput, "There is no file nothing.json"),
    ],
)
def test_what_cannot_be_written(folder, target, options, error, reason):
    shop.write_search(folder, shop.SEARCH[:-1] + ', "highlight": {}}', "highlit.json")
    with pytest.raises(error) as caught:
        publish_for(target, "mini/ru", to="out", **options)
    assert reason in str(caught.value)
    assert not (folder / "out").exists()
