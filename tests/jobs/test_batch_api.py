"""Batches at a provider: all states, faults and kills; nothing lost, nothing paid twice."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time

import pytest

from rusbeir.errors import BackendError, BadInput, RusbeirError, Suspended
from rusbeir.jobs import Journal
from rusbeir.jobs.batch_service import OpenAiBatches
from tests.support.batch_files import ask_sums
from tests.support.batch_server import BatchServer
from tests.support.killing import REPOSITORY
from tests.support.openai_server import Reply, refusal

PAYLOADS = [f"{number} and {word}" for number, word in enumerate(["1", "odd 2", "never", "refuse", "long", "3"])]
RESULTS, REASONS = [1, 3, None, None, None, 8], ["", "", "invalid", "refused", "too-long", ""]
MANY = [f"{number} {'odd ' * (number % 3 == 0)}1" for number in range(100)]
SUMS = [number + 1 for number in range(100)]


@pytest.fixture
def provider(monkeypatch):
    with BatchServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key")
        yield server


def send(path, payloads, **request):
    return ask_sums(path, payloads, **{"batch": 0.5, **request})


def list_states(path):
    with Journal.open(path, {}) as journal:
        return [row[0] for row in journal.read("SELECT state FROM batch ORDER BY number")]


def test_batches_bring_what_requests_bring_at_half_the_price(tmp_path, provider):
    live, live_spent = ask_sums(tmp_path / "live.sqlite", PAYLOADS)
    told: list[str] = []
    answers, spent = send(tmp_path / "j.sqlite", PAYLOADS, tell=told.append)
    assert (answers.values, answers.reasons) == (live.values, live.reasons) == (RESULTS, REASONS)
    assert spent.cost == pytest.approx(live_spent.cost / 2)
    assert (spent.requests, spent.input_tokens, spent.chars) == (11, live_spent.input_tokens, live_spent.chars)
    assert provider.calls["POST /batches"] == 3
    assert told[-1] == f"Batches: {spent.cost:,.4f} USD paid in this run, {spent.cost:,.4f} less than one by one."
    assert list_states(tmp_path / "j.sqlite") == ["over"] * 3
    assert sorted(path.suffix for path in tmp_path.glob("batch-*")) == []


def test_half_of_the_lines_fail_and_go_into_the_next_batch(tmp_path, provider):
    provider.failing = 0.5
    answers, spent = send(tmp_path / "j.sqlite", MANY)
    assert answers.values == SUMS
    assert set(provider.paid.values()) == {1}
    assert spent.requests == provider.paid.total()


@pytest.mark.parametrize("ending", ["expired", "cancelled", "failed"])
def test_endings(tmp_path, provider, ending):
    """What an unfinished batch answered is kept, and what is left is sent again."""
    provider.endings = [ending]
    if ending != "expired":
        message = "was cancelled" if ending == "cancelled" else r"refused the batch batch-1 \(line 1 is too long\)"
        with pytest.raises(BackendError, match=message):
            send(tmp_path / "j.sqlite", MANY)
    answers, spent = send(tmp_path / "j.sqlite", MANY)
    assert answers.values == SUMS
    assert set(provider.paid.values()) == {1}
    assert spent.requests == provider.paid.total()


def test_limits_on_a_batch(tmp_path, provider, monkeypatch):
    whole = OpenAiBatches.__init__
    monkeypatch.setattr(OpenAiBatches, "__init__", lambda self, **given: whole(self, **{**given, "max_requests": 30}))
    answers, _ = send(tmp_path / "j.sqlite", MANY)
    assert answers.values == SUMS
    sizes = [len(provider.files[batch["input_file_id"]].splitlines()) for batch in provider.batches.values()]
    assert sizes == [30, 30, 30, 10, 30, 4]


def test_a_lost_batch_is_given_up_by_cancelling_it(tmp_path, provider):
    """A provider that has lost a batch and one that hides it from this key say the same."""
    unseen = refusal(404, "No batch")
    provider.refusals["GET /batches/ID"] = [unseen, unseen, unseen]
    message = r"does not show the batch batch-1 to this key.*give it up with cancel=True: its 2 requests then count"
    for _ in range(2):
        with pytest.raises(BackendError, match=message):
            send(tmp_path / "j.sqlite", ["1 1", "1 2"])
        assert list_states(tmp_path / "j.sqlite") == ["sent"]
    provider.refusals["GET /batches/ID"] = [unseen, unseen]
    with pytest.raises(Suspended, match="1 batches are cancelled"):
        send(tmp_path / "j.sqlite", ["1 1", "1 2"], batch=False, cancel=True)
    answers, spent = send(tmp_path / "j.sqlite", ["1 1", "1 2"])
    assert (answers.values, spent.requests) == ([2, 3], 4)


def test_the_key_of_another_project(tmp_path, provider, monkeypatch):
    """It sees no batch of the first: nothing is given up, and the first key collects what is paid."""
    unseen = refusal(404, "No batch")
    provider.refusals["GET /batches/ID"] = [refusal(401, "expired")]
    with pytest.raises(BadInput):
        send(tmp_path / "j.sqlite", MANY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-project")
    provider.refusals["GET /batches/ID"] = [unseen]
    with pytest.raises(BackendError, match="a key of the project that sent it"):
        send(tmp_path / "j.sqlite", MANY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key")
    answers, spent = send(tmp_path / "j.sqlite", MANY)
    assert (answers.values, set(provider.paid.values())) == (SUMS, {1})
    assert spent.requests == provider.paid.total()


def test_killed_while_sending_and_continued_with_another_key(tmp_path, provider, monkeypatch):
    """The batch may be at the provider and unseen, so that it is not sent again."""
    send(tmp_path / "j.sqlite", ["1 1"])
    with Journal.open(tmp_path / "j.sqlite", {}) as journal:
        journal.write("UPDATE batch SET state = ?, remote = ?, label = 'x' || label", [("new", "")])
        journal.write("UPDATE request SET status = NULL, answer = NULL", [()])
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-project")
    with pytest.raises(BackendError, match="does not show a batch that may have been sent to this key"):
        send(tmp_path / "j.sqlite", ["1 1", "1 2"])
    with pytest.raises(Suspended):
        send(tmp_path / "j.sqlite", ["1 1", "1 2"], batch=False, cancel=True)
    assert list_states(tmp_path / "j.sqlite") == ["over"]


def test_answers_that_are_gone(tmp_path, provider):
    """Providers remove files after some weeks: what was billed counts as spent, and the rest is asked again."""
    provider.refusals["GET /files/ID/content"] = [refusal(404, "No such File object")]
    message = "The answers of the batch batch-1 are gone: .* Its 2 requests without an answer count as spent"
    with pytest.raises(BackendError, match=message):
        send(tmp_path / "j.sqlite", ["1 1", "1 2"])
    assert list_states(tmp_path / "j.sqlite") == ["over"]
    assert sorted(tmp_path.glob("batch-*answers*")) == []
    answers, spent = send(tmp_path / "j.sqlite", ["1 1", "1 2"])
    assert (answers.values, spent.requests) == ([2, 3], 4)


def test_a_key_that_expires_while_a_batch_runs(tmp_path, provider):
    provider.refusals["GET /batches/ID"] = [refusal(401, "expired")]
    with pytest.raises(BadInput, match="does not accept the key in OPENAI_API_KEY"):
        send(tmp_path / "j.sqlite", MANY)
    assert send(tmp_path / "j.sqlite", MANY)[0].values == SUMS
    assert set(provider.paid.values()) == {1}


@pytest.mark.parametrize("call", ["POST /files", "POST /batches", "GET /batches/ID", "GET /files/ID/content"])
@pytest.mark.parametrize("fault", [Reply(500, "{}"), refusal(429, "slow"), Reply(cut=True)], ids=["500", "429", "cut"])
def test_faults_of_the_provider_are_repeated(tmp_path, provider, call, fault):
    """A batch whose creation was not answered is found, and not made again."""
    provider.refusals[call] = [fault]
    assert send(tmp_path / "j.sqlite", ["1 1", "1 2"])[0].values == [2, 3]
    assert set(provider.paid.values()) == {1}


def test_a_server_without_batches(tmp_path, provider):
    provider.refusals["POST /files"] = [refusal(404, "Not Found")]
    with pytest.raises(BadInput, match=r"has no Batch API. Write the requests to a file with batch_out=FILE"):
        send(tmp_path / "j.sqlite", ["1 1"])
    answers, spent = ask_sums(tmp_path / "j.sqlite", ["1 1"])
    assert (answers.values, spent.requests) == ([2], 1)


def test_one_by_one_waits_for_batches(tmp_path, provider):
    """What is under way is not asked again, and a batch of another job is not taken."""
    provider.refusals["GET /batches/ID"] = [refusal(401, "expired")]
    with pytest.raises(BadInput):
        send(tmp_path / "j.sqlite", MANY)
    with pytest.raises(BadInput, match=r"1 batches of this job are under way at .* Collect them with batch=True"):
        ask_sums(tmp_path / "j.sqlite", MANY)
    with pytest.raises(BadInput, match="under way"):
        ask_sums(tmp_path / "j.sqlite", MANY, batch_out=tmp_path / "r.jsonl")
    assert send(tmp_path / "other.sqlite", ["7 7"])[0].values == [14]
    with pytest.raises(Suspended, match="1 batches are cancelled"):
        send(tmp_path / "j.sqlite", MANY, batch=False, cancel=True)
    assert ask_sums(tmp_path / "j.sqlite", MANY)[0].values == SUMS
    assert set(provider.paid.values()) == {1}


def test_a_budget_is_reserved_and_corrected(tmp_path, provider):
    """Each batch has what is left of the budget: the bound of a request is far above what it takes."""
    with pytest.raises(RusbeirError, match="budget of 100 characters is reached"):
        send(tmp_path / "j.sqlite", MANY, budget_chars=100)
    cost = ask_sums(tmp_path / "live.sqlite", MANY)[1].cost / 2
    answers, spent = send(tmp_path / "k.sqlite", MANY, budget_cost=cost * 1.5)
    assert answers.values == SUMS
    assert spent.cost == pytest.approx(cost)
    assert provider.calls["POST /batches"] > 3


def test_options_that_contradict_each_other(tmp_path, provider):
    with pytest.raises(BadInput, match="batch=True and batch_out=True contradict each other"):
        send(tmp_path / "j.sqlite", MANY, batch_out=tmp_path / "r.jsonl")


PROGRAM = f"""
import sys
from tests.support.batch_files import ask_sums
payloads = {MANY!r}
ask_sums(sys.argv[1], payloads, batch=0.5, first_wait_seconds=0.02, max_wait_seconds=0.05)
"""


def test_killed_at_any_moment(tmp_path, provider):
    """Ten kills, each after another number of requests to the provider."""
    provider.failing = 0.3
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "j.sqlite")]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    kills = 0
    for number in range(10):
        process = subprocess.Popen(command, env=environment, cwd=REPOSITORY, stdout=subprocess.PIPE)
        n_calls = provider.calls.total()
        while process.poll() is None and provider.calls.total() < n_calls + 1 + number % 5:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
    assert kills >= 3
    answers, spent = send(tmp_path / "j.sqlite", MANY)
    assert answers.values == SUMS
    assert set(provider.paid.values()) == {1}
    assert spent.requests == provider.paid.total()


def test_a_clock_that_jumps(tmp_path, provider, monkeypatch):
    """Nothing waits by the time of day: a clock that is set back or forward changes neither answers nor bills."""
    times = itertools.cycle([1e9, 2e9, 5e8])
    monkeypatch.setattr(time, "time", lambda: next(times))
    provider.failing = 0.5
    answers, spent = send(tmp_path / "j.sqlite", MANY)
    assert (answers.values, set(provider.paid.values())) == (SUMS, {1})
    assert spent.requests == provider.paid.total()
