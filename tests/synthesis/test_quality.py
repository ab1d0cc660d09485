"""Quality control of a made set: what is asked, written, undone and resumed, and what becomes of every answer."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import warnings

import pytest

from benchmarks.quality_control import measure_chain
from rusbeir.datasets import load
from rusbeir.datasets.validation import validate
from rusbeir.errors import BackendError, BadInput
from rusbeir.jobs import BudgetReached
from rusbeir.synthesis import Rules, control_quality, estimate_quality
from rusbeir.synthesis.queries.generated import read_generated, refuse_wrong_spans
from tests.support.labelling_model import (
    QUERIES,
    TEXTS,
    LabellingModel,
    files,
    label_answer,
    small_truth,
    write_made_set,
)
from tests.support.openai_server import completion, refusal
from tests.support.small_port import records

MODEL = "labeller-7b"
RANKERS = ("bm25", "bm25(profile=raw)", "bm25(profile=unicode)")
RULES = Rules(rankers=RANKERS)
FAST = {"first_wait_seconds": 0.0, "max_wait_seconds": 0.0}
QRELS = {"q1": {"water": 1, "q1-neg1": 0, "steam": 1}, "q2": {"hares": 1}, "q4": {"wolves": 1}}
"""Of the small set, when all its flaws are mended."""


@pytest.fixture
def made(tmp_path, own_cache):
    return write_made_set(tmp_path / "made")


def decisions(out):
    """(step, query, document) -> its line."""
    return {(row["step"], row["query_id"], row["doc_id"]): row for row in records(out / "qa" / "decisions.jsonl")}


def qrels(out):
    return load(out, split="all").qrels


def test_the_set(made, tmp_path, serve):
    model = serve(LabellingModel(small_truth))
    told = []
    out = tmp_path / "out"
    report = control_quality(made, out=out, llm=MODEL, rules=RULES, tell=told.append)
    found = {key: (row["kind"], row["label"], row["action"]) for key, row in decisions(out).items()}
    assert found == {
        ("source", "q1", "water"): ("positive", 3, "keep"),
        ("source", "q2", "hares"): ("positive", 3, "keep"),
        ("source", "q3", "ice"): ("positive", 0, "drop-query"),
        ("source", "q4", "wolves"): ("positive", 2, "keep"),
        ("candidate", "q1", "q1-neg2"): ("hard-negative", 3, "drop-document"),
        ("candidate", "q1", "steam"): ("unjudged", 3, "add-judgement"),
        ("candidate", "q1", "q1-neg1"): ("hard-negative", 1, "keep"),
    }
    thresholds = {key[2]: row["threshold"] for key, row in decisions(out).items() if row["ranks"]}
    assert thresholds == {"q1-neg2": 20, "q1-neg1": 20, "steam": 10}
    row = decisions(out)["candidate", "q1", "steam"]
    assert set(row["ranks"]) == set(RANKERS)
    assert (row["reason"], len(row["id"])) == ("So it says.", 12)

    assert (qrels(out), validate(out)) == (QRELS, [])
    assert report["splits"] == {"dev": 1, "test": 2}, "a made set of short documents is split"
    assert report["documents"] == {"before": 8, "after": 7}
    assert report["queries"] == {"before": 4, "after": 3}
    generated = records(out / "qa" / "generated.jsonl")
    assert [(row["query_id"], row["negatives"]) for row in generated] == [("q1", ["q1-neg1"]), ("q2", []), ("q4", [])]
    assert records(out / "qa" / "removed.jsonl") == [
        {"doc_id": "q1-neg2", "title": "", "text": TEXTS["q1-neg2"]},
        {"query_id": "q3", "text": QUERIES["q3"]},
    ]
    assert [told[0].partition(" receives ")[2], told[1].partition(" receives ")[2]] == [
        f"{n} queries with a document each, {sum(chars[a:b]):,} characters in all."
        for chars in [[sum(len(one["content"]) for one in asked["messages"]) for asked in model.asked]]
        for n, a, b in [(4, 0, 4), (3, 4, 7)]
    ]
    assert report["stages"]["candidate"]["tokens"] == {"input": 30, "output": 15}

    before = files(out)
    control_quality(made, out=out, llm=MODEL, rules=RULES)
    control_quality(made, out=tmp_path / "other", llm=MODEL, rules=RULES)
    assert files(out) == before == files(tmp_path / "other")
    assert set(model.pairs.values()) == {2}, "once for each folder"


INVALID = [
    # what the endpoint answers about q3 and its source, again and again; how it is counted
    ([label_answer(4)], "invalid", "outside the scale"),
    ([label_answer(4), label_answer(0)], None, "outside the scale once"),
    ([completion("3")], "invalid", "no JSON"),
    ([completion('{"label": 0'), label_answer(0)], None, "broken JSON once"),
    ([completion("No.", refusal="No.")], "refused", "a refusal"),
    ([label_answer(0, "half \ud83d")], None, "half a character in the reason"),
    ([completion("", refusal="No \udc80.")], "refused", "half a character in a refusal"),
    ([refusal(400, "bad \ud83d")], "rejected", "half a character in the server's error"),
    ([completion('{"label": 0', finish="length")], "cut", "always cut"),
    ([refusal(400, "maximum context length is 64 tokens")], "too-long", "a document longer than the context"),
    ([refusal(429, "slow down", retry_after="0"), label_answer(0)], None, "too many requests"),
]


@pytest.mark.parametrize(("replies", "reason", "why"), INVALID, ids=[row[2] for row in INVALID])
def test_answers(replies, reason, why, made, tmp_path, serve):
    left = list(replies)

    def answer(query, document):
        if (query, document) == (QUERIES["q3"], TEXTS["ice"]):
            return left.pop(0) if len(left) > 1 else left[0]
        return small_truth(query, document)

    serve(LabellingModel(answer))
    order = {"out": tmp_path / "out", "llm": MODEL, "rules": RULES, "concurrency": 1, **FAST}
    report = control_quality(made, **order)
    assert report["stages"]["source"]["invalid"] == ({reason: 1} if reason else {})
    row = decisions(tmp_path / "out")["source", "q3", "ice"]
    if reason is None:
        assert (row["label"], row["action"]) == (0, "drop-query")
        return
    assert (row["label"], row["action"]) == (None, "keep")
    assert qrels(tmp_path / "out") == QRELS | {"q3": {"ice": 1}}, "without a label it is left as it was"
    left[:] = [label_answer(0)]
    assert control_quality(made, **order)["queries"]["after"] == 4, "what failed is not asked again"
    assert control_quality(made, retry_failed=True, **order)["queries"]["after"] == 3, "unless it is wanted"


def test_an_endpoint_that_does_not_answer(made, tmp_path, serve):
    model = serve(LabellingModel(lambda query, document: refusal(500, "overloaded") if "wolves" in query else 3))
    order = {"out": tmp_path / "out", "llm": MODEL, "rules": RULES, "retries": 1, **FAST}
    with pytest.raises(BackendError, match=r"gave no answer to 1 of 4 questions \(.*\), so nothing was written"):
        control_quality(made, **order)
    assert not (tmp_path / "out" / "corpus.jsonl").exists()
    model.truth = small_truth
    model.pairs.clear()
    control_quality(made, **order)
    assert (QUERIES["q1"], TEXTS["water"]) not in model.pairs


def test_undo(made, tmp_path, serve, monkeypatch):
    serve(LabellingModel(small_truth))
    out = tmp_path / "out"
    order = {"out": out, "llm": MODEL, "rules": RULES}
    control_quality(made, **order)
    ids = {key[2]: row["id"] for key, row in decisions(out).items() if row["action"] != "keep"}
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name)  # Nobody can be asked.
    expected = {query_id: dict(grades) for query_id, grades in QRELS.items()}
    undone = set()
    for doc_id, change in [
        ("ice", {"q3": {"ice": 1}}),
        ("steam", {"q1": {"water": 1, "q1-neg1": 0}}),
        ("q1-neg2", {"q1": {"water": 1, "q1-neg1": 0, "q1-neg2": 0}}),
    ]:
        report = control_quality(made, undo=[ids[doc_id]], **order)
        expected |= change
        undone.add(ids[doc_id])
        assert qrels(out) == expected
        assert {row["id"] for row in decisions(out).values() if row["undone"]} == undone == set(report["undone"])
    assert load(out, split="all").queries.keys() == QUERIES.keys()
    before = files(out)
    control_quality(made, **order)
    assert files(out) == before, "what is undone stays undone"
    (out / "qa" / "undone.txt").write_text("")
    control_quality(made, **order)
    assert qrels(out) == QRELS, "until it is taken from the list"


def test_kills(made, tmp_path, serve):
    most, killed = 10**6, threading.Event()

    def answer(query, document):
        if sum(model.pairs.values()) > most:
            killed.wait(20)
        return small_truth(query, document)

    model = serve(LabellingModel(answer))
    order = {"llm": MODEL, "rules": RULES, "concurrency": 1}
    # First, so that what is killed finds all modules loaded.
    control_quality(made, out=tmp_path / "alone", **order)
    model.pairs.clear()
    # Among the sources, before the candidates, among them.
    for most in (2, 5, 6):
        killed = threading.Event()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # The child has no use for the threads of the server.
            child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                control_quality(made, out=tmp_path / "killed", **order)
            os._exit(1)
        while sum(model.pairs.values()) <= most:
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
            time.sleep(0.002)
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        killed.set()
        assert not (tmp_path / "killed" / "corpus.jsonl").exists()
    most = 10**6
    control_quality(made, out=tmp_path / "killed", **order)
    assert sum(n - 1 for n in model.pairs.values()) <= 3, "a kill may take the answer that was under way"
    assert files(tmp_path / "killed") == files(tmp_path / "alone")


def test_budgets_and_the_estimate(made, tmp_path, serve):
    model = serve(LabellingModel(small_truth))
    prices = {"input_price": 1.0, "output_price": 2.0}
    order = {"out": tmp_path / "out", "llm": MODEL, "rules": RULES, "concurrency": 1, **prices}
    estimate = estimate_quality(made, rules=RULES, **prices)
    assert estimate.source.labels == 4
    # By three rankers, of whom two must agree: 15 others a query, and its hard negatives.
    assert estimate.candidate.labels == 4 * 15 + 2
    with pytest.raises(BudgetReached, match="The budget of 3,000 characters is reached"):
        control_quality(made, budget_chars=3_000, **order)
    asked = len(model.asked)
    assert 0 < asked < 4
    report = control_quality(made, budget_chars=10**6, **order)
    assert set(model.pairs.values()) == {1}
    assert report["stages"]["source"]["asked"] == 4 - asked
    chars = [sum(len(one["content"]) for one in asked["messages"]) for asked in model.asked]
    assert sum(chars[:4]) == estimate.source.chars
    assert estimate.candidate.chars >= sum(chars[4:])
    spent = sum(stage["cost"] for stage in report["stages"].values())
    assert spent == pytest.approx((7 - asked) * (10 + 2 * 5) / 1e6)
    assert spent < estimate.source.cost


LANGUAGES = [
    # language of the set, a word of the prompt, what is told, why
    ("en", "Judge by what the document says", [], "English"),
    ("ru", "Суди по тому, что сказано в документе", [], "Russian"),
    (
        "kk",
        "search engine for texts in Kazakh",
        ["There is no prompt in Kazakh: labeller-7b is asked in English."],
        "another language",
    ),
]


@pytest.mark.parametrize(("language", "words", "said", "why"), LANGUAGES, ids=[row[3] for row in LANGUAGES])
def test_languages(language, words, said, why, tmp_path, serve, own_cache):
    model = serve(LabellingModel(small_truth))
    told = []
    made = write_made_set(tmp_path / "made", language)
    control_quality(made, out=tmp_path / "out", llm=MODEL, rules=RULES, tell=told.append)
    assert all(words in asked["messages"][0]["content"] for asked in model.asked)
    assert [line for line in told if "prompt" in line] == said


def test_a_dataset_that_no_model_made(tmp_path, serve, own_cache):
    """Two splits, grades of 0 and 2, and a judgement of a document that the corpus lacks, which stays."""
    made = write_made_set(tmp_path / "made")
    (made / "qa" / "generated.jsonl").unlink()
    header = "query-id\tcorpus-id\tscore\n"
    (made / "qrels" / "test.tsv").write_text(
        f"{header}q1\twater\t2\nq1\tbears\t1\nq1\tsteam\t0\nq2\thares\t1\nq2\tlost\t1\n"
    )
    (made / "qrels" / "train.tsv").write_text(f"{header}q3\tice\t1\nq4\twolves\t1\n")
    serve(LabellingModel(small_truth))
    rules = Rules(rankers=RANKERS, positive=3, grade=None)
    control_quality(made, out=tmp_path / "out", llm=MODEL, rules=rules)
    found = {key: (row["kind"], row["action"]) for key, row in decisions(tmp_path / "out").items()}
    assert found["source", "q1", "bears"] == ("positive", "drop-judgement")
    assert found["source", "q4", "wolves"] == ("positive", "drop-query"), "2 is not positive here"
    assert found["candidate", "q1", "steam"] == ("negative", "add-judgement"), "judged 0 by people"
    assert load(tmp_path / "out").qrels == {"q1": {"water": 2, "steam": 3, "q1-neg2": 3}, "q2": {"hares": 1, "lost": 1}}
    assert [path.name for path in (tmp_path / "out" / "qrels").iterdir()] == ["test.tsv"]


RERANKERS = '''
class Words:
    signature, pointwise = "words-1", True
    def score(self, query, documents):
        return [len({*query.split()} & {*text.lower().strip(".").split()}) for text in documents]

class Ends:
    """Prefers what has a full stop, after degrees above all."""
    signature, pointwise = "ends-1", True
    def score(self, query, documents):
        return [text.count(".") + 2 * text.count("degrees.") for text in documents]
'''


def test_spans_and_false_negatives(tmp_path, serve, own_cache, monkeypatch):
    (tmp_path / "mine_qc.py").write_text(RERANKERS)
    monkeypatch.syspath_prepend(tmp_path)
    spans = {
        "q1": (TEXTS["water"].index("at one"), len(TEXTS["water"])),  # With the full stop.
        "q2": (TEXTS["hares"].index("in a hollow"), len(TEXTS["hares"])),
        "q4": (TEXTS["wolves"].index("packs"), len(TEXTS["wolves"]) - 1),  # Without it.
    }
    made = write_made_set(tmp_path / "made", spans=spans)
    serve(LabellingModel(lambda query, document: 3))
    rankers = ("rerank(python:mine_qc.Words)", "rerank(python:mine_qc.Ends)")
    rules = Rules(span_rankers=rankers, false_negatives=rankers[1:])
    control_quality(made, out=tmp_path / "out", llm=MODEL, rules=rules)
    found = decisions(tmp_path / "out")
    row = found["span", "q4", "wolves"]
    assert row["action"] == "drop-query"
    assert row["scores"][rankers[1]] == {"with": 1, "without": 1}, "equal is not enough"
    assert found["span", "q1", "water"]["action"] == "keep"
    outscoring = {key[2]: row for key, row in found.items() if key[:2] == ("false-negative", "q1")}
    assert {name: (row["kind"], row["action"]) for name, row in outscoring.items()} == {
        "q1-neg2": ("hard-negative", "drop-query-and-document"),
        "steam": ("unjudged", "drop-query-and-document"),
    }
    assert outscoring["steam"]["scores"] == {rankers[1]: {"document": 3, "positive": 1}}
    left = load(tmp_path / "out")
    assert left.qrels == {"q1": {"water": 1, "q1-neg1": 0}, "q2": {"hares": 1}, "q3": {"ice": 1}}
    assert len(left.corpus) == len(TEXTS) - 2
    assert {row["step"] for row in found.values()} == {"source", "span", "false-negative"}
    lines = (tmp_path / "out" / "qa" / "spans.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == [query_id for query_id in spans if query_id in left.qrels]


@pytest.mark.parametrize("span", [(-1, 5), (5, 5), (0, 1_000), (3,), (1, 2, 3)])
def test_spans_outside_of_their_documents(span, tmp_path, own_cache):
    made = write_made_set(tmp_path / "made", spans={"q1": span})
    with pytest.raises(BadInput, match="of query 'q1' is not in document 'water'"):
        refuse_wrong_spans(read_generated(made), load(made).corpus)


def test_models_of_one_family(made, tmp_path, serve):
    """The set was made by qwen3-30b."""
    serve(LabellingModel(small_truth))
    report = control_quality(made, out=tmp_path / "out", llm="qwen3-235b", rules=RULES)
    assert report["families"] == [{"family": "qwen", "members": ["generator qwen3-30b", "labeller qwen3-235b"]}]


def test_planted_flaws_go(shared_data, own_cache, monkeypatch):
    """The chain of benchmarks/quality_control.py, with few queries."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "")  # Restored at the end.
    found = measure_chain(16)
    assert sum("that remain" in row["measure"] and "(0)" not in row["measure"] for row in found) == 3
    wrong = [row for row in found if row["value"] < row.get("at_least", 0) or row["value"] > row.get("at_most", 10**6)]
    assert wrong == []
