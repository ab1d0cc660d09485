"""Late models by sentence-transformers, with random weights: rusbeir's scores equal the library's."""

from __future__ import annotations

import numpy as np
import pytest

from rusbeir.errors import BadInput
from rusbeir.retrieval import resolve
from rusbeir.retrieval.models import batches as token_batches
from rusbeir.types import Doc
from tests.support import tiny_encoders
from tests.support.torch_systems import DOCS, FIRST, PAIRS, QUERY, TEXTS, Docs, search

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("fresh_cache")]

QUERIES = {"q": QUERY, "empty": "", "short": "рыба в реке", "long": "кошка и дом " * 9}


@pytest.mark.parametrize("name", ["late", "fixed", "min"])
def test_first_stage_and_reranker_equal_the_library(models, name, monkeypatch):
    """Of queries filled up or not, compared by sum or mean; documents without a word that the model skips."""
    from sentence_transformers import MultiVectorEncoder

    monkeypatch.setitem(token_batches.BATCH_TOKENS, "cpu", 200)
    docs = Docs(Doc(f"d{number}", text) for number, text in enumerate(tiny_encoders.uneven(60)))
    plain = MultiVectorEncoder(str(models[name]))
    queries, documents = plain.encode_query([*QUERIES.values()]), plain.encode_document([doc.text for doc in docs])
    scores = plain.similarity(queries, documents).numpy()
    rounded = plain.similarity(queries, [document.half().float() for document in documents]).numpy()
    # The batch changes the last bits of a vector, and so now and then its rounding.
    for dtype, expected, bound in (("float32", scores, 1e-6), ("float16", rounded, 5e-5)):
        run = (
            resolve(f"late({models[name]},dtype={dtype})", language="ru")
            .prepare(docs, "f")
            .retriever.search(QUERIES, 60)
        )
        for line, hits in zip(expected, run.values(), strict=True):
            assert hits == pytest.approx({f"d{number}": score for number, score in enumerate(line)}, rel=bound)
            assert list(hits.values()) == sorted(hits.values(), reverse=True)
    reranker = resolve(f"bm25 >> rerank({models[name]})", language="ru").reranker
    for line, text in zip(scores, QUERIES.values(), strict=True):
        assert reranker.score(text, [doc.text for doc in docs]) == pytest.approx(line.tolist(), rel=1e-6)
    assert reranker.are_truncated(QUERY, ["кошка", "дом " * 50]) == [False, True]
    assert reranker.are_truncated(QUERIES["long"], ["кошка"]) == [True]


def test_the_heads_of_bge_m3_equal_the_package(models):
    """As a first stage its multi-vector head scores as the reranker of that head does."""
    from FlagEmbedding import BGEM3FlagModel

    plain = BGEM3FlagModel(str(models["m3"]), use_fp16=False)
    vectors = plain.encode([QUERY, *TEXTS], max_length=64, return_dense=False, return_colbert_vecs=True)["colbert_vecs"]
    expected = [float(plain.colbert_score(vectors[0], document)) for document in vectors[1:]]
    hits = search(f"late({models['m3']},like=bge-m3,max_tokens=64,dtype=float32)")
    assert hits == pytest.approx({doc.doc_id: score for doc, score in zip(DOCS, expected, strict=True)}, rel=1e-6)


def test_prefixes_and_length_may_be_set(models, caplog):
    from sentence_transformers import MultiVectorEncoder

    hits = search(f'late({models["late"]},query_prefix="",document_prefix="рыба ",max_tokens=12,dtype=float32)')
    plain = MultiVectorEncoder(str(models["late"]))
    plain[0].document_length = 12
    documents = plain.encode_document(TEXTS, prompt="рыба ")
    scores = plain.similarity(plain.encode_query([QUERY], prompt=""), documents).numpy()[0]
    assert hits == pytest.approx({doc.doc_id: score for doc, score in zip(DOCS, scores, strict=True)}, rel=1e-6)
    assert "reads at once: cut at 12 tokens" in caplog.text
    assert "is not in models.toml" not in caplog.text, "the files of a late model say all that it needs"


def test_no_prefix_is_another_system_than_the_prefix_of_the_model(models):
    specs = [f"late({models['late']}{options})" for options in ("", ',query_prefix=""', ',document_prefix=""')]
    assert len({resolve(spec, language="ru").signature for spec in specs}) == 3


def test_reranked_hits_of_many_queries(models):
    hits = search(f"{FIRST} >> rerank({models['fixed']})")
    reranker = resolve(f"bm25 >> rerank({models['fixed']},runtime=late)", language="ru").reranker
    assert hits == pytest.approx(
        dict(zip([doc.doc_id for doc in DOCS], reranker.score(QUERY, PAIRS), strict=True)), rel=1e-6
    )
    assert np.unique(list(hits.values())).size == 4


FAMILIES = [
    # system, the message
    ("late({cls})", "{cls} is a dense model, not a late one: write dense({cls})."),
    ("late({router})", "{router} is a sparse model, not a late one: write sparse({router})."),
    ("late({m3})", "Nothing in the files of {m3} says that it is a late model. For a model of the kind of bge-m3 write "
     "late({m3},like=bge-m3)."),
    ("sparse({fixed})", "{fixed} is a late model, not a sparse one: write late({fixed})."),
    ("bm25 >> rerank({late},runtime=cross-encoder)",
     "{late} is a late model, not a rerank one: write rerank({late},runtime=late)."),
    ("late(FRIDA)", "FRIDA is a dense model, not a late one: write dense(FRIDA)."),
]  # fmt: skip


@pytest.mark.parametrize(("system", "message"), FAMILIES, ids=[row[0] for row in FAMILIES])
def test_a_model_of_another_family_is_refused_before_it_is_loaded(models, system, message):
    with pytest.raises(BadInput) as raised:
        resolve(system.format(**models), language="ru").check_available()
    assert str(raised.value) == message.format(**models)


def test_code_of_a_repository_is_not_run():
    with pytest.raises(
        BadInput, match="jina-colbert-v2 needs code from its own repository, which rusbeir does not run"
    ):
        resolve("late(jina-colbert-v2)", language="ru")
