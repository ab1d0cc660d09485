"""validate: every finding with its file and line, and all of them."""

from __future__ import annotations

import json
import tracemalloc

import orjson
import pytest

from rusbeir.datasets import load, read_registry, validate, write_beir
from rusbeir.errors import BadInput, UnknownName


def found(path, **options):
    """(level, file below the dataset's folder, line, message) of each finding."""
    prefix = f"{path}/"
    return [(f.level, f.file.removeprefix(prefix), f.line, f.message) for f in validate(path, language="ru", **options)]


@pytest.mark.parametrize(
    "name", [name for name, row in read_registry().items() if (row.sha256 or row.bundled) and row.format != "ntrex"]
)
def test_registered_datasets_are_sound(name: str, shared_data):
    assert validate(name) == []


def test_a_sound_dataset_has_no_findings(samples):
    assert found(samples.beir()) == []
    assert found(samples.packed(samples.beir(name="zip"))) == []
    assert found(samples.cocktail()) == []


CORPUS = '{"_id": "d1", "text": "a"}\n{"_id": "d2", "text": "b"}\n{"_id": "d3", "text": "c"}\n'
QUERIES = '{"_id": "q1", "text": "a"}\n{"_id": "q2", "text": "b"}\n'
C, Q, T = "corpus.jsonl", "queries.jsonl", "qrels/test.tsv"


@pytest.mark.parametrize(
    ("file", "content", "findings"),
    [
        (C, CORPUS + "{oops}\n", [("error", C, 4, "not JSON")]),
        (C, CORPUS + '{"_id": "d4", "te', [("error", C, 4, "the file ends in the middle of this line")]),
        (C, CORPUS + '{"_id": "d4", "text": "x", "k": NaN}\n', []),
        (C, CORPUS + '{"_id": "d4", "text": "\\ud800"}\n', [("error", C, 4, '"text" has an unpaired surrogate')]),
        (Q, QUERIES + '{"_id": "q3", "text": "x\ty", "Gemini": NaN}\n', []),
        (C, CORPUS + '{"text": "x"}\n', [("error", C, 4, 'the line has no "_id"')]),
        (C, CORPUS + '{"_id": "", "text": "x"}\n', [("error", C, 4, "\"_id\" is ''")]),
        (C, CORPUS + '{"_id": "d4"}\n', [("error", C, 4, "document 'd4' has no \"text\"")]),
        (C, CORPUS + '{"_id": "d4", "text": " \\n"}\n', [("warning", C, 4, "document 'd4' has no text")]),
        (C, CORPUS + '{"_id": "d 4", "text": "x"}\n', [("error", C, 4, "the document id 'd 4' has white space")]),
        (C, CORPUS.encode() + b'{"_id": "d4", "text": "\xff"}\n', [("error", C, 4, "the line is not UTF-8")]),
        (C, CORPUS + "\n" + '{"_id": "d2", "text": "z"}', [("error", C, 5, "the document id 'd2' is used already at")]),
        (
            C,
            "",
            [
                ("error", C, None, "the corpus is empty"),
                ("error", T, 2, "document 'd1', judged for query 'q1', is not in the corpus"),
                ("error", T, 3, "document 'd2', judged for query 'q1', is not in the corpus"),
                ("error", T, 4, "document 'd3', judged for query 'q2', is not in the corpus"),
            ],
        ),
        (Q, QUERIES + '{"_id": "q1", "text": "x"}\n', [("error", Q, 3, "the query id 'q1' is repeated")]),
        (Q, QUERIES + '{"_id": "q3", "text": ""}\n', [("error", Q, 3, "query 'q3' has no text")]),
        (
            C,
            CORPUS + '{"_id": "d\\u0000", "text": "x"}\n',
            [("error", C, 4, "\"_id\" is 'd\\x00'; it must be")],
        ),
        (T, "q1\td1\t1\nq1\td\x002\t1\n", [("error", T, 2, "the id 'd\\x002' has a control character")]),
        (Q, QUERIES + '{"_id": "q 3", "text": "x"}\n', [("error", Q, 3, "the query id 'q 3' has white space")]),
        (
            Q,
            QUERIES + f'{{"_id": "q3", "text": "{"x" * 1_000_001}"}}\n',
            [("error", Q, 3, "query 'q3' has 1,000,001 characters; at most 1,000,000 are searched for")],
        ),
        (Q, QUERIES[:27], [("error", T, 4, "query 'q2' is judged but has no text")]),
        (
            Q,
            '{"_id": "q3", "text": "x"}\n',
            [
                ("error", T, 2, "query 'q1' is judged but has no text"),
                ("error", T, 4, "query 'q2' is judged but has no text"),
                ("error", T, None, "no query is judged in the split 'test'"),
            ],
        ),
        (T, "q1\td9\t1\n", [("error", T, 1, "document 'd9', judged for query 'q1', is not in the corpus")]),
        (T, "q1\td1\t1\nq9\td1\t1\n", [("error", T, 2, "query 'q9' is judged but has no text")]),
        (T, "q1\td1\t1\nq1\td2\thigh\n", [("error", T, 2, "the grade 'high' is not an integer")]),
        (T, "q1\td1\t1\nq1\td2\t1001\n", [("error", T, 2, "the grade '1001' is not an integer from -1,000")]),
        (T, "q1\td1\t1\nq1\td2\n", [("error", T, 2, "2 columns, but the file's first line has 3")]),
        (T, "q1\td1\nq1\td2\t1\n", [("error", T, 1, "2 columns; qrels have four")]),
        (T, "q1\td1\t1\nq1\td1\t1\n", [("error", T, 2, "query 'q1' and document 'd1' are paired")]),
        (T, "q1\td1\t1\nq1\td2\t-1\n", [("warning", T, 2, "the grade -1 counts as not relevant")]),
        (T, "q1\td1\t0\n", [("warning", T, None, "query 'q1' has no relevant document")]),
    ],
)
def test_findings(file: str, content: str | bytes, findings: list, samples):
    path = samples.beir({C: CORPUS, Q: QUERIES, file: content})
    got = found(path)
    assert [finding[:3] for finding in got] == [finding[:3] for finding in findings]
    for finding, (*_, start) in zip(got, findings, strict=True):
        assert finding[3].startswith(start)
        assert "\n" not in finding[3]


def test_it_goes_on_after_each_finding_and_over_files(samples):
    path = samples.beir({C: "{\n" + CORPUS + "[]\n", Q: QUERIES + "?\n", T: "q1\td9\t1\nq2\td3\tx\n"})
    assert [(file, line) for _, file, line, _ in found(path)] == [(C, 1), (C, 5), (Q, 3), (T, 1), (T, 2)]


def test_a_file_that_cannot_be_unpacked_does_not_hide_the_others(samples):
    path = samples.beir({C: None, "corpus.jsonl.gz": CORPUS * 1000, T: "q1\td1\tx\nq1\td2\t1\n"})
    (path / "corpus.jsonl.gz").write_bytes((path / "corpus.jsonl.gz").read_bytes()[:-9])
    findings = found(path)
    assert findings[0][:3] == ("error", "corpus.jsonl.gz", None)
    assert "cannot be unpacked" in findings[0][3]
    # documents that could not be read are not called missing
    assert [finding[1:3] for finding in findings[1:]] == [(T, 1)]


def test_many_findings_of_a_kind_are_counted(samples):
    path = samples.beir({C: CORPUS + "{}\n" * 27 + CORPUS * 10})
    findings = found(path)
    ids = [finding for finding in findings if 'no "_id"' in finding[3]]
    repeats = [finding for finding in findings if "is used already" in finding[3]]
    assert (len(ids), len(repeats)) == (20, 20)
    assert [finding[3] for finding in findings[40:]] == [
        "and 7 more like this (id)",
        "and 10 more like this (repeated id)",
    ]
    assert [finding[2] for finding in repeats] == list(range(31, 51))


def test_lines_are_those_of_the_source_in_a_zip_and_ids_those_of_the_view(samples):
    folder = samples.cocktail({"corpus/bot-1.0.jsonl": CORPUS + "{}\n" + '{"_id": "d2", "text": "x"}\n'})
    path = samples.packed(folder)
    lines = [(finding.file, finding.line) for finding in validate(path, language="ru")]
    assert lines == [(f"{path}:corpus/bot-1.0.jsonl", 4), (f"{path}:corpus/bot-1.0.jsonl", 5)]


def test_squad_findings_name_article_and_paragraph(samples):
    path = samples.squad(("Раз.", {"q1": 0, "q2": 99}), (" ", {"q1": 0}), ("Два.", {"q3": 1}))
    assert [(f.level, f.line, f.message) for f in validate(path, language="ru")] == [
        ("warning", None, "article 0, paragraph 1: document '0-1' has no text"),
        ("error", None, "article 0, paragraph 0, question 1: its answer_start 99 is not in the paragraph"),
        ("error", None, "article 0, paragraph 1, question 0: the query id 'q1' is repeated"),
    ]


def test_what_a_card_promises_is_compared(samples, tmp_path):
    write_beir(load(samples.beir(), language="ru"), tmp_path / "written")
    assert validate(tmp_path / "written") == []
    card = json.loads((tmp_path / "written" / "card.json").read_text())
    (tmp_path / "written" / "card.json").write_text(json.dumps({**card, "n_docs": 4}))
    assert [str(f) for f in validate(tmp_path / "written")] == ["error: sample: n_docs is 3, expected 4"]
    (tmp_path / "written" / "card.json").write_text(json.dumps({**card, "fingerprint": "0"}))
    (finding,) = validate(tmp_path / "written")
    assert finding.message == f"the fingerprint is {card['fingerprint']}, but the card says 0"


def test_what_cannot_be_opened_is_an_error_as_in_load(samples):
    with pytest.raises(UnknownName):
        validate("xqad/ru")
    with pytest.raises(BadInput, match="names its language"):
        validate(samples.beir())


def test_a_dataset_without_judgements_is_said_to_have_none(samples):
    (finding,) = validate(samples.beir({T: None}), language="ru")
    assert "no query is judged in the split 'test'" in str(finding)


def test_memory_does_not_hold_the_corpus(samples):
    """100,000 documents of 1,500 bytes: hashes and the collected lines of findings, not texts, are kept."""
    n = 100_000
    text = "слово " * 120
    lines = b"".join(orjson.dumps({"_id": str(i), "text": text}) + b"\n" for i in range(n))
    path = samples.beir({C: lines, T: "q1\t1\t1\n"})
    del lines
    tracemalloc.start()
    try:
        assert validate(path, language="ru") == []
        assert tracemalloc.get_traced_memory()[1] < 64 * n
    finally:
        tracemalloc.stop()
