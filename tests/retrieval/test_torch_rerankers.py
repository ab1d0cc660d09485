"""Cross-encoders and FlagEmbedding's rerankers with random weights: rusbeir's scores equal the libraries'."""

from __future__ import annotations

import random

import pytest

from rusbeir.errors import BadInput
from rusbeir.retrieval import resolve
from rusbeir.retrieval.models import batches as token_batches
from rusbeir.types import Doc
from tests.support import tiny_encoders
from tests.support.torch_systems import DOCS, FIRST, PAIRS, QUERY, Docs, search

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("fresh_cache")]


@pytest.mark.parametrize("name", ["cross", "half"])
def test_cross_encoder_equals_the_library_in_single_precision(models, name):
    import torch
    from sentence_transformers import CrossEncoder

    hits = search(f"{FIRST} >> rerank({models[name]},max_tokens=64)")
    plain = CrossEncoder(str(models[name]), max_length=64, model_kwargs={"dtype": torch.float32})
    logits = plain.predict([(QUERY, text) for text in PAIRS], activation_fn=torch.nn.Identity()).tolist()
    assert hits == pytest.approx(dict(zip([doc.doc_id for doc in DOCS], logits, strict=True)), abs=1e-5)
    assert list(hits.values()) == sorted(hits.values(), reverse=True)


@pytest.mark.parametrize(
    ("runtime", "kind", "model"),
    [
        ("flagembedding", "FlagReranker", "cross"),
        ("flagembedding", "FlagReranker", "half"),
        ("flagembedding-llm", "FlagLLMReranker", "gemma"),
    ],
)
def test_flag_rerankers_equal_the_library_in_single_precision(models, runtime, kind, model):
    import FlagEmbedding

    system = f"{FIRST} >> rerank({models[model]},runtime={runtime},max_tokens=64"
    hits = search(f"{system})")
    plain = getattr(FlagEmbedding, kind)(str(models[model]), use_fp16=False)
    plain.model.float()
    logits = plain.compute_score([(QUERY, text) for text in PAIRS], max_length=64)
    assert hits == pytest.approx(dict(zip([doc.doc_id for doc in DOCS], logits, strict=True)), abs=1e-5)
    assert len(set(hits.values())) == 4
    assert len(search(f"{system},depth=1)")) == 1, "one pair, which the package may answer without a list"


RERANKERS = [
    # runtime, model, tokens that the pair may have fewer than max_tokens and still be counted as cut
    ("cross-encoder", "cross", 0),
    ("flagembedding", "cross", 0),
    ("flagembedding-llm", "gemma", 60),
    ("bge-m3-sparse", "m3", 0),
    ("bge-m3-multivector", "m3", 0),
]


@pytest.mark.parametrize(("runtime", "model", "slack"), RERANKERS, ids=[row[0] for row in RERANKERS])
def test_truncated_is_a_text_whose_last_word_changes_no_score(models, runtime, model, slack):
    """Words are one token each. A text is read whole if and only if its last word makes a difference to its score."""
    system = resolve(f"bm25 >> rerank({models[model]},runtime={runtime},max_tokens=40)", language="ru")
    query, lengths = "кто рыба", range(20, 90)
    texts = [" ".join(["дом"] * (n - 1) + ["рыба"]) for n in lengths]
    others = [" ".join(["дом"] * n) for n in lengths]
    reranker = system.reranker
    scores, unlike = reranker.score(query, texts), reranker.score(query, others)
    read = [abs(a - b) > 1e-6 for a, b in zip(scores, unlike, strict=True)]
    cut = reranker.are_truncated(query, texts)
    assert any(read)
    assert any(cut)
    if slack:
        assert all(seen or reported for seen, reported in zip(read, cut, strict=True)), (
            "nothing is cut without a report"
        )
        assert read.index(False) - cut.index(True) <= slack
    else:
        assert [n for n, seen in zip(lengths, read, strict=True) if not seen] == [
            n for n, reported in zip(lengths, cut, strict=True) if reported
        ]


@pytest.mark.parametrize("first", ["cross-encoder", "flagembedding"])
def test_truncated_pairs_are_reported_for_cached_scores_too(models, caplog, first):
    system = f"{FIRST} >> rerank({models['cross']},runtime={first},max_tokens=40)"
    for _ in range(2):
        caplog.clear()
        search(system)
        assert (
            f"1 of 4 pairs (25.00 %) are longer than {models['cross']} reads at once: cut at 40 tokens" in caplog.text
        )


def test_pairs_of_many_queries_are_batched_by_length_and_equal_the_library(models, monkeypatch):
    import torch
    from sentence_transformers import CrossEncoder

    generator = random.Random(7)
    texts = [" ".join(generator.choices(tiny_encoders.WORDS, k=generator.randint(1, 60))) for _ in range(40)]
    docs = Docs(Doc(f"d{number}", text) for number, text in enumerate(texts))
    queries = {f"q{number}": " ".join(generator.choices(tiny_encoders.WORDS, k=number + 1)) for number in range(5)}
    monkeypatch.setitem(token_batches.BATCH_TOKENS, "cpu", 512)
    system = resolve(f"bm25(profile=raw) >> rerank({models['cross']},max_tokens=40,depth=30)", language="ru")
    sizes = []
    encoder = system.reranker._encoder
    encoder.register_forward_pre_hook(lambda _, inputs: sizes.append(inputs[0]["input_ids"].shape))
    run = system.prepare(docs, "f").retriever.search(queries, 30)
    pairs = [(query_id, doc_id) for query_id, hits in run.items() for doc_id in hits]
    plain = CrossEncoder(str(models["cross"]), max_length=40, model_kwargs={"dtype": torch.float32})
    scores = plain.predict(
        [(queries[query_id], docs[doc_id].text) for query_id, doc_id in pairs], activation_fn=torch.nn.Identity()
    )
    assert [run[query_id][doc_id] for query_id, doc_id in pairs] == pytest.approx(scores.tolist(), abs=1e-5)
    assert sum(rows for rows, _ in sizes) == len(pairs) > 100
    assert [length for _, length in sizes] == sorted((length for _, length in sizes), reverse=True)
    assert all(rows * length <= 512 for rows, length in sizes)
    for part in (
        "dense({},runtime=flagembedding",
        "sparse({},like=bge-m3",
        "bm25 >> rerank({},runtime=bge-m3-multivector",
    ):
        name = part.format(models["m3"])
        signed = resolve(f"{name},precision=bfloat16)", language="ru").signature
        assert signed.replace("|precision:bfloat16", "") == resolve(f"{name})", language="ru").signature != signed
        assert len(search(f"{name},precision=bfloat16,max_tokens=40)")) >= 2
    half = resolve(f"bm25 >> rerank({models['cross']},precision=bfloat16)", language="ru")
    assert half.reranker.signature.endswith("|precision:bfloat16")
    assert "precision" not in system.reranker.signature
    with pytest.raises(BadInput, match="has no option 'precision' with runtime=flagembedding: it would change nothing"):
        resolve(f"bm25 >> rerank({models['cross']},runtime=flagembedding,precision=bfloat16)", language="ru")
