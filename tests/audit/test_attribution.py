"""Which side of a port costs the score: shares and gains worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rusbeir.audit import audit_port
from rusbeir.audit.score_differences import attribution
from rusbeir.audit.score_differences.attribution import BOTH, DOCUMENTS, NONE, QUERIES, attribute
from rusbeir.audit.score_differences.repairs import attribute_port
from rusbeir.errors import BadInput
from rusbeir.translation.porting.api import port
from rusbeir.types import Dataset, Doc, MemoryCorpus
from tests.support.small_port import Fake, write_source

N = 40


def dataset(wrong_queries: range, wrong_documents: range) -> Dataset:
    """Query n finds document n alone by their word; a wrong one has the word of the next."""
    docs = [Doc(f"d{n}", f"word{n + (n in wrong_documents)}x") for n in range(N)]
    queries = {f"q{n}": f"word{n + (n in wrong_queries)}x" for n in range(N)}
    qrels = {f"q{n}": {f"d{n}": 1} for n in range(N)}
    return Dataset.of(MemoryCorpus(docs), queries, qrels, language="en", name="toy")


@pytest.mark.parametrize(
    ("wrong_queries", "wrong_documents", "scores", "shares", "verdict"),
    [
        (range(0), range(0), [1, 1, 1, 1], [0, 0], NONE),
        (range(10), range(0), [1, 0.75, 1, 0.75], [0.25, 0], QUERIES),
        # Documents 10 and 20 have the word of the first good one behind them, with which they share its query.
        (range(0), range(10, 20), [1, 1, 0.75, 0.75], [0, 0.25], DOCUMENTS),
        (range(10), range(20, 30), [1, 0.75, 0.75, 0.5], [0.25, 0.25], BOTH),
        # Where both went wrong in the same way they fit each other, and each alone costs what it costs.
        (range(10), range(10), [1, 0.75, 0.75, 1], [0, 0], NONE),
    ],
)  # fmt: skip
def test_shares(wrong_queries, wrong_documents, scores, shares, verdict):
    original, translated = dataset(range(0), range(0)), dataset(wrong_queries, wrong_documents)
    attribution, repairs = attribute(original, translated, "bm25", measure="R@1000")
    assert [*attribution.scores.values()] == pytest.approx(scores)
    assert [attribution.queries.value, attribution.documents.value] == pytest.approx(shares)
    assert attribution.lost.value == pytest.approx(sum(shares))
    assert attribution.verdict == verdict
    if verdict != NONE:
        assert repairs.queries == pytest.approx({f"q{n}": 1 / N for n in wrong_queries})
        gains = {doc_id: sum(gains.values()) for doc_id, gains in repairs.documents.items()}
        assert gains == pytest.approx({f"d{n}": 1 / N for n in wrong_documents})


def test_the_penalty_of_two_languages_is_nobodys_share(monkeypatch):
    """A system that finds relevant documents of the other language second is not the port's fault."""
    first, second = dataset(range(0), range(0)), dataset(range(0), range(0))
    second = replace(second, queries={query_id: f"{text} translated" for query_id, text in second.queries.items()})

    def search(docs: Dataset, system: str, queries: dict[str, str], **options: object) -> dict[str, dict[str, float]]:
        same = queries is docs.queries
        return {f"q{n}": {f"d{n}": 1.0, "other": 0.0 if same else 2.0} for n in range(N)}

    monkeypatch.setattr(attribution, "search", search)
    result, _ = attribute(first, second, "any", measure="RR@10")
    assert [*result.scores.values()] == [1, 0.5, 0.5, 1]
    assert (result.lost.value, result.queries.value, result.documents.value) == (0, 0, 0)


def test_segments_of_documents(tmp_path):
    """Of a document of three sentences, the one that lost its words is named first."""
    words = [f"Topic{n} alpha{n}. Second beta{n} here. Third gamma{n} there." for n in range(12)]
    source = tmp_path / "source"
    write_source(source, [{"_id": f"d{n}", "title": "", "text": text} for n, text in enumerate(words)])
    queries = "".join(json.dumps({"_id": f"q{n}", "text": f"beta{n}"}) + "\n" for n in range(12))
    (source / "queries.jsonl").write_text(queries)
    (source / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\td{n}\t1\n" for n in range(12))
    )
    fake = Fake(answer=lambda text, nth: "лес." if "beta3" in text and "here" in text else f"ф{text}")
    fake.capacity = replace(fake.capacity, levels=("sentence",))
    port(source, to="ru", translator=fake, out=tmp_path / "port")
    audit_port(
        tmp_path / "port",
        back_translator=Fake(answer=lambda text, nth: text.removeprefix("ф"), signature="b"),
        processes=1,
    )
    report = attribute_port(str(source), str(tmp_path / "port"), ["bm25"])
    assert report["file"] == str(tmp_path / "port" / "qa" / "retry-segments.jsonl")
    first = report["segments"][0]
    assert (first["kind"], first["id"], first["field"], first["segment"]) == ("document", "d3", "text", 2)
    assert first["gain"] == pytest.approx(1 / 12)
    assert first["translation"] == "лес."
    # In a folder that others load, no file has the texts of the source; the mark is what publish writes.
    (tmp_path / "port" / "qa" / "retry-segments.jsonl").unlink()
    (tmp_path / "port" / "croissant.json").write_text("{}")
    again = attribute_port(str(source), str(tmp_path / "port"), ["bm25"])
    assert (again["file"], again["segments"]) == (None, report["segments"])
    assert not (tmp_path / "port" / "qa" / "retry-segments.jsonl").exists()


def test_what_cannot_be_attributed(make_port, tmp_path):
    folder = make_port()
    source = str(tmp_path / "small")
    with pytest.raises(
        BadInput, match=r"bm25 compares words.*no back-translation. Run `rusbeir audit check .* --back-translator NAME`"
    ):
        attribute_port(source, str(folder), ["bm25"])
    with pytest.raises(BadInput, match=r"no query id in common|was not made from"):
        attribute_port("mini/en", str(folder), ["bm25"])
    with pytest.raises(BadInput, match="no query id in common"):
        attribute_port("mini/en", "xquad/ru", ["bm25"])
