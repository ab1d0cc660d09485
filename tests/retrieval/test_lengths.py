"""Document lengths in one byte, as Lucene keeps them: bm25s against the formulas, tantivy and itself."""

from __future__ import annotations

import random
import tempfile
from array import array
from dataclasses import replace
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rusbeir.errors import BadInput
from rusbeir.retrieval.lexical import bm25s_engine, engines
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.stages import resolve
from tests.retrieval.test_lexical import Exact, corpus, words
from tests.support import exact_bm25
from tests.support.stubs import retriever


def test_rounded_lengths_are_small_floats():
    lengths = np.concatenate([np.arange(70_000), 2 ** np.arange(17, 31), 2 ** np.arange(17, 31) - 1, [2**31 - 1]])
    expected = [exact_bm25.lucene_length(int(length)) for length in lengths]
    assert bm25s_engine.round_lengths(lengths).tolist() == expected


FIELDS = [{"fields": "flat"}, {"fields": "sum"}, {"fields": "best_fields", "tie_breaker": 0.5}]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 1 << 30),
    size=st.integers(1, 200),
    no_title=st.sampled_from([0.0, 0.3, 1.0]),
    no_text=st.sampled_from([0.0, 0.1]),
    longest=st.sampled_from([30, 300, 2_000]),
    fields=st.sampled_from(FIELDS),
    k1=st.sampled_from([0.9, 1.2]),
)
def test_bm25s_scores_are_lucenes(seed, size, no_title, no_text, longest, fields, k1):
    random_ = random.Random(seed)
    docs = corpus(random_, size, no_title=no_title, no_text=no_text, longest=longest)
    bm25 = Bm25(k1=k1, b={0.9: 0.4, 1.2: 0.75}[k1], lengths="lucene", **fields)
    queries = {str(number): words(random_, 1, 6) for number in range(10)}
    reference = Exact(docs, bm25, "bm25s")
    with tempfile.TemporaryDirectory() as folder:
        run = retriever(Path(folder) / "bm25s", docs, "bm25s", bm25).search(queries, size)
        for query_id, text in queries.items():
            exact = {
                doc.doc_id: score for doc, score in zip(docs, reference.scores(text.split()), strict=True) if score
            }
            assert run[query_id] == pytest.approx(exact, rel=1e-6)
        if k1 == 1.2:
            # tantivy keeps the factor k1 + 1 that Lucene 8 dropped.
            by_tantivy = retriever(Path(folder) / "tantivy", docs, "tantivy", bm25).search(queries, size)
            for query_id, hits in by_tantivy.items():
                scaled = {doc_id: score / (k1 + 1) for doc_id, score in hits.items()}
                # It takes the logarithm of idf in single precision: 2^-23 at most off for a term in each field.
                off = 2**-22 * len(queries[query_id].split())
                assert run[query_id] == pytest.approx(scaled, rel=1e-6, abs=off)


@settings(max_examples=40)
@given(
    documents=st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=80), min_size=1, max_size=60),
    k1=st.floats(0, 5),
    b=st.floats(0, 1),
)
def test_exact_lengths_give_bm25s_own_index(documents, k1, b):
    vocabulary = {token: token for token in sorted({token for document in documents for token in document})}
    ids = {token: number for number, token in enumerate(vocabulary)}
    tokens = bm25s.tokenization.Tokenized(
        ids=[array("i", [ids[token] for token in document]) for document in documents],
        vocab={str(token): number for token, number in ids.items()},
    )
    theirs, ours = (make(method="lucene", k1=k1, b=b) for make in (bm25s.BM25, bm25s_engine._Index))
    for index in (theirs, ours):
        index.index(tokens, create_empty_token=False, show_progress=False)
    for name in ("indices", "indptr"):
        assert ours.scores[name].tolist() == theirs.scores[name].tolist()
        assert ours.scores[name].dtype == theirs.scores[name].dtype
    assert ours.scores["data"].dtype == theirs.scores["data"].dtype
    np.testing.assert_allclose(ours.scores["data"], theirs.scores["data"], rtol=1e-6)
    assert ours.scores["num_docs"] == theirs.scores["num_docs"]


SIGNED = [
    # text, name of an engine, engine and lengths in the signature, why
    ("bm25(profile=anserini-flat)", "auto", "bm25s", "lucene", "Anserini's digits need Lucene's lengths"),
    ("bm25(profile=anserini-multifield)", "auto", "bm25s", "lucene", "the same over two fields"),
    ("bm25(profile=anserini-flat,lengths=exact)", "auto", "bm25s", "exact", "an option overrides the profile"),
    ("bm25(profile=es-best_fields)", "bm25s", "bm25s", "lucene", "Elasticsearch is Lucene"),
    ("bm25(profile=lucene-english)", "bm25s", "bm25s", "lucene", "a recipe that bears Lucene's name"),
    ("bm25(k1=0.9,b=0.4)", "auto", "bm25s", "exact", "bm25s' own way"),
    ("bm25(k1=0.9,b=0.4,lengths=lucene)", "auto", "bm25s", "lucene", "the option without a profile"),
    ("bm25(lengths=lucene)", "auto", "tantivy", "lucene", "tantivy keeps these anyway"),
    ("bm25(lengths=exact)", "auto", "bm25s", "exact", "tantivy has no exact lengths"),
]


@pytest.mark.parametrize(("text", "name", "engine", "lengths", "why"), SIGNED)
def test_the_signature_tells_how_lengths_are_kept(text, name, engine, lengths, why):
    system = resolve(text, language="en", engine=name)
    assert system.engine == engine, why
    assert f"|{engine}-" in system.signature
    assert f"|len:{lengths}|" in system.signature


KEPT_IN_A_BYTE = "keeps document lengths in one byte, as Lucene does, and cannot keep them exact."
REFUSED = [
    ("tantivy", Bm25(lengths="exact"), f"tantivy {KEPT_IN_A_BYTE} Use engine=auto or bm25s."),
    ("elasticsearch", Bm25(lengths="exact"), f"elasticsearch {KEPT_IN_A_BYTE} Use engine=auto or bm25s."),
    (
        "auto",
        Bm25(lengths="exact", analysis="server", server_language="ru"),
        "No engine computes this BM25. tantivy gets terms and cannot leave the analysis to a server. "
        f"bm25s gets terms and cannot leave the analysis to a server. elasticsearch {KEPT_IN_A_BYTE} "
        f"opensearch {KEPT_IN_A_BYTE}",
    ),
]


@pytest.mark.parametrize(("engine", "bm25", "message"), REFUSED)
def test_exact_lengths_are_refused_where_an_engine_lacks_them(engine, bm25, message):
    with pytest.raises(BadInput) as error:
        engines.choose(engine, bm25)
    assert str(error.value) == message


def test_lengths_change_scores_of_long_documents_only(tmp_path):
    docs = corpus(random.Random(5), 50, no_title=0.0, no_text=0.0)
    bm25 = Bm25(k1=0.9, b=0.4, lengths="lucene")
    rounded = retriever(tmp_path / "lucene", docs, "bm25s", bm25).search({"q": "w1"}, 50)["q"]
    other = retriever(tmp_path / "exact", docs, "bm25s", replace(bm25, lengths="exact")).search({"q": "w1"}, 50)["q"]
    length = {doc.doc_id: len(f"{doc.title} {doc.text}".split()) for doc in docs}
    equal = {doc_id for doc_id in rounded if rounded[doc_id] == other[doc_id]}
    assert equal == {doc_id for doc_id in rounded if exact_bm25.lucene_length(length[doc_id]) == length[doc_id]}
    assert equal < set(rounded)
