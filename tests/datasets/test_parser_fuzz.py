"""Any bytes are either read or refused as BadInput, and never end in another exception."""

from __future__ import annotations

import contextlib
import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rusbeir.datasets import load, open_corpus, read_qrels, read_run, validate
from rusbeir.errors import BadInput, RusbeirError

TOKENS = st.sampled_from(
    [
        *(b"q1", b"d1", b"0", b"1", b"-1", b"1.5", b"nan", b"Q0", b"\t", b" ", b"\n", b"\r\n"),
        *(b"{", b"}", b"[", b"]", b'"', b":", b",", b'"_id"', b'"text"', b'"x"', b"null"),
        *(b"\xef\xbb\xbf", b"\xff", b"\\ud800", b"\xe2\x80\xa8", b"\x00"),
        *(b'{"_id": "a", "text": "x"}\n', b'{"q1": {"d1": 1}}'),
        *(b"q1 0 d1 1\n", b"q1\td2\t1\n", b"q1 Q0 d1 1 0.5 t\n"),
    ]
)
ANY_BYTES = st.one_of(st.binary(max_size=60), st.lists(TOKENS, max_size=12).map(b"".join))
FUZZ = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def refusal(action: Callable[[], object]) -> str:
    """The message of BadInput, "" if nothing was raised; other exceptions are passed on."""
    try:
        action()
    except BadInput as error:
        return str(error)
    return ""


@pytest.mark.parametrize("read", [read_qrels, read_run, open_corpus])
@pytest.mark.parametrize("packed", [False, True])
@FUZZ
@given(data=ANY_BYTES)
def test_files(read, packed: bool, data: bytes, tmp_path: Path):
    path = tmp_path / ("file.gz" if packed and read is not open_corpus else "file")
    path.write_bytes(gzip.compress(data) if packed and read is not open_corpus else data)
    assert "\n" not in refusal(lambda: read(path))


@FUZZ
@given(corpus=ANY_BYTES, queries=ANY_BYTES, qrels=ANY_BYTES)
def test_datasets(corpus: bytes, queries: bytes, qrels: bytes, tmp_path: Path):
    path = tmp_path / "fuzz.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("corpus.jsonl", b'{"_id": "d1", "text": "x"}\n' + corpus)
        archive.writestr("queries.jsonl", b'{"_id": "q1", "text": "x"}\n' + queries)
        archive.writestr("qrels/test.tsv", b"q1\td1\t1\n" + qrels)
    findings = validate(path, language="ru")
    assert all("\n" not in str(finding) for finding in findings)
    message = refusal(lambda: load(path, language="ru"))
    assert "\n" not in message
    # whatever loading refuses, validating has found
    assert not message or any(finding.level == "error" for finding in findings)


@FUZZ
@given(data=st.binary(max_size=200), at=st.integers(0, 400), n_cut=st.integers(0, 300))
def test_damaged_zips(data: bytes, at: int, n_cut: int, tmp_path: Path, samples):
    path = tmp_path / "fuzz.zip"
    whole = samples.packed(samples.beir()).read_bytes()
    path.write_bytes(whole[:at] + data + whole[at + len(data) : len(whole) - n_cut])
    with contextlib.suppress(RusbeirError):
        load(path, language="ru")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 10**20) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "q", "data"]), inner, max_size=3)
    ),
    max_leaves=6,
)
QUESTION = st.fixed_dictionaries(
    {
        "id": st.text(max_size=3) | JSON,
        "question": st.text(max_size=3) | JSON,
        "answers": st.lists(st.fixed_dictionaries({"answer_start": st.integers(-1, 9) | JSON}), max_size=2) | JSON,
    }
)
PARAGRAPH = st.fixed_dictionaries(
    {"context": st.text(max_size=12) | JSON, "qas": st.lists(QUESTION | JSON, max_size=3) | JSON}
)
SQUAD = st.fixed_dictionaries(
    {"data": st.lists(st.fixed_dictionaries({"paragraphs": st.lists(PARAGRAPH | JSON, max_size=3)}) | JSON, max_size=2)}
)


@pytest.mark.parametrize("view", ["paragraphs", "sentences", "windows-2"])
@pytest.mark.parametrize("language", ["ru", "en"])
@FUZZ
@given(content=SQUAD | JSON)
def test_squad(view: str, language: str, content: object, tmp_path: Path):
    path = tmp_path / "squad.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    message = refusal(lambda: load(path / view, language=language))
    assert "\n" not in message
    findings = validate(path / view, language=language)
    assert not message or any(finding.level == "error" for finding in findings)
