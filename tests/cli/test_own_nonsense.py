"""Models of one's own that answer what they should not: one line, no traceback, exit code 1 or 2."""

from __future__ import annotations

import sys
import textwrap

import pytest

MODULE = """
    import numpy as np

    class Mine:
        signature = "mine"

        def __init__(self, corpus=None):
            self.corpus = corpus

        def search(self, queries, k):
            return {answer}

        def encode_queries(self, texts):
            return {answer}

        encode_documents = encode_queries

        def score(self, query, documents):
            return {answer}

    class Shy(Mine):
        @property
        def signature(self):
            raise RuntimeError("no name")

    class Model:
        def __call__(self, *args):
            raise RuntimeError("two\\nlines")

    def calling(corpus):
        made = Mine()
        made.search = Model()
        return made
"""

SEARCH = "python:mine.Mine"
RERANK = "bm25 >> rerank(python:mine.Mine)"
DENSE = "dense(python:mine.Mine)"
UNKNOWN = "which the corpus does not have: answer the doc_id of its documents as it is, such as 'd1'."

ROWS = [
    # system, what it answers, parts of the message
    (SEARCH, "['d1']", ["answered a list for the queries: a dict is needed, {query_id: {doc_id: score}}."]),
    (SEARCH, "None", ["answered a NoneType for the queries"]),
    (SEARCH, "{q: None for q in queries}", ["answered a NoneType for the query 'q1'"]),
    (SEARCH, "{q: ['d1'] for q in queries}", ["answered a list for the query 'q1'"]),
    (SEARCH, "{q: {'d1': None} for q in queries}", ["answered a score that is not a number for the query 'q1'"]),
    (SEARCH, "{q: {'d1': 'x'} for q in queries}", ["answered a score that is not a number for the query 'q1'"]),
    (SEARCH, "{q: {'d1': 10**400} for q in queries}", ["answered a score that is not a number for the query 'q1'"]),
    (SEARCH, "{q: {'d1': 2, 'd9': 1} for q in queries}", [f"the document 'd9' for the query 'q1', {UNKNOWN}"]),
    (SEARCH, "{q: {1: 1} for q in queries}", [f"the document 1 for the query 'q1', {UNKNOWN}"]),
    (f"rrf(bm25,{SEARCH})", "{q: {'doc-d1': 1} for q in queries}", ["the document 'doc-d1'", UNKNOWN]),
    (f"{SEARCH} >> rerank(python:mine.Mine)", "{q: {None: 1} for q in queries}", ["the document None", UNKNOWN]),
    ("python:mine.calling", "None", ["fails when it runs", "RuntimeError: two lines in mine.py:"]),
    (
        DENSE,
        "[[1.0, 0.0]] + [[1.0]] * (len(texts) - 1)",
        ["returned a list", "not an array of numbers", "inhomogeneous"],
    ),
    (DENSE, "['a'] * len(texts)", ["not an array of numbers", "Return a float32 array [n, dim].", "'a'"]),
    (DENSE, "[[10**400, 0]] * len(texts)", ["not an array of numbers", "Return a float32 array [n, dim]."]),
    (DENSE, "None", ["Return one vector per text."]),
    ("dense(python:mine.Shy)", "None", ["RuntimeError: no name in mine.py:"]),
    ("bm25 >> rerank(python:mine.Shy)", "None", ["RuntimeError: no name in mine.py:"]),
    (
        RERANK,
        "None",
        ["returned a NoneType, which is not a list of numbers", "Return one number for each of the 1 documents."],
    ),
    (RERANK, "[None] * len(documents)", ["returned a list, which is not a list of numbers"]),
    (RERANK, "['a'] * len(documents)", ["returned a list, which is not a list of numbers", "'a'"]),
    (RERANK, "[10**400] * len(documents)", ["returned a list, which is not a list of numbers", "too large"]),
    (RERANK, "{1.0: text for text in documents}", ["returned a dict, which is not a list of numbers", "no order"]),
    (RERANK, "{1.0}", ["returned a set, which is not a list of numbers", "no order"]),
    (RERANK, "'1' * len(documents)", ["returned a str, which is not a list of numbers"]),
    (RERANK, "1.0", ["returned a float, which is not a list of numbers"]),
]


@pytest.fixture
def mine(rusbeir, tmp_path, monkeypatch, fresh_cache):
    """Called with an expression: from then on the module `mine` answers it."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(answer: str) -> None:
        (tmp_path / "mine.py").write_text(textwrap.dedent(MODULE).replace("{answer}", answer), encoding="utf-8")

    yield write
    sys.modules.pop("mine", None)


@pytest.mark.parametrize(("system", "answer", "parts"), ROWS, ids=[f"{row[0]}: {row[1]}" for row in ROWS])
def test_one_line(rusbeir, beir, mine, system, answer, parts):
    mine(answer)
    done = rusbeir("bench", beir, "--lang", "ru", "--system", system)
    assert done.code in {1, 2}
    assert done.out == ""
    lines = done.err.splitlines()
    assert len(lines) == 1, done.err
    assert all(part in lines[0] for part in parts), lines[0]


def test_searching_for_a_foreign_document(rusbeir, beir, mine):
    mine("{q: {1: 1.0} for q in queries}")
    done = rusbeir("search", beir, "мышь", "--lang", "ru", "--system", SEARCH)
    assert done.code == 1
    assert UNKNOWN in done.err
    assert len(done.err.splitlines()) == 1
