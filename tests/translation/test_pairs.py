"""Pairs written and read back."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rusbeir.errors import BadInput
from rusbeir.translation.tm.pairs import read_pairs, write_pairs
from tests.support.texts import SNIPPETS

ENDINGS = [".jsonl", ".tsv", ".tmx", ".jsonl.gz", ".tsv.gz", ".tmx.gz"]
TEXT = st.lists(st.one_of(st.sampled_from(SNIPPETS), st.text(max_size=10)), max_size=5).map("".join)


@settings(max_examples=200)
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=6), st.sampled_from(ENDINGS))
def test_any_text_comes_back(pairs: list[tuple[str, str]], ending: str):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"pairs{ending}"
        assert write_pairs(path, pairs, "en", "zh-Hans") == len(pairs)
        back = list(read_pairs(path, "en", "zh-Hans"))
        # Our .tsv begins with a line that no text can be taken for; a blank line of another's .tsv is skipped.
        assert back == pairs


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "text",
    [
        "a\tb",
        "a\nb\r\nc\rd",
        "\\t \\n \\\\",
        "source",
        "\x00\x01\x0b\x0c\x1f\x7f\x85",
        "\u2028\ufffe\uffff",
        "]]>&amp;<>\"'",
        "",
    ],
)
def test_hard_texts(text: str, ending: str, tmp_path: Path):
    path = tmp_path / f"pairs{ending}"
    write_pairs(path, [(text, "x"), ("source", "target"), ("x", text)], "en", "ru")
    assert list(read_pairs(path, "en", "ru")) == [(text, "x"), ("source", "target"), ("x", text)]


def test_a_text_that_looks_like_the_note_of_a_character(tmp_path: Path):
    pairs = [('<ph type="x-char">U+0001</ph>', "U+0001"), ("\x01U+0001", "\x01\x02")]
    write_pairs(tmp_path / "p.tmx", pairs, "en", "ru")
    assert list(read_pairs(tmp_path / "p.tmx", "en", "ru")) == pairs


def test_the_file_is_tmx(tmp_path: Path):
    write_pairs(tmp_path / "p.tmx", [("a & b\x01", "<в>")], "en", "ru")
    root = ElementTree.parse(tmp_path / "p.tmx").getroot()
    assert (root.tag, root.get("version")) == ("tmx", "1.4")
    header = root.find("header")
    required = {"creationtool", "creationtoolversion", "segtype", "o-tmf", "adminlang", "srclang", "datatype"}
    assert header is not None
    assert set(header.keys()) == required
    languages = [tuv.get("{http://www.w3.org/XML/1998/namespace}lang") for tuv in root.iter("tuv")]
    assert languages == ["en", "ru"]
    assert ["".join(seg.itertext()) for seg in root.iter("seg")] == ["a & bU+0001", "<в>"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_pairs_give_the_same_bytes(ending: str, tmp_path: Path):
    for name in ("a", "b"):
        write_pairs(tmp_path / f"{name}{ending}", [("Yes.", "Да.")], "en", "ru")
    assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()


def test_nothing_is_written_half(tmp_path: Path):
    def broken():
        yield "a", "b"
        raise RuntimeError("stop")

    for ending in ENDINGS:
        with pytest.raises(RuntimeError, match="stop"):
            write_pairs(tmp_path / f"p{ending}", broken(), "en", "ru")
    assert list(tmp_path.iterdir()) == []


def test_endings(tmp_path: Path):
    with pytest.raises(BadInput, match=r"pairs are written as \.jsonl, \.tsv or \.tmx"):
        write_pairs(tmp_path / "p.csv", [], "en", "ru")
    write_pairs(tmp_path / "p.tsv.gz", [("a", "b")], "en", "ru")
    assert gzip.decompress((tmp_path / "p.tsv.gz").read_bytes()).endswith(b"\na\tb\n")
