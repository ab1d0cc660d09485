"""SPLADE models by sentence-transformers, with random weights: rusbeir's weights and scores equal the library's."""

from __future__ import annotations

import numpy as np
import pytest

from rusbeir.errors import BadInput
from rusbeir.experiment import bench
from rusbeir.retrieval import resolve
from rusbeir.retrieval.models import batches as token_batches
from rusbeir.types import Dataset, Doc
from tests.support import tiny_encoders
from tests.support.torch_systems import DOCS, QUERY, TEXTS, Docs, search

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("fresh_cache")]

TEXTS_OF_QUERIES = [QUERY, "", "рыба в реке", "кошка и дом " * 9]


@pytest.mark.parametrize("name", ["splade", "router"])
def test_weights_and_scores_equal_the_library(models, name, monkeypatch):
    """In batches of other texts than the library's, of documents short and cut; a router looks up those of queries."""
    from sentence_transformers import SparseEncoder

    monkeypatch.setitem(token_batches.BATCH_TOKENS, "cpu", 200)
    docs = Docs(Doc(f"d{number}", text) for number, text in enumerate(tiny_encoders.uneven(60)))
    system = resolve(f"sparse({models[name]})", language="ru")
    found = system.prepare(docs, "f").retriever.search(dict(enumerate(TEXTS_OF_QUERIES)), 60)
    plain = SparseEncoder(str(models[name]))
    queries = plain.encode_query(TEXTS_OF_QUERIES, convert_to_sparse_tensor=False)
    documents = plain.encode_document([doc.text for doc in docs], convert_to_sparse_tensor=False)
    width = min(queries.shape[1], documents.shape[1])
    scores = plain.similarity(queries[:, :width], documents[:, :width]).numpy()
    assert np.abs(system.encoder.encode_queries(TEXTS_OF_QUERIES).toarray() - queries.numpy()).max() < 1e-6
    for hits, line in zip(found.values(), scores, strict=True):
        expected = {f"d{number}": score for number, score in enumerate(line) if score > 0}
        assert hits == pytest.approx(expected, rel=2e-6)
        assert list(hits.values()) == sorted(hits.values(), reverse=True)
    assert found[1] == {} or name == "splade", "a query without tokens, of which a model reads those that frame it"


def test_pruned_documents_and_what_the_row_says(models, tmp_path):
    """Three terms of each document, of four: FLOPS is the chance that a query and a document share a term, summed."""
    dataset = Dataset.of(DOCS, {"q": QUERY}, {"q": {"cat": 1}}, language="ru")
    whole, pruned, sharp = (
        bench(dataset, f"sparse({models['splade']}{options})", out=tmp_path) for options in ("", ",top=3", ",prune=1")
    )
    encoder = resolve(f"sparse({models['splade']})", language="ru").encoder
    weights, query = encoder.encode_documents(TEXTS).toarray(), encoder.encode_queries([QUERY]).toarray()[0]
    assert whole["terms"] == pytest.approx(
        {
            "document": (weights > 0).sum(1).mean(),
            "query": (query > 0).sum(),
            "flops": (weights[:, query > 0] > 0).sum() / 4,
        }
    )
    best = np.argsort(-weights, axis=1)[:, :3]
    assert pruned["terms"]["document"] == 3
    assert pruned["terms"]["flops"] == pytest.approx((query[best] > 0).sum() / 4)
    assert sharp["terms"]["document"] == 1
    assert "|top:3|v:" in pruned["signature"]
    assert "|prune:1|v:" in sharp["signature"]
    hits = search(f"sparse({models['splade']},top=3)")
    expected = [(weights[row][best[row]] * query[best[row]]).sum() for row in range(4)]
    assert hits == pytest.approx(
        {doc.doc_id: score for doc, score in zip(DOCS, expected, strict=True) if score > 0}, rel=1e-5
    )


FAMILIES = [
    # system, the message, why
    ("sparse({cls})", "{cls} is a dense model, not a sparse one: write dense({cls}).", "a dense model"),
    ("dense({splade})", "{splade} is a sparse model, not a dense one: write sparse({splade}).", "a model of terms"),
    ("dense({late})", "{late} is a late model, not a dense one: write late({late}).", "a late model"),
    ("bm25 >> rerank({splade})", "{splade} is a sparse model, not a rerank one: write sparse({splade}).", "to rerank"),
    ("sparse({cross})", "{cross} is a rerank model, not a sparse one: write bm25 >> rerank({cross}).", "a reranker"),
    ("sparse({m3})", "Nothing in the files of {m3} says that it is a sparse model. For a model of the kind of bge-m3 "
     "write sparse({m3},like=bge-m3).", "BGE-M3"),
    ("sparse(FRIDA)", "FRIDA is a dense model, not a sparse one: write dense(FRIDA).", "by its name"),
    ("dense(splade-v3)", "splade-v3 is a sparse model, not a dense one: write sparse(splade-v3).", "by its name"),
    ("sparse(bge-m3,runtime=sentence-transformers)", "bge-m3 is run by flagembedding, not by sentence-transformers.",
     "a runtime that lacks its heads"),
    ("sparse({splade},prune=2)", "sparse needs prune to be a share of a document's greatest weight, from 0 to 1.",
     "a share"),
]  # fmt: skip


@pytest.mark.parametrize(("system", "message", "why"), FAMILIES, ids=[row[-1] for row in FAMILIES])
def test_a_model_of_another_family_is_refused_before_it_is_loaded(models, system, message, why):
    with pytest.raises(BadInput) as raised:
        resolve(system.format(**models), language="ru").check_available()
    assert str(raised.value) == message.format(**models)
