"""Position bias: where spans come from, the curve over positions, and its documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rusbeir
from rusbeir.cli.main import app
from rusbeir.datasets.validation import validate
from rusbeir.diagnostics import diagnose_position
from rusbeir.diagnostics.documents import read_diagnoses
from rusbeir.diagnostics.position import BUCKETS
from rusbeir.diagnostics.spans import load_spans
from rusbeir.errors import BadInput
from rusbeir.site.pages import write_site
from rusbeir.types import silent
from tests.support.hub_folders import put

REPOSITORY = Path("infgrad") / "PosIR-Benchmark-v1"
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight")


def posir_folder(folder: Path, language: str, spans: list[tuple[list[int], int, int]]) -> Path:
    """A dataset in PosIR's layout: a document and a query for each span [start, end], its length and its tokens."""
    root = folder / language / "aerospace"
    put(root / "corpus.parquet", [{"_id": f"d{n}", "text": f"{NUMBERS[n]} rockets"} for n in range(len(spans))])
    queries = [
        {
            "_id": f"q{n}", "text": NUMBERS[n],
            "pos_char_span": span, "pos_char_length": chars, "pos_token_length": tokens,
        }
        for n, (span, chars, tokens) in enumerate(spans)
    ]  # fmt: skip
    put(root / "queries.parquet", queries)
    qrels = [{"query-id": f"q{n}", "corpus-id": f"d{n}", "score": 1} for n in range(len(spans))]
    put(root / "qrels" / "test.parquet", qrels)
    return root


@pytest.fixture
def in_memory() -> rusbeir.Dataset:
    texts = {f"d{n}": f"{word} rockets fly" for n, word in enumerate(NUMBERS)}
    docs = [{"_id": doc_id, "text": text.ljust(100, ".")} for doc_id, text in texts.items()]
    queries = {f"q{n}": word for n, word in enumerate(NUMBERS)}
    return rusbeir.Dataset.of(docs, queries, {f"q{n}": {f"d{n}": 1} for n in range(len(NUMBERS))}, language="en")


def test_xquad_says_where_its_paragraphs_answer(shared_data):
    dataset = rusbeir.load("xquad/ru")
    spans = load_spans("xquad/ru", dataset, None, language=None, split=None, progress=silent)
    assert len(spans) == 1190
    answers = [
        (question["id"], question["answers"][0]["text"])
        for article in json.loads((shared_data / "xquad" / "xquad.ru.json").read_bytes())["data"]
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]
    for query_id, answer in answers:
        span = spans[query_id]
        text = dataset.corpus[span.doc_id].text
        assert text[int(span.start) : int(span.end)] == answer
        assert span.chars == len(text)
        assert 0 <= span.tokens - len(text.split()) < 10, "words between white space, and a few Chinese characters"
        assert span.doc_id in dataset.qrels[query_id]


def test_posir_is_read_by_name_with_spans_and_lengths_of_its_own(tmp_path, monkeypatch):
    # The bins of pandas.cut(linspace(0, 1, 21), include_lowest=True): right ends belong to the bin on their left.
    spans = [
        ([0, 0], 1000, 512), ([0, 100], 1000, 513), ([50, 52], 1000, 1024), ([0, 1000], 1000, 1025),
        ([900, 1000], 1000, 1536), ([1000, 1000], 1000, 1537), ([951, 951], 1000, 9000), ([950, 950], 1000, 1),
    ]  # fmt: skip
    bins = [0, 0, 1, 9, 18, 19, 19, 18]
    posir_folder(tmp_path / "hub" / REPOSITORY, "rus-Cyrl", spans)
    monkeypatch.setenv("RUSBEIR_DATA", str(tmp_path))
    found = diagnose_position("posir/ru/aerospace", "bm25(profile=raw)", min_count=2, out=tmp_path / "results")
    curve = found.curves[0]
    assert [one.n_queries for one in curve.bins] == [bins.count(place) for place in range(20)]
    assert {one.bucket: one.n_queries for one in found.curves[1:]} == dict.fromkeys(BUCKETS, 2)
    assert (found.language, found.tokens) == ("ru", "as the dataset counts them")
    assert (curve.ndcg, curve.psi, curve.low, curve.high) == (1.0, 0.0, 0.0, 0.0), "every query finds its document"
    assert validate("posir/ru/aerospace") == []


def test_several_datasets_are_pooled_and_averaged(tmp_path):
    one = posir_folder(tmp_path, "eng-Latn", [([0, 10], 100, 5), ([90, 95], 100, 5)])
    two = posir_folder(tmp_path, "deu-Latn", [([0, 10], 100, 5), ([90, 95], 100, 5), ([90, 95], 100, 5)])
    wrong = [{"query-id": f"q{n}", "corpus-id": "d0", "score": 1} for n in range(3)]
    put(two / "qrels" / "test.parquet", wrong)
    found = diagnose_position([str(one), str(two)], "bm25(profile=raw)", language="en", min_count=1, out=tmp_path / "r")
    curve = found.curves[0]
    assert curve.n_queries == 5
    assert curve.ndcg == pytest.approx(3 / 5), "the mean over queries"
    assert found.curves[1].ndcg == pytest.approx((2 / 2 + 1 / 3) / 2), "the mean over positions"
    assert curve.psi == pytest.approx(2 / 3)
    assert [(one.n_queries, one.psi) for one in found.domains] == [(2, 0.0), (3, 1.0)]
    assert (found.macro_psi, found.macro_ndcg) == (0.5, pytest.approx((1 + 1 / 3) / 2))


def test_a_list_of_spans_makes_any_dataset_one_with_positions(in_memory, tmp_path):
    listed = [("q0", "d0", 0, 4), ("q1", "d1", 90, 100), ("elsewhere", "d1", 0, 1)]
    with_header = put(tmp_path / "a.tsv", "query_id\tdoc_id\tstart\tend\n" + _tsv(listed))
    for file in (with_header, put(tmp_path / "b.tsv", _tsv(listed))):
        found = diagnose_position(in_memory, "bm25(profile=raw)", spans=file, out=tmp_path / "results")
        counted = [place for place, one in enumerate(found.curves[0].bins) if one.n_queries]
        assert counted == [0, 18]
        assert "cannot be told" in found.curves[0].sentence


def _tsv(rows: list[tuple[object, ...]]) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q0\td0\t0\t101\n", r"spans.tsv:1: the span 0 to 101 is not in document 'd0' of 100 characters"),
        ("q0\td0\t5\t4\n", r"spans.tsv:1: the span 5 to 4 is not in"),
        ("q0\td0\t-1\t4\n", r"spans.tsv:1: .*not two whole numbers of characters"),
        ("q0\td9\t0\t4\n", r"spans.tsv:1: document 'd9' is not in the corpus of in-memory"),
        ("q0\td0\t0\t4\nq0\td0\t1\t4\n", r"spans.tsv:2: query 'q0' has a second span"),
        ("q7x\td0\t0\t4\n", r"spans.tsv: none of its queries is judged in in-memory"),
        ("q0\td0\t0\n", r"spans.tsv:1: 3 columns; expected 4 \(query_id, doc_id, start, end\)"),
    ],
)
def test_spans_that_cannot_be_right_are_named_with_their_line(in_memory, tmp_path, line, message):
    file = put(tmp_path / "spans.tsv", line)
    with pytest.raises(BadInput, match=message):
        diagnose_position(in_memory, "bm25(profile=raw)", spans=file, out=tmp_path / "results")


def test_a_dataset_without_spans_is_told_which_have_them(tmp_path, shared_data):
    for name in ("mini/ru", "xquad/ru/sentences"):
        with pytest.raises(BadInput, match=rf"{name} does not say where .*xquad/ru\).*posir/ru.*list the spans"):
            diagnose_position(name, out=tmp_path)


@pytest.mark.parametrize(
    ("span", "message"),
    [
        (([5, 101], 100, 9), r"row 1: query 'q0': the span \[5, 101\] is not in a text of 100"),
        (([5], 100, 9), "no span"),
    ],
)
def test_spans_of_posir_outside_the_text_are_refused_and_found_by_validate(tmp_path, span, message):
    folder = posir_folder(tmp_path, "eng-Latn", [span])
    with pytest.raises(BadInput, match=message):
        diagnose_position(str(folder), language="en", out=tmp_path / "results")
    (finding,) = validate(folder, language="en")
    assert finding.level == "warning", "it can still be searched"


def test_queries_in_another_language_keep_the_spans_of_the_documents(tmp_path, shared_data):
    asked = diagnose_position(
        "xquad/ru", "bm25(profile=raw)", query_language="en", samples=100, permutations=100, out=tmp_path
    )
    own = diagnose_position("xquad/ru", "bm25(profile=raw)", samples=100, permutations=100, out=tmp_path)
    assert (asked.dataset, asked.query_language) == ("xquad/ru asked in en", "en")
    counts = [[one.n_queries for one in found.curves[0].bins] for found in (asked, own)]
    assert counts[0] == counts[1]
    assert asked.curves[0].ndcg < 0.5 < own.curves[0].ndcg


def test_the_command_keeps_a_document_of_which_the_report_makes_a_page(tmp_path):
    mini = rusbeir.load("mini/ru")
    spans = put(tmp_path / "spans.tsv", _tsv([(one, next(iter(mini.qrels[one])), 0, 5) for one in mini.queries]))
    systems = ["--system", "bm25(profile=raw)", "--system", "bm25(profile=snowball)"]
    few = ["--samples", "100", "--permutations", "100", "--min-count", "1"]
    command = ["diagnose", "position", "mini/ru", "--spans", str(spans), *systems, *few]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "results"), "--json"])
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)["diagnoses"]
    assert sorted(printed, key=str) == sorted(read_diagnoses([tmp_path / "results"])["position"], key=str)
    write_site([tmp_path / "results"], tmp_path / "site")
    page = (tmp_path / "site" / "position.html").read_text(encoding="utf-8")
    assert "All documents are in one bucket of length (up to 512 tokens)" in page
    assert page.count('<svg class="curve"') == 2
    assert printed[0]["curves"][0]["sentence"] in page
    assert 'href="position.html"' in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    document = next((tmp_path / "results" / "diagnoses").glob("position-*.json"))
    document.write_text(document.read_text(encoding="utf-8").replace('"told"', '"tell"'), encoding="utf-8")
    with pytest.raises(BadInput, match=rf"{document.name}.*told is missing.*Remove it"):
        read_diagnoses([tmp_path / "results"])
