"""Which documents are rewritten, how like the rewritten ones are, and what is read in a model's answer."""

from __future__ import annotations

import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rusbeir.datasets.material import load_material, sample_documents
from rusbeir.errors import BadInput
from rusbeir.jobs import find_prompt_language
from rusbeir.storage import data_folder
from rusbeir.synthesis import likeness, selection
from rusbeir.synthesis.rewriting.translator import PROMPTS, Rewriter, read_rewriting
from rusbeir.translation.checks.language import read_phrases
from rusbeir.types import Dataset, silent
from tests.support.rewriting_model import TEXTS, write_source

WORDS = "one two three four five six seven eight nine ten"


@pytest.fixture
def crowd():
    """Thirty documents, of which d3, d5 and d29 are judged, and d5 is too short."""
    docs = [{"_id": f"d{n}", "text": WORDS if n != 5 else "one two"} for n in range(30)]
    qrels = {"q1": {"d3": 1, "d5": 1}, "q2": {"d29": 2}}
    return Dataset.of(docs, {"q1": "one", "q2": "two"}, qrels, language="en")


@pytest.mark.parametrize(
    ("many", "drawn", "sample", "kept", "left_out"),
    [
        # bounds of the corpus and of what is drawn; documents kept, and those left out but for the short one
        (30, 10, None, 29, {"not_drawn": 0}),
        (29, 10, None, 10, {"not_drawn": 19}),
        (29, 1, None, 3, {"not_drawn": 26}),
        (30, 10, 4, 4, {"not_drawn": 25}),
    ],
)
def test_drawn_documents(many, drawn, sample, kept, left_out, crowd, monkeypatch):
    monkeypatch.setattr(selection, "MANY_DOCUMENTS", many)
    monkeypatch.setattr(selection, "DRAWN_DOCUMENTS", drawn)
    found = selection.select_documents(crowd, sample=sample, seed=3)
    ids = {doc.doc_id for doc in found.material.dataset.corpus}
    assert {"d3", "d29"} <= ids
    assert len(ids) == kept
    assert found.left_out == {"short": 1, "long": 0, **left_out}
    assert found.material.dataset.qrels == {"q1": {"d3": 1}, "q2": {"d29": 2}}
    assert ids == {
        doc.doc_id for doc in selection.select_documents(crowd, sample=sample, seed=3).material.dataset.corpus
    }
    if kept == 10:
        other = selection.select_documents(crowd, sample=sample, seed=4).material.dataset.corpus
        assert ids != {doc.doc_id for doc in other}


@pytest.mark.parametrize(
    ("n_words", "kept"), [(9, False), (10, True), (2_000, True), (2_001, False)], ids=lambda value: str(value)
)
def test_lengths(n_words, kept):
    dataset = Dataset.of([{"_id": "d", "text": "word " * n_words}], {"q": "word"}, {"q": {"d": 1}}, language="en")
    if kept:
        assert len(selection.select_documents(dataset).material.dataset.corpus) == 1
    else:
        with pytest.raises(BadInput, match="no query has a relevant document of 10 to 2,000 words, so there is"):
            selection.select_documents(dataset)


def test_a_sample_is_that_of_a_port(tmp_path, own_cache):
    texts = {name: text for name, text in TEXTS.items() if name not in ("d2", "d4")}
    source = write_source(tmp_path / "small", {**texts, "d2": TEXTS["d1"]})
    found = selection.select_documents(source, sample=4, seed=1).material.dataset
    expected = sample_documents(load_material(source, split="all").dataset, 4, 1)
    assert (found.corpus.doc_ids, found.qrels) == (expected.corpus.doc_ids, expected.qrels)


def test_likeness():
    """The terms are those of the default profile of English: stop words go, and endings."""
    pairs = [
        ("The river carries water to the sea", "Water is carried to the sea by rivers"),
        ("Wolves hunt at night", "By night a wolf sleeps soundly"),
    ]
    found = likeness.compare_texts(pairs, language="en", encoder=None, seed=0, progress=silent)
    # {river, carry, water, sea} twice; {wolf, hunt, night} and {night, wolf, sleep, sound}.
    assert found["jaccard"]["mean"] == pytest.approx((1 + 2 / 5) / 2)
    assert found["overlap"]["mean"] == pytest.approx((1 + 2 / 3) / 2)
    assert found["words"]["human"] == pytest.approx({"mean": 5.5, "p5": 4.15, "p50": 5.5, "p95": 6.85})
    assert found["words"]["ratio"]["mean"] == pytest.approx((8 / 7 + 6 / 4) / 2)
    assert (found["documents"], found["similarity"]) == (2, None)


def test_nothing_is_like_nothing():
    found = likeness.compare_texts([], language="xx", encoder=None, seed=0, progress=silent)
    assert (found["documents"], found["jaccard"], found["words"]["ratio"]) == (0, None, None)
    found = likeness.compare_texts([("?!", "a")], language="en", encoder=None, seed=0, progress=silent)
    assert (found["documents"], found["jaccard"]) == (1, None), "no terms to share"


def test_similarity_of_matched_and_random_pairs(monkeypatch):
    monkeypatch.setattr(likeness, "EMBEDDED_PAIRS", 20)
    pairs = [(f"river{n} water{n} sea{n}", f"river{n} water{n} lake{n}") for n in range(30)]
    system = likeness.open_encoder("dense(python:tests.support.toy_encoder.Toy,dim=256)", "en")
    found = likeness.compare_texts(pairs, language="en", encoder=system, seed=0, progress=silent)["similarity"]
    assert found["pairs"] == 20
    assert found["matched"]["mean"] == pytest.approx(2 / 3, abs=0.1), "two words of three are the same"
    assert found["random"]["mean"] == pytest.approx(0, abs=0.1)
    one = likeness.compare_texts(pairs[:1], language="en", encoder=system, seed=0, progress=silent)["similarity"]
    assert (one["random"], one["pairs"]) == (None, 1)


@given(st.text(), st.sampled_from(["Rewritten Text:", "**Rewritten text:**", "Переписанный текст：", "改写文本："]))
def test_what_follows_the_label_is_the_text(text, label):
    assert read_rewriting(f"Sure!\n{label} {text}") == text.strip()


@given(st.text())
def test_any_answer_is_read(answer):
    read_rewriting(answer)


def test_prompts():
    prompts = tomllib.loads((data_folder("translation") / "prompts" / "rewrite.toml").read_text("utf-8"))
    assert set(prompts) == set(read_phrases()), "where refusals are known, the prompt is in the same language"
    for code, table in prompts.items():
        assert f"{table['label']}" in table["prompt"]
        messages = Rewriter(llm="m").write_messages("A {text} of {braces}.", code, code)
        assert messages[0]["content"].count("A {text} of {braces}.") == 1
        assert "{language}" not in messages[0]["content"]
    assert find_prompt_language(PROMPTS, "zh-Hant") == "zh"
    (kazakh,) = Rewriter(llm="m").write_messages("Мәтін.", "kk", "kk")
    assert "in other words, in Kazakh" in kazakh["content"]


def test_signatures():
    """What changes the texts changes the signature, and what does not, does not."""
    base = Rewriter.make(llm="m").signature
    assert re.fullmatch(r"rewrite\|model:m\|prompt:[0-9a-f]{8}\|seed:0\|t:0\.2\*5", base)
    assert Rewriter.make(llm="m", concurrency=1, input_price=3.0).signature == base
    others = [Rewriter.make(llm="m", temperature=0.0), Rewriter.make(llm="m2"), Rewriter.make(llm="m", attempts=1)]
    assert len({base, *(other.signature for other in others)}) == 4
    assert [Rewriter.make(llm="m").find_temperature(n) for n in (0, 1)] == [0.2, 0.2]
    assert [Rewriter.make(llm="m", temperature=0.0).find_temperature(n) for n in (0, 1)] == [0.0, 0.3]
