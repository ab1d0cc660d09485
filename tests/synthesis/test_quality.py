"""Quality control: each rule on tiny examples, what is written, undone, killed and refused."""

from __future__ import annotations

import pytest

from rusbeir.datasets import load
from rusbeir.datasets.validation import validate
from rusbeir.synthesis import Rules, control_quality
from tests.support.labelling_model import LabellingModel, files, small_truth, write_made_set
from tests.support.small_port import records

MODEL = "labeller-7b"
RANKERS = ("bm25", "bm25(profile=raw)", "bm25(k1=0.9)")
RULES = Rules(rankers=RANKERS)


@pytest.fixture
def made(tmp_path, own_cache):
    return write_made_set(tmp_path / "made")


def decided(out):
    """(step, query, document) -> (kind, label, action)."""
    return {
        (row["step"], row["query_id"], row["doc_id"]): (row["kind"], row["label"], row["action"])
        for row in records(out / "qa" / "decisions.jsonl")
    }


def test_the_set(made, tmp_path, serve):
    model = serve(LabellingModel(small_truth))
    told = []
    out = tmp_path / "out"
    control_quality(made, out=out, llm=MODEL, rules=RULES, tell=told.append)
    found = decided(out)
    assert found["source", "q3", "ice"] == ("positive", 0, "drop-query")
    assert found["source", "q4", "wolves"] == ("positive", 2, "keep")
    assert found["candidate", "q1", "q1-neg2"] == ("hard-negative", 3, "drop-document")
    assert found["candidate", "q1", "steam"] == ("unjudged", 3, "add-judgement")
    checked = load(out, split="all")
    assert checked.qrels == {"q1": {"water": 1, "q1-neg1": 0, "steam": 1}, "q2": {"hares": 1}, "q4": {"wolves": 1}}
    assert validate(out) == []
    assert max(model.pairs.values()) == 1
    before = files(out)
    control_quality(made, out=out, llm=MODEL, rules=RULES)
    assert files(out) == before
