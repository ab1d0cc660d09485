"""Packed files that unpack to far more than they are: refused in one line, before they fill the memory."""

from __future__ import annotations

import gzip
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import rusbeir
from rusbeir.datasets.formats import files
from rusbeir.datasets.formats.files import open_file
from rusbeir.errors import BadInput
from rusbeir.translation.tm.pairs import read_pairs

LIMIT = 1 << 20


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_UNPACKED_BYTES", LIMIT)


def bomb_zip(folder: Path) -> Path:
    path = folder / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("queries.jsonl", '{"_id": "q", "text": "x"}\n')
        archive.writestr("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq\td\t1\n")
        archive.writestr("corpus.jsonl", b'{"_id": "d", "text": "' + b"x" * (20 * LIMIT) + b'"}\n')
    return path


def packed(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress((b"<tmx>" if "tmx" in name else b"{") + b" " * (20 * LIMIT)))
    return path


def gz_in_zip(folder: Path) -> Path:
    inner, path = packed(folder, "corpus.jsonl.gz"), folder / "bundle.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(inner, inner.name)
    return path


def read_member(path: Path) -> None:
    with files.Zip(path).open("corpus.jsonl.gz") as file:
        file.read()


BOMBS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], object]]] = {
    # what -> what makes it, what reads it
    "corpus in a zip": (bomb_zip, lambda path: rusbeir.load(path, language="en")),
    "SQuAD": (lambda folder: packed(folder, "squad.json.gz"), lambda path: rusbeir.load(path, language="en")),
    "TMX": (lambda folder: packed(folder, "m.tmx.gz"), lambda path: list(read_pairs(path, "en", "ru"))),
    "TSV": (lambda folder: packed(folder, "m.tsv.gz"), lambda path: list(read_pairs(path, "en", "ru"))),
    "packed in a zip": (gz_in_zip, read_member),
}


@pytest.mark.parametrize("what", BOMBS)
def test_a_bomb_is_refused_in_one_line(what, tmp_path, fresh_cache):
    make, read = BOMBS[what]
    path = make(tmp_path)
    tracemalloc.start()
    try:
        with pytest.raises(BadInput, match="unpacks to more than 100 times its size") as raised:
            read(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "\n" not in str(raised.value)
    assert peak < 12 * LIMIT


def test_what_packs_well_is_read(tmp_path):
    path = tmp_path / "lines.txt.gz"
    content = b"".join(b"%d a line of a text that is packed well\n" % number for number in range(100_000))
    path.write_bytes(gzip.compress(content))
    with open_file(path) as file:
        assert file.read() == content
    assert len(content) > 3 * LIMIT


GOOD = b'{"_id": "d1", "text": "Water boils."}\n' * 30_000
LONG = b'{"_id": "d2", "text": "' + b"x" * 2 * LIMIT + b'"}\n'


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz", "bundle.zip"])
@pytest.mark.parametrize(("data", "line"), [(GOOD + LONG + GOOD, 30_001), (b"\xef\xbb\xbf" + LONG, 1)])
def test_a_line_over_the_bound_is_refused_with_its_number(name, data, line, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_LINE_BYTES", LIMIT)
    monkeypatch.setattr(files, "MAX_RATIO", 10_000)
    path = tmp_path / name
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("queries.jsonl", "{}\n")
            archive.writestr("corpus.jsonl", data)
    else:
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    tracemalloc.start()
    try:
        with (
            pytest.raises(
                BadInput, match=rf"{name}(:corpus\.jsonl)?:{line}: the line has more than 1 MiB\. .*: cut the"
            ),
            files.Zip(path).open("corpus.jsonl") if name.endswith(".zip") else open_file(path) as file,
        ):
            for _ in file:
                pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * LIMIT


@pytest.mark.parametrize("name", ["squad.json", "squad.json.gz"])
def test_what_is_read_as_a_whole_may_be_one_line(name, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_LINE_BYTES", LIMIT)
    monkeypatch.setattr(files, "MAX_RATIO", 10_000)
    path = tmp_path / name
    path.write_bytes(gzip.compress(LONG) if name.endswith(".gz") else LONG)
    with open_file(path) as file:
        assert file.read() == LONG


def test_lines_within_the_bound_are_read_from_any_place(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_LINE_BYTES", LIMIT)
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(line := b"x" * (LIMIT - 1) + b"\n")
    with open_file(path) as file:
        for _ in range(3):
            file.seek(LIMIT // 2)
            assert list(file) == [line[LIMIT // 2 :]]
        file.seek(0)
        assert list(file) == [line]
    path.write_bytes(line[:-1])
    with open_file(path) as file:
        for _ in range(3):
            file.seek(0)
            assert len(file.read(LIMIT - 1)) == LIMIT - 1
