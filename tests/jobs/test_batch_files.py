"""Requests written to files and answers read from them: the same results as one by one, whatever the files hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from pydantic import ConfigDict, TypeAdapter, with_config

from rusbeir.errors import BackendError, BadInput, RusbeirError, Suspended
from rusbeir.jobs import BudgetTooSmall, Journal, TaskQueue, count_answers
from tests.support.batch_files import Adder, add, answer_file, answer_line, ask_sums
from tests.support.openai_server import completion, refusal

PAYLOADS = [f"{number} and {word}" for number, word in enumerate(["1", "odd 2", "never", "refuse", "long", "3"])]
RESULTS = [1, 3, None, None, None, 8]
REASONS = ["", "", "invalid", "refused", "too-long", ""]


def work_by_files(folder: Path, payloads=PAYLOADS, seed=1, **request):
    """Write, answer and read until nothing is left; the answers, what was spent, and the files of each round."""
    journal, rounds = folder / "files.sqlite", []
    for number in range(10):
        requests, answers = folder / f"requests-{number}.jsonl", folder / f"answers-{number}.jsonl"
        read = [rounds[-1][1]] if rounds else []
        try:
            return *ask_sums(journal, payloads, batch_out=requests, batch_in=read, **request), rounds
        except Suspended:
            answer_file(requests, answers, seed=seed)
            rounds.append((requests, answers))
    raise AssertionError("ten rounds")


def test_files_bring_what_requests_bring(tmp_path, serve):
    """Three rounds, since the second and the third seed ask what the first did not bring."""
    adder = serve(Adder())
    live, live_spent = ask_sums(tmp_path / "live.sqlite", PAYLOADS)
    n_asked = len(adder.asked)
    answers, spent, rounds = work_by_files(tmp_path)
    assert (answers.values, answers.reasons) == (live.values, live.reasons) == (RESULTS, REASONS)
    assert len(adder.asked) == n_asked  # Nothing was sent.
    assert [len(path.read_text().splitlines()) for path, _ in rounds] == [6, 3, 2]
    assert (spent.requests, spent.chars) == (live_spent.requests, live_spent.chars) == (11, live_spent.chars)
    assert spent.cost == pytest.approx(live_spent.cost)
    assert (spent.input_tokens, spent.output_tokens) == (live_spent.input_tokens, live_spent.output_tokens)
    counts = []
    for name in ("live", "files"):
        with Journal.open(tmp_path / f"{name}.sqlite", {}) as journal:
            queue = TaskQueue(journal, "sum", "adder")
            rows = [(row.task.payload, row.result, row.attempts) for row in queue.results("done")]
            counts.append((rows, count_answers(journal, "adder")))
    assert counts[0] == counts[1]


def test_a_second_reading_changes_nothing(tmp_path):
    answers, spent, rounds = work_by_files(tmp_path)
    files = [path for _, path in rounds]
    again, spent_again = ask_sums(tmp_path / "files.sqlite", [*PAYLOADS], batch_in=files)
    assert (again.values, spent_again) == (answers.values, spent)
    with pytest.raises(BackendError, match="1 requests have no answer yet"):
        ask_sums(tmp_path / "files.sqlite", [*PAYLOADS, "9 9"], batch_in=files)


def test_pieces_by_several_people(tmp_path):
    requests, whole = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
    payloads = [f"{number} 1" for number in range(20)]
    with pytest.raises(Suspended, match="20 requests are written"):
        ask_sums(tmp_path / "j.sqlite", payloads, batch_out=requests)
    answer_file(requests, whole, seed=3)
    lines = whole.read_text().splitlines(keepends=True)
    pieces = []
    for name, part in (("anna", lines[:12]), ("boris", lines[8:])):
        pieces.append(tmp_path / f"{name}.jsonl")
        pieces[-1].write_text("".join(part))
    told: list[str] = []
    with pytest.raises(BackendError, match=r"8 requests have no answer yet.*batch_out=FILE.*batch_in="):
        ask_sums(tmp_path / "j.sqlite", payloads, batch_in=pieces[:1], tell=told.append)
    answers, spent = ask_sums(tmp_path / "j.sqlite", payloads, batch_in=pieces[1], tell=told.append)
    assert answers.values == [number + 1 for number in range(20)]
    assert told == [
        "Batches: 12 answers are recorded.",
        "Batches: 8 answers are recorded; 4 are to requests that had one, which counts.",
    ]
    assert spent.requests == 20


def test_answers_of_another_run_stay(tmp_path):
    """What one run has not asked for is kept when it ends, and what was used may be given again, at no cost."""
    answers, others = tmp_path / "answers.jsonl", tmp_path / "others.jsonl"
    for payloads, file in ((["1 1"], answers), (["5 5"], others)):
        with pytest.raises(Suspended):
            ask_sums(tmp_path / "j.sqlite", payloads, batch_out=tmp_path / "requests.jsonl")
        answer_file(tmp_path / "requests.jsonl", file)
    result, spent = ask_sums(tmp_path / "j.sqlite", ["1 1"], batch_in=[answers, others])
    assert (result.values, spent.requests) == ([2], 2)
    result, spent = ask_sums(tmp_path / "j.sqlite", ["5 5"], batch_in=answers)
    assert (result.values, spent.requests) == ([10], 2)


def test_what_files_lack_is_sent(tmp_path, serve):
    """What one reading has is not asked again by requests, and a changed prompt or model is another request."""
    adder = serve(Adder())
    requests, answers = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
    with pytest.raises(Suspended):
        ask_sums(tmp_path / "j.sqlite", PAYLOADS, batch_out=requests)
    answer_file(requests, answers)
    with pytest.raises(BackendError):
        ask_sums(tmp_path / "j.sqlite", PAYLOADS, batch_in=answers)
    result, _ = ask_sums(tmp_path / "j.sqlite", PAYLOADS)
    assert result.values == RESULTS
    seeds = {(asked["messages"][0]["content"], asked["seed"]) for asked in adder.asked}
    assert seeds == {
        ("1 and odd 2", 1),
        ("2 and never", 1),
        ("2 and never", 2),
        ("3 and refuse", 1),
        ("3 and refuse", 2),
    }


def _line(**changes):
    return json.dumps({**answer_line("rusbeir-" + "0" * 32, completion()), **changes})


BAD_LINES = [
    ("{", r"a\.jsonl:3 is not JSON"),
    ("[1]", r"a\.jsonl:3 is not a JSON object"),
    (_line(custom_id=None), r"a\.jsonl:3 has no custom_id"),
    (_line(custom_id=7), r"a\.jsonl:3 has no custom_id"),
    (_line(custom_id="request-1"), r"a\.jsonl:3 answers 'request-1', which is not a request of rusbeir"),
    (_line(), r"a\.jsonl:3 answers a request that this job never wrote: the file belongs to another job"),
]


@pytest.mark.parametrize(("line", "message"), BAD_LINES, ids=[row[1] for row in BAD_LINES])
def test_bad_lines(tmp_path, line, message):
    """One line says what is wrong; the journal then takes the right file."""
    requests, answers = tmp_path / "requests.jsonl", tmp_path / "a.jsonl"
    with pytest.raises(Suspended):
        ask_sums(tmp_path / "j.sqlite", ["1 1", "1 2", "1 3"], batch_out=requests)
    answer_file(requests, answers)
    lines = answers.read_text().splitlines()
    answers.write_text("\n".join([*lines[:2], line, lines[2]]))
    with pytest.raises(BadInput, match=message) as caught:
        ask_sums(tmp_path / "j.sqlite", ["1 1", "1 2", "1 3"], batch_in=answers)
    assert "\n" not in str(caught.value)
    answers.write_text("\n".join(lines))
    result, spent = ask_sums(tmp_path / "j.sqlite", ["1 1", "1 2", "1 3"], batch_in=answers)
    assert (result.values, spent.requests) == ([2, 3, 4], 3)


FAILED = [
    # the line of a request that the runner did not answer: asked again
    {"response": None, "error": {"code": "batch_expired", "message": "This request could not be executed in time."}},
    {"response": {"status_code": 500, "request_id": "r", "body": {"error": {"message": "down"}}}, "error": None},
    {"response": {"status_code": 429, "request_id": "r", "body": None}, "error": {"message": "slow down"}},
    {"response": {"status_code": 401, "request_id": "r", "body": {"error": {"message": "key expired"}}}},
    {"response": {"status_code": 200, "request_id": "r", "body": {"choices": []}}, "error": None},
    {"response": {"status_code": 200, "request_id": "r", "body": {"choices": [{"message": {"content": 7}}]}}},
    {"response": {"status_code": 200, "request_id": "r", "body": "half"}, "error": None},
    {"response": {"body": 5}},
    {"response": "yes"},
    {},
    # vLLM before 0.10: the error is next to the response
    {"response": {"status_code": 503, "request_id": "r"}, "error": {"object": "error", "message": "no", "code": 503}},
]


@pytest.mark.parametrize("line", FAILED, ids=lambda line: json.dumps(line)[:60])
def test_failed_lines_are_written_again(tmp_path, line):
    journal, requests, answers = (tmp_path / name for name in ("j.sqlite", "requests.jsonl", "answers.jsonl"))
    with pytest.raises(Suspended):
        ask_sums(journal, ["1 1", "1 2"], batch_out=requests)
    rows = answer_file(requests, answers)
    lines = answers.read_text().splitlines()
    failed = json.dumps({"id": "x", "custom_id": rows[1]["custom_id"], **line})
    answers.write_text(f"{lines[0]}\n{failed}\n")
    told: list[str] = []
    again = tmp_path / "again.jsonl"
    with pytest.raises(Suspended, match="1 requests are written"):
        ask_sums(journal, ["1 1", "1 2"], batch_in=answers, batch_out=again, tell=told.append)
    assert "1 answers are recorded; 1 requests failed (1 " in told[0]
    assert json.loads(again.read_text()) == rows[1]
    answer_file(again, answers)
    result, _ = ask_sums(journal, ["1 1", "1 2"], batch_in=answers)
    assert result.values == [2, 3]


def test_the_error_of_a_request_is_next_to_the_response(tmp_path):
    """vLLM's run-batch has written errors in both places."""
    journal, requests, answers = (tmp_path / name for name in ("j.sqlite", "requests.jsonl", "answers.jsonl"))
    with pytest.raises(Suspended):
        ask_sums(journal, ["1 1"], batch_out=requests)
    (row,) = answer_file(requests, answers)
    error = {"object": "error", "message": "This model's maximum context length is 9 tokens", "type": "BadRequestError"}
    line = {"id": "vllm-1", "custom_id": row["custom_id"], "response": {"status_code": 400, "request_id": "r"}}
    answers.write_text(json.dumps({**line, "error": error}))
    assert ask_sums(journal, ["1 1"], batch_in=answers)[0].reasons == ["too-long"]


def test_an_option_that_the_model_refuses(tmp_path):
    """The next file is without it."""
    journal = tmp_path / "j.sqlite"

    def reply(body):
        if "response_format" in body:
            return refusal(400, "Unsupported parameter", code="unsupported_parameter", param="response_format")
        return add(body)

    read: list[Path] = []
    for number in (1, 2):
        requests, answers = tmp_path / f"r{number}.jsonl", tmp_path / f"a{number}.jsonl"
        with pytest.raises(Suspended, match="2 requests are written"):
            ask_sums(journal, ["1 1", "1 2"], batch_out=requests, batch_in=read)
        answer_file(requests, answers, reply)
        read = [answers]
    result, spent = ask_sums(journal, ["1 1", "1 2"], batch_in=read)
    assert (result.values, spent.requests) == ([2, 3], 4)


def test_budgets_bound_files(tmp_path):
    """A file has what the budget allows at most; what was billed makes room for the next one."""
    payloads = [f"{number} 1" for number in range(10, 20)]
    journal, requests, answers = (tmp_path / name for name in ("j.sqlite", "requests.jsonl", "answers.jsonl"))
    with pytest.raises(Suspended, match=r"4 requests are written .* 6 more exceed the budget"):
        ask_sums(journal, payloads, batch_out=requests, budget_chars=19)
    answer_file(requests, answers)
    with pytest.raises(RusbeirError, match="budget of 19 characters is reached: 16 are spent"):
        ask_sums(journal, payloads, batch_in=answers, batch_out=requests, budget_chars=19)
    with pytest.raises(BudgetTooSmall):
        ask_sums(tmp_path / "other.sqlite", payloads, batch_out=requests, budget_chars=3)
    with pytest.raises(Suspended, match=r"6 requests are written to [^ ]+ Have"):
        ask_sums(journal, payloads, batch_out=requests, budget_chars=40)


def test_lines_are_what_is_documented(tmp_path):
    """OpenAI's own types for a body; custom_id, method, url and body, as vLLM's BatchRequestInput has them."""
    with pytest.raises(Suspended):
        ask_sums(tmp_path / "j.sqlite", PAYLOADS, batch_out=tmp_path / "r.jsonl")
    known = TypeAdapter(with_config(ConfigDict(extra="forbid"))(CompletionCreateParamsNonStreaming))
    rows = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    for row in rows:
        assert (row.keys(), row["method"]) == ({"custom_id", "method", "url", "body"}, "POST")
        assert row["url"] == "/v1/chat/completions"
        assert len(row["custom_id"]) <= 64
        known.validate_python(row["body"])
    assert len({row["custom_id"] for row in rows}) == len(PAYLOADS)


def test_unpaired_surrogates_are_rejected(tmp_path):
    with pytest.raises(Suspended):
        ask_sums(tmp_path / "j.sqlite", ["1 \ud83d", "1 1"], batch_out=tmp_path / "r.jsonl")
    answer_file(tmp_path / "r.jsonl", tmp_path / "a.jsonl")
    result, _ = ask_sums(tmp_path / "j.sqlite", ["1 \ud83d", "1 1"], batch_in=tmp_path / "a.jsonl")
    assert (result.values, result.reasons) == ([None, 2], ["rejected", ""])
