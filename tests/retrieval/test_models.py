"""The settings of models: the table that rusbeir ships, and those of models that are not in it."""

from __future__ import annotations

import dataclasses
import logging
import re

import pytest

from rusbeir.errors import UnknownName
from rusbeir.retrieval import models, resolve
from rusbeir.retrieval.models import Model

ROWS = [(kind, name) for kind in ("dense", "rerank") for name in models.models(kind)]


@pytest.fixture(autouse=True)
def _warnings(caplog):
    """Every test is warned again, and hears of it."""
    models.warn_once.cache_clear()
    caplog.set_level(logging.WARNING)


@pytest.mark.parametrize(("kind", "name"), ROWS, ids=[f"{kind}-{name}" for kind, name in ROWS])
def test_a_row_has_a_revision_and_a_licence_or_says_that_they_are_unverified(kind, name):
    model = models.models(kind)[name]
    missing = {field for field in ("revision", "licence") if not getattr(model, field)}
    assert missing <= set(model.unverified)
    assert set(model.unverified) <= {field.name for field in dataclasses.fields(Model)}
    assert re.fullmatch("[0-9a-f]{40}|", model.revision)
    assert model.max_tokens
    if model.converted_from:
        assert model.converted_from != model.hub
        assert "revision" in model.unverified, "mteb's revision is that of another repository"


@pytest.mark.parametrize(
    ("system", "part"),
    [
        ("dense(LaBSE)", "|max:256|"),  # its own sentence_bert_config.json, which mteb reads
        ("dense(LaBSE,max_tokens=512)", "|max:512|"),  # the RusBEIR paper's
        ("dense(paraphrase-multilingual-MiniLM-L12-v2)", "|max:128|"),
        ("bm25 >> rerank(ms-marco-MiniLM-L6-v2)", "ms-marco-MiniLM-L6-v2@c5ee24cb|"),
    ],
)
def test_models_are_run_as_mteb_runs_them(system, part):
    assert part in resolve(system, language="ru").signature


DIFFERENCES = [
    # system, what is warned of: nothing, or a part of it
    ("dense(Qwen3-Embedding-0.6B)", "Qwen3-Embedding-0.6B gets the same instruction on every dataset"),
    ("dense(multilingual-e5-large-instruct)", "figures will not equal MTEB's"),
    ('dense(Qwen3-Embedding-0.6B,query_prefix="Instruct: Find the law\nQuery:")', ""),
    ("dense(gte-multilingual-base)", "a conversion of Alibaba-NLP/gte-multilingual-base, which MTEB runs"),
    ("dense(jina-embeddings-v3)", "jina-embeddings-v3 is read from jinaai/jina-embeddings-v3-hf"),
    ("dense(owner/mine,like=gte-multilingual-base)", "lengths are those of gte-multilingual-base"),
    ("dense(multilingual-e5-small)", ""),
]


@pytest.mark.parametrize(("system", "part"), DIFFERENCES, ids=[row[0][:45] for row in DIFFERENCES])
def test_what_differs_from_mteb_is_said_once(system, part, caplog):
    system = system.replace("\n", "\\n")
    for _ in range(2):
        resolve(system, language="ru")
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == bool(part)
    assert all(part in message for message in messages), messages


def test_a_folder_named_without_its_place_is_told_how_to_be_written(tmp_path, monkeypatch):
    (tmp_path / "minilm").mkdir()
    monkeypatch.chdir(tmp_path)
    for system in ("dense(minilm)", "bm25 >> rerank(minilm)"):
        with pytest.raises(UnknownName, match=r"minilm is not in models\.toml.* write \./minilm\."):
            resolve(system, language="ru")
