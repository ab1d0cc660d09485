"""Vectors beside text: exact ones are exact, graphs are nearly so, and both halves speak of the same rows."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from rusbeir.errors import BadInput
from rusbeir.retrieval.dense import vector_search
from rusbeir.retrieval.elasticsearch import connection, engine, indexes, vectors
from rusbeir.retrieval.lexical.bm25 import Bm25
from rusbeir.retrieval.lexical.engines import IndexKey

DOCUMENTS, DIM, K = 3_000, 64, 20
TERMS = [(f"d{row}", (f"w{row} w{row % 50}",)) for row in range(DOCUMENTS)]


def unit(count: int, seed: int) -> vectors.Array:
    """Vectors about 40 centres, as embeddings are, not spread evenly."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(40, DIM))
    vectors = centres[random.integers(0, 40, count)] + 0.7 * random.normal(size=(count, DIM))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


CORPUS, QUERIES = unit(DOCUMENTS, 1), unit(100, 2)
SCORES = QUERIES @ CORPUS.T


def build(kind: vectors.Kind, url: str, blocks: list[vectors.Array] | None = None) -> vectors.HybridIndex:
    key = IndexKey(signature=f"bm25|hybrid of tests|{kind}|{url}", fingerprint=str(len(blocks or [])))
    server = connection.connect(url)
    return vectors.build(server, key, TERMS, blocks or np.array_split(CORPUS, 7), Bm25(), DIM, kind)


@pytest.mark.parametrize("node", ["elasticsearch", "elasticsearch_9", "opensearch_2"])
@pytest.mark.parametrize(("kind", "least"), [("flat", 1.0), ("hnsw", 0.95), ("int8_hnsw", 0.85)])
def test_recall(request, capfd, node, kind, least):
    url = request.getfixturevalue(node).url
    hits = build(kind, url).vectors.search(QUERIES, K, candidates=100)
    recall = vector_search.compute_recall([rows for rows, _ in hits], [np.argsort(-scores)[:K] for scores in SCORES])
    for query, (rows, scores) in enumerate(hits):
        assert len(rows) == K
        assert scores == sorted(scores, reverse=True)
        tolerance = 0.05 if kind == "int8_hnsw" else 1e-5
        assert scores == pytest.approx(SCORES[query][rows].tolist(), abs=tolerance)
    with capfd.disabled():
        sys.stdout.write(f"\n{node}, {kind}: recall@{K} against exact {recall:.4f}\n")
    assert recall >= least


def test_the_two_halves_share_rows(elasticsearch):
    index = build("flat", elasticsearch.url)
    rows, _ = index.text.search([["w7", "w1007"]], 3)[0]
    assert rows[0] == 1007
    rows, scores = index.vectors.search(CORPUS[1007:1008], 1)[0]
    assert (rows, scores) == ([1007], pytest.approx([1.0], abs=1e-5))


def test_many_queries_are_asked_a_block_at_a_time(elasticsearch, monkeypatch):
    """Each with its own patience, and no more of them than that as text in memory."""
    sizes = []

    def answers(server, index, bodies, batch):
        sizes.append(len(bodies))
        return engine.answers(server, index, bodies, batch)

    index = build("flat", elasticsearch.url)
    whole = [hits for query in QUERIES for hits in index.vectors.search(query[None], K)]
    monkeypatch.setattr(vectors, "answers", answers)
    assert index.vectors.search(QUERIES, K) == whole
    assert sizes == [32, 32, 32, 4]


def test_built_once(elasticsearch):
    build("flat", elasticsearch.url)
    server = connection.connect(elasticsearch.url)
    before = indexes.list_indexes(server)
    build("flat", elasticsearch.url)
    assert indexes.list_indexes(server) == before


WRONG = [
    ([CORPUS[:, :32]], "is \\(3000, 32\\), not \\[n, 64\\]"),
    ([CORPUS * 2], "L2-normalised"),
    ([CORPUS[:2000]], "row 2000 has only one"),
    ([CORPUS, CORPUS[:1]], "row 3000 has only one"),
    ([CORPUS * np.float32("nan")], "L2-normalised"),
]


@pytest.mark.parametrize(("blocks", "line"), WRONG)
def test_vectors_that_do_not_match(elasticsearch, blocks, line):
    with pytest.raises(BadInput, match=line):
        vectors.build(
            connection.connect(elasticsearch.url),
            IndexKey(signature=f"bm25|wrong {line}", fingerprint="f"),
            TERMS,
            blocks,
            Bm25(),
            DIM,
        )


def test_wrong_queries(elasticsearch):
    index = build("flat", elasticsearch.url)
    with pytest.raises(BadInput, match="vectors of 64 numbers"):
        index.vectors.search(QUERIES[:, :3], 5)
    with pytest.raises(BadInput, match="from 1 to 10,000 hits"):
        index.vectors.search(QUERIES, 20_000)
