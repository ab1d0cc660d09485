"""The character budget of endpoint requests: one count over runs, processes and kills."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from rusbeir.errors import BackendError, BadInput
from rusbeir.jobs import BudgetReached, CharBudget, Journal

REPOSITORY = Path(__file__).parent.parent.parent


def spent(folder: Path) -> int:
    """As the refusal of the next request tells it."""
    with pytest.raises(BudgetReached) as caught:
        CharBudget(folder, 10**9).reserve(10**9)
    found = re.search(r"reached: ([0-9,]+) are spent", str(caught.value))
    assert found
    return int(found[1].replace(",", ""))


def start(folder: Path, budget: int, requests: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.support.spender", str(folder), str(budget), str(requests)]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE)


def test_it_stops_before_it_is_passed(tmp_path):
    folder = tmp_path / "results" / "new"
    CharBudget(folder, 100).reserve(60)
    with pytest.raises(BudgetReached, match="100 characters is reached: 60 are spent and the next request takes 41"):
        CharBudget(folder, 100).reserve(41)
    CharBudget(folder, 100).reserve(40)
    CharBudget(folder, 101).reserve(1)
    assert spent(folder) == 101, "what was refused is not counted"


def test_smaller_than_one_request(tmp_path):
    with pytest.raises(BadInput, match="smaller than one request, which takes 2,500"):
        CharBudget(tmp_path, 100).reserve(2500)


@pytest.mark.parametrize("chars", [0, -1])
def test_no_budget(tmp_path, chars):
    with pytest.raises(BadInput, match=f"budget_chars= is {chars}: it must be above 0"):
        CharBudget(tmp_path, chars)


def test_two_processes_share_one_budget(tmp_path):
    processes = [start(tmp_path, 60, 50) for _ in range(2)]
    said = [len(process.communicate()[0].splitlines()) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sum(said) == 60


def test_what_was_spent_survives_kills(tmp_path):
    said = 0
    for kills in range(1, 4):
        with start(tmp_path, 10**6, 10**6) as process:
            for _ in range(5):
                process.stdout.readline()
            process.kill()
            said += 5 + len(process.stdout.read().splitlines())
        assert said <= spent(tmp_path) <= said + kills, "a request that was counted may not have been said"


def test_the_count_of_an_earlier_version_is_continued(tmp_path):
    """It counted in a whole journal, of which one row was used."""
    with Journal.open(tmp_path / "spending.sqlite", {}) as journal:
        journal.set_meta({"spent chars": "47", "spent cost": "0"})
    with pytest.raises(BudgetReached, match="47 are spent"):
        CharBudget(tmp_path, 50).reserve(4)
    CharBudget(tmp_path, 50).reserve(3)
    assert spent(tmp_path) == 50


def test_trouble_with_the_file(tmp_path):
    path = tmp_path / "spending.sqlite"
    path.write_bytes(b"not a database, but long enough to be taken for one" * 100)
    with pytest.raises(BadInput, match=r"spending\.sqlite"):
        CharBudget(tmp_path, 5).reserve(1)
    path.unlink()
    path.mkdir()
    with pytest.raises(BackendError, match=r"spending\.sqlite"):
        CharBudget(tmp_path, 5).reserve(1)
    with pytest.raises(BackendError, match=r"Cannot write .*spending\.sqlite"):
        CharBudget(Path(__file__), 5).reserve(1)


def test_a_refusal_leaves_no_lock(tmp_path):
    budget = CharBudget(tmp_path, 5)
    with pytest.raises(BadInput):
        budget.reserve(6)
    with contextlib.closing(sqlite3.connect(tmp_path / "spending.sqlite", timeout=0)) as db:
        db.execute("BEGIN EXCLUSIVE")
