"""Batches of requests to language models: kills, volume, and texts that are asked together; part of `make figures`.

python -m benchmarks.batches [--kills 100] [--segments 10000] [--requests 100000]

The provider is a server on this machine that speaks OpenAI's Batch API: each look at a batch takes it a state further,
half of the lines fail at first, some batches expire, and answers are shuffled.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks import kills, memory, port_data
from rusbeir.errors import Suspended
from rusbeir.jobs import Budget, Journal, Llm, Postponed, Price
from rusbeir.jobs.batch_requests import Requests
from rusbeir.jobs.batches import BatchRun
from rusbeir.translation.backends.llm_groups import Item, find_faults
from tests.support.batch_files import answer_line
from tests.support.batch_server import BatchServer
from tests.support.openai_server import Reply, completion

KILLS, SEGMENTS, REQUESTS = 100, 10_000, 100_000
TOGETHER = 8
_FAILING = 0.5
_ENDINGS = ("completed", "completed", "expired")
_MOST_CALLS = 12
"""A kill comes after at most so many requests to the provider, and up to so many seconds later:"""
_MOST_SECONDS = 0.3
_OPTIONS = ["--to", "ru", "--translator", "llm", "--llm", "scripted"]
_WAITS = ["--option", "first-wait-seconds=0.05", "--option", "max-wait-seconds=0.2"]


def translate(body: Mapping[str, Any]) -> Reply:
    """The translation of a sentence of port_data."""
    text = port_data.translated(body["messages"][-1]["content"])
    return completion(json.dumps({"translation": text}, ensure_ascii=False), tokens=(300, 30))


def measure_kills(n_kills: int = KILLS, n_segments: int = SEGMENTS, seed: int = 0) -> list[dict[str, Any]]:
    """Count what is lost, paid twice or different after kills of a port in batches, each at another moment."""
    chance = random.Random(seed)
    n_queries = n_segments // 100
    with tempfile.TemporaryDirectory() as name, BatchServer(translate, failing=_FAILING) as provider:
        folder = Path(name)
        os.environ |= {"OPENAI_BASE_URL": provider.url, "OPENAI_API_KEY": "none"}
        source = port_data.write_corpus(folder / "source", n_segments - n_queries, sentences=1, n_queries=n_queries)
        kills.finish(kills.command(source, folder / "alone", *_OPTIONS))
        expected = kills.content(folder / "alone")
        provider.forget()
        batched = kills.command(source, folder / "killed", *_OPTIONS, *_WAITS, "--batch", "--batch-share", "0.5")
        done = finished = lost = twice = differing = 0
        while done < n_kills or not finished:
            provider.endings = [chance.choice(_ENDINGS) for _ in range(3)]
            process = kills.run(batched)
            if done < n_kills and _kill(process, provider, chance):
                done += 1
                continue
            _, err = process.communicate()
            if process.returncode:
                raise SystemExit(f"after {done} kills: exit code {process.returncode}: {err.decode()}")
            finished += 1
            differing += kills.content(folder / "killed") != expected
            lost += n_segments - len(provider.paid)
            twice += sum(count - 1 for count in provider.paid.values())
            shutil.rmtree(folder / "killed")
            provider.forget()
    what = f"{n_segments:,} segments in batches, {done} kills"
    measures = {"segments lost": lost, "segments paid twice": twice, f"of {finished} ports that differ": differing}
    return [{"what": what, "measure": measure, "value": value, "at_most": 0} for measure, value in measures.items()]


def _kill(process: subprocess.Popen[bytes], provider: BatchServer, chance: random.Random) -> bool:
    """Kill a port after a number of requests to the provider; return whether it was still at work."""
    n_calls = provider.calls.total() + chance.randint(1, _MOST_CALLS)
    while process.poll() is None and provider.calls.total() < n_calls:
        time.sleep(0.001)
    time.sleep(chance.uniform(0, _MOST_SECONDS))
    if process.poll() is not None:
        return False
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return True


def write_and_read(n: int) -> dict[str, float]:
    """The seconds that n requests take, written to a file and read back, and the peak of the memory in MB."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        requests, answers = folder / "requests.jsonl", folder / "answers.jsonl"
        started = time.perf_counter()
        _run(folder, n, out=requests)
        seconds = time.perf_counter() - started
        with requests.open("rb") as file, answers.open("w", encoding="utf-8") as answered:
            for line in file:
                row = json.loads(line)
                answered.write(json.dumps(answer_line(row["custom_id"], completion('{"sum": 1}'))) + "\n")
        started = time.perf_counter()
        _run(folder, n, answers=answers)
        return {"seconds": seconds + time.perf_counter() - started, "peak_mb": memory.peak_bytes() / 2**20}


def _run(folder: Path, n: int, *, out: Path | None = None, answers: Path | None = None) -> None:
    """Ask n questions: their requests are written, or their answers are read."""
    with Journal.open(folder / "journal.sqlite", {}) as journal:
        run = BatchRun(
            requests=Requests(journal=journal, budget=Budget(journal), price=Price(1.0, 2.0)),
            out=out,
            answers=[answers] if answers else [],
            is_live=False,
            tell=lambda line: None,
        )
        llm = Llm(model="scripted", endpoint="", key="", exchange=run)

        async def work() -> None:
            for number in range(n):
                message = {"role": "user", "content": f"{number} {'and one ' * 20}"}
                try:
                    await llm.chat([message], seed=0, max_tokens=10)
                except Postponed:
                    continue

        try:
            asyncio.run(run.run(work))
        except Suspended:
            assert out is not None


def measure_files(n: int = REQUESTS) -> list[dict[str, Any]]:
    """The time of n requests, and how much more memory they take than a quarter of them."""
    figures = []
    for count in (n // 4, n):
        command = [sys.executable, "-m", "benchmarks.batches", "--files", str(count)]
        figures.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    what, more = f"{n:,} requests, written and read", figures[1]["peak_mb"] - figures[0]["peak_mb"]
    return [
        {"what": what, "measure": "seconds", "value": figures[1]["seconds"], "at_most": 30},
        {"what": what, "measure": "MB more than a quarter of them", "value": more, "at_most": 25},
    ]


@cache
def _groups() -> list[list[tuple[str, str]]]:
    """The pairs of mini's translation memory, by people, as they follow each other."""
    rows = (line.split("\t") for line in port_data.MEMORY.read_text(encoding="utf-8").splitlines())
    pairs = [(english, russian) for english, russian in rows]
    return [pairs[start : start + TOGETHER] for start in range(0, len(pairs) - TOGETHER + 1, TOGETHER)]


def _plant(items: dict[int, Item], fault: str, number: int) -> dict[int, Item]:
    """The items with a fault at a number and the next one."""
    first, second = items[number], items[number + 1]
    match fault:
        case "missing":
            changed: dict[int, Item | None] = {number: None}
        case "merged, and one missing":
            both = f"{first.translation} {second.translation}"
            changed = {number: first._replace(translation=both), number + 1: None}
        case "merged, and cut between both":
            both = f"{first.translation} {second.translation}"
            changed = {
                number: first._replace(translation=both[: len(both) // 4]),
                number + 1: second._replace(translation=both[len(both) // 4 :]),
            }
        case "swapped":
            changed = {number: second, number + 1: first}
        case _:  # The words are those of the right text, the translation is not.
            changed = {
                number: first._replace(translation=second.translation),
                number + 1: second._replace(translation=first.translation),
            }
    return {key: item for key in items if (item := changed.get(key, items[key])) is not None}


FAULTS = {
    "missing": 1.0, "merged, and one missing": 1.0, "merged, and cut between both": 0.8, "swapped": 1.0,
    "swapped behind the right words": 0.7,
}  # fmt: skip
"""Fault -> the least share of it that is found."""


def measure_faults() -> list[dict[str, Any]]:
    """Which share of planted faults is found among translations by people, and of right items that are asked again."""
    chance = random.Random(0)
    what = f"{len(_groups()) * TOGETHER} texts, {TOGETHER} a request"
    whole = list(_asked_together())
    again = sum(len(find_faults(texts, items, "en", "ru")) for texts, items in whole)
    share = again / (len(whole) * TOGETHER)
    rows = [{"what": what, "measure": "right translations asked again", "value": share, "at_most": 0.05}]
    for fault, least in FAULTS.items():
        n_seen = 0
        for texts, items in whole:
            number = chance.randint(1, TOGETHER - 1)
            planted = _plant(items, fault, number)
            n_seen += {number, number + 1} & find_faults(texts, planted, "en", "ru").keys() != set()
        row = {"what": what, "measure": f"{fault}: found", "value": n_seen / len(whole), "at_least": least}
        rows.append(row)
    return rows


def _asked_together() -> Iterator[tuple[list[str], dict[int, Item]]]:
    for pairs in _groups():
        texts = [english for english, _ in pairs]
        yield texts, {n: Item(" ".join(english.split()[:3]), russian) for n, (english, russian) in enumerate(pairs, 1)}


def rows() -> list[dict[str, Any]]:
    """what, measure, value, and at_least or at_most."""
    return measure_kills() + measure_files() + measure_faults()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--segments", type=int, default=SEGMENTS)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--files", type=int, metavar="N", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.files:
        print(json.dumps(write_and_read(arguments.files)))
        return
    measured = measure_faults() + measure_files(arguments.requests)
    if arguments.kills:
        measured += measure_kills(arguments.kills, arguments.segments)
    for row in measured:
        print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main()
