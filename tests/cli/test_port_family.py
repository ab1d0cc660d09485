"""`rusbeir port --to ru,kk`: a port for each language, one budget over all, resumed by the same command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rusbeir.datasets import load
from tests.support.batch_server import BatchServer
from tests.support.command_line import one_line
from tests.support.small_port import DOCS, records, translated, write_source

LANGUAGES = ("ru", "uk")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A small English source, and a memory of it for each language."""
    source = write_source(tmp_path / "small")
    texts = {text for doc in DOCS for text in (doc["title"], doc["text"]) if text}
    texts |= {query["text"] for query in records(source / "queries.jsonl")}
    for language in LANGUAGES:
        lines = [json.dumps({"source": text, "target": translated(text)}) + "\n" for text in sorted(texts)]
        (tmp_path / f"memory.{language}.jsonl").write_text("".join(lines))
    return source


FAMILY = ["--to", "ru,Ukrainian", "--translator", "memory", "--memory", "memory.{to}.jsonl", "--out", "family"]


def test_each_language_is_a_port_and_pool_joins_them(rusbeir, small):
    done = rusbeir("port", small, *FAMILY)
    assert done.code == 0
    pooling = f"Or join them: rusbeir datasets pool {small} family/ru family/uk --out family/pool"
    assert pooling in done.err.replace("\n", " ")
    for language in LANGUAGES:
        assert load(Path("family") / language).card.name == f"small@{language}"
        assert (Path("family") / language / "work" / "journal.sqlite").is_file()
    assert rusbeir("datasets", "pool", small, "family/ru", "family/uk", "--out", "family/pool").code == 0
    pooled = load("family/pool")
    assert (pooled.card.name, pooled.card.languages) == ("small+small@ru+small@uk", ("en", "ru", "uk"))
    assert pooled.qrels["q2@uk"] == {"d3@en": 1, "d3@ru": 1, "d3@uk": 1}


def test_one_budget_over_all(rusbeir, small):
    """A port takes n characters: with one less than two ports take, the second stops, and with two n it ends."""
    alone = rusbeir("port", small, *FAMILY, "--to", "ru", "--memory", "memory.ru.jsonl", "--out", "alone", "--json")
    chars = json.loads(alone.out)["ports"][0]["spent"]["chars"]
    stopped = rusbeir("port", small, *FAMILY, "--budget-chars", 2 * chars - 1, "--json")
    assert stopped.code == 1
    assert [port["to"] for port in json.loads(stopped.out)["ports"]] == ["ru"]
    assert f"small to uk: The budget of {2 * chars - 1:,} characters is reached" in stopped.err
    resumed = rusbeir("port", small, *FAMILY, "--budget-chars", 2 * chars, "--json")
    ports = json.loads(resumed.out)["ports"]
    assert resumed.code == 0
    assert [port["spent"]["chars"] for port in ports] == [chars, chars]
    assert ports[0]["requests"] == 0, "the first was finished"


def test_a_dry_run_has_a_row_for_each(rusbeir, small):
    rows = json.loads(rusbeir("port", small, *FAMILY, "--dry-run", "--json").out)["estimates"]
    assert [(row["dataset"], row["to"]) for row in rows] == [(str(small), "ru"), (str(small), "uk")]


def test_ports_that_wait_are_no_problems(rusbeir, small, monkeypatch):
    """Nothing is under way, so each port says that nothing was cancelled, and the command ends well."""
    with BatchServer() as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        order = ["--to", "ru,uk", "--translator", "llm", "--llm", "tiny", "--out", "family"]
        done = rusbeir("port", small, *order, "--cancel")
    assert done.code == 0
    assert [f"small to {language}: 0 batches are cancelled" in done.err for language in LANGUAGES] == [True, True]
    assert "rusbeir: small" not in done.err


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--memory", "memory.ru.jsonl"], ["--memory memory.ru.jsonl is of one language", "'memory.ru.{to}.jsonl'"]),
        (["--export", "pairs.tmx"], ["--export pairs.tmx is of one language", "{to}"]),
        (["--memory", "."], ["--memory . is of one language", "'{to}'"]),
        (["--export", "/"], ["--export / is of one language", "'/{to}'"]),
        (["--retry-segments", "x.jsonl"], ["--retry-segments", "one by one"]),
        (["--batch-in", "a.jsonl"], ["--batch-in", "one by one"]),
        (["--to", "ru,qq"], ["No language 'qq'"]),
    ],
)
def test_bad_input_is_one_line(arguments, parts, rusbeir, small):
    done = rusbeir("port", small, *FAMILY, *arguments)
    assert done.code == 2
    assert one_line(done.err, parts)
    assert not Path("family").exists()
