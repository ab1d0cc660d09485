"""BM25 in memory against the formulas of tests/support/exact_bm25.py."""

from __future__ import annotations

import numpy as np
import pytest

from rusbeir.retrieval import score_lines
from tests.support.exact_bm25 import Field, lucene_length

DOCUMENTS = ["a b b", "", "b c ~bc", " ".join(["a"] * 40 + ["c", "~ab", "~bc", "~bc"]), "d"]
QUERIES = ["b c", "a a unknown", "", "c ~bc ~ab"]


@pytest.mark.parametrize(("part", "sign", "weight"), [(0, "", 1.0), (1, "~", 0.2)], ids=["words", "grams"])
def test_scores_are_those_of_the_formula(part, sign, weight):
    """Documents without terms are not counted, lengths have one byte, a term twice in a query counts twice."""

    def split(line: str) -> list[str]:
        return [term for term in line.split() if term.startswith("~") == bool(sign)]

    field = Field([split(line) for line in DOCUMENTS])
    expected = [field.scores(split(line), k1=1.2, b=0.75, length=lucene_length, factor=weight) for line in QUERIES]
    assert score_lines(DOCUMENTS, QUERIES)[part] == pytest.approx(np.array(expected), rel=1e-5)


def test_texts_without_terms_score_nothing():
    assert not np.any(score_lines(["", ""], ["a"]))
