"""Questions whose answers are JSON: kept once, asked again until valid, never beyond a budget."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rusbeir.errors import BackendError, BadInput
from rusbeir.jobs import (
    MAX_USELESS,
    Asker,
    Budget,
    BudgetReached,
    Journal,
    Limits,
    Llm,
    Price,
    Question,
    Task,
    TaskQueue,
    Throttle,
    count_answers,
    digest_prompts,
    find_prompt_language,
    read_object,
    read_prompts,
)
from tests.support.openai_server import Endpoint, completion, refusal

KIND = "sum"
PRICE = Price(1.0, 2.0)
MAX_TOKENS = 10


def write(payload: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": payload}]


def read(payload: str, found: dict[str, Any]) -> int | None:
    return found["sum"] if type(found.get("sum")) is int else None


QUESTION = Question(kind=KIND, write=write, read=read, schema={"type": "object"}, max_tokens=MAX_TOKENS)


class Adder(Endpoint):
    """Adds the numbers that it is asked about, and counts tokens as a tokeniser of bytes would."""

    def reply(self, asked):
        text = asked["messages"][0]["content"]
        numbers = [int(word) for word in text.split() if word.isdigit()]
        return completion(json.dumps({"sum": sum(numbers)}), tokens=(len(text.encode()) + 16, MAX_TOKENS))


@pytest.fixture
def adder():
    with Adder() as server:
        yield server


def ask(path, server, payloads, *, concurrency=1, price=PRICE, **budget):
    """(payload -> answer or the first word of the error, the asker, what stopped it)."""
    client = Llm(model="tiny", endpoint=server.url, key="k", price=price)
    limits = Limits(concurrency=concurrency, retries=1, first_wait_seconds=0, max_wait_seconds=0)
    with Journal.open(path, {"name": "sums"}) as journal:
        asker = Asker(
            journal=journal,
            client=client,
            signature="adder",
            seed=7,
            throttle=Throttle(limits),
            budget=Budget(journal, **budget),
        )
        journal.add(Task.of(KIND, payload) for payload in payloads)
        queue = TaskQueue(journal, KIND, "adder")
        stopped = None
        try:
            asyncio.run(asker.run(lambda: asker.ask(QUESTION, queue.unfinished(), queue.size().pending)))
        except (BackendError, BadInput) as error:
            stopped = error
        found = {result.task.payload: int(result.result) for result in queue.results("done")}
        failed = {result.task.payload: result.error.partition(":")[0] for result in queue.results("failed")}
        return {**found, **failed}, asker, stopped


@pytest.mark.parametrize(
    ("replies", "expected", "requests"),
    [
        ([], 3, 1),
        ([completion('```json\n{"sum": 3}\n```')], 3, 1),  # a schema that the endpoint ignores
        ([completion("three")], 3, 2),
        ([completion('{"sum": "3"}'), completion('{"sum": 3, "su')], 3, 3),
        ([completion("no")] * 3, "invalid", 3),
        ([completion("", refusal="I cannot help with sums.")] * 3, "refused", 3),
        ([completion("", refusal="I cannot \ud83d.")] * 3, "refused", 3),
        ([completion(r'{"sum": 3, "why": "half \ud83d"}')], 3, 1),
        ([completion(r'{"sum": "\ud83d"}')] * 3, "invalid", 3),
        ([completion('{"sum": 3}', finish="length")] * 3, "cut", 3),
        ([refusal(500, "down")], 3, 2),
        ([refusal(400, "maximum context length exceeded", code="context_length_exceeded")], "too-long", 1),
    ],
)
def test_answers(tmp_path, adder, replies, expected, requests):
    adder.script.extend(replies)
    found, _, stopped = ask(tmp_path / "j.sqlite", adder, ["1 2"])
    assert (found, stopped) == ({"1 2": expected}, None)
    assert len(adder.asked) == requests
    # Each attempt has a seed of its own, and the later ones are not at 0, where a seed would change nothing.
    ways = [(asked["seed"], asked["temperature"]) for asked in adder.asked]
    assert ways in ([(7, 0.0)], [(7, 0.0)] * 2, [(7, 0.0), (8, 0.3)], [(7, 0.0), (8, 0.3), (9, 0.3)])
    assert ask(tmp_path / "j.sqlite", adder, ["1 2"])[0] == found
    assert len(adder.asked) == requests


def test_an_endpoint_that_is_down_is_asked_again_by_the_next_run(tmp_path, adder):
    adder.script.extend([refusal(500, "down")] * 2)
    found, _, stopped = ask(tmp_path / "j.sqlite", adder, ["1 2", "3 4"])
    assert found == {"3 4": 7}
    assert "gave no answer to 1 of 2 questions (failed requests: 2 server)" in str(stopped)
    assert ask(tmp_path / "j.sqlite", adder, [])[0] == {"1 2": 3, "3 4": 7}


def test_a_server_without_json_is_not_paid_for_long(tmp_path, adder):
    adder.script.extend([completion("Three.")] * 100)
    _, asker, stopped = ask(tmp_path / "j.sqlite", adder, [f"{n} 1" for n in range(100)])
    assert isinstance(stopped, BackendError)
    assert re.search(r"30 answers of tiny in a row hold no JSON object, .*'Three\.'", str(stopped))
    assert len(adder.asked) == asker.client.meter.spent.requests == 30


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        (completion("", refusal="I cannot \x1b[2J help with sums."), "refused: I cannot \\x1b[2J help with sums.)"),
        (completion('{"sum": "many"}'), 'invalid: {"sum": "many"}'),
    ],
)
def test_useless_answers_stop_the_work(tmp_path, adder, reply, shown):
    adder.script.extend([reply] * 10**4)
    payloads = [f"{n} 1" for n in range(200)]
    found, _, stopped = ask(tmp_path / "j.sqlite", adder, payloads, concurrency=4)
    assert f"tiny: {MAX_USELESS} texts in a row got no valid answer (the last: {shown}" in str(stopped)
    # Three attempts at each, and at those that were under way.
    assert 3 * MAX_USELESS <= len(adder.asked) <= 3 * (MAX_USELESS + 3)
    adder.script.clear()
    adder.asked.clear()
    again = ask(tmp_path / "j.sqlite", adder, payloads, concurrency=4)[0]
    assert len(adder.asked) == 200 - len(found), "the next run continues with the next texts"
    assert len(again) == 200


def test_useless_answers_are_counted(tmp_path, adder):
    adder.script.extend([completion("no"), refusal(500, "down")])
    _, asker, _ = ask(tmp_path / "j.sqlite", adder, ["1 2"])
    with Journal.open(tmp_path / "j.sqlite", {"name": "sums"}) as journal:
        assert count_answers(journal, asker.signature) == (2, 1)
        assert count_answers(journal, "nobody") == (0, 0)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_budget_is_never_exceeded(tmp_path, adder, concurrency):
    payloads = [f"{n} 1" for n in range(100)]
    adder.script.extend([completion("no", tokens=(20, MAX_TOKENS)), completion("{", tokens=None)] * 8)
    budget = 0.002
    found, asker, stopped = ask(tmp_path / "j.sqlite", adder, payloads, concurrency=concurrency, cost=budget)
    assert isinstance(stopped, BudgetReached)
    assert asker.client.meter.spent.cost == pytest.approx(asker.budget.spent.cost)
    assert asker.budget.spent.cost <= budget
    # What was answered when the budget was reached is kept.
    assert asker.client.meter.spent.requests == len(adder.asked)
    assert 10 < len(found) < 100
    right = {payload: int(payload.split()[0]) + 1 for payload in payloads}
    assert all(answer in (right[payload], "invalid") for payload, answer in found.items())
    assert ask(tmp_path / "j.sqlite", adder, payloads, cost=1.0)[0] == right | found


def test_a_budget_below_one_question(tmp_path, adder):
    stopped = ask(tmp_path / "j.sqlite", adder, ["1 2"], cost=1e-6)[2]
    assert isinstance(stopped, BadInput)
    assert "smaller than one request" in str(stopped)
    assert not adder.asked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ('<think>{"a": 0}</think>{"a": 1}', {"a": 1}),
        ('Here: {"a": "x\ny"} Good?', {"a": "x\ny"}),
        ("[1]", None),
        ('{"a": 1', None),
        ("{" * 100_000 + "}", None),
        ("", None),
    ],
)
def test_objects(text, expected):
    assert read_object(text) == expected


@given(st.text())
def test_any_text_may_be_an_answer(text):
    assert read_object(text) is None or isinstance(read_object(text), dict)


def test_prompts():
    assert find_prompt_language("rewrite", "zh-Hant") == "zh"
    assert find_prompt_language("rewrite", "kk") == "en"
    assert len(digest_prompts("rewrite")) == 8
    assert "system" in read_prompts("judge")
