"""SQuAD as paragraphs, sentences and windows: which documents there are, and which are relevant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rusbeir.datasets import load
from rusbeir.errors import BadInput, UnknownName
from rusbeir.sentences import sentence_spans

FIVE = "Раз раз. Два два. Три три. Пять. Шесть."


@pytest.mark.parametrize(
    ("view", "docs", "relevant", "reason"),
    [
        ("paragraphs", {"0-0": FIVE}, ["0-0"], "a paragraph is a document"),
        (
            "sentences",
            {"0-0-0": "Раз раз.", "0-0-1": "Два два.", "0-0-2": "Три три.", "0-0-3": "Пять.", "0-0-4": "Шесть."},
            ["0-0-2"],
            "the one with the answer's start",
        ),
        (
            "windows-3",
            {
                "0-0-0": "Раз раз. Два два. Три три.",
                "0-0-1": "Два два. Три три. Пять.",
                "0-0-2": "Три три. Пять. Шесть.",
            },
            ["0-0-0", "0-0-1", "0-0-2"],
            "every window that has the sentence",
        ),
        ("windows-4", {"0-0-0": FIVE[:-7], "0-0-1": FIVE[9:]}, ["0-0-0", "0-0-1"], "named by the first sentence"),
        ("windows-9", {"0-0-0": FIVE}, ["0-0-0"], "too few sentences make one window"),
    ],
)
def test_views(view: str, docs: dict[str, str], relevant: list[str], reason: str, samples):
    dataset = load(f"{samples.squad((FIVE, {'q': FIVE.index('Три')}))}/{view}", language="ru")
    assert {doc.doc_id: doc.text for doc in dataset.corpus} == docs
    assert dataset.qrels == {"q": dict.fromkeys(relevant, 1)}
    assert dataset.queries == {"q": "q?"}
    assert not any(doc.title for doc in dataset.corpus)


@pytest.mark.parametrize(
    ("start", "relevant", "reason"),
    [
        (0, "0-0-0", "the first character"),
        (7, "0-0-0", "the last character of a sentence is in it"),
        (8, "0-0-1", "the space between two belongs to the one after it"),
        (9, "0-0-1", "the first character of the second"),
        (len(FIVE) - 1, "0-0-4", "the last character"),
    ],
)
def test_the_answer_lies_in_the_sentence_where_it_starts(start: int, relevant: str, reason: str, samples):
    dataset = load(samples.squad((FIVE, {"q": start})) / "sentences", language="ru")
    assert dataset.qrels == {"q": {relevant: 1}}


TEXTS = {"th": "ภาษาไทยเขียนติดกัน " * 72, "lo": "ພາສາລາວຂຽນຕິດກັນດີ " * 72, "km": "ភាសាខ្មែរ។" * 9, "my": "မြန်မာစာ။" * 9}


@pytest.mark.parametrize("code", TEXTS)
def test_scripts_without_full_stops_have_views_too(code: str, samples):
    """Thai had 294 sentences of 240 paragraphs: a paragraph was a sentence."""
    text = TEXTS[code]
    sentences = load(samples.squad((text, {"q": len(text) // 2})) / "sentences", language=code)
    windows = load(samples.squad((text, {"q": len(text) // 2})) / "windows-3", language=code)
    assert (len(sentences.corpus), len(windows.corpus)) == (9, 7)
    assert sentences.qrels == {"q": {"0-0-4": 1}}
    assert all(len(doc.text) <= 160 for doc in sentences.corpus)


def test_an_answer_in_the_white_space_at_the_end(samples):
    dataset = load(samples.squad(("Раз. Два.  ", {"q": 10})) / "sentences", language="ru")
    assert dataset.qrels == {"q": {"0-0-1": 1}}


def test_without_a_view_a_document_is_a_paragraph_with_its_bytes(samples):
    text = "\ufeff Раз.\u00a0\n\nДва.  "
    assert load(samples.squad((text, {"q": 2})), language="ru").corpus["0-0"].text == text


@pytest.mark.parametrize("view", ["sentence", "windows", "windows-0", "windows-x", "human"])
def test_an_unknown_view_is_told(view: str, samples):
    with pytest.raises(UnknownName, match=f"No view '{view}'"):
        load(samples.squad(("Раз.", {"q": 0})) / view, language="ru")


GOOD = {"id": "q", "question": "q?", "answers": [{"text": "x", "answer_start": 0}]}


def squad(context: object = "Раз.", *questions: object) -> dict[str, object]:
    return {"data": [{"paragraphs": [{"context": context, "qas": list(questions)}]}]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "has no list .data."),
        ({"data": {}}, "has no list .data."),
        ({"data": [[]]}, "article 0: it has no list .paragraphs."),
        ({"data": [{"paragraphs": [3]}]}, "article 0, paragraph 0: it has no string .context."),
        ({"data": [{"paragraphs": [{"context": "x"}]}]}, "article 0, paragraph 0: it has no list .qas."),
        (squad(None, GOOD), "article 0, paragraph 0: it has no string .context."),
        (squad("Раз.", GOOD, 3), "paragraph 0, question 1: it is not an object"),
        (squad("Раз.", {**GOOD, "id": None}), "question 0: it has no string .id."),
        (squad("Раз.", {**GOOD, "id": " "}), "question 0: it has no string .id."),
        (squad("Раз.", {**GOOD, "question": 3}), "question 0: it has no string .question."),
        (squad("Раз.", {**GOOD, "answers": []}), "question 0: it has no list .answers. with an answer"),
        (squad("Раз.", {**GOOD, "answers": [{"answer_start": 4}]}), "answer_start 4 is not in the paragraph"),
        (squad("Раз.", {**GOOD, "answers": [{"answer_start": -1}]}), "answer_start -1 is not in"),
        (squad("Раз.", {**GOOD, "answers": [{}]}), "answer_start None is not in"),
        (squad("Раз.", GOOD, GOOD), "query 'q' and document '0-0' are paired a second time"),
        (squad("Раз."), "none of its queries is judged"),
        ({"data": []}, "the corpus is empty"),
    ],
)
def test_a_file_in_another_shape_is_told(content: object, message: str, tmp_path: Path):
    path = tmp_path / "squad.json"
    path.write_text(json.dumps(content))
    with pytest.raises(BadInput, match=message) as caught:
        load(path, language="ru")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_json_is_told_with_its_line(tmp_path: Path):
    (tmp_path / "squad.json").write_text('{"data":\n [}')
    with pytest.raises(BadInput, match=r"squad\.json:2: not JSON"):
        load(tmp_path / "squad.json", language="ru")


@pytest.mark.parametrize(
    ("text", "language", "sentences", "reason"),
    [
        ("", "ru", [], "nothing"),
        (" \n\t ", "ru", [], "only white space"),
        ("Живёт в г. Москве. Работает.", "ru", ["Живёт в г. Москве.", "Работает."], "an abbreviation"),
        ("Первое\nвторое", "ru", ["Первое", "второе"], "a line end is a sentence end"),
        ("Dr. Smith left. He ran.", "en", ["Dr. Smith left.", "He ran."], "an abbreviation"),
        ("  One.  Two.  ", "en", ["One.", "Two."], "without the spaces around"),
        # sentencex 1.0.32 ends the process's thread with a Rust panic on a capital, a wide space and a full stop
        ("Plan A\u00a0. Plan B\u202f. C\u3000.", "en", None, "no panic"),
        ("Anything at all.", "xx", ["Anything at all."], "a language without rules"),
        ("Живёт в г. Москве. Работает.", "ru-RU", ["Живёт в г. Москве.", "Работает."], "a region changes no splitter"),
        # Signs other than the full stop
        ("यह बड़ा है। कहाँ? हाँ॥", "hi", ["यह बड़ा है।", "कहाँ?", "हाँ॥"], "danda and double danda"),
        (
            "它很大。真的！你去过吗？是",
            "zh",
            ["它很大。", "真的！", "你去过吗？", "是"],
            "ideographic signs, no spaces",
        ),
        ("هي كبيرة. هل زرتها؟ نعم", "ar", ["هي كبيرة.", "هل زرتها؟", "نعم"], "Arabic question mark"),
        ("وہ بڑا ہے۔ کیا؟ ہاں۔", "ur", ["وہ بڑا ہے۔", "کیا؟", "ہاں۔"], "Urdu full stop"),
        ("Մեծ է։ Այո՞։ Ոչ", "hy", ["Մեծ է։", "Այո՞։", "Ոչ"], "Armenian full stop"),
        ("Έχεις πάει; Ναι! Είναι μεγάλη· πολύ.", "el", ["Έχεις πάει;", "Ναι!", "Είναι μεγάλη· πολύ."], "Greek ;"),
        ("ትልቅ ናት። ሄደሃል፧ አዎ።", "am", ["ትልቅ ናት።", "ሄደሃል፧", "አዎ።"], "Ethiopic signs"),
        # sentencex knows no stop of Khmer, cuts Burmese after its genitive, and Thai and Lao inside abbreviations
        ("ភ្នំពេញធំ។ អ្វីៗ ។ល។ តូច", "km", ["ភ្នំពេញធំ។", "អ្វីៗ ។ល។", "តូច"], "Khmer full stop, and so on"),
        ("မြန်မာ၏ မြို့ဖြစ်သည်။ လား? မဟုတ်", "my", ["မြန်မာ၏ မြို့ဖြစ်သည်။", "လား?", "မဟုတ်"], "Burmese"),
        ("พื้นที่ 1,568 ตร.กม. อยู่ พ.ศ. 2540", "th", ["พื้นที่ 1,568 ตร.กม. อยู่ พ.ศ. 2540"], "Thai abbreviations"),
        ('เขาถาม "ไปไหน?" แล้วเดิน', "th", ['เขาถาม "ไปไหน?"', "แล้วเดิน"], "a question mark before a quotation mark"),
        ("ສ.ປ.ປ. ລາວ. ນະຄອນ", "lo", ["ສ.ປ.ປ. ລາວ. ນະຄອນ"], "short phrases are joined"),
        (f"{'ก' * 90} 2 {'ข' * 60} {'ค' * 90}", "th", [f"{'ก' * 90} 2 {'ข' * 60}", "ค" * 90], "joined up to 160"),
        (f"เด็ก{'ก' * 156} ๆ ชอบ", "th", [f"เด็ก{'ก' * 156} ๆ ชอบ"], "no phrase ends at a repetition mark"),
        ("ก" * 400, "th", ["ก" * 400], "a phrase without spaces stays whole"),
    ],
)
def test_sentences(text: str, language: str, sentences: list[str] | None, reason: str):
    spans = sentence_spans(text, language)
    found = [text[start:end] for start, end in spans]
    assert found == sentences or sentences is None
    assert all(sentence == sentence.strip() and sentence for sentence in found)
    assert "".join("".join(found).split()) == "".join(text.split())


LISTED = {
    "context": "One. Two three.",
    "sentences": ["One.", "Two  three."],
    "sentence_breaks": [[0, 4], [5, 15]],
    "qas": [{"id": "q", "question": "q?", "answers": [{"answer_start": 9, "text": "three"}]}],
}


def write_listed(path: Path, **changes: object) -> Path:
    path.write_text(json.dumps({"data": [{"paragraphs": [{**LISTED, **changes}]}]}), encoding="utf-8")
    return path


def test_candidates_are_the_sentences_that_the_file_lists(tmp_path: Path):
    """As in LAReQA's XQuAD-R, where two sentences in Turkish differ from what the paragraph has in their place."""
    dataset = load(write_listed(tmp_path / "listed.json") / "candidates", language="en")
    assert {doc.doc_id: doc.text for doc in dataset.corpus} == {"0-0-0": "One.", "0-0-1": "Two  three."}
    assert dataset.qrels == {"q": {"0-0-1": 1}}


@pytest.mark.parametrize(
    "changes", [{"sentences": None}, {"sentences": ["One."]}, {"sentence_breaks": [[0, 4], [5]]}, {"sentences": []}]
)
def test_a_paragraph_without_candidates_is_refused(changes: dict[str, object], tmp_path: Path):
    with pytest.raises(BadInput, match=r'article 0, paragraph 0: it has no lists "sentences" and "sentence_breaks"'):
        load(write_listed(tmp_path / "listed.json", **changes) / "candidates", language="en")
