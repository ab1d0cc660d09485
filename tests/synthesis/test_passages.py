"""Passages of documents: located by exact search, thirds, chunks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rusbeir.datasets.formats.records import count_tokens
from rusbeir.synthesis.queries.passages import (
    CHUNK_TOKENS,
    OVERLAP_TOKENS,
    ChunkedCorpus,
    cut_chunks,
    find_third,
    locate,
    take_third,
)
from rusbeir.types import Doc

SPANS = [
    # text, passage, span, why
    ("Water boils.", "boils", (6, 11), "once"),
    ("Water boils.", "Boils", None, "another case"),
    ("Water  boils.", "Water boils", None, "another space"),
    ("no no", "no", None, "twice"),
    ("ananas", "ana", None, "overlapping itself"),
    ("Water", "", None, "nothing"),
    ("Water", "Water", (0, 5), "all of it"),
    ("Ёж — ёж", "ёж", (5, 7), "Cyrillic"),
]


@pytest.mark.parametrize(("text", "passage", "span", "why"), SPANS, ids=[row[3] for row in SPANS])
def test_passages_are_located(text, passage, span, why):
    assert locate(text, passage) == span


@given(st.text(alphabet="ab \n", max_size=30), st.data())
def test_a_span_is_the_only_place_of_its_passage(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    passage = text[start:end]
    places = [place for place in range(len(text)) if passage and text.startswith(passage, place)]
    assert locate(text, passage) == ((places[0], places[0] + len(passage)) if len(places) == 1 else None)


@given(st.integers(1, 200), st.data())
def test_the_third_is_that_of_the_middle(length, data):
    start = data.draw(st.integers(0, length))
    end = data.draw(st.integers(start, length))
    third = ("first", "middle", "last").index(find_third(start, end, length))
    assert third == 2 or (start + end) / 2 < length * (third + 1) / 3
    assert third == 0 or (start + end) / 2 >= length * third / 3 - 1e-9


@given(st.text(alphabet="abc \n", max_size=200))
def test_thirds_are_the_text(text):
    parts = [take_third(text, third) for third in ("first", "middle", "last")]
    assert " ".join(" ".join(parts).split()).replace(" ", "") == "".join(text.split())


words = st.lists(st.sampled_from(["water", "boils", "at", "sea", "a", "kettle"]), min_size=1, max_size=90)


@settings(max_examples=50)
@given(st.lists(words, min_size=1, max_size=12))
def test_chunks_hold_every_sentence(sentences):
    lines = [f"{' '.join(['Sentence', str(n), *one])}." for n, one in enumerate(sentences)]
    text = "\n".join(lines)
    chunks = cut_chunks(text, "en")
    assert all(count_tokens(chunk) <= CHUNK_TOKENS and chunk in text for chunk in chunks)
    assert all(any(line in chunk for chunk in chunks) for line in lines)
    places = [(text.index(chunk), text.index(chunk) + len(chunk)) for chunk in chunks]
    assert places == sorted(places)
    for (_, end), (start, later) in pairwise(places):
        assert later > end, "each chunk brings something new"
        assert count_tokens(text[start:end]) <= OVERLAP_TOKENS


@given(st.text(max_size=40))
def test_a_short_text_is_one_chunk(text):
    assume(text.strip())
    chunks = cut_chunks(text, "en")
    assert len(chunks) <= 1
    assert not chunks or chunks[0] in text


def test_a_sentence_longer_than_a_chunk_is_cut_between_words():
    text = " ".join(f"w{n}" for n in range(900))
    chunks = cut_chunks(text, "en")
    assert all(count_tokens(chunk) <= CHUNK_TOKENS for chunk in chunks)
    assert [word for chunk in chunks for word in chunk.split()] == text.split()


def test_chunks_as_documents():
    text = " ".join(f"Sentence number {n} is here." for n in range(100))
    corpus = ChunkedCorpus({"d": Doc("d", text, "T")}, "en")
    with pytest.raises(KeyError):
        corpus["d#99"]
    with pytest.raises(KeyError):
        corpus["d"]
    assert corpus["d#1"] == Doc("d#1", cut_chunks(text, "en")[1], "T")
