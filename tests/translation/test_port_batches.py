"""A port whose requests are answered in files: the same bytes as one by one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from benchmarks import kills
from rusbeir.audit import audit_port
from rusbeir.errors import BadInput, Suspended
from rusbeir.translation.porting.api import port
from tests.support.backwards import back
from tests.support.batch_files import answer_file
from tests.support.openai_server import Endpoint, Reply, completion
from tests.support.small_port import Fake, translated, write_source


def translate(body):
    """The source text with Russian words, which some first seeds leave as it is or ask back about."""
    text, seed = body["messages"][-1]["content"], body["seed"]
    if seed == 0 and "Rain" in text:
        return completion(json.dumps({"translation": text}))
    if seed < 2 and "Bear" in text:
        return completion("What language?")
    return completion(json.dumps({"translation": translated(text)}))


class Translating(Endpoint):
    def reply(self, asked: dict[str, object]) -> Reply:
        return translate(asked)


def translate_back(body):
    return completion(json.dumps({"translation": back(body["messages"][-1]["content"])}))


class Backwards(Endpoint):
    def reply(self, asked: dict[str, object]) -> Reply:
        return translate_back(asked)


def port_by_files(source: Path, out: Path, folder: Path, **options) -> int:
    """Port until nothing is left to ask; the number of files."""
    read: list[Path] = []
    for number in range(10):
        requests, answers = folder / f"requests-{number}.jsonl", folder / f"answers-{number}.jsonl"
        try:
            port(source, to="ru", translator="llm", llm="tiny", out=out, batch_out=requests, batch_in=read, **options)
            return number
        except Suspended:
            answer_file(requests, answers, translate, seed=number)
            read = [answers]
    raise AssertionError("ten files")


def test_a_port_by_files(tmp_path, serve, monkeypatch):
    source = write_source(tmp_path / "small")
    serve(Translating())
    report = port(source, to="ru", translator="llm", llm="tiny", out=tmp_path / "live")
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert port_by_files(source, tmp_path / "files", tmp_path) == 3
    assert kills.content(tmp_path / "files") == kills.content(tmp_path / "live")
    again = port(
        source, to="ru", translator="llm", llm="tiny", out=tmp_path / "files", batch_in=[tmp_path / "answers-0.jsonl"]
    )
    assert again["spent"]["requests"] == report["spent"]["requests"]


def test_only_language_models_take_batches(tmp_path):
    source = write_source(tmp_path / "small")
    with pytest.raises(BadInput, match="Only language models are asked in batches, which fake-1 is not"):
        port(source, to="ru", translator=Fake(), out=tmp_path / "out", batch_out=tmp_path / "r.jsonl")
    with pytest.raises(BadInput, match="needs a model"):
        port(source, to="ru", translator="llm", out=tmp_path / "out", batch_out=tmp_path / "r.jsonl")


def test_a_back_translation_by_files(tmp_path, serve, monkeypatch):
    """The report of an audit is the same as with requests one by one."""
    source = write_source(tmp_path / "small")
    folder = tmp_path / "port"
    port(source, to="ru", translator=Fake(), out=folder)
    order = {"source": source, "back_translator": "llm", "llm": "tiny", "processes": 1, "round_trip": False}
    serve(Backwards())
    live = audit_port(folder, **order)
    shutil.rmtree(folder / "qa" / "back")
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    requests, answers = tmp_path / "r.jsonl", tmp_path / "a.jsonl"
    with pytest.raises(Suspended):
        audit_port(folder, **order, batch_out=requests)
    answer_file(requests, answers, translate_back, seed=1)
    assert audit_port(folder, **order, batch_in=[answers]) == live
