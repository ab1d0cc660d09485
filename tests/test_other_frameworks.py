"""rusbeir's systems inside MTEB and PyTerrier: the same scores as `bench`."""

from __future__ import annotations

import importlib
import re
import sys
from types import SimpleNamespace

import pandas
import pytest

import rusbeir.mteb
import rusbeir.pyterrier
from rusbeir import bench, load
from rusbeir.errors import BadInput, UnknownName
from rusbeir.evaluation import evaluate
from rusbeir.mteb import find_task_language
from rusbeir.text import digest
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
    run = model.search(queries, top_k=1, top_ranked=candidates, **where)
    assert run == {
        query_id: {doc_id: score for doc_id, score in hits.items() if doc_id in candidates[query_id]}
        for query_id, hits in full.items()
    }
    assert any(run.values())


def test_the_signature_is_in_the_meta(tmp_path):
    meta = rusbeir.mteb.model("bm25", language="ru").mteb_model_meta
    # A row's signature ends in the depth of its run.
    assert bench("mini/ru", out=tmp_path)["signature"].startswith(meta.experiment_kwargs["signature"] + "|k:")
    assert (meta.name, meta.revision) == (f"rusbeir/bm25-{digest('bm25', chars=6)}", rusbeir.__version__)
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
        (["qaa-Zyyy"], "qaa"),  # what has no shorter tag is one itself
        (["bem-Latn"], "bem"),
        (["azj-Latn"], "az"),
        (["khk-Cyrl"], "mn"),
        (["uzn-Latn"], "uz"),
        (["zsm-Latn"], "ms"),
        (["plt-Latn"], "mg"),
        (["als-Latn"], "sq"),
        (["pbt-Arab"], "ps"),
        (["gaz-Latn"], "om"),
        (["ory-Orya"], "or"),
        (["arz-Arab"], "ar"),
        (["apc-Arab"], "ar"),
        (["ary-Arab"], "ar"),
        (["ars-Arab"], "ar"),
        (["acm-Arab"], "ar"),
    ],
)
def test_languages_of_tasks(languages, expected):
    task = SimpleNamespace(name="T", eval_langs=languages)
    if isinstance(expected, str):
        assert find_task_language(task, "ru") == expected
    else:
        with pytest.raises(expected, match="T/ru"):
            find_task_language(task, "ru")


def test_documents_decide_between_the_languages_of_a_task():
    task = SimpleNamespace(name="T", eval_langs=["rus-Cyrl", "eng-Latn"])
    for language in ("ru", "en"):
        assert find_task_language(task, "default", load(f"mini/{language}").corpus) == language


MODULE = """
from types import SimpleNamespace
import numpy as np

class Pairs:
    signature, pointwise, asked = "pairs", True, []
    def score(self, query, documents):
        self.asked += [(query, document) for document in documents]
        return [float(len(document)) for document in documents]

reranker = Pairs
shown = []

def encoder(turned=0):
    def encode_queries(texts):
        shown.extend(texts)
        return encode(texts)
    def encode(texts):
        return np.array([[np.cos(len(text)), np.sin(len(text))] for text in texts], np.float32)
    return SimpleNamespace(signature=f"e{turned}", encode_queries=encode_queries, encode_documents=encode)
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module of models that note what they are shown; the cache is empty."""
    (tmp_path / "mteb_models.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("RUSBEIR_CACHE", str(tmp_path / "cache"))
    sys.modules.pop("mteb_models", None)
    return importlib.import_module("mteb_models")


NAMES = [
    # System, model_type; all names differ and are names of folders on every system.
    ("bm25", "sparse"),
    ("bm25(profile=raw)", "sparse"),
    ("dense(python:mteb_models.encoder)", "dense"),
    ("dense(python:mteb_models.encoder,turned=1)", "dense"),
    ("rrf(bm25,dense(python:mteb_models.encoder))", "hybrid"),
    ("bm25 >> rerank(python:mteb_models.reranker)", "cross-encoder"),
]


@pytest.mark.usefixtures("mine")
def test_names_and_types_in_mteb():
    metas = [rusbeir.mteb.model(system, language="ru").mteb_model_meta for system, _ in NAMES]
    assert [meta.model_type for meta in metas] == [[kind] for _, kind in NAMES]
    assert len({meta.name for meta in metas}) == len(NAMES)
    assert all(re.fullmatch(r"rusbeir/[\w.-]+", meta.name, re.ASCII) for meta in metas)


def test_a_reranker_scores_all_candidates(mine):
    """Of 20 candidates, more than its depth and mostly without a word of the query, none is dropped."""
    dataset = load("mini/ru")
    system = "bm25 >> rerank(python:mteb_models.reranker,depth=2)"
    model = rusbeir.mteb.model(system)
    # No stage analyses, so that the language need not be known.
    task = SimpleNamespace(name="mini", eval_langs=["qaa-Zyyy"])
    where = {"task_metadata": task, "hf_split": "test", "hf_subset": "default", "encode_kwargs": {}}
    documents = {doc.doc_id: doc for doc in dataset.corpus}
    model.index([{"id": doc.doc_id, "title": doc.title, "text": doc.text} for doc in documents.values()], **where)
    doc_ids = list(documents)[:20]
    run = model.search([{"id": "q", "text": "радий"}], top_k=5, top_ranked={"q": doc_ids}, **where)
    lengths = {doc_id: float(len(documents[doc_id].full_text)) for doc_id in doc_ids}
    assert run == {"q": lengths}
    fused = rusbeir.mteb.model("rrf(dense(python:mteb_models.encoder),dense(python:mteb_models.encoder),depth=2)")
    fused.index([{"id": doc.doc_id, "title": doc.title, "text": doc.text} for doc in documents.values()], **where)
    run = fused.search([{"id": "q", "text": "радий"}], top_k=5, top_ranked={"q": doc_ids}, **where)
    assert set(run["q"]) == set(doc_ids)


def test_instructions_decide_as_for_the_bm25_of_mteb():
    rows = [{"id": "q", "text": "animals", "instruction": "find documents about dogs that bark"}]
    task = SimpleNamespace(name="T", eval_langs=["eng-Latn"])
    where = {"task_metadata": task, "hf_split": "test", "hf_subset": "default", "encode_kwargs": {}}
    model = rusbeir.mteb.model("bm25")
    model.index([{"id": "cat", "text": "animals: cats"}, {"id": "dog", "text": "animals: dogs bark"}], **where)
    assert next(iter(model.search(rows, top_k=2, **where)["q"])) == "dog"


QUERIES = [
    # The row of a query, what a model is shown, as mteb's own wrappers are.
    ({"text": "animals", "instruction": "that bark"}, "animals that bark"),
    ({"text": ["who?", "dogs"]}, "who?; dogs"),
    (
        {"text": [{"role": "user", "content": "1"}, {"role": "system", "content": "dogs"}]},
        "user: 1; system: dogs",
    ),
]


@pytest.mark.parametrize(("row", "expected"), QUERIES)
def test_queries_are_shown_as_mteb_shows_them(mine, row, expected):
    task = SimpleNamespace(name="T", eval_langs=["eng-Latn"])
    where = {"task_metadata": task, "hf_split": "test", "hf_subset": "default", "encode_kwargs": {}}
    model = rusbeir.mteb.model("dense(python:mteb_models.encoder)")
    model.index([{"id": "d", "text": "dogs"}], **where)
    model.search([{"id": "q", **row}], top_k=1, **where)
    assert mine.shown == [expected]
    with pytest.raises(BadInput, match="mteb cannot read these queries"):
        model.search([{"id": "q", "text": [1, 2]}], top_k=1, **where)


@pytest.mark.parametrize("name", ["MockRetrievalTask", "MockInstructionRetrieval", "MockRerankingTask"])
def test_mock_tasks_of_mteb(name):
    from mteb.mocks import mock_tasks

    # nDCG@10 of mteb-2.26.24's own BM25, mteb/baseline-bm25s.
    for system in ("bm25", "rrf(bm25,bm25(profile=raw))"):
        assert score_task(rusbeir.mteb.model(system), getattr(mock_tasks, name)())["ndcg_at_10"] == 0.63093


@pytest.mark.usefixtures("mine")
def test_conversations_of_mteb():
    """Both documents of the task are candidates of a dense system, so that each query has a score above 0."""
    from mteb.mocks import mock_tasks

    model = rusbeir.mteb.model("dense(python:mteb_models.encoder)")
    assert score_task(model, mock_tasks.MockRetrievalDialogTask())["ndcg_at_10"] >= 0.63093


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
    results = retrieve(queries)
    assert set(results.columns) == {"qid", "query", "docno", "score", "rank"}
    assert (results.groupby("qid")["rank"].min() == 0).all()
    run: dict[str, dict[str, float]] = {query_id: {} for query_id in dataset.queries}
    for row in results.itertuples():
        run[row.qid][row.docno] = row.score
    expected = evaluate(dataset.qrels, rusbeir.search(dataset, k=20), ["nDCG@10"])
    assert evaluate(dataset.qrels, run, ["nDCG@10"]).per_query == expected.per_query
    # A pipeline: the cut-off is PyTerrier's.
    assert (retrieve % 1)(queries).groupby("qid").size().max() == 1
    with pytest.raises(BadInput, match="no column qid"):
        retrieve(pandas.DataFrame([{"query": "радий"}]))
