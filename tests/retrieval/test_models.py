"""The settings of models: the table that rusbeir ships, and those of models that are not in it."""

from __future__ import annotations

import dataclasses
import json
import logging
import re

import pytest

from rusbeir.errors import BadInput, UnknownName, warn_once
from rusbeir.retrieval import resolve
from rusbeir.retrieval.models import settings as models
from rusbeir.retrieval.models.settings import Model

ROWS = [(kind, name) for kind in models.KINDS for name in models.read_models(kind)]


@pytest.fixture(autouse=True)
def _warnings(caplog):
    """Every test is warned again, and hears of it."""
    warn_once.cache_clear()
    caplog.set_level(logging.WARNING)


@pytest.mark.parametrize(("kind", "name"), ROWS, ids=[f"{kind}-{name}" for kind, name in ROWS])
def test_a_row_has_a_revision_and_a_licence_or_says_that_they_are_unverified(kind, name):
    model = models.read_models(kind)[name]
    missing = {field for field in ("revision", "licence") if not getattr(model, field)}
    assert missing <= set(model.unverified)
    assert set(model.unverified) <= {field.name for field in dataclasses.fields(Model)}
    assert re.fullmatch("[0-9a-f]{40}|", model.revision)
    # Static embeddings have no limit, and late models say theirs in their own files.
    assert model.max_tokens or kind == "late" or model.runtimes in (("static",), (models.LATE,))
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


def model_folder(folder, config):
    folder.mkdir(parents=True)
    if config is not None:
        (folder / "config_sentence_transformers.json").write_text(config, encoding="utf-8")
    return folder


OWN = [
    # prompts in the file, options, prefixes in the signature, part of the warning
    ({"query": "q: ", "document": "d: "}, "", "|query:q:_|document:d:_", '="q: " and document_prefix="d: "'),
    ({"query": "q: ", "passage": "p: ", "corpus": "c: "}, "", "|query:q:_|document:p:_", 'document_prefix="p: "'),
    ({"query": "q: "}, "", "|query:q:_|document:|", 'query_prefix="q: "'),
    ({"query": "q: ", "document": None}, "", "|query:q:_|document:|", 'query_prefix="q: "'),
    ({"clustering": "c: "}, "", "|query:|document:|", "its texts get no prefix"),
    (None, "", "|query:|document:|", "its texts get no prefix"),
    ({"query": "q: ", "document": "d: "}, ',query_prefix="x: "', "|query:x:_|document:d:_", 'document_prefix="d: "'),
    ({"query": "q: "}, ",like=multilingual-e5-base", "|query:query:_|document:passage:_", "those of multilingual-e5"),
    ({"query": "q: "}, ',query_prefix="",document_prefix=""', "|query:|document:|", ""),
]


@pytest.mark.parametrize(("prompts", "options", "part", "warning"), OWN)
def test_a_folders_own_prompts_are_its_prefixes(prompts, options, part, warning, tmp_path, caplog):
    folder = model_folder(tmp_path / "m", json.dumps({"prompts": prompts, "default_prompt_name": None}))
    for _ in range(2):
        assert part in resolve(f"dense({folder}{options})", language="ru").signature
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == bool(warning), "once a process, and not where both prefixes are given"
    assert all(warning in message and "is not in models.toml" in message for message in messages), messages


def test_a_repositorys_own_prompts_are_read_where_it_is(tmp_path, monkeypatch):
    """In a folder of RUSBEIR_DATA, or on the hub, where a missing file or network leaves it without any."""
    import huggingface_hub

    config = json.dumps({"prompts": {"query": "q: "}})
    model_folder(tmp_path / "hub" / "owner" / "kept", config)
    monkeypatch.setenv("RUSBEIR_DATA", str(tmp_path))
    assert "|query:q:_|" in resolve("dense(owner/kept)", language="ru").signature

    requests = []

    def download(name, file, revision):
        requests.append((name, file, revision))
        if name == "owner/without":
            raise huggingface_hub.errors.LocalEntryNotFoundError("no network")
        return str(model_folder(tmp_path / "downloaded", config) / file)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    assert "|query:q:_|" in resolve("dense(owner/remote,revision=abc)", language="ru").signature
    assert "|query:|" in resolve("dense(owner/without)", language="ru").signature
    file = "config_sentence_transformers.json"
    assert requests == [("owner/remote", file, "abc"), ("owner/without", file, None)], "once for each model"


@pytest.mark.parametrize(
    "config", ["{", "[]", '{"prompts": ["query"]}', "\ud800", "[" * 100_000], ids=lambda config: repr(config)[:20]
)
def test_prompts_that_cannot_be_read_are_named(config, tmp_path):
    folder = model_folder(tmp_path / "m", None)
    (folder / "config_sentence_transformers.json").write_bytes(config.encode("utf-8", "surrogatepass"))
    with pytest.raises(BadInput, match=r"Cannot read the prompts in .*config_sentence_transformers\.json") as raised:
        _ = resolve(f"dense({folder})", language="ru").signature
    assert "\n" not in str(raised.value)


def test_a_folder_named_without_its_place_is_told_how_to_be_written(tmp_path, monkeypatch):
    model_folder(tmp_path / "minilm", None)
    monkeypatch.chdir(tmp_path)
    for system in ("dense(minilm)", "bm25 >> rerank(minilm)"):
        with pytest.raises(UnknownName, match=r"minilm is not in models\.toml.* write \./minilm\."):
            resolve(system, language="ru")
