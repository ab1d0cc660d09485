"""Files under trouble: links in folders from elsewhere, and disks that fill up."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rusbeir import storage
from rusbeir.datasets.formats.files import file_key
from rusbeir.errors import BackendError, BadInput


def test_a_lock_is_not_written_through_a_link(tmp_path: Path):
    victim = tmp_path / "bashrc"
    victim.write_text("export PATH\n")
    (tmp_path / "lock").symlink_to(victim)
    with pytest.raises(BackendError, match=r"lock is a symbolic link\. Remove it\."):
        storage.hold(tmp_path / "lock", tmp_path / "what")
    assert victim.read_text() == "export PATH\n"


@pytest.mark.parametrize("link", ["top", "qa/deep/file"])
def test_a_folder_with_a_link_is_refused(link: str, tmp_path: Path):
    folder = tmp_path / "port"
    (folder / "qa" / "deep").mkdir(parents=True)
    storage.refuse_links(folder)
    (folder / link).symlink_to(tmp_path)
    with pytest.raises(BadInput, match=rf"{link} is a symbolic link"):
        storage.refuse_links(folder)


class _FullDisk(io.FileIO):
    """Takes five bytes of the second line, and then no more."""

    left = 5

    def write(self, data: bytes) -> int:
        if not self.left:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken, self.left = data[: self.left], self.left - len(data[: self.left])
        return super().write(taken)


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "rows.jsonl"
    storage.append_line(path, b'{"n": 1}')
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda self, mode, buffering: _FullDisk(self, "ab"))
        with pytest.raises(BackendError, match=r"Cannot write .*rows\.jsonl: No space left on device"):
            storage.append_line(path, b'{"n": 2}')
    assert path.read_bytes() == b'{"n": 1}\n'


def test_swapped_files_with_equal_size_and_time_have_other_keys(tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    for path in (one, two):
        path.write_text(path.name)
        os.utime(path, ns=(1, 1))
    key = file_key(one)
    assert file_key(one) == key
    one.rename(tmp_path / "kept")
    two.rename(one)
    assert one.stat().st_mtime_ns == 1
    assert file_key(one) != key


def test_a_new_database_is_opened_by_all_who_come_at_once(tmp_path: Path):
    """SQLite refuses at once who changes a new file to WAL while another does: in some of 50 files, somebody."""

    def open_(number: int) -> str:
        start.wait()
        db = storage.open_database(tmp_path / f"{number}.sqlite", storage.WRITE_AHEAD)
        (mode,) = db.execute("PRAGMA journal_mode").fetchone()
        db.close()
        return mode

    start = threading.Barrier(8)
    with ThreadPoolExecutor(8) as threads:
        for number in range(50):
            assert list(threads.map(open_, [number] * 8)) == ["wal"] * 8


def fill(folder: Path, **how: bool) -> None:
    with storage.atomic_folder(folder, **how) as new:
        (new / "card.json").write_text("{}")
        (new / "qrels").mkdir()
        (new / "qrels" / "test.tsv").write_text("q\td\t1\n")


def refuse_renaming(path: Path, target: Path) -> Path:
    """What the system says of a mount point."""
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


@pytest.mark.parametrize("kind", ["new", "empty", "link", "mount"])
def test_a_folder_of_the_users_gets_what_is_written(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    target = tmp_path / "to"
    if kind == "link":
        (tmp_path / "elsewhere").mkdir()
        target.symlink_to("elsewhere")
    elif kind != "new":
        target.mkdir()
    if kind == "mount":
        monkeypatch.setattr(Path, "rename", refuse_renaming)
    fill(target)
    assert sorted(path.name for path in target.rglob("*")) == ["card.json", "qrels", "test.tsv"]
    assert target.is_symlink() == (kind == "link")
    assert not list(tmp_path.glob(".to.*"))


def test_a_mount_point_that_fills_up_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def move(entry: Path, to: Path) -> None:
        if entry.name == "qrels":
            to.mkdir()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        entry.replace(to)

    (tmp_path / "to").mkdir()
    monkeypatch.setattr(Path, "rename", refuse_renaming)
    monkeypatch.setattr(storage.shutil, "move", move)
    with pytest.raises(BackendError, match=r"Cannot write .*to: No space left on device"):
        fill(tmp_path / "to")
    assert not list((tmp_path / "to").iterdir())


@pytest.mark.parametrize("keyed", [False, True])
def test_a_folder_that_another_process_made_meanwhile(keyed: bool, tmp_path: Path):
    def race() -> None:
        with storage.atomic_folder(tmp_path / "to", keyed=keyed) as new:
            (new / "card.json").write_text("{}")
            (tmp_path / "to").mkdir()
            (tmp_path / "to" / "theirs").touch()

    if keyed:
        race()
    else:
        with pytest.raises(BackendError, match=r"Cannot write .*to: Directory not empty"):
            race()
    assert [path.name for path in tmp_path.rglob("*")] == ["to", "theirs"]


def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path: Path):
    (tmp_path / "to").touch()
    with pytest.raises(BackendError, match=r"Cannot write .*to: Not a directory"):
        fill(tmp_path / "to", keyed=True)


WRITER = """
import sys, time
from pathlib import Path
from rusbeir import storage
with getattr(storage, "atomic_" + sys.argv[1])(Path(sys.argv[2])) as new:
    print("writing", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_left_goes_when_its_target_is_written_again(kind: str, tmp_path: Path):
    target = tmp_path / "out"

    def write() -> None:
        if kind == "file":
            with storage.atomic_file(target) as file:
                file.write(b"whole")
        else:
            fill(target)

    command = [sys.executable, "-c", WRITER, kind, str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1]) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writing\n"
        (left,) = tmp_path.glob(".out.*")
        others = [tmp_path / name for name in (".out.original", ".output.abcdefgh", ".out.abcdefghi", ".out.abcdefgh")]
        for path in others:
            path.touch(mode=0o644 if path.name == ".out.original" else 0o600)
        for path in (left, *others[:3]):
            os.utime(path, (1, 1))
        write()
        assert left.exists(), "its writer lives"
        os.kill(writer.pid, signal.SIGKILL)
    os.utime(left, (time.time(), time.time()))
    if kind == "folder":
        (target / "card.json").unlink()
        (target / "qrels" / "test.tsv").unlink()
        (target / "qrels").rmdir()
    write()
    assert left.exists(), "it may be so new that its writer has not locked it yet"
    os.utime(left, (1, 1))
    target.unlink() if kind == "file" else target.rename(tmp_path / "before")
    write()
    assert sorted(tmp_path.glob(".out*")) == sorted(others), "theirs stay, and what is new"


def test_what_is_left_in_the_cache_is_for_cache_clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RUSBEIR_CACHE", str(tmp_path))
    left = tmp_path / ".out.abcdefgh"
    left.touch(mode=0o600)
    os.utime(left, (1, 1))
    with storage.atomic_file(tmp_path / "out") as file:
        file.write(b"whole")
    assert left.exists()
