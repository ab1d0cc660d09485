"""BGE-M3 by FlagEmbedding, with random weights: vectors, term weights and pairs' scores equal the package's."""

from __future__ import annotations

import random

import pytest

from rusbeir.errors import BackendError, BadInput
from rusbeir.retrieval import resolve
from rusbeir.retrieval.models import batches as token_batches
from rusbeir.types import Doc
from tests.support import tiny_encoders
from tests.support.torch_systems import DOCS, FIRST, PAIRS, QUERY, TEXTS, Docs, expected, search

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("fresh_cache")]


def test_flagembedding_dense_equals_the_library(models):
    from FlagEmbedding import BGEM3FlagModel

    hits = search(f"dense({models['m3']},runtime=flagembedding,max_tokens=64)")
    plain = BGEM3FlagModel(str(models["m3"]), use_fp16=False)
    vectors = plain.encode(TEXTS, max_length=64)["dense_vecs"]
    assert hits == pytest.approx(expected(plain.encode([QUERY], max_length=64)["dense_vecs"][0], vectors), abs=1e-5)


def test_sparse_equals_the_library(models, monkeypatch, caplog):
    """Each pair that shares a token, of texts short and cut; and the stage again in a fusion, which encodes nothing."""
    from FlagEmbedding import BGEM3FlagModel

    generator = random.Random(4)
    texts = [" ".join(generator.choices(tiny_encoders.WORDS, k=generator.randint(0, 60))) for _ in range(150)]
    docs = Docs(Doc(f"d{number}", text, "рыба" * (number % 9 == 0)) for number, text in enumerate(texts))
    queries = {f"q{number}": text for number, text in enumerate([QUERY, "", "рыба в реке", *texts[5:25]])}
    sparse = f"sparse({models['m3']},like=bge-m3,max_tokens=40)"
    scores_found = resolve(sparse, language="ru").prepare(docs, "f").retriever.search(queries, 200)
    plain = BGEM3FlagModel(str(models["m3"]), use_fp16=False)
    weights, of_queries = (
        plain.encode(list(some), max_length=40, return_dense=False, return_sparse=True)["lexical_weights"]
        for some in ([f"{doc.title}\n{doc.text}" if doc.title else doc.text for doc in docs], queries.values())
    )
    scores = plain.compute_lexical_matching_score(of_queries, weights)
    assert 0 < (scores == 0).sum() < scores.size / 2
    for hits, line in zip(scores_found.values(), scores, strict=True):
        assert hits == pytest.approx({f"d{number}": score for number, score in enumerate(line) if score > 0}, rel=1e-5)
        assert list(hits.values()) == sorted(hits.values(), reverse=True)
    assert scores_found["q1"] == {}
    assert "reads at once: cut at 40 tokens" in caplog.text

    monkeypatch.setattr(token_batches.Devices, "run", None)
    fusion = resolve(f"rrf(bm25,{sparse})", language="ru")
    assert f"+[sparse|{models['m3']}@unknown|" in fusion.signature
    assert len(fusion.prepare(docs, "f").retriever.search(queries, 5)["q0"]) == 5


@pytest.mark.parametrize(("runtime", "mode"), [("bge-m3-sparse", "sparse"), ("bge-m3-multivector", "colbert")])
def test_flagembedding_sparse_and_multivector_equal_the_library(models, runtime, mode):
    from FlagEmbedding import BGEM3FlagModel

    hits = search(f"{FIRST} >> rerank({models['m3']},runtime={runtime},max_tokens=64)")
    plain = BGEM3FlagModel(str(models["m3"]), use_fp16=False)
    # One pair at a time: the package lets padding compete with tokens.
    scores_found = [
        plain.compute_score([(QUERY, text)], max_query_length=64, max_passage_length=64)[mode][0] for text in PAIRS
    ]
    # Scores of terms are in the hundreds, where a float32 has steps of 3e-5.
    assert hits == pytest.approx(dict(zip([doc.doc_id for doc in DOCS], scores_found, strict=True)), rel=1e-6, abs=1e-5)


def test_one_load_of_bge_m3_serves_all_its_parts(models, tmp_path, monkeypatch):
    """Of both runtimes; a fusion of its dense and sparse parts loaded it twice, each time with 2.3 GB of weights."""
    import sentence_transformers

    loads = []
    load_model = sentence_transformers.SentenceTransformer
    monkeypatch.setattr(
        sentence_transformers,
        "SentenceTransformer",
        lambda *args, **options: loads.append(args) or load_model(*args, **options),
    )
    folder = tmp_path / "m3"
    folder.symlink_to(models["m3"])
    like = f"{folder},like=bge-m3,max_tokens"
    fused = f"rrf(dense({like}=64),dense({like}=30,runtime=flagembedding),sparse({like}=40))"
    assert len(search(f"{fused} >> rerank({folder},runtime=bge-m3-multivector,max_tokens=64)")) == 4
    assert loads == [(str(folder),)]
    # What one part sets does not reach another.
    dense, short = (resolve(f"dense({like}={n})", language="ru").encoder for n in (64, 30))
    assert [dense.transformer.max_seq_length, short.transformer.max_seq_length] == [64, 30]


def test_cut_texts_of_bge_m3_are_reported(models, caplog):
    search(f"dense({models['m3']},runtime=flagembedding,max_tokens=40)")
    assert "1 of 4 texts (25.00 %) are longer than" in caplog.text
    assert "cut at 40 tokens" in caplog.text


def test_bge_m3_comes_from_the_hub_at_its_revision(models, tmp_path, monkeypatch):
    """The hub's own cache holds two revisions, one of them without the heads."""
    import huggingface_hub.constants

    snapshots = tmp_path / "models--owner--name" / "snapshots"
    snapshots.mkdir(parents=True)
    for letter, model in (("a", "m3"), ("b", "headless")):
        (snapshots / (letter * 40)).symlink_to(models[model])
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    system = "sparse(owner/name,like=bge-m3,max_tokens=64,revision={})"
    assert set(search(system.format("a" * 40))) == {"cat", "dog"}
    with pytest.raises(BadInput, match=r"lacks colbert_linear\.pt"):
        search(system.format("b" * 40))
    with pytest.raises(BackendError, match=r"hf download owner/name --revision c+ --local-dir"):
        search(system.format("c" * 40))
