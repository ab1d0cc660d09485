"""The lock file: refused or waited for while another process holds it."""

from __future__ import annotations

import errno
import os
import threading

import pytest

from rusbeir import storage
from rusbeir.errors import BackendError


def test_a_held_file_is_refused_naming_its_holder(tmp_path):
    with (
        storage.hold(tmp_path / "lock", tmp_path / "what"),
        pytest.raises(storage.InUse, match=rf"what is in use by process {os.getpid()} \(this one\)"),
    ):
        storage.hold(tmp_path / "lock", tmp_path / "what")


def test_waiting_is_logged_once(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(storage, "_POLL_SECONDS", 0.02)
    monkeypatch.setattr(storage, "_SILENT_SECONDS", 0.1)
    for _ in range(2):
        held = storage.hold(tmp_path / "lock", tmp_path / "what")
        threading.Timer(0.4, held.close).start()
        storage.hold_when_free(tmp_path / "lock", tmp_path / "what").close()
    assert caplog.text.count("Waiting: ") == 1
    assert f"what is in use by process {os.getpid()}" in caplog.text


def test_a_short_wait_is_not_logged(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(storage, "_POLL_SECONDS", 0.02)
    held = storage.hold(tmp_path / "lock", tmp_path / "what")
    threading.Timer(0.1, held.close).start()
    storage.hold_when_free(tmp_path / "lock", tmp_path / "what").close()
    assert caplog.text == ""


def test_a_file_system_without_locks_is_not_waited_for(tmp_path, monkeypatch):
    def refuse(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(storage.fcntl, "flock", refuse)
    message = rf"file system of {tmp_path} does not support file locks; choose a folder .*: No locks available\."
    with pytest.raises(BackendError, match=message):
        storage.hold_when_free(tmp_path / "lock", tmp_path / "what")
