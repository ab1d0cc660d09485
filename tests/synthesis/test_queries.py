"""A test set made of documents: what is asked, what becomes of every kind of answer, kills, budgets, bad input."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
import warnings

import pytest

from rusbeir.datasets import load
from rusbeir.datasets.validation import validate
from rusbeir.errors import BackendError, BadInput, UnknownName
from rusbeir.jobs import BudgetReached, Unfit
from rusbeir.synthesis import estimate_queries, make_queries
from rusbeir.synthesis.queries.draft_journal import Drafts
from rusbeir.synthesis.queries.passages import find_third
from rusbeir.synthesis.queries.questions import Writer
from rusbeir.types import Doc, MemoryCorpus
from tests.support.generating_model import GeneratingModel, answers
from tests.support.openai_server import completion, refusal
from tests.support.rewriting_model import files
from tests.support.small_port import records

FAST = {"llm": "tiny", "first_wait_seconds": 0.0, "max_wait_seconds": 0.0}
N_DOCS = 12
SUBJECTS = ("kettles", "wolves", "rivers", "hares", "bears", "snow")


def text_of(n: int) -> str:
    """Five sentences whose words differ by document, and place in it."""
    subject = f"{SUBJECTS[n % 6].title()}{n}"
    parts = [
        f"{subject} begin{part} their{part} year{part}{n} among{part} quiet{part} hills{part}, where nobody{part} "
        f"counts{part} them{part}{n}."
        for part in range(5)
    ]
    return " ".join(parts)


@pytest.fixture
def source(tmp_path, own_cache):
    """A corpus without queries; its last two documents are too short, and too long, to be asked about."""
    texts = {f"d{n}": text_of(n) for n in range(N_DOCS)} | {"short": "Only four words here.", "long": "word " * 2001}
    rows = [{"_id": name, "title": f"On {name}", "text": text, "year": 1987} for name, text in texts.items()]
    path = tmp_path / "small.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def make(source, out, **order):
    return make_queries(source, out=out, **{"language": "en", "n": 6, **FAST, **order})


def steps(report):
    """step -> why it dropped queries."""
    return {row["step"]: row["dropped"] for row in report["steps"] if row["dropped"]}


def test_question_answering(source, tmp_path, serve):
    model, told, out = serve(GeneratingModel()), [], tmp_path / "out"
    report = make(source, out, n=15, tell=told.append)
    assert told == [
        f"{model.url} receives 12 documents in up to 75 requests; no price is known: add input_price=… output_price=… "
        "(USD per million tokens)."
    ]
    assert report["documents"] == {"corpus": 14, "unsuitable": 2, "asked": 12}
    assert report["queries"] == {"asked": 15, "made": 15, "dropped": 0}
    # Characters are asked for once a document, and three documents have a second query.
    assert model.questions == {"characters": 12, "scenarios": 15, "query": 15, "rewrites": 15, "negatives": 15}
    first = model.asked[0]
    assert (first["model"], first["temperature"], first["seed"]) == ("tiny", 0.7, 0)

    docs = {row["_id"]: row for row in records(out / "corpus.jsonl")}
    texts = {doc_id: f"{row['title']} {row['text']}" for doc_id, row in docs.items()}
    queries = {row["_id"]: row["text"] for row in records(out / "queries.jsonl")}
    made = records(out / "qa" / "generated.jsonl")
    assert [row["query_id"] for row in made] == [*queries]
    assert docs["d3"] == {"_id": "d3", "title": "On d3", "text": text_of(3), "year": 1987}
    judged = [line.split("\t") for line in (out / "qrels" / "test.tsv").read_text().splitlines()[1:]]
    for row in made:
        query_id, doc_id = row["query_id"], row["doc_id"]
        assert answers(texts[doc_id], queries[query_id])
        assert [grade for one, *grade in judged if one == query_id] == [
            [doc_id, "1"], *([name, "0"] for name in row["negatives"])
        ]  # fmt: skip
        assert row["negatives"] == [f"{query_id}-neg{n}" for n in range(len(row["negatives"]))]
        assert 3 <= len(row["negatives"]) <= 7
        assert not any(answers(texts[name], queries[query_id]) for name in row["negatives"])
        assert row["attributes"].keys() == {"length", "type", "information", "style"}
        assert (row["kind"], row["span"], row["answer"], row["model"]) == ("qa", None, None, "tiny")
        assert sorted(row["first"].split()) == sorted(queries[query_id].split()), "rewritten"
        assert row["character"] in row["scenario"]

    dataset = load(out)
    assert (dataset.card.language, dataset.card.split, len(dataset.queries)) == ("en", "test", 15)
    assert dataset.fingerprint == report["fingerprint"]
    assert dataset.card.provenance["generator"]["model"] == "tiny"
    assert validate(out) == []
    assert json.loads((out / "qa" / "queries.json").read_bytes()).items() <= report.items()


def test_positions(source, tmp_path, serve, rusbeir):
    serve(GeneratingModel())
    report = make(source, tmp_path / "out", kind="position", n=24)
    assert report["queries"] == {"asked": 24, "made": 24, "dropped": 0}
    docs = {row["_id"]: row["text"] for row in records(tmp_path / "out" / "corpus.jsonl")}
    assert len(docs) == 14
    made = records(tmp_path / "out" / "qa" / "generated.jsonl")
    for row in made:
        text, (start, end) = docs[row["doc_id"]], row["span"]
        assert text[start:end] == row["answer"]
        assert find_third(start, end, len(text)) == row["attributes"]["third"]
        assert row["attributes"].keys() == {"third", "type", "style"}
    assert {row["attributes"]["third"] for row in made} == {"first", "middle", "last"}
    found = rusbeir("diagnose", "position", tmp_path / "out", "--system", "bm25", "--json")
    assert (found.code, "24" in found.out) == (0, True)


def test_long_documents(tmp_path, serve, own_cache):
    serve(GeneratingModel())
    rows = [{"_id": name, "text": " ".join(text_of(n) for n in range(at, at + 9))} for name, at in (("a", 0), ("b", 9))]
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = make(tmp_path / "books", tmp_path / "out", kind="long-doc")
    docs = [row["_id"] for row in records(tmp_path / "out" / "corpus.jsonl")]
    assert docs[0] == "a#0"
    assert len(docs) == report["documents"]["corpus"] > 4
    for row in records(tmp_path / "out" / "qa" / "generated.jsonl"):
        assert row["doc_id"] in docs
        assert (row["negatives"], row["attributes"]["type"] != "problem") == ([], True)
        assert row["attributes"]["length"] in ("10-20", "20-")


def say(**answer):
    return completion(json.dumps(answer))


WORDS = "hills0 quiet0 among0 begin0"
ANSWERS = [
    # the step, what the model answers again and again; why the query is dropped, None where it is not
    ("characters", say(characters=[]), "empty"),
    ("characters", say(characters="a poet"), "form"),
    ("characters", say(characters=["a poet"]), None),
    ("characters", completion('```json\n{"characters": ["a poet"]}\n``` Here you are.'), None),
    ("characters", completion("A poet and a shepherd."), "invalid"),
    ("characters", completion(None, refusal="No."), "refused"),
    ("characters", completion("I", finish="length"), "cut"),
    ("characters", refusal(400, "maximum context length is 64 tokens"), "too-long"),
    ("scenarios", say(scenarios=[" ", ""]), "empty"),
    ("scenarios", say(scenarios=[1]), "form"),
    ("query", say(query=" ? "), "empty"),
    ("query", say(query=7), "form"),
    ("query", say(query=" ".join(text_of(0).split()[:8])), "copy"),
    ("query", say(query=text_of(0)), "copy"),
    ("query", say(query="Где начинают свой год тихие животные среди далёких холмов?"), "language"),
    ("query", say(query="word " * 40 + WORDS), "length"),
    ("query", say(query=WORDS), None),
    # Half an emoji in the JSON of an answer whose text is clean, in what is kept and in what is not.
    ("query", say(query=f"{WORDS} \ud83d"), "control"),
    ("query", say(query=WORDS, note="\udc80", **{"\ud83d": 1}), None),
    ("query", completion(None, refusal="No \ud83d."), "refused"),
    ("query", say(query=f"{WORDS} \x1b[2J"), "control"),
    ("query", say(query=f"{WORDS}\x00"), "control"),
    ("query", say(query=f"{WORDS} \u202e"), "control"),
    ("characters", say(characters=["a poet", "a \x1b[31mred one"]), "control"),
    ("rewrites", say(rewrites=[f"{WORDS} \x7f"]), "control"),
    ("rewrites", say(rewrites=["", "Где начинают свой год тихие животные среди холмов?"]), "language"),
    ("rewrites", say(rewrites=[]), "empty"),
    ("rewrites", say(rewrites=[text_of(0), WORDS]), None),
    ("negatives", say(negatives=["wolves sleep", "hares run"]), "few"),
    ("negatives", say(negatives=["wolves sleep", "Wolves sleep.", "hares run"]), "repeated"),
    ("negatives", say(negatives=["wolves sleep", "", "hares run"]), "repeated"),
    ("negatives", say(negatives=["wolves sleep", text_of(0), "hares run"]), "repeated"),
    ("negatives", say(negatives=["wolves sleep", "bears eat", "Зимой медведи спят в берлогах до весны"]), "language"),
    ("negatives", say(negatives=["wolves sleep", "bears eat", "hares run", "one more"]), None),
    ("negatives", say(negatives=["wolves sleep", "bears \x00eat", "hares run"]), "control"),
]


def test_every_step_has_a_row():
    assert {row[0] for row in ANSWERS} == {"characters", "scenarios", "query", "rewrites", "negatives"}


@pytest.fixture
def one_document(tmp_path, own_cache):
    """A document of which 3 hard negatives are asked for, and a short query."""
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps({"_id": "d0", "text": text_of(0)}) + "\n")
    (tmp_path / "own.toml").write_text('[qa.negatives]\n3 = 1\n[qa.length]\n"1-9" = 1\n')
    return path


class Stubborn(GeneratingModel):
    """Gives one answer to one kind of question."""

    def __init__(self, step, answer):
        super().__init__()
        self.step, self.answer = step, answer

    def reply(self, asked):
        properties = asked["response_format"]["json_schema"]["schema"]["properties"]
        return self.answer if self.step in properties else super().reply(asked)


@pytest.mark.parametrize(("step", "answer", "reason"), ANSWERS)
def test_answers(step, answer, reason, one_document, tmp_path, serve):
    model = serve(Stubborn(step, answer))
    order = {"n": 1, "attributes": tmp_path / "own.toml"}
    if reason is None:
        assert make(one_document, tmp_path / "out", **order)["queries"]["made"] == 1
        return
    with pytest.raises(BackendError, match=rf"None of 1 queries of one was made \(1 at {step}: {reason}\)"):
        make(one_document, tmp_path / "out", **order)
    n_asked = sum(step in str(one["response_format"]) for one in model.asked)
    assert n_asked == (1 if reason == "too-long" else 3)
    assert not (tmp_path / "out" / "corpus.jsonl").exists()


@pytest.mark.parametrize("part", ["question", "answer"])
def test_control_characters_in_a_part_of_an_answer(part):
    writer = Writer(corpus=MemoryCorpus([Doc("d0", f"{text_of(0)} \u202ehere")]), language="en")
    question, payload = writer.question("question"), json.dumps({"doc": "d0", "third": "first"})
    fit = {"question": f"{WORDS} \u202e", "answer": "quiet0", "sufficient": True}
    assert question.read(payload, fit) == {"question": fit["question"], "answer": "quiet0"}, "the document has it, too"
    with pytest.raises(Unfit, match=r"^control$"):
        question.read(payload, fit | {part: f"{WORDS} \x07"})


def test_answers_that_are_gone_when_the_set_is_written(one_document, tmp_path, serve, monkeypatch):
    serve(GeneratingModel())
    monkeypatch.setattr(Drafts, "open_tasks", lambda self, step: iter(()))
    with pytest.raises(BadInput, match=r"journal\.sqlite is damaged \(the answers about d0-q0 are gone\)"):
        make(one_document, tmp_path / "out", n=1)


def test_what_failed_is_asked_again_only_if_that_is_wanted(one_document, tmp_path, serve):
    model = serve(Stubborn("query", say(query="?")))
    order = {"n": 1, "attributes": tmp_path / "own.toml"}
    for _ in range(2):
        with pytest.raises(BackendError, match="None of 1 queries"):
            make(one_document, tmp_path / "out", **order)
    assert model.questions == {"characters": 1, "scenarios": 1}
    model.step = "nothing"
    assert make(one_document, tmp_path / "out", retry_failed=True, **order)["queries"]["made"] == 1
    assert model.questions == {"characters": 1, "scenarios": 1, "query": 1, "rewrites": 1, "negatives": 1}


FIT = "nobody0 counts0 them00"
SPANS = [
    # the passages that the model gives; why the query is dropped, None where it is not
    ([FIT], None, "in the first third"),
    ([f" {FIT} "], None, "with spaces around it"),
    ([FIT.title()], "absent", "not letter by letter"),
    ([""], "absent", "empty"),
    (["Kettles0"], "repeated", "five times in the document"),
    (["nobody4 counts4"], "elsewhere", "in the last third"),
    ([FIT, "quiet0"], "several", "not one"),
    ([], "empty", "none"),
    ([1], "form", "a number"),
]


@pytest.mark.parametrize(("spans", "reason", "why"), SPANS, ids=[row[2] for row in SPANS])
def test_spans(spans, reason, why, one_document, tmp_path, serve):
    serve(Stubborn("spans", say(spans=spans)))
    (tmp_path / "own.toml").write_text("[position.third]\nfirst = 1\n")
    order = {"kind": "position", "n": 1, "attributes": tmp_path / "own.toml"}
    if reason:
        with pytest.raises(BackendError, match=rf"\(1 at span: {reason}\)"):
            make(one_document, tmp_path / "out", **order)
    else:
        make(one_document, tmp_path / "out", **order)
        start = text_of(0).index(FIT)
        assert (tmp_path / "out" / "qa" / "spans.tsv").read_text() == f"d0-q0\td0\t{start}\t{start + len(FIT)}\n"


def test_flaws_that_can_be_told_are_dropped(source, tmp_path, serve):
    model = serve(GeneratingModel(flaws={"copy": 0.3, "insufficient": 0.3, "absent": 0.3}))
    report = make(source, tmp_path / "qa", n=12)
    copies = len(model.planted["copy"])
    assert copies
    assert steps(report) == {"query": {"copy": copies}}
    lost = records(tmp_path / "qa" / "qa" / "dropped.jsonl")
    assert [(row["step"], row["reason"]) for row in lost] == [("query", "copy")] * copies
    assert all(row["said"] for row in lost)
    report = make(source, tmp_path / "position", kind="position", n=12)
    found = {name: len(model.planted[name]) for name in ("insufficient", "absent")}
    assert steps(report) == {
        "question": {"insufficient": found["insufficient"]},
        "span": {"absent": found["absent"]},
    }
    assert report["queries"]["dropped"] == sum(found.values()) > 3


def test_queries_in_the_same_words_are_dropped(source, tmp_path, serve):
    serve(Stubborn("rewrites", say(rewrites=["What begins among the hills?"])))
    assert steps(make(source, tmp_path / "out")) == {"negatives": {"duplicate": 5}}


def test_faults(source, tmp_path, serve):
    serve(GeneratingModel())
    make(source, tmp_path / "alone", n=10)
    model = serve(GeneratingModel(faults=0.4))
    report = make(source, tmp_path / "out", n=10, input_price=1.0, output_price=2.0, budget_cost=1.0, breaker=50)
    assert report["queries"] == {"asked": 10, "made": 10, "dropped": 0}
    assert all(model.failed[fault] for fault in ("broken", "prose", "refusal", "cut", "server", "empty"))
    assert report["invalid_answers"] == sum(
        model.failed[fault] for fault in ("broken", "prose", "refusal", "cut", "form")
    )
    assert 0 < report["spent"]["cost"] <= 1.0
    assert all(row["text"].strip() for row in records(tmp_path / "out" / "queries.jsonl"))
    assert files(tmp_path / "out") == files(tmp_path / "alone")


def test_more_queries_of_the_same_set(source, tmp_path, serve):
    model = serve(GeneratingModel())
    make(source, tmp_path / "grown", n=5)
    asked = len(model.asked)
    make(source, tmp_path / "grown", n=12)
    grown = len(model.asked)
    make(source, tmp_path / "whole", n=12)
    assert grown == len(model.asked) - grown, f"{asked} questions are not asked again"
    assert files(tmp_path / "grown") == files(tmp_path / "whole")


def test_kills(source, tmp_path, serve):
    most, killed = 10**6, threading.Event()

    class Slow(GeneratingModel):
        def reply(self, asked):
            if len(self.asked) > most:
                killed.wait(20)
            return super().reply(asked)

    model = serve(Slow(faults=0.2))
    order = {"n": 10, "concurrency": 2}
    # First, so that what is killed finds all modules loaded.
    make(source, tmp_path / "alone", **order)
    for after in (4, 20, 25):  # among characters, rewrites and hard negatives
        most, killed = len(model.asked) + after, threading.Event()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # The child has no use for the threads of the server.
            child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                make(source, tmp_path / "killed", **order)
            os._exit(1)
        while len(model.asked) <= most:
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
            time.sleep(0.002)
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        killed.set()
        assert not (tmp_path / "killed" / "corpus.jsonl").exists()
    most = 10**6
    make(source, tmp_path / "killed", **order)
    asked = len(model.asked)
    make(source, tmp_path / "killed", **order)
    assert len(model.asked) == asked, "nothing is asked for twice"
    assert files(tmp_path / "killed") == files(tmp_path / "alone")


def test_budgets(source, tmp_path, serve):
    model = serve(GeneratingModel())
    order = {"input_price": 1.0, "output_price": 2.0, "concurrency": 4}
    with pytest.raises(BadInput, match=r"The budget of 0.001 in money may not suffice for one query: that of 'd"):
        make(source, tmp_path / "out", budget_cost=0.001, **order)
    with pytest.raises(BadInput, match="The budget of 900 characters may not suffice for one query"):
        make(source, tmp_path / "out", budget_chars=900, **order)
    assert not model.asked
    with pytest.raises(BudgetReached, match="The budget of 20,000 characters is reached"):
        make(source, tmp_path / "out", budget_chars=20_000, **order)
    spent = make(source, tmp_path / "out", **order)["spent"]
    assert spent["cost"] == pytest.approx(make(source, tmp_path / "whole", **order)["spent"]["cost"])
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_a_service_that_does_not_answer(source, tmp_path, serve):
    model = serve(GeneratingModel())
    model.script.extend([refusal(500, "down")] * 2)
    with pytest.raises(BackendError, match=r"gave no answer to 1 of \d+ questions \(failed requests: 2 server\)"):
        make(source, tmp_path / "out", retries=1, concurrency=1)
    assert not (tmp_path / "out" / "corpus.jsonl").exists()
    assert make(source, tmp_path / "out")["queries"]["made"] == 6


def test_documents_longer_than_the_context(source, tmp_path, serve):
    class Narrow(GeneratingModel):
        def reply(self, asked):
            long = "Wolves1 " in str(asked["messages"])
            return refusal(400, "This model's maximum context length is 64") if long else super().reply(asked)

    serve(Narrow())
    report = make(source, tmp_path / "out", n=N_DOCS)
    assert steps(report) == {"characters": {"too-long": 1}}
    assert report["queries"]["made"] == N_DOCS - 1


def test_languages(tmp_path, serve, own_cache):
    model = serve(GeneratingModel())
    texts = {
        "ru": "Весной реки выходят из берегов, потому что снег на равнинах тает раньше обычного срока.",
        "kk": "Көктемде өзендер арнасынан асады, өйткені жазықтағы қар әдеттегіден ерте еріп бітеді екен.",
    }
    for tag, text in texts.items():
        (tmp_path / f"{tag}.jsonl").write_text(json.dumps({"_id": "d1", "text": text}) + "\n")
    told = []
    make(tmp_path / "ru.jsonl", tmp_path / "ru", language="ru", n=1, tell=told.append)
    assert told[0] == "ru has one document: a system that finds anything finds it."
    assert "Ответь одним объектом JSON" in model.asked[0]["messages"][0]["content"]
    asked = len(model.asked)
    make(tmp_path / "kk.jsonl", tmp_path / "kk", language="kk", n=1, tell=told.append)
    assert "There is no prompt in Kazakh: tiny is asked in English." in told
    assert "search engines in Kazakh" in model.asked[asked]["messages"][0]["content"]


@pytest.mark.parametrize(
    ("spoil", "order", "error", "message"),
    [
        (lambda out: out.mkdir() or (out / "notes.txt").write_text("x"), {}, BadInput, "contains files but no port"),
        (lambda out: out.write_text("x"), {}, BadInput, "is a file; out= names a folder"),
        (lambda out: None, {"llm": " "}, BadInput, "Name the model with llm=MODEL"),
        (lambda out: None, {"language": None}, BadInput, "does not name its language. Name it with language=ru"),
        (
            lambda out: None,
            {"kind": "essay"},
            UnknownName,
            "No kind 'essay' of kind=. Available: long-doc, position, qa",
        ),
        (lambda out: None, {"n": 0}, BadInput, "n=0: give at least 1"),
        (lambda out: None, {"sample": 0}, BadInput, "sample=0: give at least 1"),
        (lambda out: None, {"budget_chars": 0}, BadInput, "it must be above 0"),
        (lambda out: None, {"budget_cost": 1}, BadInput, "without the price of tiny: add input_price=… output_price="),
        (
            lambda out: None,
            {"memory": 1},
            BadInput,
            "does not take the option 'memory'. Its options are: batch_share, breaker,",
        ),
        (
            lambda out: None,
            {"input_price": "x"},
            BadInput,
            "'input_price' is 'x': it must be a number from 0",
        ),
        (lambda out: None, {"concurrency": 1.5}, BadInput, "it must be a whole number"),
    ],
)
def test_what_is_refused(spoil, order, error, message, source, tmp_path, serve):
    model = serve(GeneratingModel())
    spoil(tmp_path / "out")
    with pytest.raises(error, match=message):
        make(source, tmp_path / "out", **order)
    assert not model.asked


def test_what_is_refused_of_a_corpus(source, tmp_path, serve):
    model = serve(GeneratingModel())
    (tmp_path / "few.jsonl").write_text('{"_id": "d1", "text": "Too short."}\n')
    with pytest.raises(BadInput, match=r"few has no document of 10 to 2,000 words, so there is nothing to ask about"):
        make(tmp_path / "few.jsonl", tmp_path / "out")
    make(source, tmp_path / "out", n=3)
    asked = len(model.asked)
    with pytest.raises(BadInput, match="seed was '0' and is now '1'"):
        make(source, tmp_path / "out", seed=1)
    with pytest.raises(BadInput, match=r"has a document 'd\d+-q0-neg0', as `rusbeir synth queries` makes them"):
        make(tmp_path / "out", tmp_path / "again", n=N_DOCS)
    assert len(model.asked) == asked


def test_an_estimate(source, tmp_path, serve):
    model = serve(GeneratingModel())
    prices = {"input_price": 1.0, "output_price": 2.0}
    found = estimate_queries(source, language="en", n=15, **prices)
    assert not model.asked
    report = make(source, tmp_path / "out", n=15, **prices)
    assert (found.requests, found.documents, found.queries) == (report["requests"], 12, 15)
    assert report["spent"]["cost"] < found.cost_at_most
    assert 0.5 < found.input_tokens / report["tokens"]["input"] < 2


def test_on_the_command_line(rusbeir, source, serve):
    model = serve(GeneratingModel(flaws={"copy": 0.3}))
    order = ["synth", "queries", source, "--lang", "en", "--llm", "tiny", "-n", "12", "--option", "input-price=0.4"]
    (row,) = json.loads(rusbeir(*order, "--dry-run", "--json").out)["estimates"]
    assert (row["requests"], row["queries"]) == (60, 12)
    assert (
        "add --option output-price=… (USD per million tokens).\nNothing was sent.\n" in rusbeir(*order, "--dry-run").err
    )
    assert not model.asked
    outcome = rusbeir(*order)
    assert (outcome.code, outcome.err) == (2, "rusbeir: Name a folder for the new dataset with --out.\n")
    outcome = rusbeir(*order, "--out", "out", "--option", "speed=1")
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    outcome = rusbeir(*order, "--out", "out")
    assert outcome.code == 0
    dropped = len(model.planted["copy"])
    assert f"{12 - dropped} of 12 queries made about 12 of 14 documents (2 too short or too long)" in outcome.err
    assert f"{dropped} copy" in outcome.out
    assert json.loads(rusbeir(*order, "--out", "out", "--json").out)["queries"]["dropped"] == dropped
    rows = json.loads(rusbeir("bench", "out", "--system", "bm25", "--json").out)["rows"]
    assert rows[0]["n_queries"] == 12 - dropped
