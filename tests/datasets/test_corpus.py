"""The disk-backed corpus: the same documents by iteration and by id, flat memory, and one line for each bad line."""

from __future__ import annotations

import json
import math
import pickle
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest

from rusbeir.datasets import corpus as index_module
from rusbeir.datasets import open_corpus
from rusbeir.datasets.formats.records import record_line
from rusbeir.errors import BackendError, BadInput
from rusbeir.types import Doc


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("content", "docs"),
    [
        ('{"_id": "a", "title": "t", "text": "x"}\n', [Doc("a", "x", "t")]),
        # the last line may lack its line end
        ('{"_id": "a", "text": "x"}\n{"_id": "b", "text": "y"}', [Doc("a", "x"), Doc("b", "y")]),
        # blank lines and Windows line ends are no documents
        ('\n{"_id": "a", "text": "x"}\r\n\r\n{"_id": "b", "text": "y"}\r\n\n', [Doc("a", "x"), Doc("b", "y")]),
        # a byte order mark before the first line belongs to the file, one in a text to the text
        ('\ufeff{"_id": "a", "text": "\ufeffx"}\n', [Doc("a", "\ufeffx")]),
        # ids may be numbers in JSON; a title may be null
        ('{"_id": 7, "title": null, "text": "x"}\n', [Doc("7", "x")]),
        # line separators of Unicode do not end a line of JSONL
        ('{"_id": "a", "text": "x\u2028y\x85z"}\n', [Doc("a", "x\u2028y\x85z")]),
    ],
)
def test_reads(content: str, docs: list[Doc], tmp_path: Path):
    corpus = open_corpus(write(tmp_path / "c.jsonl", content))
    assert list(corpus) == docs
    assert len(corpus) == len(docs)
    assert [corpus[doc.doc_id] for doc in docs] == docs


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ('{"_id": "a", "text": "x"}\n{"_id": oops}\n', 2, "not JSON"),
        ('{"_id": "a", "text": "x"}\n\n{"_id": "b", "te', 3, "ends in the middle of this line; copy"),
        ('{"text": "x"}\n', 1, 'no "_id"'),
        ('{"_id": "", "text": "x"}\n', 1, "not empty"),
        ('{"_id": " ", "text": "x"}\n', 1, "not empty"),
        ('{"_id": null, "text": "x"}\n', 1, "None"),
        ('{"_id": true, "text": "x"}\n', 1, "True"),
        ('{"_id": 1.5, "text": "x"}\n', 1, "1.5"),
        ('{"_id": "a"}\n', 1, "document 'a' has no \"text\""),
        ('{"_id": "a", "text": 3}\n', 1, "document 'a' has no \"text\""),
        ('{"_id": "a", "text": "x", "title": []}\n', 1, "document 'a' has no \"title\""),
        ('["a", "x"]\n', 1, "not an object"),
        ('{"_id": "a", "text": "x"}\n{"_id": "b", "text": "y"}\n\n{"_id": "a", "text": "z"}\n', 4, r"'a' .*jsonl:1;"),
        ('{"_id": 1, "text": "x"}\n{"_id": "1", "text": "y"}\n', 2, "'1' is used already"),
        (b'{"_id": "a", "text": "\xcf\xf0\xe8"}\n', 1, "not UTF-8 .byte 0xcf at 23.*convert"),
        ('{"_id": "a", "text": "\\ud800"}\n', 1, '"text" has an unpaired surrogate, which UTF-8 cannot encode'),
        ('{"_id": "a", "text": "x", "title": "\\udc00"}\n', 1, '"title" has an unpaired surrogate'),
        ('{"_id": "\\ud800\\ud800", "text": "x"}\n', 1, '"_id" has an unpaired surrogate'),
        ('{"_id": NaN, "text": "x"}\n', 1, "None"),
        ('{"_id": "a", "text": Infinity}\n', 1, "document 'a' has no \"text\""),
        # what json cannot read either
        ('{"_id": "a", "text": "x", "k": NaN, "m": }\n', 1, "not JSON"),
        (b'{"_id": "a", "text": "x\xff", "k": NaN}\n', 1, "not UTF-8"),
        ('{"_id": "a", "text": "x", "k": ' + "[" * 100_000 + "\n", 1, "not JSON"),
        ("NaN\n", 1, "not JSON"),
    ],
)
def test_a_bad_line_is_told_with_file_and_line(content: str | bytes, line: int, message: str, tmp_path: Path):
    path = write(tmp_path / "c.jsonl", content)
    with pytest.raises(BadInput, match=message) as caught:
        open_corpus(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert "\n" not in str(caught.value)


LENIENT = [
    # (a field of a record, what it holds once read)
    ('"Gemini": NaN', {"Gemini": None}),
    ('"a": Infinity, "b": [-Infinity, 1e999, 1]', {"a": None, "b": [None, math.inf, 1]}),
    ('"metadata": {"url\\udfff": ["\\ud800!", "\\ud83d\\ude00"]}', {"metadata": {"url\ufffd": ["\ufffd!", "😀"]}}),
    ('"note": "a\tb\x00", "n": 7', {"note": "a\tb\x00", "n": 7}),
    ('"k": NaN, "n": [18446744073709551616, 18446744073709551615]', {"k": None, "n": [2.0**64, 2**64 - 1]}),
]


@pytest.mark.parametrize(("field", "extra"), LENIENT)
def test_what_only_pythons_json_reads_is_read(field: str, extra: dict[str, Any], tmp_path: Path):
    assert json.loads(f'{{"_id": "b", "text": "y", {field}}}', strict=False)
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(f'{{"_id": "b", "text": "y", {field}}}')
    path = write(tmp_path / "c.jsonl", f'{{"_id": "a", "text": "x"}}\n{{"_id": "b", "text": "y", {field}}}\n')
    corpus = open_corpus(path)
    assert list(corpus) == [corpus["a"], corpus["b"]] == [Doc("a", "x"), Doc("b", "y")]
    (_, none), (doc, found) = corpus.whole()
    assert (none, found) == ({}, extra)
    assert orjson.loads(record_line(doc, found))["_id"] == "b"


def test_control_characters_and_paired_escapes_stay_in_texts(tmp_path: Path):
    line = '{"_id": "a", "text": "x\ty\x00\x1f\\ud83d\\ude00", "k": NaN}\n'
    corpus = open_corpus(write(tmp_path / "c.jsonl", line))
    assert list(corpus) == [corpus["a"]] == [Doc("a", "x\ty\x00\x1f😀")]


def test_a_repeated_id_among_such_lines_is_told(tmp_path: Path):
    path = write(tmp_path / "c.jsonl", 2 * '{"_id": "a", "text": "x", "k": NaN}\n')
    with pytest.raises(BadInput, match=r":2: the id 'a' is used already at .*:1;"):
        open_corpus(path)


def test_the_first_id_with_white_space_is_known(tmp_path: Path):
    lines = [f'{{"_id": "{one}", "text": "x"}}\n' for one in ("a", "b c", "d\u00a0e")]
    assert open_corpus(write(tmp_path / "c.jsonl", "".join(lines))).spaced_id == "b c"
    assert open_corpus(write(tmp_path / "plain.jsonl", lines[0])).spaced_id == ""


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_an_empty_corpus_is_refused(content: str, tmp_path: Path):
    with pytest.raises(BadInput, match="empty"):
        open_corpus(write(tmp_path / "c.jsonl", content))


def test_ignored_titles_are_neither_read_nor_hashed(tmp_path: Path):
    titled = write(tmp_path / "c.jsonl", '{"_id": "a", "title": "t", "text": "x"}\n')
    bare = write(tmp_path / "bare.jsonl", '{"_id": "a", "text": "x"}\n')
    corpus = open_corpus(titled, ignore_titles=True)
    assert list(corpus) == [corpus["a"]] == [Doc("a", "x")]
    assert corpus.sha256 == open_corpus(bare).sha256 != open_corpus(titled).sha256


@pytest.mark.parametrize("doc_id", ["", "b", "a ", "\ud800"])
def test_an_unknown_id_is_a_key_error(doc_id: str, tmp_path: Path):
    corpus = open_corpus(write(tmp_path / "c.jsonl", '{"_id": "a", "text": "x"}\n'))
    with pytest.raises(KeyError):
        corpus[doc_id]


def test_ids_with_equal_hashes_are_told_apart(tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(index_module, "hash_id", lambda record_id: len(record_id))
    corpus = open_corpus(write(tmp_path / "c.jsonl", '{"_id": "a", "text": "x"}\n{"_id": "b", "text": "y"}\n'))
    assert (corpus["a"].text, corpus["b"].text) == ("x", "y")
    with pytest.raises(KeyError):
        corpus["c"]


def test_the_index_is_built_once_and_again_when_the_file_changes(tmp_path: Path, fresh_cache: Path):
    path = write(tmp_path / "c.jsonl", '{"_id": "a", "text": "x"}\n')
    open_corpus(path)
    before = {file: file.stat().st_mtime_ns for file in fresh_cache.rglob("*.npy")}
    open_corpus(path)
    assert {file: file.stat().st_mtime_ns for file in fresh_cache.rglob("*.npy")} == before
    time.sleep(0.01)
    write(path, '{"_id": "b", "text": "x"}\n')
    assert [doc.doc_id for doc in open_corpus(path)] == ["b"]


def test_a_file_that_changes_under_an_open_corpus_is_told(tmp_path: Path):
    path = write(tmp_path / "c.jsonl", '{"_id": "a", "text": "x"}\n{"_id": "b", "text": "y"}\n')
    corpus = open_corpus(path)
    write(path, b"?" * 60)
    with pytest.raises(BadInput, match="was changed while"):
        corpus["b"]
    with pytest.raises(BadInput, match="was changed while"):
        list(corpus)
    path.unlink()
    with pytest.raises(BackendError, match="Cannot read"):
        corpus["b"]


def test_a_missing_file_and_a_folder_are_told(tmp_path: Path):
    with pytest.raises(BadInput, match="No file"):
        open_corpus(tmp_path / "none.jsonl")
    with pytest.raises(BadInput, match="is a folder"):
        open_corpus(tmp_path)


N = 200_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "corpus.jsonl"
    with path.open("wb") as file:
        for i in range(N):
            file.write(orjson.dumps({"_id": f"doc-{i * 7919 % N}", "text": f"текст {i} " * 8}) + b"\n")
    return path


def test_memory_is_flat(large: Path):
    """Under 64 bytes a document to index, next to nothing to iterate and to look up; the file has 140 a document."""
    tracemalloc.start()
    try:
        corpus = open_corpus(large)
        assert tracemalloc.get_traced_memory()[1] < 64 * N
        tracemalloc.reset_peak()
        start = tracemalloc.get_traced_memory()[0]
        assert sum(1 for _ in corpus) == N
        assert corpus["doc-5"].doc_id == "doc-5"
        assert tracemalloc.get_traced_memory()[1] - start < 2_000_000
    finally:
        tracemalloc.stop()


def test_random_access_equals_iteration(large: Path):
    corpus = open_corpus(large)
    for doc in list(corpus)[::997]:
        assert corpus[doc.doc_id] == doc


def test_a_corpus_can_be_pickled_and_shared_between_threads(large: Path):
    corpus = pickle.loads(pickle.dumps(open_corpus(large)))
    ids = [f"doc-{i}" for i in range(0, N, 1009)]
    with ThreadPoolExecutor(4) as pool:
        assert [doc.doc_id for doc in pool.map(corpus.__getitem__, ids)] == ids
    assert len(pickle.dumps(corpus)) < 1000


def test_progress_counts_documents(large: Path, fresh_cache: Path):
    """Not bytes, of which nobody knows what they are; how many there will be is estimated."""
    told: list[tuple[str, int, int | None]] = []
    open_corpus(large, progress=lambda *step: told.append(step))
    done = [step[1] for step in told]
    assert done == sorted(done)
    assert told[-1][1:] == (N, N)
    assert [step[2] for step in told] == [pytest.approx(N, rel=0.1)] * len(told)
