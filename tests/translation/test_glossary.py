"""Glossaries: what is read, what is refused, what is found."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from rusbeir.errors import BadInput
from rusbeir.translation.segments.glossary import Glossary, GlossaryUse, read_glossary


def found(glossary: Glossary, text: str) -> list[tuple[str, str | None]]:
    return [(text[start:end], target) for start, end, target in glossary.find(text)]


def test_a_file(tmp_path: Path):
    content = "\ufeff# our terms\n\nneural  network\t нейронная сеть \nSciFact\t=\nBEIR\t\nMTEB\r\nBEIR\t=\n"
    expected = {"neural network": "нейронная сеть", "SciFact": None, "BEIR": None, "MTEB": None}
    (tmp_path / "g.tsv").write_bytes(content.removeprefix("\ufeff").encode())
    assert read_glossary(tmp_path / "g.tsv").terms == expected
    (tmp_path / "g.tsv.gz").write_bytes(gzip.compress(content.encode()))
    assert read_glossary(str(tmp_path / "g.tsv.gz")).terms == expected, "byte order mark, gz"
    (tmp_path / "none.tsv").write_bytes(b"# nothing\n")
    assert read_glossary(tmp_path / "none.tsv").terms == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\n\tc\n", ":2: the term is empty"),
        (b"a\tb\n  \tc\n", ":2: the term is empty"),
        (b"a\tb\tc\n", ":1: 3 columns"),
        (b"a\tb\nc\td\na\tx\n", ":3: the term 'a' is translated 'x' here and 'b' in line 1"),
        (b"a\tb\na\t=\n", ":2: the term 'a' is translated not at all here and 'b' in line 1"),
        (b"a\tb\n\xff\tc\n", ":2: the line is not UTF-8"),
        (b"a\tb\nAlzheimer,=\n", ":2: 'Alzheimer,=' is one column; a line is: term, tab, translation (columns with"),
        (b"breast cancer    \xd0\xa0\xd0\x90\xd0\x9a\n", ":1: 'breast cancer РАК' is one column"),
        (b"a;b\n", ":1: 'a;b' is one column"),
    ],
)
def test_what_is_refused(content: bytes, message: str, tmp_path: Path):
    path = tmp_path / "g.tsv"
    path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        read_glossary(path)
    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "terms"),
    [
        ("Alzheimer,=\nbreast cancer,РАК\n", {"Alzheimer": None, "breast cancer": "РАК"}),
        ('"Ca, ionised","Ca, ион"\r\nBEIR\n', {"Ca, ionised": "Ca, ион", "BEIR": None}),
        ("# comment, here\n\nMTEB,\n", {"MTEB": None}),
        ("term, one\tперевод\n", {"term, one": "перевод"}),  # tabs in a file of that name are no less clear
    ],
)
def test_columns_with_commas(content: str, terms: dict[str, str | None], tmp_path: Path):
    (tmp_path / "g.csv").write_text(content, encoding="utf-8")
    assert read_glossary(tmp_path / "g.csv").terms == terms
    (tmp_path / "g.csv.gz").write_bytes(gzip.compress(content.encode()))
    assert read_glossary(tmp_path / "g.csv.gz").terms == terms


@pytest.mark.parametrize(
    ("content", "message"),
    [("a,b,c\n", ":1: 3 columns; a line is: term, comma, translation"), ("a,b\n,c\n", ":2: the term is empty"),
     ("a;b\n", ":1: 'a;b' is one column; a line is: term, comma, translation. If all of it is a term to keep"),
     ('"a" b,c\n', ":1: ',' expected after '\"'.")],
)  # fmt: skip
def test_what_is_refused_of_commas(content: str, message: str, tmp_path: Path):
    (tmp_path / "g.csv").write_text(content)
    with pytest.raises(BadInput) as caught:
        read_glossary(tmp_path / "g.csv")
    assert str(caught.value).startswith(f"{tmp_path / 'g.csv'}{message}")


def test_a_term_that_is_kept_may_have_a_comma(tmp_path: Path):
    (tmp_path / "g.tsv").write_text("Washington, D.C.\t=\nNew York\n")
    assert read_glossary(tmp_path / "g.tsv").terms == {"Washington, D.C.": None, "New York": None}


def test_use_is_counted_by_texts(caplog):
    glossary = Glossary({"ice": "лёд", "Snow": None, "snow": "снег", "bear cub": None, "yeti": "йети"})
    texts = ["Ice and ice melt", "Snow falls, snow melts", "nothing", "ICE snow", "a bear  cub"]
    use = GlossaryUse.count(glossary, texts)
    assert use == GlossaryUse(terms=5, texts=4, unused=("yeti",))
    use.warn()
    assert "1 of its 5 terms in no text: 'yeti'." in caplog.text


def test_no_file(tmp_path: Path):
    with pytest.raises(BadInput, match="No file"):
        read_glossary(tmp_path / "g.tsv")


@pytest.mark.parametrize(
    ("terms", "text", "expected", "reason"),
    [
        ({"cell": "клетка"}, "A cell, cells, CELL.", [("cell", "клетка"), ("CELL", "Клетка")], "whole words, any case"),
        ({"US": "США"}, "US and us", [("US", "США")], "a term with capitals keeps its case"),
        ({"US": "США", "us": "нас"}, "US Us", [("US", "США"), ("Us", "Нас")], "and goes before one without"),
        ({"big cat": "a", "big": "b"}, "big cat, big", [("big cat", "a"), ("big", "b")], "the longest"),
        ({"deep learning": "a"}, "Deep\n learning", [("Deep\n learning", "A")], "any white space, a capital kept"),
        ({"C++": None, ".NET": None}, "C++ or .NET", [("C++", None), (".NET", None)], "signs at the edges"),
        ({"C++": None}, "C+++ C", [("C++", None)], "a sign ends a word by itself"),
        ({"神经网络": "сеть"}, "深度神经网络模型", [("神经网络", "сеть")], "scripts without spaces"),
        ({"мир": "world"}, "Мир миру", [("Мир", "World")], "Cyrillic"),
        ({"e.g.": None}, "see e.g. this", [("e.g.", None)], "signs inside"),
        ({}, "text", [], "an empty glossary"),
    ],
)  # fmt: skip
def test_what_is_found(terms: dict[str, str | None], text: str, expected: list[tuple[str, str | None]], reason: str):
    assert found(Glossary(terms), text) == expected


def test_the_signature_changes_with_any_term():
    signatures = {Glossary(t).signature for t in ({"a": "b"}, {"a": None}, {"a": "c"}, {"a": "b", "c": "d"}, {})}
    assert len(signatures) == 5
    assert Glossary({"a": "1", "b": "2"}).signature == Glossary({"b": "2", "a": "1"}).signature


def test_ten_thousand_terms_are_found_in_linear_time():
    glossary = Glossary({f"term{i} of note": None for i in range(10_000)})
    text = " ".join(f"term{i} of note and" for i in range(20_000))
    assert sum(1 for _ in glossary.find(text)) == 10_000
