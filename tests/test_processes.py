"""Batches of work in several processes: when workers are started, the order of results, and a worker that dies."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import time

import pytest

from benchmarks import kills, port_data
from rusbeir import processes
from rusbeir.processes import Crew, in_order
from rusbeir.translation.porting.api import port
from rusbeir.translation.segments.glossary import Glossary


def pid_of(batch: float) -> int:
    """The process in which it is called, after so many seconds."""
    time.sleep(batch)
    return os.getpid()


def kill_worker(parent: int) -> int:
    """Kills its process, unless that is the parent."""
    if os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


@pytest.mark.parametrize(
    ("cores", "start_seconds", "work_seconds", "wait_seconds", "last_used", "workers", "reason"),
    [
        (2, 0.02, 0.01, 0.0, -math.inf, True, "much work"),
        (2, 60.0, 0.01, 0.0, -math.inf, False, "little work"),
        (2, 60.0, 0.01, 0.0, math.inf, True, "workers of earlier work are there"),
        (2, 0.02, 0.01, 0.1, -math.inf, False, "most of the time something else is waited for"),
        (1, 0.02, 0.01, 0.0, -math.inf, False, "there is one core"),
    ],
)
def test_workers_are_started_where_they_pay(
    cores, start_seconds, work_seconds, wait_seconds, last_used, workers, reason, monkeypatch
):
    monkeypatch.setattr(processes, "cpu_count", lambda: cores)
    monkeypatch.setattr(processes, "_last_used", last_used)
    monkeypatch.setattr(processes, "START_SECONDS", start_seconds)
    crew = Crew()
    deadline = time.monotonic() + (60 if workers else 0.5)
    pids = {os.getpid()}
    while time.monotonic() < deadline and pids == {os.getpid()}:
        pids.add(crew.submit(pid_of, work_seconds).result())
        time.sleep(wait_seconds)
    assert (len(pids) > 1) == workers, reason
    assert (crew.ahead > 0) == workers


@pytest.mark.parametrize("n", [1, 2])
def test_results_are_in_order(n: int):
    assert list(in_order(abs, range(-50, 0), n)) == list(range(50, 0, -1))


def test_this_process_works_too_where_enough_waits_for_the_workers(monkeypatch):
    monkeypatch.setattr(processes, "START_SECONDS", 0.02)
    crew = Crew()
    while not crew.ahead:
        crew.submit(pid_of, 0.02).result()
    futures = [crew.submit(pid_of, 0.02) for _ in range(40)]
    by_this = sum(future.result() == os.getpid() for future in futures)
    assert 0 < by_this < 40


def test_this_process_does_the_rest_of_a_worker_that_died(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        assert list(in_order(kill_worker, [os.getpid()] * 20, 2)) == [os.getpid()] * 20
    assert caplog.text.count("worker process died") == 1


def test_a_result_outlives_a_cancelled_wait():
    async def wait_twice(pids: list[int]) -> None:
        pids.append(await Crew(2).run(pid_of, 0.5))
        await asyncio.sleep(60)

    async def cancel() -> list[int]:
        pids: list[int] = []
        task = asyncio.create_task(wait_twice(pids))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pids

    assert asyncio.run(cancel()) == [os.getpid()]


def test_a_port_by_workers_has_the_bytes_of_one_without(tmp_path, monkeypatch):
    source = port_data.write_corpus(tmp_path / "source", 300)
    corpus = (source / "corpus.jsonl").read_text(encoding="utf-8")
    # Some answers lose a mask, and the glossary translates terms.
    (source / "corpus.jsonl").write_text(corpus.replace(" 7", " 5 mg/kg 7"), encoding="utf-8")
    terms = Glossary({"water": "вода", "the": "этот"})
    for name, defaults in (("alone", (None,)), ("workers", (2,))):
        monkeypatch.setattr(Crew.__init__, "__defaults__", defaults)
        monkeypatch.setattr(in_order, "__defaults__", defaults)
        report = port(
            source, to="ru", translator="python:benchmarks.port_data.forgetful", out=tmp_path / name, glossary=terms
        )
        assert report["segments"] > 300
    assert kills.content(tmp_path / "workers") == kills.content(tmp_path / "alone")
    assert b"split" in (tmp_path / "alone" / "qa" / "flagged.jsonl").read_bytes()
