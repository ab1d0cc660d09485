"""Budgets, summaries and the end of paid work, compared with what a server saw."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from rusbeir.jobs import MAX_USELESS
from rusbeir.translation.backends.llm import LlmTranslator
from tests.support.command_line import one_line
from tests.support.openai_server import Endpoint, Reply, completion, refusal
from tests.support.small_port import write_source

N_DOCS = 90
CONCURRENCY = 8
ATTEMPTS = LlmTranslator().attempts
MOST = (MAX_USELESS + CONCURRENCY) * ATTEMPTS
"""Requests until the work is stopped, those that are under way then included."""
REFUSAL = "I'm sorry, but I can't help with that.\x1b[2J"
NUMBERS = ("один", "два", "три", "четыре", "пять", "шесть", "семь", "восемь", "девять", "десять")


class Model(Endpoint):
    """Translates, until it is told to answer otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.always: Reply | None = None

    def reply(self, asked: dict) -> Reply:
        if self.always is not None:
            return self.always
        number = re.search(r"\d+", asked["messages"][-1]["content"])
        name = "".join(f" {NUMBERS[int(digit)]}" for digit in number[0]) if number else ""
        words = f"Вода в реке номер {number[0] if number else ''}{name} кипит, и лёд на горе тает."
        return completion(json.dumps({"translation": words}), tokens=(100, 20))

    @property
    def texts(self) -> list[str]:
        return [asked["messages"][-1]["content"] for asked in self.asked]

    @property
    def chars(self) -> int:
        return sum(len(message["content"]) for asked in self.asked for message in asked["messages"])


@pytest.fixture
def model(serve) -> Model:
    return serve(Model())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """N_DOCS texts of a sentence each, and two queries."""
    docs = [
        {"_id": f"d{n}", "text": f"Water boils in river number {n} and the ice on the mountain melts."}
        for n in range(N_DOCS)
    ]
    folder = write_source(tmp_path / "small", docs)
    queries = [{"_id": f"q{n}", "text": f"what boils in river number {n}"} for n in (1, 2)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n")
    return folder


FAST = ["--option", "first-wait-seconds=0", "--option", "max-wait-seconds=0"]
PORT = ["port", "small", "--to", "ru", "--translator", "llm", "--llm", "toy", "--out", "out", *FAST]
UNPACED = ["--option", "requests-per-second=1000"]
RANKERS = ["--ranker", "bm25", "--ranker", "bm25(profile=raw)"]
PRICES = ["--option", "input-price=1", "--option", "output-price=2"]


@pytest.mark.parametrize("always", [completion(REFUSAL), completion(json.dumps({"translation": ""})), None])
def test_a_budget_of_characters_bounds_what_the_server_sees(rusbeir, source, model, always):
    model.always = always
    outcome = rusbeir(*PORT, "--budget-chars", 20_000)
    assert outcome.code == 1
    assert f"The budget of 20,000 characters is reached: {model.chars:,} are spent" in outcome.err
    assert 18_000 < model.chars <= 20_000


@pytest.mark.parametrize(
    ("reply", "code", "requests"),
    [
        (refusal(401, "no such key"), 2, CONCURRENCY),
        (refusal(429, "slow down"), 1, None),
        (refusal(500, "down"), 1, None),
        (refusal(400, "no such option"), 1, None),
    ],
)
def test_errors_of_a_server_spend_nothing(rusbeir, source, model, reply, code, requests):
    model.always = reply
    command = [*PORT, *PRICES, "--budget-chars", 5_000, "--budget-cost", 1]
    stopped = rusbeir(*command)
    assert stopped.code == code
    assert model.asked
    assert requests is None or len(model.asked) <= requests
    model.always = None
    model.asked.clear()
    stopped = rusbeir(*command)
    assert f"The budget of 5,000 characters is reached: {model.chars:,} are spent" in stopped.err, "all is still there"


def test_the_summary_counts_requests_as_the_server_does(rusbeir, source, model):
    bad = [completion("no"), refusal(429, "slow down"), refusal(400, "", code="unsupported", param="max_tokens")]
    model.script.extend(bad)
    [report] = json.loads(rusbeir(*PORT, *UNPACED, "--option", "concurrency=1", "--json").out)["ports"]
    assert (report["missing"], report["requests"], report["retries"]) == (0, len(model.asked), len(bad))
    assert report["requests"] == N_DOCS + 2 + len(bad)
    refused = sum(len(message["content"]) for asked in model.asked[1:3] for message in asked["messages"])
    assert report["spent"]["chars"] == model.chars - refused


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        (completion(REFUSAL), "refused"),
        (completion("Вода кипит."), "no {\"translation\": …} in the answer: Вода кипит."),
        (completion(json.dumps({"translation": "Das Wasser kocht im Fluss, und das Eis auf dem Berg ist weg."})),
         "wrong-language"),
    ],
)  # fmt: skip
def test_useless_answers_stop_the_work(rusbeir, source, model, reply, shown):
    model.always = reply
    outcome = rusbeir(*PORT, *UNPACED)
    assert one_line(outcome.err, [f"llm: {MAX_USELESS} texts in a row got no valid answer (the last: ", shown])
    assert "\x1b" not in outcome.err
    assert (outcome.code, outcome.out) == (1, "")
    assert MAX_USELESS * ATTEMPTS <= len(model.asked) <= MOST < N_DOCS * ATTEMPTS
    model.always = None
    model.asked.clear()
    assert rusbeir(*PORT, *UNPACED).code == 1, "those that were refused stay so"
    assert len(model.asked) == len(set(model.texts)) <= N_DOCS + 2 - MAX_USELESS
    assert rusbeir(*PORT, *UNPACED, "--retry-failed").code == 0
    assert sorted(model.texts) == sorted(set(model.texts)), "nothing that was answered is asked again"


def test_a_valid_answer_ends_the_row(rusbeir, source, model):
    """One text in forty is translated: nothing stops, and what is missing is said."""
    answers = [completion(REFUSAL)] * (40 * ATTEMPTS)
    model.script.extend([*answers, Model().reply({"messages": [{"content": "7"}]}), *answers])
    outcome = rusbeir(*PORT, *UNPACED, *UNPACED, "--option", "concurrency=1")
    assert one_line(outcome.err, ["segments of small have no translation"])


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        (PORT, ["the price of llm", "--option input-price=… --option output-price=… (USD per million tokens)"]),
        ([*PORT, "--option", "input-price=1"], ["the price of llm: add --option output-price=… (USD"]),
        (["port", "small", "--to", "ru", "--translator", "memory,google", "--memory", "m.tsv", "--out", "out"],
         ["the price of google: it has none that is known; give --budget-chars N"]),
        (["port", "small", "--to", "ru", "--translator", "python:own.upper", "--out", "out"],
         ["the price of python:own.upper", "--budget-chars N"]),
        (["synth", "rewrite", "small", "--llm", "toy", "--out", "out"], ["toy", "add --option input-price=…"]),
        (["synth", "queries", "small", "--llm", "toy", "--out", "out"], ["toy", "add --option input-price=…"]),
        (["synth", "qc", "small", "--llm", "toy", "--out", "out", *RANKERS], ["toy", "add --option input-price=…"]),
        (["audit", "judge", "ported", "--llm", "toy"], ["toy: add --input-price … --output-price … (USD"]),
        (["audit", "judge", "ported", "--llm", "toy", "--output-price", "1"], ["toy: add --input-price … (USD"]),
        (["audit", "check", "ported", "--back-translator", "llm", "--llm", "toy"],
         ["the price of llm", "add --option input-price=… --option output-price=…"]),
    ],
)  # fmt: skip
def test_a_budget_of_money_needs_prices(rusbeir, source, model, tmp_path, command, parts):
    (tmp_path / "m.tsv").write_text("one\tодин\n", encoding="utf-8")
    (tmp_path / "own.py").write_text(
        "def upper(texts, source, target):\n    return []\nupper.about = upper.sends = 'a service'\n"
    )
    if "ported" in command:
        assert rusbeir(*PORT[:-4], "--sample", 3, "--out", "ported").code == 0
        assert rusbeir("audit", "check", "ported").code == 0
        model.asked.clear()
    outcome = rusbeir(*command, "--budget-cost", "0.01")
    assert outcome.code == 2
    assert one_line(outcome.err, ["--budget-cost 0.01", *parts, "Nothing was sent."])
    assert not model.asked


def test_a_model_that_costs_nothing_has_prices_of_zero(rusbeir, source, model):
    free = ["--option", "input-price=0", "--option", "output-price=0"]
    assert rusbeir(*PORT, *free, "--budget-cost", "0.01").code == 0


# 90 documents and 2 queries have 10 * 64 + 80 * 65 + 2 * 28 = 5,896 characters, so 3,500 tokens come back.
@pytest.mark.parametrize(
    ("options", "time", "cost", "lines"),
    [
        ([], "9 s", "no price known",
         ["add --option input-price=… --option output-price=… (USD per million tokens)",
          "assumes 50 tokens a second for each of 8 requests at a time; --option concurrency=…"]),
        (["--option", "input-price=1"], "9 s", "no price known",
         ["The price is not known: add --option output-price=… (USD"]),
        (PRICES, "9 s", "0.03", []),
        (["--option", "requests-per-second=1"], "2 min", "no price known", ["that of 1 requests a second."]),
    ],
)  # fmt: skip
def test_a_dry_run_prints_tokens_time_and_price(rusbeir, source, model, options, time, cost, lines):
    command = [*PORT, *options, "--dry-run"]
    [row] = json.loads(rusbeir(*command, "--json").out)["estimates"]
    n_texts, chars = row["volume"]["unique"], row["volume"]["chars"]
    prompt = sum(len(message["content"]) for message in LlmTranslator(llm="toy").write_messages("", "en", "ru"))
    # A token has four characters of English, two of other languages; six make an object of the answer.
    assert row["input_tokens"] == round((n_texts * prompt + chars) / 4)
    assert row["output_tokens"] == round(chars / 2 + 6 * n_texts) == 3_500
    table = rusbeir(*command)
    assert f"{row['input_tokens']:,}" in table.out
    assert f"{row['output_tokens']:,}" in table.out
    assert cost in table.out
    assert time in table.out
    assert all(line in table.err for line in lines), table.err
    assert ("price is not known" in table.err) == bool(row["missing_options"])
    assert not model.asked


def test_an_estimate_of_tokens_is_near_what_is_billed(rusbeir, source, model):
    """The price of the real prompt by four characters a token: what the server bills for it is the model's own."""
    [row] = json.loads(rusbeir(*PORT, *PRICES, "--dry-run", "--json").out)["estimates"]
    rusbeir(*PORT)
    assert row["input_tokens"] == round(model.chars / 4)
    assert row["cost"] == pytest.approx((row["input_tokens"] + 2 * row["output_tokens"]) / 1e6)


def test_other_verbs_estimate_tokens_time_and_price(rusbeir, source, model):
    assert rusbeir(*PORT[:-4], "--sample", 3, "--out", "ported").code == 0
    assert rusbeir("audit", "check", "ported").code == 0
    model.asked.clear()
    judge = ["audit", "judge", "ported", "--llm", "toy", "--dry-run"]
    [row] = json.loads(rusbeir(*judge, "--json").out)["estimates"]
    assert (row["requests"], row["output_tokens"]) == (5, 5 * 200 // 3)
    assert row["seconds"] == pytest.approx(row["output_tokens"] / (50 * 4))
    priced = json.loads(rusbeir(*judge, "--input-price", 1, "--output-price", 2, "--json").out)["estimates"][0]
    assert priced["cost"] == pytest.approx((row["input_tokens"] + 2 * row["output_tokens"]) / 1e6)
    assert priced["cost"] < priced["cost_at_most"]
    assert "add --input-price … --output-price … (USD per million tokens)" in rusbeir(*judge).err
    for verb in (["synth", "queries", "small", "--llm", "toy"], ["synth", "qc", "small", *RANKERS]):
        shown = rusbeir(*verb, "--dry-run")
        assert "add --option input-price=… --option output-price=… (USD per million tokens)" in shown.err
        assert "no price known" in shown.out
        assert "50 tokens a second for each of 8 requests" in shown.err
    assert not model.asked


def test_an_option_that_a_model_refuses_is_said_once(rusbeir, source, model):
    """Eight requests are under way when the first is refused."""

    def reply(asked: dict) -> Reply:
        if "max_tokens" in asked:
            return refusal(400, "Unsupported parameter", code="unsupported_parameter", param="max_tokens")
        return Model.reply(model, asked)

    model.reply = reply
    outcome = rusbeir(*PORT)
    assert outcome.code == 0
    assert outcome.err.count("refuses max_tokens") == 1


def test_answers_that_are_set_aside_are_counted_before_anything_is_sent(rusbeir, source, model):
    assert rusbeir(*PORT).code == 0
    shutil.copytree("out", "kept")
    other = ["other" if word == "toy" else word for word in PORT]
    outcome = rusbeir(*other)
    line, receives = f"{N_DOCS + 2} answers of llm|model:toy|", "receives 92 texts"
    assert outcome.err.index(line) < outcome.err.index(receives)
    assert "--retry-failed keeps them" in outcome.err
    model.asked.clear()
    kept = ["kept" if word == "out" else word for word in other]
    assert rusbeir(*kept, "--retry-failed").code == 0
    assert not model.asked, "nothing was lacking"
    assert "set aside" in rusbeir(*PORT).err
    assert not model.asked, "they come back"


def test_a_share_of_the_price_needs_a_batch(rusbeir, source, model):
    """Nobody pays less because of it, so that it must not look as if somebody did."""
    outcome = rusbeir(*PORT, "--batch-share", "0.5")
    message = "--batch-share 0.5 is what a batch costs, and nothing is sent in one: add --batch."
    assert outcome.code == 2
    assert one_line(outcome.err, [message])
    assert not model.asked


def test_prices_of_batches_and_caches_stand_next_to_the_usual_one(rusbeir, source, model):
    """Of a listed model without any option; by options of the user otherwise."""
    dry = ["small", "--to", "ru", "--translator", "llm", "--dry-run", "--out", "out", "--llm"]
    row = json.loads(rusbeir("port", *dry, "gpt-4.1-mini", "--json").out)["estimates"][0]
    live = (0.4 * row["input_tokens"] + 1.6 * row["output_tokens"]) / 1e6
    assert row["cost"] == pytest.approx(live)
    assert row["batch_cost"] == pytest.approx(live / 2)
    assert row["cached_cost"] == pytest.approx(live), "the prompt is shorter than what providers keep"
    shown = rusbeir("port", *dry, "gpt-4.1-mini").err
    line = f"{live:.4f} USD one by one, {live / 2:.4f} in batches, {live:.4f} with the prompt in the provider's cache."
    assert line in shown
    given = ["toy", *PRICES, "--batch", "--batch-share", "0.4", "--json"]
    row = json.loads(rusbeir("port", *dry, *given).out)["estimates"][0]
    assert row["batch_cost"] == pytest.approx(0.4 * row["cost"])
    assert row["cached_cost"] is None
    judged = ["synth", "queries", "small", "--dry-run", "--json", "--llm", "claude-haiku-4-5-20251001"]
    row = json.loads(rusbeir(*judged).out)["estimates"][0]
    assert row["cost"] == pytest.approx((row["input_tokens"] + 5 * row["output_tokens"]) / 1e6)
    assert row["batch_cost"] == pytest.approx(row["cost"] / 2)
    assert row["missing_options"] == []
    assert not model.asked
