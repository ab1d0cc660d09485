"""Files under trouble: links in folders from elsewhere, and disks that fill up."""

from __future__ import annotations

import errno
import io
import os
import threading
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
        db = storage.connect_shared(tmp_path / f"{number}.sqlite")
        (mode,) = db.execute("PRAGMA journal_mode").fetchone()
        db.close()
        return mode

    start = threading.Barrier(8)
    with ThreadPoolExecutor(8) as threads:
        for number in range(50):
            assert list(threads.map(open_, [number] * 8)) == ["wal"] * 8
