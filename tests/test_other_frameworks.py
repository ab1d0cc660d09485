"""rusbeir's systems inside MTEB and PyTerrier: the same scores as `bench`."""

from __future__ import annotations

from types import SimpleNamespace

import pandas
import pytest

import rusbeir.mteb
import rusbeir.pyterrier
from rusbeir import bench, load
from rusbeir.errors import BadInput, UnknownName
from rusbeir.evaluation import evaluate
from rusbeir.mteb import find_task_language
from tests.support.mteb_task import make_task, score_task


def test_mteb_scores_are_those_of_bench(tmp_path):
    from mteb.models import SearchProtocol

    model = rusbeir.mteb.model("bm25")
    assert isinstance(model, SearchProtocol)
    # mteb rounds to five digits.
    expected = bench("mini/ru", k=1000, measures="nDCG@10", out=tmp_path)["measures"]["nDCG@10"]
    assert score_task(model, make_task("mini/ru", "rus-Cyrl"))["ndcg_at_10"] == round(expected, 5)
    # Another task, in another language, has a corpus of its own.
    expected = bench("mini/en", k=1000, measures="nDCG@10", out=tmp_path)["measures"]["nDCG@10"]
    assert score_task(model, make_task("mini/en", "eng-Latn"))["ndcg_at_10"] == round(expected, 5)


def test_candidates_of_a_reranking_task_are_ranked_alone():
    dataset = load("mini/ru")
    model = rusbeir.mteb.model("bm25", language="ru")
    task = SimpleNamespace(name="mini", eval_langs=["rus-Cyrl"])
    where = {"task_metadata": task, "hf_split": "test", "hf_subset": "default", "encode_kwargs": {}, "num_proc": 1}
    model.index([{"id": doc.doc_id, "title": doc.title, "text": doc.text} for doc in dataset.corpus], **where)
    queries = [{"id": query_id, "text": text} for query_id, text in dataset.queries.items()]
    full = model.search(queries, top_k=len(dataset.corpus), **where)
    candidates = {query_id: [*list(hits)[1:3], "no such document"] for query_id, hits in full.items()}
    found = model.search(queries, top_k=1, top_ranked=candidates, **where)
    assert found == {
        query_id: {doc_id: score for doc_id, score in hits.items() if doc_id in candidates[query_id]}
        for query_id, hits in full.items()
    }
    assert any(found.values())


def test_the_signature_is_in_the_meta(tmp_path):
    meta = rusbeir.mteb.model("bm25", language="ru").mteb_model_meta
    # A row's signature ends in the depth of its run.
    assert bench("mini/ru", out=tmp_path)["signature"].startswith(meta.experiment_kwargs["signature"] + "|k:")
    assert (meta.name, meta.revision) == ("rusbeir/bm25", rusbeir.__version__)
    assert "lang:task" in rusbeir.mteb.model("bm25").mteb_model_meta.experiment_kwargs["signature"]


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        (["rus-Cyrl"], "ru"),
        (["arb-Arab"], "ar"),  # mteb names the standard variety
        (["zho-Hans", "zho-Hant"], "zh"),
        ({"ru": ["rus-Cyrl"], "en": ["eng-Latn"]}, "ru"),
        ({"en": ["eng-Latn"]}, BadInput),
        (["rus-Cyrl", "eng-Latn"], BadInput),
        (["qaa-Zyyy"], UnknownName),
    ],
)
def test_languages_of_tasks(languages, expected):
    task = SimpleNamespace(name="T", eval_langs=languages)
    if isinstance(expected, str):
        assert find_task_language(task, "ru") == expected
    else:
        with pytest.raises(expected, match="T/ru"):
            find_task_language(task, "ru")


def test_models_that_cannot_be():
    with pytest.raises(UnknownName, match="bm52"):
        rusbeir.mteb.model("bm52")
    with pytest.raises(BadInput, match="call index first"):
        rusbeir.mteb.model().search(
            [], task_metadata=None, hf_split="test", hf_subset="default", top_k=1, encode_kwargs={}
        )


# PyTerrier's own pipelines use what pandas 3.1 warns of.
@pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning")
def test_pyterrier():
    dataset = load("mini/ru")
    retrieve = rusbeir.pyterrier.transformer(dataset, k=20)
    queries = pandas.DataFrame([{"qid": query_id, "query": text} for query_id, text in dataset.queries.items()])
    found = retrieve(queries)
    assert set(found.columns) == {"qid", "query", "docno", "score", "rank"}
    assert (found.groupby("qid")["rank"].min() == 0).all()
    run: dict[str, dict[str, float]] = {query_id: {} for query_id in dataset.queries}
    for row in found.itertuples():
        run[row.qid][row.docno] = row.score
    expected = evaluate(dataset.qrels, rusbeir.search(dataset, k=20), ["nDCG@10"])
    assert evaluate(dataset.qrels, run, ["nDCG@10"]).per_query == expected.per_query
    # A pipeline: the cut-off is PyTerrier's.
    assert (retrieve % 1)(queries).groupby("qid").size().max() == 1
    with pytest.raises(BadInput, match="no column qid"):
        retrieve(pandas.DataFrame([{"query": "радий"}]))
