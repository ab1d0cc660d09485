"""The journal's tasks and attempts: what is pending, what is kept, and what counts."""

from __future__ import annotations

import sqlite3
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rusbeir.errors import BadInput
from rusbeir.jobs import Attempt, Journal, Task, TaskQueue, task_key
from rusbeir.jobs import journal as journal_module
from rusbeir.jobs import task_queue as queue_module

A, B, C, D = (Task.of("segment", text) for text in ("one", "two", "three", "four"))


@pytest.fixture
def journal(tmp_path):
    with Journal.open(tmp_path / "j.sqlite", {"source": "s1", "pair": "en-ru"}) as journal:
        yield journal


def queue(journal: Journal, worker: str, kind: str = "segment") -> TaskQueue:
    return TaskQueue(journal, kind, worker)


def pending(journal: Journal, worker: str) -> list[Task]:
    return list(queue(journal, worker).unfinished())


def counts(journal: Journal, worker: str) -> dict[str, int]:
    """How many tasks are in each state."""
    states = dict.fromkeys(("done", "failed", "pending"), 0)
    for group in queue(journal, worker).counts():
        states[group.state] += group.tasks
    return states


def test_adding_again_changes_nothing(journal):
    assert journal.add([A, B]) == 2
    assert journal.add(iter([A, B, A])) == 0
    assert journal.add([C, B, C]) == 1
    assert pending(journal, "w") == [A, B, C]
    assert journal.add([]) == 0


STANDINGS = [
    # attempts by w as (state, result), pending, failed, result, why
    ([], True, False, None, "never tried"),
    ([("done", "x")], False, False, "x", "done is final"),
    ([("failed", "")], False, True, None, "failed is final, until it is reset"),
    ([("retry", "")], True, False, None, "only noted"),
    ([("retry", ""), ("retry", ""), ("done", "x")], False, False, "x", "done at last"),
    ([("failed", ""), ("done", "x")], False, False, "x", "done after all"),
    ([("done", "x"), ("failed", "")], False, False, "x", "what is done stays done"),
    ([("done", "x"), ("done", "y")], False, False, "x", "with its first answer: resumed runs give the same bytes"),
    ([("done", "x"), ("retry", "")], False, False, "x", "whatever comes"),
    ([("done", "")], False, False, "", "an empty result is a result, if the worker says so"),
]


@pytest.mark.parametrize("together", [True, False], ids=["one call", "one by one"])
@pytest.mark.parametrize(("attempts", "left", "failed", "result", "why"), STANDINGS, ids=[r[4] for r in STANDINGS])
def test_standing(journal, attempts, left, failed, result, why, together):
    journal.add([A, B])
    rows = [Attempt(A.key, "w", state, text) for state, text in attempts]
    for batch in [rows] if together else [[row] for row in rows]:
        journal.record(batch)
    assert pending(journal, "w") == ([A, B] if left else [B])
    assert queue(journal, "w").answers([A.key, B.key]) == ({} if result is None else {A.key: result})
    assert counts(journal, "w") == {"done": result is not None, "failed": failed, "pending": 1 + left}
    assert [found.attempts for found in queue(journal, "w").results("failed")] == ([len(attempts)] if failed else [])
    # each attempt is a row, numbered as it came
    with sqlite3.connect(journal.path) as reader:
        assert [row for (row,) in reader.execute("SELECT nth FROM attempt")] == list(range(1, len(attempts) + 1))
    reader.close()


def test_pages_follow_the_order_of_adding(journal, monkeypatch):
    monkeypatch.setattr(queue_module, "PAGE_TASKS", 4)
    tasks = [Task.of("segment", str(number)) for number in range(50)]
    journal.add(tasks)
    done = {3, 4, *range(14, 35), 49}
    journal.record([Attempt(tasks[number].key, "w", "done", "x") for number in sorted(done, reverse=True)])
    assert pending(journal, "w") == [task for number, task in enumerate(tasks) if number not in done]


def test_workers_keep_their_own_results(journal):
    journal.add([A, B, C])
    journal.record([Attempt(A.key, "google", "done", "раз"), Attempt(B.key, "google", "failed", error="refused")])
    journal.record([Attempt(A.key, "deepl", "done", "один"), Attempt(B.key, "deepl", "done", "два")])
    keys = [A.key, B.key, C.key]
    assert pending(journal, "google") == [C]
    assert pending(journal, "deepl") == [C]
    assert pending(journal, "other") == [A, B, C]
    assert list(queue(journal, "google").unfinished(with_failed=True)) == [B, C]
    assert queue(journal, "google").answers(keys) == {A.key: "раз"}
    assert queue(journal, "deepl").answers(keys) == {A.key: "один", B.key: "два"}
    assert queue(journal, "other").answers(keys) == queue(journal, "google").answers([]) == {}
    assert counts(journal, "google") == {"done": 1, "failed": 1, "pending": 1}
    assert counts(journal, "deepl") == {"done": 2, "failed": 0, "pending": 1}
    assert counts(journal, "other") == {"done": 0, "failed": 0, "pending": 3}
    assert [found.task for found in queue(journal, "google").results("failed")] == [B]
    assert [found.result for found in queue(journal, "deepl").results("done")] == ["один", "два"]


def test_failures_are_retried_by_the_same_worker(journal):
    journal.add([A, B])
    journal.record([Attempt(A.key, "w", "failed", error="timeout"), Attempt(B.key, "v", "failed", error="timeout")])
    assert queue(journal, "w").reset([A.key, B.key]) == 1
    assert pending(journal, "w") == [A, B]
    assert pending(journal, "v") == [A]
    journal.record([Attempt(A.key, "w", "failed", error="refused: no")])
    [found] = queue(journal, "w").results("failed")
    assert found == (A, "", "refused: no", "", 2)
    assert queue(journal, "v").reset([B.key]) == 1
    assert queue(journal, "v").reset([B.key]) == 0
    journal.record([Attempt(B.key, "v", "done", "x")])
    assert queue(journal, "v").reset([B.key]) == 0, "what is done is not asked for again"


def test_pending_of_one_kind(journal, monkeypatch):
    monkeypatch.setattr(queue_module, "PAGE_TASKS", 3)
    tasks = [Task.of("odd" if number % 2 else "even", str(number)) for number in range(20)]
    journal.add(tasks)
    journal.record([Attempt(tasks[number].key, "w", "done", "x") for number in (0, 1, 2, 3, 7)])
    assert list(queue(journal, "w", "odd").unfinished()) == [tasks[5], *tasks[9::2]]
    assert queue(journal, "w", "odd").size() == (10, 7, 12)
    assert list(queue(journal, "w", "none").unfinished()) == []
    assert queue(journal, "w", "none").size() == (0, 0, 0)


def test_failures_and_flags_are_listed_in_pages(journal, monkeypatch):
    monkeypatch.setattr(queue_module, "PAGE_TASKS", 3)
    tasks = [Task.of("segment", str(number)) for number in range(10)]
    journal.add(tasks)
    journal.record([Attempt(task.key, "w", "failed", error="empty", seconds=0.5) for task in tasks[:7]])
    journal.record([Attempt(task.key, "w", "done", "x", flags="fuzzy") for task in tasks[7:9]])
    journal.record([Attempt(tasks[9].key, "w", "done", "x")])
    assert list(queue(journal, "w").results("failed")) == [(task, "", "empty", "", 1) for task in tasks[:7]]
    assert [found.task for found in queue(journal, "w").results("done")] == tasks[7:]
    assert list(queue(journal, "w").results("done", flagged=True)) == [
        (task, "x", "", "fuzzy", 1) for task in tasks[7:9]
    ]


def test_an_answer_to_no_task_is_refused_and_nothing_of_the_call_is_kept(journal):
    journal.add([A])
    with pytest.raises(BadInput, match="1 of 2 attempts are at unknown tasks"):
        journal.record([Attempt(A.key, "w", "done", "x"), Attempt(B.key, "w", "done", "y")])
    assert pending(journal, "w") == [A]
    journal.record([])
    journal.record([Attempt(A.key, "w", "done", "x")])


def test_meta(journal):
    assert journal.get_meta("planned") is None
    assert journal.get_meta("pair") == "en-ru"
    journal.set_meta({"planned": "1", "rows": "7"})
    journal.set_meta({"rows": "8"})
    assert (journal.get_meta("planned"), journal.get_meta("rows")) == ("1", "8")


def test_everything_is_there_again(tmp_path):
    path = tmp_path / "deep" / "er" / "j.sqlite"
    with Journal.open(path, {"source": "s1"}) as journal:
        journal.add([A, B])
        journal.record([Attempt(A.key, "w", "done", "x")])
        journal.set_meta({"planned": "1"})
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["j.sqlite", "j.sqlite.lock"]
    with Journal.open(path, {"source": "s1"}) as journal:
        assert pending(journal, "w") == [B]
        assert queue(journal, "w").answers([A.key]) == {A.key: "x"}
        assert journal.get_meta("planned") == "1"


def test_a_plan_cut_short_is_made_again(journal, monkeypatch):
    monkeypatch.setattr(journal_module, "BATCH_TASKS", 2)

    def broken():
        yield from [A, B, C]
        raise BadInput("corpus.jsonl:4: not JSON")

    with pytest.raises(BadInput, match=r"corpus\.jsonl:4"):
        journal.add(broken())
    assert pending(journal, "w") == [A, B]
    assert journal.add([A, B, C, D]) == 2


def test_threads(journal):
    tasks = [Task.of("segment", str(number)) for number in range(400)]
    journal.add(tasks)

    def work(part: int) -> None:
        for start in range(part * 100, part * 100 + 100, 10):
            journal.record(
                [Attempt(task.key, f"w{part % 2}", "done", task.payload) for task in tasks[start : start + 10]]
            )
            queue(journal, "w0").answers([task.key for task in tasks])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert counts(journal, "w0") == counts(journal, "w1") == {"done": 200, "failed": 0, "pending": 200}


TEXT = st.text(st.characters(), max_size=30)
"""Any code points, lone surrogates and NUL included."""


@settings(max_examples=60)
@given(payload=TEXT, result=TEXT, error=TEXT, flags=TEXT, worker=TEXT, kind=TEXT, meta=TEXT)
def test_any_text_comes_back_as_it_was(tmp_path_factory, payload, result, error, flags, worker, kind, meta):
    path = tmp_path_factory.mktemp("any") / "j.sqlite"
    task, other = Task.of(kind, payload), Task.of(kind, payload + "x")
    for again in range(2):
        with Journal.open(path, {"source": meta}) as journal:
            if not again:
                journal.add([task, other])
                assert list(queue(journal, worker, kind).unfinished()) == [task, other]
                journal.record([Attempt(task.key, worker, "done", result, flags=flags)])
                journal.record([Attempt(other.key, worker, "failed", result, error, flags)])
            found = queue(journal, worker, kind)
            assert found.answers([task.key, other.key]) == {task.key: result}
            assert list(found.results("failed")) == [(other, result, error, flags, 1)]
            assert list(found.results("done", flagged=True)) == ([(task, result, "", flags, 1)] if flags else [])
            assert journal.get_meta("source") == meta


def test_a_lone_surrogate_among_others_spoils_nothing(journal):
    tasks = [Task.of("segment", text) for text in ("plain", "half \ud83d", "кот", "\x00")]
    assert journal.add(tasks) == 4
    assert pending(journal, "w") == tasks
    journal.record([Attempt(task.key, "w", "done", task.payload) for task in tasks])
    assert queue(journal, "w").answers([task.key for task in tasks]) == {task.key: task.payload for task in tasks}
    assert counts(journal, "w")["done"] == 4


@given(left=st.lists(TEXT, max_size=3), right=st.lists(TEXT, max_size=3))
def test_keys_are_equal_only_for_equal_parts(left, right):
    assert (task_key(*left) == task_key(*right)) == (left == right)
    assert len(task_key(*left)) == 16


def test_long_texts(journal):
    task = Task.of("segment", "слово " * 500_000)
    assert journal.add([A, task, B]) == 3
    journal.record([Attempt(task.key, "w", "done", task.payload)])
    assert queue(journal, "w").answers([task.key]) == {task.key: task.payload}


def test_adding_and_paging_stay_within_flat_memory(journal, monkeypatch):
    monkeypatch.setattr(journal_module, "BATCH_TASKS", 1000)
    monkeypatch.setattr(queue_module, "PAGE_TASKS", 500)

    def tasks():
        for number in range(20_000):
            yield Task.of("segment", f"{number:0300d}")

    tracemalloc.start()
    try:
        journal.add(tasks())
        found = sum(1 for _ in queue(journal, "w").unfinished())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == 20_000
    assert peak < 3 << 20, "the tasks themselves take 9 MB"
