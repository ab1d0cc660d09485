"""A dataset rewritten by a language model: what is asked, what is written, and what becomes of every kind of answer."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import threading
import time
import warnings

import pytest

from rusbeir.audit import audit_port
from rusbeir.datasets import load
from rusbeir.datasets.validation import validate
from rusbeir.errors import BackendError, BadInput, UnknownName
from rusbeir.jobs import BudgetReached
from rusbeir.people.sheets import make_sheets
from rusbeir.synthesis import rewrite
from rusbeir.translation.porting.api import port
from tests.support.openai_server import Reply, completion, refusal
from tests.support.rewriting_model import QUERIES, REWRITTEN, TEXTS, RewritingModel, files, in_other_words, write_source
from tests.support.small_port import Fake, records

MODEL = "Some/Model-7B"
CORPUS = "some-model-7b-tmp0.2"
FAST = {"first_wait_seconds": 0.0, "max_wait_seconds": 0.0}
REFUSAL = "I'm sorry, but I can't help with that request."


@pytest.fixture
def source(tmp_path, own_cache):
    return write_source(tmp_path / "small")


def cyrillic(text, nth):
    return "Да." if text.endswith(".") else "Да"


def test_the_corpora(source, tmp_path, serve):
    model = serve(RewritingModel(lambda text: completion(REFUSAL) if "Wolves" in text else None))
    told = []
    report = rewrite(source, llm=MODEL, out=tmp_path / "out", tell=told.append, **FAST)
    assert told == [
        f"llm: the server at OPENAI_BASE_URL receives 5 texts of {sum(len(TEXTS[name]) for name in REWRITTEN)} "
        "characters; no price is known: add input_price=… output_price=… (USD per million tokens)."
    ]
    (asked,) = [one for one in model.asked if TEXTS["d1"] in str(one)]
    assert (asked["model"], asked["temperature"], asked["seed"]) == (MODEL, 0.2, 0)
    assert "response_format" not in asked

    def expected(texts):
        return [{"_id": name, "title": f"On {name}", "text": texts(name), "year": 1987} for name in REWRITTEN]

    out = tmp_path / "out"
    assert records(out / "corpus" / "human.jsonl") == expected(TEXTS.get)
    assert records(out / "corpus" / f"{CORPUS}.jsonl") == expected(
        lambda name: TEXTS[name] if name == "d6" else in_other_words(TEXTS[name])
    )
    # q2 has lost its only relevant document, and q3 a second one.
    assert [row["_id"] for row in records(out / "queries.jsonl")] == ["q1", "q3", "q4"]
    assert records(out / "queries.jsonl")[0] == {"_id": "q1", "text": QUERIES["q1"], "asked": "often"}
    assert (out / "qrels" / "test.tsv").read_text().splitlines()[1:] == ["q1\td1\t2", "q1\td3\t0", "q3\td5\t1"]
    assert (out / "qrels" / "train.tsv").read_text().splitlines()[1:] == ["q4\td6\t1"]

    assert report["documents"] == {"rewritten": 4, "kept_human": 1, "short": 1, "long": 1, "not_drawn": 0}
    assert report["reasons"] == {"refused": 1}
    assert report["tokens"] == {"input": 10 * 9, "output": 5 * 9}, "four texts once, the refused one five times"
    assert json.loads((out / "qa" / f"rewrite-{CORPUS}.json").read_bytes()).items() <= report.items()

    mixed = load(out, split="test")
    assert (mixed.card.licence, len(mixed.corpus), mixed.card.ignore_titles) == ("CC-BY-4.0", 10, True)
    assert mixed.qrels["q3"] == {"d5-human": 1, f"d5-{CORPUS}": 1}
    assert mixed.fingerprint == report["fingerprint"]
    assert load(out / "llm", split="test").corpus["d1"].text == in_other_words(TEXTS["d1"])
    assert validate(out) == []


LOST_TEXT = "unanswered"
ANSWERS = [
    # what the endpoint answers, again and again; the rewritten text, or the reason why the human text is kept
    ([completion("Rewritten Text: Steam rises.\nAlways.")], "Steam rises.\nAlways.", "the label goes"),
    ([completion("Steam rises.")], "Steam rises.", "no label"),
    ([completion("Rewritten Text: \nRewritten Text: Steam.\nRewritten Text: Fog.")], "Steam.", "several texts"),
    ([completion("<think>Rewritten Text: No.</think>\n**rewritten text:** Steam rises.")], "Steam rises.", "thoughts"),
    ([completion("Sure, here it is:\n\nRewritten Text:\nSteam rises.")], "Steam rises.", "chat before the label"),
    ([completion("Here is the rewritten text:\nSteam."), completion("Steam rises.")], "Steam rises.", "chat, then not"),
    ([completion("Rewritten Text: Steam", finish="length"), completion("Steam rises.")], "Steam rises.", "cut once"),
    ([refusal(500, "overloaded"), completion("Steam rises.")], "Steam rises.", "a fault of the server"),
    ([refusal(429, "slow down", retry_after="0"), completion("Steam rises.")], "Steam rises.", "too many requests"),
    ([Reply(body='{"choices": ['), completion("Steam rises.")], "Steam rises.", "broken JSON"),
    ([completion(REFUSAL)], "refused", "a refusal"),
    ([completion(f"Rewritten Text: {REFUSAL}")], "refused", "a refusal behind the label"),
    ([completion("I cannot rewrite this text.")], "refused", "a refusal to rewrite"),
    ([completion(None, refusal="No.")], "refused", "a refusal in its own field"),
    ([completion(None, refusal="No \ud83d.")], "refused", "half a character in a refusal"),
    ([completion("", finish="content_filter")], "refused", "a filter"),
    ([completion("Rewritten Text:")], "empty", "nothing behind the label"),
    ([completion(f"Rewritten Text: {TEXTS['d1']}")], "untranslated", "the text itself"),
    ([completion("Steam", finish="length")], "too-long", "always cut"),
    ([completion("Here is the rewritten text:\nSteam.")], "malformed", "always chat"),
    ([completion("Вода кипит при ста градусах в каждом чайнике у моря.")], "wrong-language", "another language"),
    ([refusal(400, "maximum context length is 64 tokens")], "too-long", "more than the model takes"),
    ([refusal(500, "overloaded")], LOST_TEXT, "the server never answers"),
]


@pytest.mark.parametrize(("replies", "outcome", "why"), ANSWERS, ids=[row[2] for row in ANSWERS])
def test_answers(replies, outcome, why, tmp_path, serve, own_cache):
    source = write_source(tmp_path / "small", {name: TEXTS[name] for name in ("d1", "d2", "d5", "d6")})
    left = list(replies)

    def answer(text):
        return (left.pop(0) if len(left) > 1 else left[0]) if text == TEXTS["d1"] else None

    serve(RewritingModel(answer))
    order = {"llm": MODEL, "out": tmp_path / "out", "attempts": 2, "retries": 1, "concurrency": 1, **FAST}
    if outcome is LOST_TEXT:
        with pytest.raises(BackendError, match=r"1 documents of small have no answer \(1 server\), so no corpus was"):
            rewrite(source, **order)
        assert not (tmp_path / "out" / "corpus").exists()
        left[:] = [completion("Steam rises.")]
        assert rewrite(source, retry_failed=True, **order)["documents"]["rewritten"] == 3
        return
    report = rewrite(source, **order)
    text = records(tmp_path / "out" / "corpus" / f"{CORPUS}.jsonl")[0]["text"]
    if report["documents"]["kept_human"]:
        assert (text, report["reasons"]) == (TEXTS["d1"], {outcome: 1})
    else:
        assert (text, report["reasons"]) == (outcome, {})


def test_a_model_that_rewrites_nothing(source, tmp_path, serve):
    serve(RewritingModel(lambda text: completion(REFUSAL)))
    with pytest.raises(BackendError, match=r"rewrote none of 5 documents of small \(5 refused\), so no corpus was"):
        rewrite(source, llm=MODEL, out=tmp_path / "out", attempts=1)


def test_kills(tmp_path, serve, own_cache):
    texts = {f"d{n}": f"{TEXTS['d1']} Kettle number {n} has its own sound." for n in range(1, 31)}
    source = write_source(tmp_path / "small", texts | {"d2": TEXTS["d2"]})
    most, killed = 10**6, threading.Event()

    def answer(text):
        if sum(model.texts.values()) > most:
            killed.wait(20)
        return completion(REFUSAL) if "number 7 " in text else None

    model = serve(RewritingModel(answer))
    order = {"llm": MODEL, "concurrency": 2, "attempts": 2}
    # First, so that what is killed finds all modules loaded.
    rewrite(source, out=tmp_path / "alone", **order)
    model.texts.clear()
    for kill in range(3):
        most, killed = sum(model.texts.values()) + 4 + kill, threading.Event()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # The child has no use for the threads of the server.
            child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                rewrite(source, out=tmp_path / "killed", **order)
            os._exit(1)
        while sum(model.texts.values()) <= most:
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
            time.sleep(0.002)
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        killed.set()
        assert not (tmp_path / "killed" / "corpus").exists()
    most = 10**6
    rewrite(source, out=tmp_path / "killed", **order)
    # A kill may take the answers to the two texts that were under way; the refused one is asked twice.
    assert sum(n - 1 for text, n in model.texts.items() if "number 7 " not in text) <= 2 * 3
    asked = sum(model.texts.values())
    rewrite(source, out=tmp_path / "killed", **order)
    assert sum(model.texts.values()) == asked, "nothing is asked for twice"
    assert files(tmp_path / "killed") == files(tmp_path / "alone")


def test_budgets(source, tmp_path, serve):
    model = serve(RewritingModel(lambda text: completion(in_other_words(text), tokens=(10, 5))))
    order = {"llm": MODEL, "out": tmp_path / "out", "input_price": 1.0, "output_price": 2.0, "concurrency": 1}
    # A prompt of 324 characters goes with each text.
    with pytest.raises(BudgetReached, match=f"The budget of 800 characters is reached: {2 * 324 + 62 + 67} are spent"):
        rewrite(source, budget_chars=800, **order)
    assert [*model.texts] == [TEXTS["d1"], TEXTS["d3"]]
    # Answers at 0.00002 are paid for; a token a byte and the longest answer, 0.00488 for d7, are reserved beforehand.
    with pytest.raises(BudgetReached, match=r"The budget of 0\.00494 in money is reached: 0\.00008 .* takes 0\.004877"):
        rewrite(source, budget_cost=0.00494, **order)
    assert len(model.texts) == 4
    report = rewrite(source, **order)
    assert set(model.texts.values()) == {1}
    sent = sum(len(asked["messages"][0]["content"]) for asked in model.asked)
    assert (report["spent"]["chars"], report["spent"]["cost"]) == (sent, pytest.approx(5 * 0.00002))
    assert report["spent"]["requests"] == len(model.asked), "of all runs"


def test_another_model_adds_its_corpus(source, tmp_path, serve):
    serve(RewritingModel())
    out = tmp_path / "out"
    rewrite(source, llm=MODEL, out=out)
    before = files(out)
    report = rewrite(source, llm="other", temperature=0, out=out)
    assert report["sources"] == ["human", "other-tmp0", CORPUS]
    assert report["n_docs"] == 15
    assert [row["corpus"] for row in load(out, split="test").card.provenance["translators"]] == ["other-tmp0", CORPUS]
    rewrite(source, llm=MODEL, out=out)
    changed = {name for name, data in files(out).items() if before.get(name) not in (None, data)}
    assert changed == {"card.json"}
    with pytest.raises(BadInput, match=f"contains a corpus '{CORPUS}' that was made with other settings"):
        rewrite(source, llm=MODEL, attempts=2, out=out)


@pytest.mark.parametrize(
    ("spoil", "order", "message"),
    [
        (lambda out: out.mkdir() or (out / "notes.txt").write_text("x"), {}, "contains files but no port to resume"),
        (lambda out: out.write_text("x"), {}, "is a file; out= names a folder"),
        (
            lambda out: port(out.parent / "small", to="ru", out=out, translator=Fake(answer=cyrillic)),
            {},
            "to was 'ru' and is now 'en'",
        ),
        (lambda out: None, {"llm": " "}, "needs a model: give llm=MODEL"),
        (lambda out: None, {"temperature": 3.0}, "The temperature is 3: it must be from 0 to 2"),
        (lambda out: None, {"encoder": "bm25"}, "bm25 encodes no texts: give a dense system"),
        (lambda out: None, {"encoder": "dense(m,runtime=openai)"}, "would send texts to an endpoint"),
        (lambda out: None, {"sample": 0}, "sample=0: take at least 1 document"),
        (lambda out: None, {"budget_chars": 10}, "The budget of 10 characters is smaller than one request"),
        (lambda out: None, {"budget_chars": 0}, "it must be above 0"),
        (lambda out: None, {"memory": "m.tsv"}, "The translator llm does not take the option 'memory'"),
    ],
)
def test_what_is_refused(spoil, order, message, source, tmp_path, serve):
    model = serve(RewritingModel())
    spoil(tmp_path / "out")
    with pytest.raises(BadInput, match=message):
        rewrite(source, **{"llm": MODEL, "out": tmp_path / "out", **order})
    assert not model.asked


def test_people_score_a_rewriting(source, tmp_path, serve):
    serve(RewritingModel())
    out = tmp_path / "out"
    rewrite(source, llm=MODEL, out=out)
    report = audit_port(out, processes=1)
    assert (report["n_documents"], report["n_queries"], report["flags"]["untranslated"]["segments"]) == (5, 0, 0)
    (sheet,) = [path for path in make_sheets(out, n=5, raters=1, duplicates=0) if path.suffix == ".csv"]
    with sheet.open(encoding="utf-8-sig") as file:
        pairs = {(row["source"], row["translation"]) for row in csv.DictReader(file)}
    assert pairs == {(TEXTS[name], in_other_words(TEXTS[name])) for name in REWRITTEN}
    (out / "card.json").write_text((out / "card.json").read_text().replace(f'"port": "{CORPUS}"', '"port": "gone"'))
    with pytest.raises(UnknownName, match=f"No view 'gone'. Available: human, llm, mixed, {CORPUS}"):
        audit_port(out)


def test_a_real_model(tmp_path, monkeypatch, smollm, own_cache):
    monkeypatch.setenv("OPENAI_BASE_URL", f"{smollm.listening_address}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    paris = "The capital of France is Paris, a city on the river Seine with many museums."
    source = write_source(tmp_path / "small", {"d1": paris, "d2": TEXTS["d2"], "d5": paris, "d6": paris})
    report = rewrite(source, llm="smollm2", out=tmp_path / "out", attempts=3)
    assert report["documents"]["rewritten"] == 3
    assert report["tokens"]["input"] > 100
    assert report["likeness"]["overlap"]["mean"] > 0.5
    assert len({row["text"] for row in records(tmp_path / "out" / "corpus" / "smollm2-tmp0.2.jsonl")} - {paris}) == 1


def test_on_the_command_line(rusbeir, source, serve):
    model = serve(RewritingModel())
    order = ["synth", "rewrite", source, "--llm", MODEL, "--option", "input-price=0.4", "--option", "output-price=0"]
    outcome = rusbeir(*order, "--dry-run", "--json")
    (row,) = json.loads(outcome.out)["estimates"]
    assert (row["volume"]["unique"], row["volume"]["chars"]) == (5, sum(len(TEXTS[name]) for name in REWRITTEN))
    assert row["cost"] > 0
    assert not model.asked
    outcome = rusbeir(*order)
    assert (outcome.code, outcome.err) == (2, "rusbeir: Name a folder for the new dataset with --out.\n")
    outcome = rusbeir(*order, "--out", "out", "--option", "seed=1")
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    outcome = rusbeir(*order, "--out", "out")
    assert outcome.code == 0
    assert "human terms that are kept" in outcome.out
    assert "5 documents rewritten; 0 kept as people wrote them; left out: 1 too short, 1 too long" in outcome.err
    assert json.loads(rusbeir(*order, "--out", "out", "--json").out)["documents"]["rewritten"] == 5
