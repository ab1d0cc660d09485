"""The paid services and Google's free endpoint: what is sent, and what their answers mean."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from rusbeir.errors import BackendError, BadInput
from rusbeir.jobs import Budget, Journal, Meter, Transient
from rusbeir.translation.translator import Failure, Metered
from tests.support import translation_servers as servers
from tests.support.asking import ask, make_one


def answering(server, status, body="", **headers):
    """Let the server give this answer to everything."""
    own = servers.JSON | {name.replace("_", "-"): value for name, value in headers.items()}
    server.broken = lambda request: servers.Response(status, body, own)


def test_google_is_asked_with_its_own_codes_and_for_the_translation_alone(server):
    server.keep_requests = True
    ask(make_one("google", endpoint=server.url), "A cat.", target="nb")
    ask(make_one("google", endpoint=server.url), "A cat.", target="ee")
    queries = [request.query for request in server.seen]
    assert [(query["sl"], query["tl"], query["dt"], query["q"]) for query in queries] == [
        (["en"], ["no"], ["t"], ["A cat."]),
        (["en"], ["ee"], ["t"], ["A cat."]),
    ]


HTML = "text/html; charset=UTF-8"


@pytest.mark.parametrize(
    ("status", "body", "headers", "reason", "retry_after"),
    [
        (429, "", {"Retry_After": "7"}, "rate-limited", 7.0),
        (429, "", {}, "rate-limited", None),
        (503, "", {"Retry_After": "1"}, "server", 1.0),
        (302, "", {"Location": "https://www.google.com/sorry/index"}, "rate-limited", None),
        (200, "<html>captcha", {"Content_Type": HTML}, "rate-limited", None),
        (403, "", {}, "rate-limited", None),
        (200, '[[["При', {}, "malformed", None),
        (200, "[null,null,2]", {}, "malformed", None),
        (200, "{}", {}, "malformed", None),
        (200, '"text"', {}, "malformed", None),
        (200, "", {}, "malformed", None),
    ],
)
def test_what_google_answers_instead_of_a_translation(status, body, headers, reason, retry_after, server):
    server.broken = lambda request: servers.Response(
        status, body, servers.JSON | {name.replace("_", "-"): value for name, value in headers.items()}
    )
    with pytest.raises(Transient) as raised:
        ask(make_one("google", endpoint=server.url), "A cat sleeps on the sofa.")
    assert (raised.value.reason, raised.value.retry_after) == (reason, retry_after)


def test_the_source_text_is_no_translation(server):
    server.translate = lambda text: text
    same = "A cat sleeps on the sofa."
    assert ask(make_one("google", endpoint=server.url), same)[0].reason == "untranslated"
    assert ask(make_one("google", endpoint=server.url), "Leo Tolstoy") == ["Leo Tolstoy"]


def test_one_bad_item_leaves_its_neighbours_their_answers(server):
    server.broken = lambda request: (
        servers.Response(429, "", servers.JSON) if "bad" in request.query["q"][0]
        else servers.Response(413, "", servers.JSON) if "long" in request.query["q"][0] else None
    )  # fmt: skip
    outcomes = ask(make_one("google", endpoint=server.url), "A cat.", "bad", "A dog.", "long")
    assert outcomes == [
        "А цат.",
        Failure("rate-limited", "429 Too Many Requests", True),
        "А дог.",
        Failure("too-long", "Google answers 413 Request Entity Too Large", False),
    ]


def test_no_connection_is_worth_another_try():
    for name in ("google", "google-cloud", "deepl"):
        with pytest.raises(Transient) as raised:
            ask(make_one(name, endpoint="http://127.0.0.1:9"), "A cat.")
        assert (raised.value.reason, raised.value.billed) == ("server", False)


def test_google_itself_is_asked_by_default(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    with pytest.raises(Transient, match="server: no connection to Google"):
        ask(make_one("google"), "A cat.")


@pytest.mark.parametrize("name", ["google-cloud", "deepl"])
def test_tags_come_through_and_languages_are_named(name, server):
    server.keep_requests = True
    outcomes = ask(make_one(name, endpoint=server.url), 'A <x id="0"/> cat &amp; dog.', "It is Tom's.", target="pt-BR")
    assert outcomes[0] == 'А <x id="0"/> цат &amp; дог.'
    (request,) = server.seen
    body = request.json()
    if name == "deepl":
        assert (body["source_lang"], body["target_lang"]) == ("EN", "PT-BR")
        # Unnamed, the version would depend on when the account first used tags.
        assert (body["tag_handling"], body["tag_handling_version"]) == ("xml", "v2")
        assert "tags:xml-v2" in make_one(name).signature
    else:
        assert (body["source"], body["target"], body["format"]) == ("en", "pt", "html")
        assert outcomes[1] == "Ит ис Том&#39;с."
        assert "secret" not in request.path + json.dumps(request.query)


@pytest.mark.parametrize(
    ("name", "status", "body", "error", "message"),
    [
        ("deepl", 456, '{"message": "Quota Exceeded"}', BackendError, "DeepL's quota for this billing"),
        ("deepl", 403, "{}", BadInput, "DeepL does not accept the key in DEEPL_AUTH_KEY."),
        ("deepl", 400, '{"message": "Value for \'target_lang\' not supported."}', BadInput, "DeepL does not support"),
        ("deepl", 401, "not JSON", BadInput, "DeepL does not accept the key in DEEPL_AUTH_KEY."),
        ("deepl", 429, "{}", Transient, "rate-limited"),
        ("deepl", 503, "{}", Transient, "server"),
        ("deepl", 200, '{"translations": [{"text": "x"', Transient, "malformed"),
        ("deepl", 200, '{"translations": [{"translation": "x"}]}', Transient, "malformed"),
        ("google-cloud", 403, servers.cloud_error(403, "Daily Limit Exceeded", "dailyLimitExceeded"), BackendError,
         "Google Cloud's quota is used up (Daily Limit Exceeded)"),
        ("google-cloud", 403, servers.cloud_error(403, "User Rate Limit Exceeded", "userRateLimitExceeded"), Transient,
         "rate-limited: 429 User Rate Limit"),
        ("google-cloud", 403, servers.cloud_error(403, f"No such key {servers.GOOGLE_KEY}", "forbidden"), BadInput,
         "Google Cloud does not accept the credentials in GOOGLE_API_KEY or GOOGLE_APPLICATION_CREDENTIALS "
         "(403 No such key [key])."),
        ("google-cloud", 400, servers.cloud_error(400, "API key not valid.", "badRequest"), BadInput,
         "Google Cloud does not accept the credentials"),
        ("google-cloud", 400, servers.cloud_error(400, "Bad language pair: {en|xx}", "badRequest"), BadInput,
         "Google Cloud does not support this pair of languages"),
        ("google-cloud", 200, '{"data": {"translations": []}}', Transient, "malformed: 1 texts were sent and 0"),
        ("google-cloud", 200, "[]", Transient, "malformed"),
    ],
)  # fmt: skip
def test_what_paid_services_answer_instead(name, status, body, error, message, server):
    answering(server, status, body)
    with pytest.raises(error) as raised:
        ask(make_one(name, endpoint=server.url), "A cat.")
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("name", ["google-cloud", "deepl"])
def test_the_one_text_that_a_service_cannot_read_is_found(name, server):
    server.broken = lambda request: (
        servers.Response(400, servers.cloud_error(400, "Invalid text", "invalid")) if b"bad" in request.body else None
    )
    outcomes = ask(make_one(name, endpoint=server.url), *"abcde", "bad", "g")
    assert [isinstance(outcome, str) for outcome in outcomes] == [True] * 5 + [False, True]
    assert outcomes[5].reason == "unsupported"


@pytest.mark.parametrize("name", ["google", "google-cloud", "deepl", "llm"])
def test_a_meter_counts_each_request_and_what_was_billed(name, server, tmp_path):
    """One text of four is refused: alone, or in requests of ever fewer texts."""
    options = {"llm": servers.MODEL} if name == "llm" else {"endpoint": server.url}
    server.broken = lambda request: (
        servers.Response(400, servers.cloud_error(400, "Invalid text", "invalid"))
        if "bad" in request.body.decode() + "".join(request.query.get("q", [])) else None
    )  # fmt: skip
    translator = make_one(name, **options)
    assert isinstance(translator, Metered)
    with Journal.open(tmp_path / "j.sqlite", {}) as journal:
        budget = Budget(journal)
        meter = Meter(budget=budget)
        outcomes = ask(translator.with_meter(meter), "A cat.", "A dog.", "A bear.", "bad")
    assert [isinstance(outcome, str) for outcome in outcomes] == [True, True, True, False]
    assert meter.spent.requests == server.requests == {"google": 4, "google-cloud": 5, "deepl": 5, "llm": 4}[name]
    prompt = sum(len(part["content"]) for part in translator.write_messages("", "en", "ru")) if name == "llm" else 0
    assert budget.spent.chars == len("A cat.A dog.A bear.") + 3 * prompt
    price = translator.capacity.cost_per_million_chars
    assert budget.spent.cost == pytest.approx(len("A cat.A dog.A bear.") * price / 1e6)


@pytest.mark.parametrize("name", ["google", "google-cloud", "deepl", "llm"])
def test_a_connection_that_breaks_may_have_been_billed(name, server):
    async def hang_up(writer, response):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        writer.close()

    server.send = hang_up
    options = {"llm": servers.MODEL} if name == "llm" else {"endpoint": server.url}
    with pytest.raises(Transient) as raised:
        ask(make_one(name, **options), "A cat.")
    assert raised.value.billed


@pytest.fixture
def account(tmp_path, server, monkeypatch):
    """The file of a service account whose tokens the local server gives out."""
    monkeypatch.delenv("GOOGLE_API_KEY")
    assert shutil.which("openssl")
    key = subprocess.run(["openssl", "genrsa", "2048"], capture_output=True, text=True, check=True).stdout
    path = tmp_path / "account.json"
    row = {"type": "service_account", "client_email": "a@b.c", "private_key": key, "token_uri": f"{server.url}/token"}
    path.write_text(json.dumps(row | {"project_id": "p", "private_key_id": "1", "client_id": "2"}), encoding="utf-8")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    return path


def test_a_service_account_pays_with_one_token_for_all_requests(account, server):
    translator = make_one("google-cloud", endpoint=server.url)
    translator.check("en", "ru")
    assert ask(translator, "A cat.") == ["А цат."]
    assert ask(translator, "A dog.") == ["А дог."]
    assert server.requests == 3
    assert servers.TOKEN not in repr(translator) + translator.signature


def test_a_service_account_without_a_token_server(account, server):
    server.broken = lambda request: (
        servers.Response(400, '{"error": "invalid_grant"}') if "token" in request.path else None
    )
    with pytest.raises(BadInput, match="The service account in GOOGLE_APPLICATION_CREDENTIALS gets no token"):
        ask(make_one("google-cloud", endpoint=server.url), "A cat.")


def test_a_file_that_is_no_service_account(account, server):
    account.write_text("{}", encoding="utf-8")
    with pytest.raises(BadInput, match=r"account\.json, which is not the file of a service account"):
        make_one("google-cloud", endpoint=server.url).check("en", "ru")
