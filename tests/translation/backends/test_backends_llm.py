"""What a language model is asked, and what is made of its answers."""

from __future__ import annotations

import json

import pytest

from rusbeir.errors import BadInput
from rusbeir.translation.backends.llm import read_translation
from rusbeir.translation.translator import Failure
from tests.support import translation_servers as servers
from tests.support.asking import ask, make_one

TEXT = "Hares dig no burrows: by day they rest in a shallow hollow called a form."
RUSSIAN = "Нор зайцы не роют: днём они отдыхают в неглубокой ямке — лёжке."
REFUSAL = "I'm sorry, but I can't help with that request."


@pytest.mark.parametrize(
    ("answer", "translation"),
    [
        # what a model wrote, what it means, None where that cannot be known
        ('{"translation": "Да."}', "Да."),
        (' {"translation":"Да."}\n', "Да."),
        ('{"translation": "Да.", "note": "short"}', "Да."),
        ('```json\n{"translation": "Да."}\n```', "Да."),
        ('Here it is:\n```\n{"translation": "Да."}\n```\nEnjoy!', "Да."),
        ('Sure! {"translation": "Да."} Anything else?', "Да."),
        ('<think>{"translation": "Нет"}</think>{"translation": "Да."}', "Да."),
        ('{"translation": "две\nстроки"}', "две\nстроки"),
        ('{"translation": "он сказал "да" и ушёл"}', 'он сказал "да" и ушёл'),
        ("{'translation': 'Да.'}", "Да."),
        ('{"translation": "Да.",}', "Да."),
        ('{"translation": "a\\nб \\u0414 "x""}', 'a\nб Д "x"'),
        ('{"translation": "\\ud83d\\ude00"}', "😀"),
        ('{"translation": "{1} [2] \\"x\\""}', '{1} [2] "x"'),
        ('{"translation": ""}', ""),
        ('{"translation": "Да', None),
        ('{"translation": "Да."', None),
        ('{"translation": null}', None),
        ('{"translation": ["Да."]}', None),
        ('{"translation": "\\ud83d"}', None),
        ('{"перевод": "Да."}', None),
        ('["translation"]', None),
        ('{"translation": "Да."} {"translation": "Нет."}', None),
        ("Да.", None),
        ("", None),
        (REFUSAL, None),
    ],
)
def test_read_translation(answer, translation):
    assert read_translation(answer) == translation


def chat(content, finish="stop", refusal=None):
    return servers.Response(200, json.dumps({
        "id": "1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": finish,
                     "message": {"role": "assistant", "content": content, "refusal": refusal}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }))  # fmt: skip


def in_turn(server, *answers):
    """Let the server give these answers one after the other, the last one for ever."""
    left = list(answers)
    server.keep_requests = True
    server.broken = lambda request: left.pop(0) if len(left) > 1 else left[0]


def test_the_request(server):
    server.keep_requests = True
    server.translate = lambda text: RUSSIAN
    assert ask(make_one("llm", llm=servers.MODEL), TEXT) == [RUSSIAN]
    body = server.seen[0].json()
    assert body["temperature"] == 0
    assert body["seed"] == 0
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["translation"]
    system, user = body["messages"]
    assert system["content"].startswith("You are a professional translator from English to Russian.")
    assert '{"translation": "the text in Russian"}' in system["content"]
    assert user == {"role": "user", "content": TEXT}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (chat(REFUSAL), "refused"),
        (chat(json.dumps({"translation": REFUSAL})), "refused"),
        (chat("", refusal=REFUSAL), "refused"),
        (chat("", finish="content_filter"), "refused"),
        (chat('{"translation": "Нор зай', finish="length"), "too-long"),
        (chat('{"translation": "Нор зай'), "malformed"),
        (chat(json.dumps({"translation": f"Here is the translation:\n{RUSSIAN}"})), "malformed"),
        (chat(json.dumps({"translation": TEXT})), "untranslated"),
        (chat(json.dumps({"translation": "Die Hasen graben keine Höhlen: am Tag ruhen sie in einer flachen Mulde."})),
         "wrong-language"),
        (chat(""), "empty"),
        (chat(json.dumps({"translation": " "})), "empty"),
    ],
)  # fmt: skip
def test_what_is_no_translation_is_asked_for_again_with_another_seed(bad, reason, server):
    in_turn(server, bad, bad, chat(json.dumps({"translation": RUSSIAN})))
    translator = make_one("llm", llm=servers.MODEL, input_price=1.0, output_price=10.0)
    assert ask(translator, TEXT) == [RUSSIAN]
    assert [(r.json()["seed"], r.json()["temperature"]) for r in server.seen] == [(0, 0), (1, 0.3), (2, 0.3)]
    spent = translator.meter.spent
    assert (spent.requests, spent.input_tokens) == (3, 300)
    assert spent.cost == pytest.approx(3 * (100 + 20 * 10) / 1e6)

    in_turn(server, bad)
    (failure,) = ask(make_one("llm", llm=servers.MODEL, attempts=2), TEXT)
    assert isinstance(failure, Failure)
    assert (failure.reason, failure.retry) == (reason, False)
    assert failure.detail


def test_what_the_endpoint_rejects_fails_alone(server):
    long = '{"error": {"message": "maximum context length is 4096 tokens", "code": "context_length_exceeded"}}'
    server.broken = lambda request: servers.Response(400, long) if b"LONG" in request.body else None
    outcomes = ask(make_one("llm", llm=servers.MODEL), "LONG", "Leo Tolstoy")
    assert outcomes[0].reason == "too-long"
    assert outcomes[1] == "Лео Толстоы"


@pytest.mark.parametrize(
    ("options", "key", "message"),
    [
        ({"llm": "other"}, servers.OPENAI_KEY, "has no model 'other'"),
        ({"llm": servers.MODEL}, "sk-secret-wrong", "does not accept the key in OPENAI_API_KEY"),
    ],
)
def test_a_wrong_key_or_model_is_bad_input(options, key, message, server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(BadInput, match=message) as raised:
        ask(make_one("llm", **options), "A cat.")
    assert "sk-secret" not in str(raised.value)


def test_what_changes_the_text_changes_the_signature():
    signatures = {
        make_one("llm", **options).signature
        for options in ({"llm": "a b|c"}, {"llm": "d"}, {"llm": "d", "seed": 1}, {"llm": "d", "attempts": 1})
    }
    assert len(signatures) == 4
    assert make_one("llm", llm="d", input_price=3.0).signature in signatures
