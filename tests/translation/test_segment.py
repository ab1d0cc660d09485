"""Texts cut into units and put together again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rusbeir.errors import BadInput, UnknownName
from rusbeir.translation.segments.glossary import Glossary
from rusbeir.translation.segments.protect import mask
from rusbeir.translation.segments.segment import LEVELS, Cutter, Piece, join
from rusbeir.translation.segments.spans import STYLES, find_spans
from rusbeir.translation.translator import Capacity
from tests.support.texts import GLOSSARY, texts

FREE = Capacity()


def units(
    text: str, *, language: str, capacity: Capacity, level: str = "segment", glossary: Glossary | None = None
) -> list[Piece]:
    (pieces,) = Cutter(language, glossary, capacity, level)([text])
    return pieces


def sent(pieces: list[Piece]) -> list[str]:
    return [piece.text for piece in pieces if piece.sent]


@pytest.mark.parametrize(
    ("text", "language", "expected", "reason"),
    [
        ("One. Two.", "en", ["One.", "Two."], "sentences"),
        ("Dr. Smith came, e.g. here. He left.", "en", ["Dr. Smith came, e.g. here.", "He left."], "abbreviations"),
        ("Живёт в г. Москве. Работает.", "ru", ["Живёт в г. Москве.", "Работает."], "razdel"),
        ("今天很好。明天也好。", "zh", ["今天很好。", "明天也好。"], "no spaces between sentences"),
        ("a\nb\r\nc\rd\u2028e\u0085f\x0bg\x0ch\u2029i", "en", list("abcdefghi"), "line breaks of every kind"),
        ("- one\n* two\n  • three\n1. four\n12) five\na) six\n(iv) seven", "en",
         ["one", "two", "three", "four", "five", "six", "seven"], "list markers"),
        ("> quoted\n## Head\n- - nested", "en", ["quoted", "Head", "- nested"], "quote and heading signs; one marker"),
        ("A. Smith said so", "en", ["A. Smith said so"], "an initial is no list marker"),
        ("2020. It began.", "en", ["It began."], "a year is no marker, but has no letter either"),
        ("-5 degrees", "en", ["-5 degrees"], "a sign is no marker"),
        ("  \t lead and trail \u00a0\n", "en", ["lead and trail"], "white space around lines"),
        ("-----\n12.5\n***\n\n=====", "en", [], "rules and numbers"),
        ("", "en", [], "nothing"),
        ("See http://a.b/c.\nhttp://a.b/c", "en", ["See http://a.b/c."], "a line that is protected as a whole"),
        ("Before\n```\nx = 1\n```\nafter", "en", ["Before", "after"], "a span that runs over lines"),
        ("T. e. `a. B` is it.", "en", ["T. e. `a. B` is it."], "no cut within a span"),
    ],
)  # fmt: skip
def test_what_is_sent(text: str, language: str, expected: list[str], reason: str):
    pieces = units(text, language=language, capacity=FREE, level="sentence")
    assert sent(pieces) == expected
    assert "".join(piece.text for piece in pieces) == text


@pytest.mark.parametrize(
    ("text", "capacity", "expected", "reason"),
    [
        ("One. Two. Three.", Capacity(max_chars=9), ["One. Two.", "Three."], "packed to the limit"),
        ("One.  Two.\nThree.", Capacity(max_chars=99), ["One.  Two.", "Three."], "never over a line break"),
        ("Да. Нет.", Capacity(max_bytes=10), ["Да.", "Нет."], "bytes, not characters"),
        ("aaa bbb ccc", Capacity(max_chars=7), ["aaa bbb", "ccc"], "a long sentence at white space"),
        ("aaa, bbb ccc ddd", Capacity(max_chars=9), ["aaa, bbb", "ccc ddd"], "as much as fits"),
        ("aaaa bbb, ccc ddd", Capacity(max_chars=14), ["aaaa bbb,", "ccc ddd"], "behind a comma if near"),
        ("abcdefgh", Capacity(max_chars=3), ["abc", "def", "gh"], "a long word anywhere"),
        ("ае\u0301ае\u0301а", Capacity(max_chars=2), ["а", "е\u0301", "а", "е\u0301", "а"], "a letter keeps its marks"),
        ("日本、中国、韩国", Capacity(max_chars=4), ["日本、", "中国、", "韩国"], "Chinese behind its commas"),
        ("go 5 mg now ok", Capacity(max_chars=7), ["go 5 mg", "now ok"], "a span is one word"),
        ("see http://abcdefgh.org/x please", Capacity(max_chars=10), ["see", "please"], "a long span is kept"),
        ("see http://abcdefgh.org/x please", Capacity(max_chars=19, mask="bracket"),
         ["see http://abcdefgh.org/x please"], "masked it is short"),
        ("x " * 3, Capacity(max_chars=1), ["x", "x", "x"], "the smallest capacity"),
    ],
)  # fmt: skip
def test_packing(text: str, capacity: Capacity, expected: list[str], reason: str):
    pieces = units(text, language="en", capacity=capacity)
    assert sent(pieces) == expected
    assert "".join(piece.text for piece in pieces) == text


def test_levels():
    text = " - One. Two.\nThree. "
    assert {level: sent(units(text, language="en", capacity=FREE, level=level)) for level in LEVELS} == {
        "field": [text],
        "paragraph": ["One. Two.", "Three."],
        "segment": ["One. Two.", "Three."],
        "sentence": ["One.", "Two.", "Three."],
    }
    assert sent(units(text, language="en", capacity=Capacity(max_chars=6), level="field")) == ["One.", "Two.", "Three."]


@pytest.mark.parametrize("capacity", [Capacity(max_chars=0), Capacity(max_bytes=3), Capacity(max_chars=-1)])
def test_a_capacity_that_no_text_fits(capacity: Capacity):
    with pytest.raises(BadInput, match="at least 1 character and 4 bytes"):
        units("a", language="en", capacity=capacity)


def test_names_are_checked():
    with pytest.raises(UnknownName, match="No level 'word'"):
        units("a", language="en", capacity=FREE, level="word")
    with pytest.raises(UnknownName, match="No mask style 'tags'"):
        units("a", language="en", capacity=Capacity(mask="tags"))


def test_joining_counts_the_answers():
    pieces = [Piece("a", True), Piece(" ", False), Piece("b", True)]
    assert join(pieces, ["x", "y"]) == "x y"
    with pytest.raises(BadInput, match="fewer answers"):
        join(pieces, ["x"])
    with pytest.raises(BadInput, match="more answers"):
        join(pieces, ["x", "y", "z"])


@settings(max_examples=300)
@given(
    texts(),
    st.sampled_from(["en", "ru", "zh", "th", "kk"]),
    st.sampled_from(LEVELS),
    st.sampled_from(sorted(STYLES)),
    st.one_of(st.none(), st.integers(1, 60)),
    st.one_of(st.none(), st.integers(4, 90)),
)
def test_any_text_comes_back(
    text: str, language: str, level: str, style: str, max_chars: int | None, max_bytes: int | None
):
    capacity = Capacity(max_chars=max_chars, max_bytes=max_bytes, mask=style)
    spans = find_spans(text, GLOSSARY)
    pieces = units(text, language=language, capacity=capacity, level=level, glossary=GLOSSARY)
    assert "".join(piece.text for piece in pieces) == text
    assert join(pieces, sent(pieces)) == text
    place = 0
    for piece in pieces:
        if piece.sent:
            assert any(char.isalpha() for char in piece.text)
            assert level == "field" or piece.text == piece.text.strip()
            for span in spans:
                assert not span.start < place < span.end
                assert not span.start < place + len(piece.text) < span.end
            # One character may be over a limit that its escape or its marks do not fit.
            if max_chars is not None and style in {"none", "split"}:
                assert len(piece.text) <= max_chars
            if max_bytes is not None and style in {"none", "split"}:
                assert len(piece.text.encode()) <= max_bytes
        place += len(piece.text)
    if max_chars is None and max_bytes is None:
        # Nothing that has a letter is left behind, but for what is protected.
        kept = set()
        for span in spans:
            kept |= set(range(span.start, span.end))
        place = 0
        for piece in pieces:
            markers = piece.text.strip(" \t")
            if not piece.sent and len(markers) > 6:
                letters = [i for i, char in enumerate(piece.text, place) if char.isalpha() and i not in kept]
                assert len(letters) <= piece.text.count(")") * 4
            place += len(piece.text)


@settings(max_examples=200)
@given(texts(), st.sampled_from(["tag", "xml", "brace", "bracket", "word"]), st.integers(60, 120))
def test_masked_units_fit(text: str, style: str, limit: int):
    pieces = units(text, language="en", capacity=Capacity(max_chars=limit, mask=style), glossary=GLOSSARY)
    for unit in sent(pieces):
        for part in mask(unit, style, find_spans(unit, GLOSSARY)).parts:
            assert len(part) <= limit


@pytest.mark.parametrize("language", ["en", "ru"])
@pytest.mark.parametrize(
    "unit", ["A. ", '"?" ', "日。", "т. е. ", "(a) ", "x\u0301", "Да! ", "\u00a0A.", "a\n", "1.1."]
)
def test_splitters_see_a_line_through_a_window(unit: str, language: str):
    """Splitting the line as a whole, in quadratic time, would not end."""
    text = (unit * 100_000)[:100_000]
    pieces = units(text, language=language, capacity=Capacity(max_chars=1000, mask="bracket"))
    assert "".join(piece.text for piece in pieces) == text
    assert max(map(len, sent(pieces)), default=0) <= 1000


@pytest.mark.parametrize("unit", ["a", "word ", "- ", " ", "A sentence, with a comma. "])
def test_a_line_of_a_megabyte(unit: str):
    text = (unit * 1_000_000)[:1_000_000]
    pieces = units(text, language="en", capacity=Capacity(max_chars=1000, mask="bracket"))
    assert "".join(piece.text for piece in pieces) == text
    assert all(len(unit) > 300 for unit in sent(pieces)[:-1]), "packed"
