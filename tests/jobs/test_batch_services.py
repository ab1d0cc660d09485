"""One contract for all forms of batches: the same answers, nothing lost, nothing paid twice, one line for faults."""

from __future__ import annotations

import contextlib
import json

import pytest

from rusbeir.errors import BackendError, BadInput, Suspended, UnknownName
from rusbeir.jobs import Journal, Llm
from rusbeir.jobs.batch_anthropic import AnthropicBatches, write_params
from rusbeir.jobs.batch_gemini import GeminiBatches
from rusbeir.jobs.batch_gemini import read_result as read_geminis
from rusbeir.jobs.batch_service import SERVICES, OpenAiBatches, open_service
from rusbeir.people.judge import SCHEMA as LIKERT_SCHEMA
from rusbeir.people.span_judge import make_schema
from rusbeir.synthesis.quality.relevance import SCHEMA as LABEL_SCHEMA
from tests.support.batch_files import ask_sums
from tests.support.batch_server import BatchServer
from tests.support.native_batch_servers import AnthropicServer, GeminiServer
from tests.support.openai_server import Reply, completion, refusal

SERVERS = {"anthropic": AnthropicServer, "gemini": GeminiServer, "openai": BatchServer}
PATHS = {"anthropic": "/v1", "gemini": "/v1beta/openai", "openai": "/v1"}
LOOKS = {
    "anthropic": "GET /messages/batches/ID", "gemini": "GET beta/batches/ID", "openai": "GET /batches/ID"
}  # fmt: skip
CREATIONS = {
    "anthropic": "POST /messages/batches",
    "gemini": "POST beta/models/tiny:batchGenerateContent",
    "openai": "POST /batches",
}
LISTS = {"anthropic": "GET /messages/batches", "gemini": "GET beta/batches", "openai": "GET /batches"}
DOWNLOADS = {
    "anthropic": "GET /messages/batches/ID/results",
    "gemini": "GET /download/v1beta/files/ID:download",
    "openai": "GET /files/ID/content",
}
PAYLOADS = [f"{number} and {word}" for number, word in enumerate(["1", "odd 2", "never", "refuse", "long", "3"])]
RESULTS, REASONS = [1, 3, None, None, None, 8], ["", "", "invalid", "refused", "too-long", ""]
MANY = [f"{number} {'odd ' * (number % 3 == 0)}1" for number in range(30)]
SUMS = [number + 1 for number in range(30)]


@pytest.fixture(params=SERVICES)
def form(request):
    return request.param


@pytest.fixture
def provider(form, monkeypatch):
    with SERVERS[form]() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url.removesuffix("/v1") + PATHS[form])
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key")
        monkeypatch.setenv("RUSBEIR_BATCH_API", form)
        yield server


def send(path, payloads, **request):
    return ask_sums(path, payloads, **{"batch": 0.5, **request})


def test_the_same_answers(tmp_path, provider, form):
    answers, spent = send(tmp_path / "j.sqlite", PAYLOADS)
    assert (answers.values, answers.reasons) == (RESULTS, REASONS)
    assert spent.requests == provider.paid.total() + 1, "one was refused"
    assert spent.input_tokens == sum(len(text) + 16 for text in _texts(provider))
    assert spent.output_tokens == 5 * provider.paid.total()
    assert spent.cached_input_tokens == (0 if form == "openai" else 3 * provider.paid.total())
    # Half of 1 and 2 USD per million tokens; what Anthropic writes to its cache costs 1.25 of the input's price.
    written = 2 * provider.paid.total() if form == "anthropic" else 0
    assert spent.cost == pytest.approx(0.5e-6 * (spent.input_tokens + 0.25 * written + 2 * spent.output_tokens))
    assert sorted(path.name for path in tmp_path.glob("batch-*")) == []


def _texts(provider):
    return [json.loads(body)["messages"][0]["content"] for body, n in provider.paid.items() for _ in range(n)]


def test_half_of_the_lines_fail(tmp_path, provider):
    provider.failing = 0.5
    answers, spent = send(tmp_path / "j.sqlite", MANY)
    assert answers.values == SUMS
    assert set(provider.paid.values()) == {1}
    assert spent.requests == provider.paid.total()


@pytest.mark.parametrize("ending", ["expired", "cancelled"])
def test_what_an_unfinished_batch_answered_is_kept(tmp_path, provider, ending):
    provider.endings = [ending]
    if ending == "cancelled":
        with pytest.raises(BackendError, match=r"was cancelled\. What it answered is recorded"):
            send(tmp_path / "j.sqlite", MANY)
    assert send(tmp_path / "j.sqlite", MANY)[0].values == SUMS
    assert set(provider.paid.values()) == {1}


@pytest.mark.parametrize("fault", [Reply(500, "{}"), refusal(429, "slow"), Reply(cut=True)], ids=["500", "429", "cut"])
@pytest.mark.parametrize("calls", [LOOKS, CREATIONS, DOWNLOADS], ids=["look", "create", "download"])
def test_faults_are_repeated(tmp_path, provider, form, calls, fault):
    """A batch whose creation was not answered is found, and not made again."""
    provider.refusals[calls[form]] = [fault]
    assert send(tmp_path / "j.sqlite", ["1 1", "1 2"])[0].values == [2, 3]
    assert not provider.refusals[calls[form]], "the fault was met"
    assert set(provider.paid.values()) == {1}


def test_a_batch_that_may_have_been_started_is_not_released(tmp_path, provider, form):
    """Its creation was not answered, and the key expired before it was looked for."""
    provider.refusals[CREATIONS[form]] = [Reply(cut=True)]
    provider.refusals[LISTS[form]] = [refusal(401, "expired")]
    with pytest.raises(BadInput, match="does not accept the key"):
        send(tmp_path / "j.sqlite", ["1 1", "1 2"])
    assert send(tmp_path / "j.sqlite", ["1 1", "1 2"])[0].values == [2, 3]
    assert set(provider.paid.values()) == {1}
    assert len(provider.batches) == 1


def test_found_again_after_a_kill_and_never_that_of_another_job(tmp_path, provider, form):
    """Killed after the batch was sent and before its id was recorded, with one of another job before and behind."""
    assert send(tmp_path / "before.sqlite", ["5 5"])[0].values == [10]
    provider.refusals[LOOKS[form]] = [refusal(401, "expired")]
    with pytest.raises(BadInput, match="does not accept the key"):
        send(tmp_path / "j.sqlite", MANY)
    with Journal.open(tmp_path / "j.sqlite", {}) as journal:
        journal.write("UPDATE batch SET state = ?, remote = ?", [("new", "")])
    assert send(tmp_path / "behind.sqlite", MANY[:3])[0].values == SUMS[:3]
    assert send(tmp_path / "j.sqlite", MANY)[0].values == SUMS
    alone = [body for body, n in provider.paid.items() if n != 1]
    assert len(alone) == 3 + 1, "the three of the other job, and one of them a second time for its odd number"


def test_cancelling(tmp_path, provider, form):
    provider.refusals[LOOKS[form]] = [refusal(401, "expired")]
    with pytest.raises(BadInput):
        send(tmp_path / "j.sqlite", MANY)
    with pytest.raises(Suspended, match="1 batches are cancelled"):
        send(tmp_path / "j.sqlite", MANY, batch=False, cancel=True)
    assert 0 < provider.paid.total() < len(MANY)
    assert send(tmp_path / "j.sqlite", MANY)[0].values == SUMS
    assert set(provider.paid.values()) == {1}


def test_answers_that_are_gone_count_as_spent(tmp_path, provider, form):
    provider.refusals[DOWNLOADS[form]] = [refusal(404, "No such object")]
    with pytest.raises(BackendError, match=r"are gone: .* Its 2 requests without an answer count as spent"):
        send(tmp_path / "j.sqlite", ["1 1", "1 2"])
    answers, spent = send(tmp_path / "j.sqlite", ["1 1", "1 2"])
    assert (answers.values, spent.requests) == ([2, 3], 4)


def test_a_server_without_batches(tmp_path, provider, form):
    call = {"anthropic": CREATIONS["anthropic"], "gemini": "POST /upload/v1beta/files", "openai": "POST /files"}[form]
    provider.refusals[call] = [refusal(404, "Not Found")]
    with pytest.raises((BadInput, BackendError), match=r"no Batch API|no batches of this form|takes no files"):
        send(tmp_path / "j.sqlite", ["1 1"])
    assert send(tmp_path / "j.sqlite", ["1 1"])[0].values == [2]


@pytest.mark.parametrize(
    ("endpoint", "kind"),
    [
        ("https://api.anthropic.com/v1", AnthropicBatches),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", GeminiBatches),
        ("https://api.openai.com/v1", OpenAiBatches),
        ("http://localhost:8000/v1", OpenAiBatches),
    ],
)
def test_the_form_is_that_of_the_host(monkeypatch, endpoint, kind):
    monkeypatch.delenv("RUSBEIR_BATCH_API", raising=False)
    assert isinstance(open_service(Llm(model="m", endpoint=endpoint, key="k")), kind)
    monkeypatch.setenv("RUSBEIR_BATCH_API", "gemni")
    with pytest.raises(UnknownName, match="Did you mean 'gemini'"):
        open_service(Llm(model="m", endpoint=endpoint, key="k"))


@pytest.mark.parametrize("body", ["[]", "{}", "nonsense", '{"id": 1, "custom_id": 7, "key": []}'])
@pytest.mark.parametrize("calls", [LOOKS, CREATIONS, DOWNLOADS], ids=["look", "create", "download"])
def test_answers_of_another_form_are_one_line_and_nothing_is_lost(tmp_path, provider, form, calls, body):
    provider.refusals[calls[form]] = [Reply(200, body)] * 4
    # One line, never an error of Python. A provider that recovers in time stops nothing.
    with contextlib.suppress(BackendError, BadInput):
        send(tmp_path / "j.sqlite", ["1 1", "1 2"])
    provider.refusals.clear()
    assert send(tmp_path / "j.sqlite", ["1 1", "1 2"])[0].values == [2, 3]


def test_line_ends_that_are_none_in_json(tmp_path, provider):
    """Texts have U+2028, U+2029 and U+0085, at which str.splitlines cuts."""
    text = json.dumps({"sum": 2, "note": "a\u2028b\u2029c\x85d"}, ensure_ascii=False)
    provider.reply = lambda body: completion(text)
    assert send(tmp_path / "j.sqlite", ["1 1", "2 0"])[0].values == [2, 2]
    assert set(provider.paid.values()) == {1}


@pytest.mark.parametrize("form", ["anthropic", "gemini"])
def test_a_broken_line_costs_its_own_answer_alone(tmp_path, provider, form, monkeypatch):
    answer, cut = provider.answer, []

    def cut_once(method, path, query, body):
        status, data, *more = answer(method, path, query, body)
        if path.endswith(("/results", ":download")) and not cut:
            first, *rest = data.splitlines(keepends=True)
            cut.append(first)
            data = b"".join([first[:-9], b"\n", *rest])
        return status, data, *more

    monkeypatch.setattr(provider, "answer", cut_once)
    answers, spent = send(tmp_path / "j.sqlite", ["1 1", "1 2", "1 3"])
    assert answers.values == [2, 3, 4]
    assert spent.requests == provider.paid.total() == 3 + 1


def test_bounds_are_left_out_of_anthropics_schemas():
    """Structured outputs refuse them with 400; keys that have the name of a bound are kept."""
    inner = {"minimum": {"type": "integer", "minimum": 1, "maximum": 5}, "kind": {"enum": ["maximum"]}}
    schema = {
        "type": "object",
        "properties": {"rows": {"type": "array", "maxItems": 2, "items": {"properties": inner}}},
    }
    body = {"model": "m", "messages": [], "response_format": {"json_schema": {"schema": schema}}}
    rows = {"type": "array", "items": {"properties": {"minimum": {"type": "integer"}, "kind": {"enum": ["maximum"]}}}}
    sent = write_params(body)["output_config"]["format"]["schema"]
    assert sent == {"type": "object", "properties": {"rows": rows}}
    for known in (LABEL_SCHEMA, LIKERT_SCHEMA, make_schema("esa")):
        body["response_format"]["json_schema"]["schema"] = known
        assert "imum" not in json.dumps(write_params(body))


@pytest.mark.parametrize(
    ("code", "status"), [(3, 400), (9, 400), (11, 400), (400, 400), (1, 0), (13, 0), (503, 503), ("3", 0), (None, 0)]
)
def test_geminis_codes(code, status):
    """Those of gRPC that google.rpc.Code maps to 400 are not asked again."""
    line = read_geminis({"key": f"rusbeir-{'0' * 32}", "error": {"code": code, "message": "no"}})
    assert json.loads(line)["response"]["status_code"] == status
