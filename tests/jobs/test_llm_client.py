"""The LLM client against a real server: what each answer, and each failure of it, means."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sys
import traceback

import pytest

from rusbeir.errors import BackendError, BadInput, MissingExtra
from rusbeir.jobs import Answer, Exhausted, Limits, Llm, Price, Rejected, Throttle, Transient
from tests.support.openai_server import Endpoint, Reply, completion, refusal

KEY = "sk-test-0123456789abcdef"
MESSAGES = [{"role": "user", "content": "Hello."}]
FAST = Limits(first_wait_seconds=0.001, max_wait_seconds=5.0, retries=4)


def llm(endpoint: Endpoint, **options) -> Llm:
    return Llm(**{"model": "tiny", "endpoint": endpoint.url, "key": KEY, "timeout_seconds": 5.0, **options})


def chat(model: Llm, **options) -> Answer:
    async def ask() -> Answer:
        async with model:
            return await model.chat(MESSAGES, **options)

    return asyncio.run(ask())


def test_what_is_sent(endpoint):
    schema = {"type": "object", "properties": {"translation": {"type": "string"}}, "required": ["translation"]}
    chat(llm(endpoint), schema=schema, seed=7, max_tokens=100)
    [asked] = endpoint.asked
    assert asked == {
        "path": "/v1/chat/completions",
        "model": "tiny",
        "messages": MESSAGES,
        "temperature": 0.0,
        "seed": 7,
        "max_tokens": 100,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": schema, "strict": True},
        },
    }
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


def test_options_not_given_are_not_sent(endpoint):
    chat(llm(endpoint))
    assert endpoint.asked[0].keys() == {"path", "model", "messages", "temperature"}


ANSWERS = [
    # reply, answer, why
    (completion(), Answer("Hola.", "stop", 10, 5, "", "tiny-2026-01-01"), "all is well"),
    (completion("Ho", finish="length"), Answer("Ho", "length", 10, 5, "", "tiny-2026-01-01"), "cut at max_tokens"),
    (completion(""), Answer("", "stop", 10, 5, "", "tiny-2026-01-01"), "nothing to say: the caller judges"),
    (completion(None), Answer("", "stop", 10, 5, "", "tiny-2026-01-01"), "null is nothing to say"),
    (
        completion(None, refusal="I can't help with that."),
        Answer("", "stop", 10, 5, "I can't help with that.", "tiny-2026-01-01"),
        "a refusal told apart",
    ),
    (
        completion(None, finish="content_filter"),
        Answer("", "content_filter", 10, 5, "", "tiny-2026-01-01"),
        "a refusal by the filter",
    ),
    (completion(tokens=None), Answer("Hola.", "stop", 0, 0, "", "tiny-2026-01-01"), "tokens not counted"),
    (completion("Приве́т 🎈 \x00"), Answer("Приве́т 🎈 \x00", "stop", 10, 5, "", "tiny-2026-01-01"), "any characters"),
    (
        Reply(body='{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": null}}'),
        Answer("x", "", 0, 0),
        "the least a server may answer",
    ),
    (
        completion(tokens=(10**400, 5)),
        Answer("Hola.", "stop", 0, 5, "", "tiny-2026-01-01"),
        "a number of tokens that cannot be",
    ),
]


@pytest.mark.parametrize(("reply", "answer", "why"), ANSWERS, ids=[row[2] for row in ANSWERS])
def test_answers(endpoint, reply, answer, why):
    endpoint.script.append(reply)
    assert chat(llm(endpoint)) == answer


FAILURES = [
    # reply, error, reason, part of the message, why
    (refusal(429, "Slow down"), Transient, "rate-limited", "429 Slow down", "too fast"),
    (refusal(429, "Pay", code="insufficient_quota"), BackendError, None, "quota", "no waiting helps"),
    (refusal(500, "Oops"), Transient, "server", "500 Oops", "server error"),
    (Reply(502, "<html>Bad Gateway</html>", {"Content-Type": "text/html"}), Transient, "server", "502", "a proxy"),
    (Reply(503), Transient, "server", "503 Service Unavailable", "no body at all"),
    (refusal(529, "Overloaded"), Transient, "rate-limited", "529", "overloaded, as DeepL answers, too"),
    (refusal(408, "Late"), Transient, "timeout", "408", "the server's own time-out"),
    (refusal(409, "Conflict"), Transient, "server", "409", "conflict"),
    (Reply(hang=True), Transient, "timeout", "no answer within 0.3", "no answer"),
    (Reply(body='{"choices": [{"mess'), Transient, "malformed", "not JSON", "truncated JSON"),
    (Reply(body='{"choices": [{"mess', cut=True), Transient, "server", "no connection", "body shorter than promised"),
    (
        Reply(body="<html>captcha</html>", headers={"Content-Type": "text/html"}),
        Transient,
        "malformed",
        "captcha",
        "page",
    ),
    (Reply(body=""), Transient, "malformed", "not JSON", "empty body"),
    (Reply(body="[" * 100_000), Transient, "malformed", "not JSON", "nested deeply"),
    (Reply(500, "[" * 100_000), Transient, "server", "500", "an error nested deeply"),
    (
        Reply(307, headers={"Location": "http://127.0.0.1:9/x"}),
        Transient,
        "server",
        "307 leads to http://127.0.0.1:9/x, which OPENAI_BASE_URL is not",
        "sent elsewhere",
    ),
    (Reply(body="[]"), Transient, "malformed", "not a JSON object", "another shape"),
    (Reply(body='{"choices": []}'), Transient, "empty", "no choices", "empty choices"),
    (Reply(body='{"error": {"message": "busy"}}'), Transient, "empty", "busy", "an error with status 200"),
    (Reply(body='{"choices": [null]}'), Transient, "malformed", "no message", "null for a choice"),
    (
        Reply(body='{"choices": [{"message": {"content": [1]}}]}'),
        Transient,
        "malformed",
        "no message",
        "content no text",
    ),
    (completion("\ud83d"), Transient, "malformed", "half a character", "an emoji cut in two"),
    (refusal(401, f"Incorrect API key: {KEY}"), BadInput, None, "OPENAI_API_KEY", "wrong key, quoted by the server"),
    (refusal(403, "Not yours"), BadInput, None, "OPENAI_API_KEY", "key without rights"),
    (refusal(404, "No such model"), BadInput, None, "no model 'tiny'", "wrong model"),
    (refusal(400, "x", code="context_length_exceeded"), Rejected, "too-long", "400 x", "OpenAI on length"),
    (
        refusal(400, "This model's maximum context length is 4096 tokens."),
        Rejected,
        "too-long",
        "4096",
        "vLLM on length",
    ),
    (
        refusal(400, "the request exceeds the available context size", kind="exceed_context_size_error"),
        Rejected,
        "too-long",
        "available",
        "llama.cpp on length",
    ),
    (refusal(413, "Payload too large"), Rejected, "too-long", "413", "a proxy on length"),
    (refusal(400, "Blocked", code="content_filter"), Rejected, "refused", "Blocked", "Azure's filter"),
    (refusal(422, "I do not like it"), Rejected, "rejected", "422", "anything else"),
]


@pytest.mark.parametrize(("reply", "error", "reason", "part", "why"), FAILURES, ids=[row[4] for row in FAILURES])
def test_failures(endpoint, reply, error, reason, part, why):
    endpoint.script.append(reply)
    with pytest.raises(error, match=part) as caught:
        chat(llm(endpoint, timeout_seconds=0.3 if reply.hang else 5.0))
    assert type(caught.value) is error
    assert getattr(caught.value, "reason", None) == reason
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert len(endpoint.asked) == 1, "the client itself repeats nothing"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after-ms": "250", "Retry-After": "1"}, 0.25),
        ({"Retry-After": "soon"}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after(endpoint, status, headers, seconds):
    endpoint.script.append(refusal(status, "later", **headers))
    with pytest.raises(Transient) as caught:
        chat(llm(endpoint))
    assert caught.value.retry_after == seconds


def test_no_server():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{reserved.getsockname()[1]}/v1"
        with pytest.raises(Transient, match="no connection to http://127") as caught:
            chat(Llm(model="tiny", endpoint=address, key=KEY))
    assert caught.value.reason == "server"


def test_tokens_and_cost_are_counted_for_every_answer_that_is_billed(endpoint):
    endpoint.script += [completion(), completion("Ho", finish="length", tokens=(100, 50)), refusal(500, "x")]
    model = llm(endpoint, price=Price(1.0, 4.0))
    for _ in range(2):
        chat(model)
    with pytest.raises(Transient):
        chat(model)
    spent = model.meter.spent
    assert (spent.requests, spent.input_tokens, spent.output_tokens) == (3, 110, 55)
    assert spent.cost == pytest.approx((110 * 1.0 + 55 * 4.0) / 1e6)


def test_tokens_from_the_cache_of_a_provider_have_their_own_price(endpoint):
    """The fields are OpenAI's; vLLM has them with --enable-prompt-tokens-details."""
    body = json.loads(completion(tokens=(100, 50)).body)
    body["usage"]["prompt_tokens_details"] = {"cached_tokens": 80}
    endpoint.script += [Reply(body=json.dumps(body))] * 2
    for price, cost in ((Price(1.0, 4.0, cached=0.1), 20 * 1.0 + 80 * 0.1 + 200), (Price(1.0, 4.0), 300.0)):
        model = llm(endpoint, price=price)
        chat(model)
        assert model.meter.spent.cached_input_tokens == 80
        assert model.meter.spent.cost == pytest.approx(cost / 1e6)


def test_an_option_that_the_model_refuses_is_left_out_from_then_on(endpoint, caplog):
    unsupported = "Unsupported value: 'temperature' does not support 0 with this model."
    endpoint.script += [
        refusal(400, unsupported, code="unsupported_value", param="temperature"),
        refusal(400, "Unsupported parameter: 'max_tokens'", code="unsupported_parameter", param="max_tokens"),
    ]
    model = llm(endpoint)
    for _ in range(2):
        assert chat(model, max_tokens=9, seed=1).text == "Hola."
    assert len(endpoint.asked) == 4
    assert endpoint.asked[-2].keys() == {"path", "model", "messages", "max_completion_tokens", "seed"}
    assert endpoint.asked[-1] == endpoint.asked[-2]
    assert [record.levelname for record in caplog.records if record.name.startswith("rusbeir")] == ["WARNING"] * 2


def test_a_server_that_refuses_an_option_for_ever_is_not_asked_for_ever(endpoint):
    endpoint.script += [refusal(400, "unsupported", param="temperature") for _ in range(9)]
    with pytest.raises(Rejected):
        chat(llm(endpoint))
    assert len(endpoint.asked) == 2


def test_lone_surrogates_are_not_sent(endpoint):
    async def ask() -> None:
        async with llm(endpoint) as model:
            await model.chat([{"role": "user", "content": "\ud800"}])

    with pytest.raises(Rejected, match="unpaired surrogates"):
        asyncio.run(ask())
    assert endpoint.asked == []


def test_the_key_stands_nowhere(endpoint, caplog, capsys):
    """Not in log lines of any library at any level, errors, tracebacks, or what prints the object."""
    caplog.set_level(logging.DEBUG)
    replies = [reply for reply, *_ in FAILURES if not reply.hang] + [
        refusal(500, f"Bearer {KEY}"),
        Reply(body=f"<html>{KEY}"),
        refusal(400, f"unsupported {KEY}", param="temperature"),
    ]
    seen = []
    for reply in replies:
        endpoint.script.append(reply)
        model = llm(endpoint)
        try:
            chat(model)
        except Exception as error:
            logging.getLogger("test").exception("failed")
            seen += [str(error), repr(error), *traceback.format_exception(error)]
        seen += [repr(model), str(model)]
    assert len(endpoint.asked) >= len(replies)
    text = "\n".join([*seen, caplog.text, *map(str, caplog.records), *capsys.readouterr()])
    assert KEY not in text
    assert "[key]" in text


ENVIRONMENTS = [
    # base url, key, part of the message
    (None, KEY, "OPENAI_BASE_URL is not set"),
    ("  ", KEY, "OPENAI_BASE_URL is not set"),
    ("http://localhost/v1", None, "OPENAI_API_KEY is not set"),
    ("http://localhost/v1", "", "OPENAI_API_KEY is not set"),
    ("localhost:8000/v1", KEY, "must begin with http"),
    ("http://", KEY, "name a host"),
    ("https://user:secret@host/v1", KEY, "Leave them out"),
    ("http://localhost/v1", "key\nwith line", "OPENAI_API_KEY contains characters"),
    ("http://localhost/v1", "ключ", "OPENAI_API_KEY contains characters"),
]


@pytest.mark.parametrize(("url", "key", "part"), ENVIRONMENTS)
def test_the_environment_is_checked(monkeypatch, url, key, part):
    for name, value in (("OPENAI_BASE_URL", url), ("OPENAI_API_KEY", key)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    with pytest.raises(BadInput, match=part) as caught:
        Llm.from_environment("tiny")
    assert KEY not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_the_environment_is_used(monkeypatch, endpoint):
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert chat(Llm.from_environment("tiny", price=Price(1, 2))).text == "Hola."


def test_a_key_in_the_address_is_sent_and_not_printed(monkeypatch, endpoint):
    monkeypatch.setenv("OPENAI_BASE_URL", f"{endpoint.url}?api-key=secret-in-query&v=1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    endpoint.script.append(refusal(401, "secret-in-query is not a key"))
    model = Llm.from_environment("tiny")
    with pytest.raises(BadInput, match=r"\[key\] is not a key") as caught:
        chat(model)
    assert "secret-in-query" not in f"{caught.value} {model} {model.endpoint}"
    assert chat(Llm.from_environment("tiny")).text == "Hola."


def test_without_the_package(monkeypatch, endpoint):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtra, match=r"pip install 'rusbeir\[llm\]'"):
        chat(llm(endpoint))


def test_through_a_throttle_every_request_ends_well(endpoint):
    """Forty requests at a server where every failure happens again and again."""
    temporary = [reply for reply, error, *_ in FAILURES if error is Transient and not reply.hang]
    for number, reply in enumerate(temporary):
        endpoint.script += [reply, completion(f"answer {number}")]

    async def ask() -> tuple[list[Answer], Throttle]:
        throttle = Throttle(
            Limits(first_wait_seconds=0.001, max_wait_seconds=1.0, retries=9, concurrency=4, breaker=40)
        )
        async with llm(endpoint) as model:
            return await asyncio.gather(*(throttle.run(lambda: model.chat(MESSAGES)) for _ in range(40))), throttle

    answers, throttle = asyncio.run(ask())
    assert len(answers) == 40
    assert all(answer.text for answer in answers)
    assert throttle.retries == sum(throttle.reasons.values()) == len(temporary)
    assert throttle.requests == 40 + len(temporary) == len(endpoint.asked)


def test_a_throttle_waits_as_long_as_the_server_asks(endpoint):
    endpoint.script += [refusal(429, "later", retry_after_ms="60")]

    async def ask() -> float:
        throttle = Throttle(FAST)
        start = asyncio.get_running_loop().time()
        async with llm(endpoint) as model:
            await throttle.run(lambda: model.chat(MESSAGES))
        return asyncio.get_running_loop().time() - start

    assert asyncio.run(ask()) >= 0.06


def test_a_time_out_of_the_limits_is_a_failure_like_any_other(endpoint):
    endpoint.script += [Reply(hang=True)] * 2

    async def ask() -> None:
        throttle = Throttle(Limits(first_wait_seconds=0.001, retries=1, timeout_seconds=0.1))
        async with llm(endpoint) as model:
            await throttle.run(lambda: model.chat(MESSAGES))

    with pytest.raises(Exhausted, match=r"2 attempts \(timeout: no answer within 0.1 seconds\)"):
        asyncio.run(ask())


def test_json_by_a_schema_is_handed_on_as_text(endpoint):
    endpoint.script.append(completion('{"translation": "Hola."}'))
    assert json.loads(chat(llm(endpoint), schema={"type": "object"}).text) == {"translation": "Hola."}
