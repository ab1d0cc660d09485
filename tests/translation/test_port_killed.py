"""A port that is killed at any moment goes on where it was, and ends with the bytes of one that was left alone."""

from __future__ import annotations

import shutil

import pytest

from benchmarks import kills, port_data
from rusbeir.errors import BackendError, BadInput
from rusbeir.translation.backends import preset
from rusbeir.translation.porting.api import port
from rusbeir.translation.porting.folder import open_port_folder
from rusbeir.translation.porting.plan import TranslatorEntry
from tests.support.small_port import Fake, write_source


def test_killed_ports_end_with_the_same_bytes(tmp_path):
    source = port_data.write_corpus(tmp_path / "source", 600)
    options = ["--to", "ru", "--translator", "python:benchmarks.port_data.slow"]
    outcome = kills.kill_and_go_on(source, tmp_path, options, kills=6, seed=1)
    assert outcome.kills == 6
    assert outcome.differing == 0


def test_killed_ports_with_workers_end_with_the_same_bytes(tmp_path):
    source = port_data.write_corpus(tmp_path / "source", 1_500)
    options = ["--to", "ru", "--translator", "python:benchmarks.port_data.in_workers"]
    outcome = kills.kill_and_go_on(source, tmp_path, options, kills=2, least_seconds=1.5)
    assert (outcome.kills, outcome.differing) == (2, 0)


def test_killed_ports_of_several_splits(tmp_path):
    source = port_data.write_corpus(tmp_path / "source", 400)
    header, *lines = (source / "qrels" / "test.tsv").read_text().splitlines(keepends=True)
    for split, left in (("test", lines[::2]), ("train", lines[1::2])):
        (source / "qrels" / f"{split}.tsv").write_text("".join([header, *left]))
    options = ["--to", "ru", "--translator", "python:benchmarks.port_data.slow"]
    outcome = kills.kill_and_go_on(source, tmp_path, options, kills=3, seed=2)
    assert (outcome.kills, outcome.differing) == (3, 0)
    kills.finish(kills.command(source, tmp_path / "added", *options, "--split", "test"))
    kills.finish(kills.command(source, tmp_path / "added", *options, "--split", "train"))
    assert kills.content(tmp_path / "added") == kills.content(tmp_path / "alone")


def test_killed_ports_with_apertium(tmp_path, shared_data, needs):
    needs("apertium", shutil.which("apertium") is not None, "apt-get install apertium-eng-spa")
    options = ["--to", "es", "--translator", "apertium", "--keep-untranslated", "--sample", "150"]
    outcome = kills.kill_and_go_on("cocktail/nfcorpus/human", tmp_path, options, kills=3, least_seconds=1.0)
    assert (outcome.kills, outcome.differing) == (3, 0)


def test_a_second_process_is_refused(tmp_path):
    source = write_source(tmp_path / "small")
    given = [TranslatorEntry.of(Fake())]
    with (
        open_port_folder(tmp_path / "out", {}, given, more=False),
        pytest.raises(BackendError, match=r"out is in use by process \d+ \(this one\)"),
    ):
        port(source, to="ru", translator=Fake(), out=tmp_path / "out")


def test_what_python_functions_are_asked_at_once_is_known():
    """The kills leave time for at least one request of that size between them."""
    assert preset("python").capacity.max_items == 100


def test_what_a_killed_process_left_is_removed(tmp_path):
    source = write_source(tmp_path / "small")
    (tmp_path / "out" / "qrels").mkdir(parents=True)
    left = [tmp_path / "out" / ".layout.txt.abcd_123", tmp_path / "out" / "qrels" / ".test.tsv.zzzz0000"]
    for path in left:
        path.write_text("half")
    with pytest.raises(BadInput, match="contains files but no port"):
        port(source, to="ru", translator=Fake(), out=tmp_path / "out")
    (tmp_path / "out" / "journal.sqlite").touch()
    port(source, to="ru", translator=Fake(), out=tmp_path / "out")
    assert not any(path.exists() for path in left)
