"""A journal in trouble: kills, full disks, other processes, changed sources and files that are no journals."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO

import pytest

from rusbeir.errors import BackendError, BadInput
from rusbeir.jobs import Attempt, Journal, Task, TaskQueue

REPOSITORY = Path(__file__).parent.parent.parent
KILLS = 20


def queue(journal: Journal) -> TaskQueue:
    return TaskQueue(journal, "segment", "w")


def counts(journal: Journal) -> dict[str, int]:
    """How many tasks are in each state that occurs."""
    return {group.state: group.tasks for group in queue(journal).counts()}


def start(path: Path, tasks: int, pause_seconds: float = 0.0, out: int | IO[bytes] = subprocess.PIPE):
    command = [sys.executable, "-m", "tests.support.killed_journal", str(path), str(tasks), str(pause_seconds)]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=out, stderr=subprocess.PIPE, text=True)


def open_and_close(path: Path, meta: dict[str, str]) -> None:
    with Journal.open(path, meta):
        pass


def test_no_answer_is_lost_to_kills(tmp_path):
    """Twenty kills at random moments, some before the plan is made; then the job ends as if there had been none."""
    path, said, tasks, chance = tmp_path / "j.sqlite", tmp_path / "said", 20_000, random.Random(5)
    answered: set[int] = set()
    for kill in range(KILLS):
        with said.open("wb") as out:
            process = start(path, tasks, 0.003, out)
        while kill % 4 and not said.stat().st_size and process.poll() is None:
            time.sleep(0.005)
        time.sleep(chance.uniform(0.0, 0.15) if kill % 4 else chance.uniform(0.05, 0.4))
        process.kill()
        _, err = process.communicate()
        assert process.returncode == -signal.SIGKILL, err
        # The last line may be cut where the kill hit; what stands before it was recorded.
        whole, _, _ = said.read_text().rpartition("\n")
        answered.update(int(word) for word in whole.split() if word.isdigit())
        with Journal.open(path, {"source": "s1"}) as journal:
            found = queue(journal).answers([Task.of("segment", f"text {number}").key for number in answered])
            assert len(found) == len(answered), f"kill {kill} lost answers"
            assert "failed" not in counts(journal)
    assert answered, "no kill hit a working process"
    process = start(path, tasks)
    _, err = process.communicate()
    assert process.returncode == 0, err
    with Journal.open(path, {"source": "s1"}) as journal:
        assert counts(journal) == {"done": tasks}
        texts = [f"text {number}" for number in range(tasks)]
        found = queue(journal).answers([Task.of("segment", text).key for text in texts])
        assert [found[Task.of("segment", text).key] for text in texts] == [text.upper() for text in texts]
    with contextlib.closing(sqlite3.connect(path)) as reader:
        assert reader.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        # Each answer was worked out once: nothing recorded was asked for again.
        assert reader.execute("SELECT count(*) FROM attempt").fetchone() == (tasks,)


def test_a_second_process_is_refused(tmp_path):
    path = tmp_path / "j.sqlite"
    with Journal.open(path, {"source": "s1"}) as journal:
        second = start(path, 1)
        _, err = second.communicate()
        assert second.returncode == 1
        assert f"{path} is in use by process {os.getpid()}. Wait until it has finished, or stop it." in err
        with pytest.raises(BackendError, match=rf"in use by process {os.getpid()} \(this one\)"):
            open_and_close(path, {"source": "s1"})
        journal.add([Task.of("segment", "text of the first")])
    assert start(path, 1).communicate()[1] == ""
    with Journal.open(path, {"source": "s1"}) as journal:
        assert counts(journal) == {"done": 2}


def test_a_dead_process_holds_nothing(tmp_path):
    path = tmp_path / "j.sqlite"
    process = start(path, 10**6)
    while not Path(f"{path}.lock").exists() or not Path(f"{path}.lock").read_bytes():
        time.sleep(0.01)
    with pytest.raises(BackendError, match=f"in use by process {process.pid}"):
        open_and_close(path, {"source": "s1"})
    process.kill()
    process.communicate()
    open_and_close(path, {"source": "s1"})


def test_a_started_program_does_not_inherit_the_lock(tmp_path):
    with Journal.open(tmp_path / "j.sqlite", {}):
        child = subprocess.Popen(["sleep", "20"], close_fds=False)
    try:
        open_and_close(tmp_path / "j.sqlite", {})
    finally:
        child.kill()
        child.wait()


def test_readers_are_welcome_meanwhile(tmp_path):
    with Journal.open(tmp_path / "j.sqlite", {}) as journal:
        journal.add([Task.of("segment", "x")])
        with contextlib.closing(sqlite3.connect(journal.path)) as reader:
            assert reader.execute("SELECT count(*) FROM task").fetchone() == (1,)
            journal.add([Task.of("segment", "y")])


CHANGES = [
    # begun with, given, parts of the message or None, why
    ({"source": "a", "pair": "en-ru"}, {"source": "a", "pair": "en-ru"}, None, "the same"),
    ({"source": "a"}, {"source": "b"}, ["source was 'a' and is now 'b'"], "a changed source"),
    (
        {"source": "a", "pair": "en-ru", "fields": "text"},
        {"source": "b", "pair": "en-kk", "fields": "text"},
        ["source was 'a' and is now 'b'; pair was 'en-ru' and is now 'en-kk'"],
        "all changes are named, and only those",
    ),
    ({"source": "a"}, {"source": "a", "split": "dev"}, ["split was not set and is now 'dev'"], "something new"),
    ({"source": "a", "pair": "en-ru"}, {}, None, "asked for nothing, it opens: to look into it"),
    ({"source": "a" * 500}, {"source": "b" * 500}, ["aaa…'", "bbb…'"], "long values are cut"),
]


@pytest.mark.parametrize(("begun", "given", "parts", "why"), CHANGES, ids=[row[3] for row in CHANGES])
def test_changed_meta(tmp_path, begun, given, parts, why):
    path = tmp_path / "j.sqlite"
    with Journal.open(path, begun) as journal:
        journal.add([Task.of("segment", "x")])
    if parts is None:
        open_and_close(path, given)
    else:
        with pytest.raises(BadInput) as caught:
            open_and_close(path, given)
        assert all(part in str(caught.value) for part in [str(path), *parts]), caught.value
        assert len(str(caught.value)) < 500
    with Journal.open(path, begun) as journal:
        assert counts(journal) == {"pending": 1}


def sqlite_file(*statements: str) -> bytes:
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        for statement in statements:
            db.execute(statement)
        return db.serialize()


OTHERS = [
    # content, part of the message
    (b"not a journal at all, but something dear to somebody\n" * 99, "is not a journal, or is damaged"),
    (b"\x00" * 4096, "is not a journal, or is damaged"),
    (b"short", "is not a journal, or is damaged"),
    (b"SQLite format 3\x00" + b"\xff" * 5000, "is not a journal, or is damaged"),
    (sqlite_file("CREATE TABLE photos(name TEXT)"), "is an SQLite database of another program"),
    (sqlite_file("PRAGMA application_id = 7", "CREATE TABLE t(x)"), "is an SQLite database of another program"),
    (
        sqlite_file(f"PRAGMA application_id = {0x52754265}", "PRAGMA user_version = 99", "CREATE TABLE t(x)"),
        "is a journal of format 99, but this rusbeir reads format 1",
    ),
]


@pytest.mark.parametrize(("content", "part"), OTHERS, ids=range(len(OTHERS)))
def test_another_file_is_refused_and_left_unchanged(tmp_path, content, part):
    path = tmp_path / "j.sqlite"
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(BadInput, match=part) as caught:
            open_and_close(path, {"source": "s1"})
        assert str(caught.value).startswith(str(path))
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_journal(tmp_path):
    """What a kill in the first moment may leave."""
    (tmp_path / "j.sqlite").touch()
    open_and_close(tmp_path / "j.sqlite", {"source": "s1"})


def test_a_journal_damaged_in_the_middle_says_so(tmp_path):
    path = tmp_path / "j.sqlite"
    with Journal.open(path, {}) as journal:
        journal.add(Task.of("segment", f"{number:0300d}") for number in range(2000))
    content = bytearray(path.read_bytes())
    content[8192:-4096] = b"\xa5" * (len(content) - 12288)
    path.write_bytes(content)

    def use() -> None:
        with Journal.open(path, {}) as journal:
            list(queue(journal).unfinished())

    with pytest.raises(BadInput, match=r"is not a journal, or is damaged \(.*\)\. It was left unchanged"):
        use()


DAMAGE = [
    # what is done to the one attempt in the file, and why it must be noticed
    ("UPDATE attempt SET result = '[1, 3]'", "a digit of the answer"),
    ("UPDATE attempt SET error = 'x'", "the error"),
    ("UPDATE attempt SET flags = 'fuzzy'", "the flags"),
    ("DELETE FROM attempt", "an answer that is gone"),
    ("UPDATE standing SET state = 'failed'", "an answer that is taken for a failure"),
    ("UPDATE attempt SET number = 9; UPDATE standing SET attempt = 2", "the answer of another task"),
]


@pytest.mark.parametrize("read", ["outcomes", "results"])
@pytest.mark.parametrize(("statement", "why"), DAMAGE, ids=[row[1] for row in DAMAGE])
def test_an_answer_that_was_changed_in_the_file_is_asked_again(tmp_path, statement, why, read):
    path = tmp_path / "j.sqlite"
    tasks = [Task.of("segment", text) for text in ("one", "two")]
    answers = {tasks[0].key: "[1, 2]", tasks[1].key: "[2, 2]"}
    with Journal.open(path, {}) as journal:
        journal.add(tasks)
        journal.record([Attempt(key, "w", "done", result) for key, result in answers.items()])
        assert queue(journal).answers([*answers]) == answers
    with contextlib.closing(sqlite3.connect(path)) as db:
        only = statement.replace("UPDATE attempt SET", "UPDATE OR REPLACE attempt SET")
        db.executescript(
            "; ".join(f"{part} WHERE {'task' if 'standing' in part else 'number'} = 1" for part in only.split("; "))
        )
    with Journal.open(path, {}) as journal:

        def read_all() -> None:
            if read == "outcomes":
                queue(journal).outcomes([*answers])
            for state in ("done", "failed"):
                list(queue(journal).results(state))

        with pytest.raises(BadInput, match=r"j\.sqlite is damaged: 1 of its answers are not what was recorded\. Run"):
            read_all()
        assert counts(journal) == {"done": 1, "pending": 1}
        journal.record([Attempt(task.key, "w", "done", "[1, 2]") for task in queue(journal).unfinished()])
        assert queue(journal).answers([*answers]) == answers


def test_a_journal_of_an_earlier_version_has_no_seals(tmp_path):
    path, task = tmp_path / "j.sqlite", Task.of("segment", "one")
    with Journal.open(path, {}) as journal:
        journal.add([task])
        journal.record([Attempt(task.key, "w", "done", "half \ud83d")])
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE attempt DROP COLUMN seal")
    with Journal.open(path, {}) as journal:
        assert queue(journal).answers([task.key]) == {task.key: "half \ud83d"}
        with pytest.raises(BadInput, match=r"j\.sqlite is damaged \(an answer is not JSON: .*\)\. Move it away"):
            queue(journal).values([task.key])
        assert [result.result for result in queue(journal).results("done")] == ["half \ud83d"]


NOT_UTF_8 = [
    "UPDATE task SET payload = CAST(x'ff' AS TEXT)",
    # Here SQLite's own message is not UTF-8.
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = CAST(x'ff' AS TEXT) WHERE name = 'task'",
]


@pytest.mark.parametrize("statement", NOT_UTF_8)
def test_text_that_is_not_utf_8_any_more(tmp_path, statement):
    path, task = tmp_path / "j.sqlite", Task.of("segment", "one")
    with Journal.open(path, {}) as journal:
        journal.add([task])
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(statement)
        db.commit()

    def read() -> None:
        with Journal.open(path, {}) as journal:
            list(queue(journal).unfinished())

    with pytest.raises(BadInput, match=r"j\.sqlite .*damaged.* Move it away to start over"):
        read()


@pytest.mark.parametrize("place", ["folder", "below a file", "read-only"])
def test_where_no_file_can_be(tmp_path, place):
    path = tmp_path / "j.sqlite"
    if place == "folder":
        path.mkdir()
    elif place == "below a file":
        path.touch()
        path = path / "j.sqlite"
    else:
        path = Path("/proc/j.sqlite")
    with pytest.raises(BackendError, match=r"Cannot (write|use)") as caught:
        open_and_close(path, {})
    assert "\n" not in str(caught.value)


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Make folder a disk of 2 MB where that is allowed; whether it was."""
    folder.mkdir()
    mount = shutil.which("mount")
    done = (
        bool(mount)
        and not subprocess.run(
            [str(mount), "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
        ).returncode
    )
    try:
        yield done
    finally:
        if done:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(journal: Journal) -> tuple[list[Task], BackendError]:
    """Work until the disk is full: the tasks whose answers were recorded, and the error."""
    tasks = [Task.of("segment", f"text {number}") for number in range(2000)]
    journal.add(tasks)
    recorded: list[Task] = []
    try:
        for start in range(0, 2000, 10):
            batch = tasks[start : start + 10]
            journal.record([Attempt(task.key, "w", "done", task.payload * 100) for task in batch])
            recorded += batch
    except BackendError as error:
        return recorded, error
    raise AssertionError("the disk was never full")


def all_there(journal: Journal, tasks: list[Task]) -> bool:
    return queue(journal).answers([task.key for task in tasks]) == {task.key: task.payload * 100 for task in tasks}


def test_a_full_disk(tmp_path):
    with small_disk(tmp_path / "disk") as mounted:
        if not mounted:
            pytest.skip("needs the right to mount; the limits below are tested everywhere")
        path = tmp_path / "disk" / "job" / "j.sqlite"
        ballast = tmp_path / "disk" / "ballast"
        ballast.write_bytes(b"x" * (1 << 20))
        with Journal.open(path, {"source": "s1"}) as journal:
            recorded, error = fill(journal)
            assert str(error).startswith(f"Cannot use the journal {path}: ")
            assert "Free some space" in str(error)
            assert "\n" not in str(error)
            assert recorded
            assert all_there(journal, recorded)
            # The journal closes with the disk still full, and is whole when it is opened again.
        with Journal.open(path, {"source": "s1"}) as journal:
            assert all_there(journal, recorded)
            ballast.unlink()
            assert list(queue(journal).results("failed")) == []
            page = list(islice(queue(journal).unfinished(), 10))
            assert page[0] == Task.of("segment", f"text {len(recorded)}")
            journal.record([Attempt(task.key, "w", "done", task.payload * 100) for task in page])
            assert all_there(journal, [*recorded, *page])
        with contextlib.closing(sqlite3.connect(path)) as reader:
            assert reader.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_journal_that_may_not_grow(tmp_path):
    """SQLite's own "full", which needs no rights to make: the same journal is used on once there is room."""
    with Journal.open(tmp_path / "j.sqlite", {}) as journal:
        journal._db.execute("PRAGMA max_page_count = 200")
        recorded, error = fill(journal)
        assert "database or disk is full" in str(error)
        assert all_there(journal, recorded)
        journal._db.execute("PRAGMA max_page_count = 1000000")
        page = list(islice(queue(journal).unfinished(), 10))
        journal.record([Attempt(task.key, "w", "done", task.payload * 100) for task in page])
        assert all_there(journal, [*recorded, *page])


LIMITED = """
import resource, signal
from itertools import islice
from tests.jobs.test_journal_trouble import Journal, fill, all_there, queue, Attempt
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Journal.open({path!r}, {{}}) as journal:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
    recorded, error = fill(journal)
    assert all_there(journal, recorded) and recorded
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    page = list(islice(queue(journal).unfinished(), 10))
    journal.record([Attempt(task.key, "w", "done", task.payload * 100) for task in page])
    assert all_there(journal, recorded + page)
print(error)
"""


def test_a_limit_on_the_size_of_files(tmp_path):
    code = LIMITED.format(path=str(tmp_path / "j.sqlite"))
    outcome = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.startswith("Cannot use the journal")


def test_mistakes_in_rusbeir_are_not_blamed_on_the_file(tmp_path):
    with Journal.open(tmp_path / "j.sqlite", {}) as journal:
        pass
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        counts(journal)
