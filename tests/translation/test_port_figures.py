"""Ports whose result is known: XQuAD through a memory of itself, and segments through servers that fail."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import rusbeir
from benchmarks import port_data
from rusbeir.jobs import Journal
from rusbeir.translation.porting.api import port
from tests.support import translation_servers as servers
from tests.support.small_port import records

N_SEGMENTS = 600
"""benchmarks/port.py does it with 10,000."""
IMPATIENT = {
    "requests_per_second": 100_000.0, "concurrency": 16, "retries": 8, "first_wait_seconds": 0.001,
    "max_wait_seconds": 0.02, "breaker": 100,
}  # fmt: skip


def xquad_texts(file: Path) -> list[str]:
    """Every paragraph and question, in the order of the file: equal in all languages."""
    articles = json.loads(file.read_text(encoding="utf-8"))["data"]
    return [
        text
        for article in articles
        for paragraph in article["paragraphs"]
        for text in (paragraph["context"], *(question["question"] for question in paragraph["qas"]))
    ]


@pytest.fixture
def xquad_memory(shared_data, tmp_path) -> Path:
    sides = [xquad_texts(shared_data / "xquad" / f"xquad.{language}.json") for language in ("en", "ru")]
    lines = [json.dumps({"source": a, "target": b}) + "\n" for a, b in zip(*sides, strict=True)]
    path = tmp_path / "xquad.jsonl"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_xquad_through_a_memory_of_itself(xquad_memory, tmp_path):
    port("xquad/en", to="ru", translator="memory", memory=xquad_memory, out=tmp_path / "out")
    ported, native = rusbeir.load(tmp_path / "out"), rusbeir.load("xquad/ru")
    assert list(ported.corpus) == list(native.corpus)
    assert ported.qrels == native.qrels
    # "Who won Super Bowl XLIX?" is asked twice in English; one of its two Russian forms ends with a space.
    other = {query_id: text for query_id, text in native.queries.items() if ported.queries[query_id] != text}
    assert other == {"56bf36b93aeaaa14008c9563": "Кто выиграл Суперкубок XLIX? "}
    assert {query_id: ported.queries[query_id] + " " for query_id in other} == other
    system = "bm25(profile=rusbeir-paper)"
    rows = [rusbeir.bench(dataset, system, out=tmp_path / "results") for dataset in (ported, native)]
    for key in ("measures", "measures_answered", "n_docs", "n_queries", "n_zero_hit", "n_tied"):
        assert rows[0][key] == rows[1][key]
    assert rows[0]["measures"]["nDCG@10"] == pytest.approx(0.9586, abs=2e-4)
    per_query = [Path(row["per_query"]).read_bytes() for row in rows]
    assert per_query[0] == per_query[1]


def test_mini_through_its_sentences(tmp_path):
    memory = Path(rusbeir.__file__).parent / "datasets" / "mini" / "memory.en-ru.tsv"
    port("mini/en", to="ru", translator="memory", memory=memory, out=tmp_path / "out")
    ported, native = rusbeir.load(tmp_path / "out"), rusbeir.load("mini/ru")
    assert list(ported.corpus) == list(native.corpus)
    assert ported.fingerprint == native.fingerprint


@pytest.mark.parametrize(
    ("name", "options"),
    [("google", {"timeout_seconds": 0.6}), ("llm", {"timeout_seconds": 3.0, "llm": servers.MODEL})],
)
def test_segments_through_a_server_that_fails(name, options, tmp_path, monkeypatch):
    source = port_data.write_corpus(tmp_path / "source", N_SEGMENTS - 100, sentences=1, n_queries=100)
    with servers.TranslationServer(faults=0.2, seed=7, slow_seconds=1.0, translate=port_data.translated) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", servers.OPENAI_KEY)
        endpoint = {} if name == "llm" else {"endpoint": server.url}
        report = port(source, to="ru", translator=name, out=tmp_path / "out", **IMPATIENT, **options, **endpoint)
    assert (report["segments"], report["missing"]) == (N_SEGMENTS, 0)
    docs, originals = records(tmp_path / "out" / "corpus.jsonl"), records(source / "corpus.jsonl")
    assert [doc["text"] for doc in docs] == [port_data.translated(doc["text"]) for doc in originals]
    assert all(doc["text"] for doc in docs)
    faults = {kind: server.served[kind] for kind in servers.FAULTS}
    assert min(faults.values()) > 0
    assert 0.15 < sum(faults.values()) / server.requests < 0.25
    assert report["retries"] > 0
    with Journal.open(tmp_path / "out" / "work" / "journal.sqlite", {}) as journal:
        noted = journal.read("SELECT state, count(*) FROM attempt GROUP BY state")
    sys.stdout.write(  # shown by pytest -s
        f"\n{name}: {server.requests} requests, {sum(faults.values())} faults {faults}, {report['retries']} retries, "
        f"attempts in the journal: {dict(noted)}\n"
    )
